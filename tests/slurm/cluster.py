"""A cluster of the tests' own on loopback: munge, slurmctld, and two nodes on this machine."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.helpers import wait_for

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
DAEMONS = ("munged", "mungekey", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "srun", "sinfo")
MISSING = ", ".join(
    name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name, path=SBIN)
) or ("root, for whom slurmd reads a user's environment" if os.geteuid() else "")
"""What is missing for one, '' for nothing: apt-get install slurm-wlm munge."""
NODES = ("one", "two")
CONFIG = """\
ClusterName=smtest
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={control}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
MessageTimeout=3
KillWait=10
Licenses=agents:2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2"


class Cluster:
    """It runs while it is entered; each daemon is a child of the test."""

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet. The path is short, as that of a socket has to be (unix(7))."""
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("munge", "state", *NODES):
            (folder / name).mkdir(mode=0o700)
        (folder / "munge").chmod(0o711)
        control, *ports = find_ports(1 + len(NODES))
        nodes = (NODE.format(name=one, port=port) for one, port in zip(NODES, ports, strict=True))
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.config.write_text(
            CONFIG.format(control=control, user=user, folder=folder, nodes="\n".join(nodes))
        )
        self.environment = {"PATH": SBIN, "SLURM_CONF": str(self.config), "LANG": "C.UTF-8"}

    def start(self) -> None:
        """Start all of it, and wait until both nodes are there."""
        munge = self.folder / "munge"
        self.call("mungekey", "--create", f"--keyfile={munge / 'key'}")
        named = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        named |= {"seed-file": "seed"}
        options = [f"--{option}={munge / name}" for option, name in named.items()]
        self._run("munged", "--foreground", "--force", *options)
        wait_for((munge / "socket").exists, "munge")
        self.start_controller()
        for name in NODES:
            self.start_node(name)
        self.wait_until_idle()

    def start_controller(self) -> None:
        """Start the controller, with what it has kept."""
        self._run("slurmctld", "-D")

    def start_node(self, name: str) -> None:
        """Start a node."""
        self._run("slurmd", "-D", "-N", name, called=name)

    def kill(self, called: str) -> None:
        """Kill a daemon; what it has started runs on."""
        self.running[called].kill()
        self.running.pop(called).wait()

    def stop_controller(self) -> None:
        """Have the controller keep what it knows, and end."""
        self.running["slurmctld"].terminate()
        self.running.pop("slurmctld").wait()

    def wait_until_idle(self) -> None:
        """Wait until both nodes have nothing to do."""
        wait_for(lambda: sorted(self.list_states()) == ["idle", "idle"], "both nodes", every_s=0.1)

    def list_states(self) -> list[str]:
        """Return the state of each node."""
        return self.call("sinfo", "--noheader", "--Node", "--format=%T").split()

    def list_jobs(self) -> list[str]:
        """Return 'STATE NODE' of each job, also of those that are over, the oldest first."""
        lines = self.call("squeue", "--noheader", "--states=all", "--sort=i", "--format=%T %N")
        return [line.strip() for line in lines.splitlines()]

    def call(self, *argv: str) -> str:
        """Call a command of Slurm; return what it has said, '' if it could not."""
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    def find_processes(self, name: str, place: Path) -> set[int]:
        """Return the daemon of a node, and all that runs there; `place` is a folder of its own."""
        daemon = self.running[name].pid
        found, wanted = {daemon, *list_children(daemon)}, os.fsencode(place)
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes():
                    found.add(int(entry.name))
        return found

    def signal(self, name: str, place: Path, number: signal.Signals) -> None:
        """Send a signal to all of a node."""
        for pid in self.find_processes(name, place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Cancel all jobs, and end what was started."""
        if "slurmctld" in self.running:
            self.call("scancel", f"--user={os.geteuid()}", "--signal=KILL")
        for called in reversed(list(self.running)):
            process = self.running.pop(called)
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self._find_left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _find_left(self) -> Iterator[int]:
        """Yield what still waits for the processes of a job that its node has lost."""
        mine = os.fsencode(self.config)
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_step = (entry / "comm").read_text().startswith("slurmstepd")
                if is_step and mine in (entry / "environ").read_bytes():
                    yield int(entry.name)

    def _run(self, *argv: str, called: str = "") -> None:
        program = shutil.which(argv[0], path=SBIN)
        assert program
        with (self.folder / f"{called or argv[0]}.out").open("ab") as log:
            self.running[called or argv[0]] = subprocess.Popen(
                [program, *argv[1:]], env=self.environment, stdout=log, stderr=log
            )


def list_children(pid: int) -> Iterator[int]:
    """Yield the processes below one, as long as they have not left it."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from list_children(child)


def find_ports(count: int) -> list[int]:
    """Return ports that were free just now."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            found.append(listener.getsockname()[1])
        return found
