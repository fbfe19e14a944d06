"""A small cluster of Slurm on this machine alone: munge, slurmctld, and two nodes, on loopback.

It needs neither systemd nor cgroups. Each daemon is a child of whoever starts it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
DAEMONS = ("munged", "mungekey", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "srun", "sinfo")
PACKAGES = "slurm-wlm munge"
NODES = ("one", "two")
READY_S, END_S, LOOK_S = 60.0, 1.0, 0.05
PORTS = range(10_000, 30_000)
"""The kernel gives none of these to a connection (ip(7): it takes them from 32768 on), so a daemon
that is started again finds its port free."""
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
Licenses=agents:{licenses}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP LLN=YES
"""
NODE = "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2"


class ClusterError(Exception):
    """The cluster does not come up; the text says what is missing."""


class TooLateError(ClusterError):
    """What was waited for has not come in time."""


def find_missing() -> str:
    """What is missing for a cluster here; '' for nothing."""
    names = [name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name, path=SBIN)]
    if names:
        return f"{', '.join(names)} (on Debian: apt-get install {PACKAGES})"
    return "root, for whom slurmd reads a user's environment" if os.geteuid() else ""


class Cluster:
    """Its files are in `folder`, whose path is short, as that of a socket has to be (unix(7)).

    `licenses` is how many jobs at a time get the license `agents`; `marks` are variables that
    all of its processes have.
    """

    def __init__(
        self, folder: Path, *, licenses: int = 2, marks: Mapping[str, str] | None = None
    ) -> None:
        """Nothing runs yet."""
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("munge", "state", *NODES):
            (folder / name).mkdir(mode=0o700)
        (folder / "munge").chmod(0o711)
        control, *ports = find_ports(1 + len(NODES))
        nodes = (NODE.format(name=one, port=port) for one, port in zip(NODES, ports, strict=True))
        self.config.write_text(
            CONFIG.format(
                control=control,
                user=pwd.getpwuid(os.geteuid()).pw_name,
                folder=folder,
                licenses=licenses,
                nodes="\n".join(nodes),
            )
        )
        self.environment = {"PATH": SBIN, "SLURM_CONF": str(self.config), "LANG": "C.UTF-8"}
        self.environment |= marks or {}

    def start(self) -> None:
        """Start all of it, and wait until both nodes are there.

        Raises:
            ClusterError: they do not come.

        """
        munge = self.folder / "munge"
        self.call("mungekey", "--create", f"--keyfile={munge / 'key'}")
        named = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        named |= {"seed-file": "seed"}
        options = [f"--{option}={munge / name}" for option, name in named.items()]
        self._run("munged", "--foreground", "--force", *options)
        wait_until((munge / "socket").exists, "munge")
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

    def wait_until_idle(self, within_s: float = READY_S) -> None:
        """Wait until both nodes have nothing to do.

        Raises:
            ClusterError: they still have, or a daemon has ended; it says what is known of all.

        """

        def is_idle() -> bool:
            if ended := self.list_ended():
                raise ClusterError(f"{', '.join(ended)} ended: {self.describe()}")
            return sorted(self.list_states()) == ["idle"] * len(NODES)

        try:
            wait_until(is_idle, "two idle nodes", within_s)
        except TooLateError as error:
            raise ClusterError(f"{error}: {self.describe()}") from error

    def list_states(self) -> list[str]:
        """Return the state of each node."""
        return self.call("sinfo", "--noheader", "--Node", "--format=%T").split()

    def list_ended(self) -> list[str]:
        """Return the daemons that have ended by themselves."""
        return [called for called, process in self.running.items() if process.poll() is not None]

    def describe(self) -> str:
        """Return what is known of the nodes, the jobs that are not over, and the daemons."""
        nodes = self.call("sinfo", "--noheader", "--Node", "--format=%N %T (%E)").splitlines()
        jobs = self.call("squeue", "--noheader", "--format=job %i %T %N (%r)").splitlines()
        logs = (self.folder / f"{called}.out" for called in self.list_ended())
        said = [f"{log.name}: {log.read_text(errors='replace')[-500:]}" for log in logs]
        return "; ".join((*(nodes or ["no word of the nodes"]), *jobs, *said))

    def list_jobs(self, form: str = "%T %N") -> list[str]:
        """Return 'STATE NODE' of each job, also of those that are over, the oldest first."""
        lines = self.call("squeue", "--noheader", "--states=all", "--sort=i", f"--format={form}")
        return [line.strip() for line in lines.splitlines()]

    def call(self, *argv: str) -> str:
        """Call a command of Slurm; return what it has said, '' if it could not."""
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    def stop(self) -> None:
        """Cancel all jobs, and end what was started."""
        if "slurmctld" in self.running:
            self.call("scancel", f"--user={os.geteuid()}", "--signal=KILL")
        ending = [self.running.pop(called) for called in reversed(list(self.running))]
        for process in ending:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        until = time.monotonic() + END_S
        for process in ending:
            try:
                process.wait(max(0.0, until - time.monotonic()))
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
        if program is None:
            raise ClusterError(f"no '{argv[0]}' here")
        with (self.folder / f"{called or argv[0]}.out").open("ab") as log:
            self.running[called or argv[0]] = subprocess.Popen(
                [program, *argv[1:]],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the terminal's Ctrl-C is for who started it
            )


def wait_until(condition: Callable[[], bool], what: str, within_s: float = READY_S) -> None:
    """Wait for it.

    Raises:
        TooLateError: it does not come.

    """
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            raise TooLateError(f"no {what} after {within_s:g} s")
        time.sleep(LOOK_S)


def find_ports(count: int) -> list[int]:
    """Return ports that were free just now; another process begins its search elsewhere.

    Raises:
        ClusterError: there are not so many.

    """
    start = os.getpid() * 10 % len(PORTS)
    found = list(itertools.islice(filter(is_free, (*PORTS[start:], *PORTS[:start])), count))
    if len(found) < count:
        raise ClusterError("no free ports")
    return found


def is_free(port: int) -> bool:
    """Whether the port is free."""
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
