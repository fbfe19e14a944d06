"""An sshd of the tests' own on loopback: own host key, own port, and a HOME that is a node's."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.gitdaemon import listens
from tests.helpers import wait_for
from tests.ports import find_free_port

PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
MISSING = "no sshd here"


class Sshd:
    """A machine to log in to, in a folder; what logs in gets the node's environment."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        listens_at: str = "127.0.0.1",
        entry: Sequence[str] = (),
    ) -> None:
        """Nothing listens yet. `environment` is what a login there has.

        `entry` begins the command line: it enters the network that has the address.
        """
        self.folder = folder
        self.environment = dict(environment)
        self.listens_at, self.entry = listens_at, entry
        self.port = find_free_port()
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(exist_ok=True)
        for key in ("host_key", "user_key"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        public = " ".join((folder / "host_key.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"[{listens_at}]:{self.port} {public}\n")

    @property
    def address(self) -> str:
        """Who logs in where."""
        return f"{pwd.getpwuid(os.geteuid()).pw_name}@{self.listens_at}"

    @property
    def options(self) -> list[str]:
        """What ssh needs to know of it."""
        return [
            f"Port={self.port}",
            f"IdentityFile={self.folder / 'user_key'}",
            f"UserKnownHostsFile={self.folder / 'known_hosts'}",
            "IdentitiesOnly=yes",
        ]

    def start(self) -> None:
        """Have it listen."""
        assert PROGRAM
        if os.geteuid() == 0:  # which sshd then wants to be there (sshd(8), /run/sshd)
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        told = " ".join(f'"{name}={value}"' for name, value in self.environment.items())
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress {self.listens_at}\n"
            f"HostKey {self.folder / 'host_key'}\n"
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
            f"PidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 100\n"
            f"MaxSessions 100\nPrintMotd no\nPrintLastLog no\nSetEnv {told}\n"
        )
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.entry, PROGRAM, "-D", "-e", "-f", str(config)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.listens, "sshd to listen")

    def listens(self) -> bool:
        """Whether somebody answers at its port."""
        return listens(self.listens_at, self.port)

    def stop(self, *, cut: bool = False) -> None:
        """Let nobody in any more; `cut`: end the connections there are, too."""
        if self.process is None:
            return
        if cut:
            for child in list_children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, 9)
        self.process.terminate()
        self.process.wait(10)
        self.process = None


def list_children(pid: int) -> list[int]:
    """Return the processes that it has started, and theirs, as far as they are called sshd."""
    found, numbers = list[int](), {pid}
    for _ in range(3):
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                head, _, rest = path.read_text().rpartition(")")
                number, parent = int(head.split()[0]), int(rest.split()[1])
                if parent in numbers and number not in numbers and "sshd" in head:
                    numbers.add(number)
                    found.append(number)
    return found


def call(*argv: str) -> None:
    """Run a program that must succeed."""
    subprocess.run(argv, check=True, capture_output=True)


@contextlib.contextmanager
def running(folder: Path, environment: Mapping[str, str]) -> Iterator[Sshd]:
    """Yield one that listens."""
    sshd = Sshd(folder, environment)
    sshd.start()
    try:
        yield sshd
    finally:
        sshd.stop(cut=True)
