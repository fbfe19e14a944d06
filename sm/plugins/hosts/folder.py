"""What is kept of each host in the state root: a folder for each, by its name."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.store.files import ensure_private_dir
from sm.store.paths import Root, check_name

PLUGIN = "hosts"


class HostFolder(Struct, frozen=True):
    """The files about one host."""

    path: Path

    @property
    def root(self) -> Root:
        """The state root that it is in."""
        return Root(self.path.parents[3])

    @property
    def link(self) -> Path:
        """The socket of the process that has the channel."""
        return self.path / "link"

    @property
    def lock(self) -> Path:
        """Held by that process."""
        return self.path / "link.lock"

    @property
    def log(self) -> Path:
        """What that process, and ssh, have said."""
        return self.path / "link.log"

    @property
    def master(self) -> Path:
        """The control socket of ssh."""
        return self.path / "master"

    @property
    def master_process(self) -> Path:
        """Which process has it."""
        return self.path / "master.json"

    @property
    def trouble(self) -> Path:
        """Since when the host does not answer, and why."""
        return self.path / "trouble.json"

    @property
    def silent(self) -> Path:
        """Since when dev-poll has asked in vain, and when it did so last."""
        return self.path / "silent.json"

    def refusal(self, project: str) -> Path:
        """Since when the host answers, and cannot begin sessions of a project."""
        return self.path / f"refusal-{project}.json"

    def placed(self, project: str) -> Path:
        """Of which issues of a project the host has, or had, sessions; the last ones."""
        return self.path / f"placed-{project}.json"

    def report(self, project: str) -> Path:
        """What the node has said last of a project's sessions, and when."""
        return self.path / f"report-{project}.json"


def open_folder(root: Root, host: str) -> HostFolder:
    """Return the folder of a host, made if it is missing.

    Raises:
        UsageError: the name can be no file's.
        StateError: others could write there.

    """
    path = root.plugins / PLUGIN / check_name(host, "host")
    for folder in (root.private, root.plugins, path.parent, path):
        ensure_private_dir(folder)
    return HostFolder(path)
