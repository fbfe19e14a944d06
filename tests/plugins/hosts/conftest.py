"""A node on loopback that is reached by a real ssh, and whatever is started for it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.hosts.folder import LinkFiles
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import master
from sm.plugins.hosts.ssh.client import SshNode
from sm.store.files import read_json
from sm.store.paths import Root
from tests.cable import Cable, strung
from tests.conftest import KEPT_VARIABLES
from tests.helpers import REPOSITORY
from tests.sshd import MISSING, PROGRAM, Sshd, running


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """An sshd whose logins have a HOME, a state root and a tmux server of the node's own."""
    if PROGRAM is None:
        pytest.skip(MISSING)
    folder = tmp_path / "node"
    for one in (folder, folder / "home", folder / "state"):
        one.mkdir(mode=0o700)
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment |= {"HOME": str(folder / "home"), "SM_STATE_ROOT": str(folder / "state")}
    environment["SM_TMUX_SOCKET"] = f"sm-test-node-{os.getpid()}"
    with running(tmp_path / "sshd", environment) as made:
        yield made


@pytest.fixture
def cable() -> Iterator[Cable]:
    """What is between here and a machine of a test, which can be cut."""
    with strung() as made:
        yield made


@pytest.fixture
def node(sshd: Sshd, root: Root) -> Iterator[SshNode]:
    """That machine, as a host called `box`."""
    made = make_node(sshd, root)
    yield made
    end_link(made)


def make_node(sshd: Sshd, root: Root, program: str = str(REPOSITORY / "bin" / "sm")) -> SshNode:
    """Return the host; `program` is what is called as `sm` there."""
    host = SshHost(address=sshd.address, sm=program, options=tuple(sshd.options))
    return SshNode(root, "box", host)


def find_link(node: SshNode) -> int:
    """Return the process that has the channels; 0 if there is none."""
    return find_holder(LinkFiles(node.root).lock)


def find_holder(path: Path) -> int:
    """Return the process that holds a lock; 0 if there is none."""
    held = path.stat() if path.exists() else None
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if held and words[1] == "FLOCK" and words[5].endswith(f":{held.st_ino}"):
            return int(words[4])
    return 0


def end_link(node: SshNode) -> None:
    """End what the test has started for the host."""
    if pid := find_link(node):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    master.end(node.folder)


def find_master(node: SshNode) -> int:
    """Return the process of the shared connection."""
    found = read_json(node.folder.master_process, tuple[int, int])
    assert found
    return found[0]
