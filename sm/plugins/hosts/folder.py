"""Files about hosts in the state root: a folder for each, by its name, and the link to all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.store.files import ensure_private_dir
from sm.store.paths import Root, check_name

if TYPE_CHECKING:
    from sm.helper.process import Helper


from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.store.files import read_guarded, write_atomic

PLUGIN = "hosts"


class HostFolder(Struct, frozen=True):
    """The files about one host."""

    path: Path

    @property
    def root(self) -> Root:
        """The state root that it is in."""
        return Root(self.path.parents[3])

    @property
    def master(self) -> Path:
        """The control socket of ssh."""
        return self.path / "master"

    @property
    def master_process(self) -> Path:
        """Process that has it."""
        return self.path / "master.json"

    @property
    def trouble(self) -> Path:
        """Trouble with the host: since when it does not answer, and why."""
        return self.path / "trouble.json"

    @property
    def silent(self) -> Path:
        """Silence of the host: since when dev-poll has asked in vain, and when it did so last."""
        return self.path / "silent.json"

    @property
    def ident(self) -> Path:
        """Id that the node has given last, which tells it from others."""
        return self.path / "ident.json"

    def refusal(self, project: str) -> Path:
        """Refusal of the host: since when it answers, and cannot begin sessions of a project."""
        return self.path / f"refusal-{project}.json"

    def placed(self, project: str) -> Path:
        """Issues of a project of which the host has, or had, sessions; the last ones."""
        return self.path / f"placed-{project}.json"

    def report(self, project: str) -> Path:
        """Last report of the node about a project's sessions, and when it came."""
        return self.path / f"report-{project}.json"


class LinkFiles(Struct, frozen=True):
    """The files about the process that has the channels to all hosts. No host is called so."""

    root: Root

    @property
    def path(self) -> Path:
        """The folder that they are in."""
        return self.root.plugins / PLUGIN

    @property
    def socket(self) -> Path:
        """Socket at which the process is asked."""
        return self.path / ".link"

    @property
    def lock(self) -> Path:
        """Held by the process."""
        return self.path / ".link.lock"

    @property
    def log(self) -> Path:
        """Log of the process."""
        return self.path / ".link.log"

    @property
    def helper(self) -> Helper:
        """The process, which answers at the socket."""
        from sm.helper.process import Helper  # mostly a command only connects to it

        return Helper(("host", "link", str(self.root.path)), self.lock, self.log)


def open_plugin_folder(root: Root) -> Path:
    """Return the folder of all that is kept here, made if it is missing.

    Raises:
        StateError: others could write there.

    """
    folder = root.plugins / PLUGIN
    for one in (root.private, root.plugins, folder):
        ensure_private_dir(one)
    return folder


def open_folder(root: Root, host: str) -> HostFolder:
    """Return the folder of a host, made if it is missing.

    Raises:
        UsageError: the name can be no file's.
        StateError: others could write there.

    """
    path = open_plugin_folder(root) / check_name(host, "host")
    return HostFolder(ensure_private_dir(path))


def read_ident(root: Root) -> str:
    """Return the id of this node, which is made at the first call; '' if it cannot be kept."""
    try:
        file = open_plugin_folder(root) / "ident"
        if not read_guarded(file):
            write_atomic(file, make_nonce(16))
        return (read_guarded(file) or b"").decode().strip()
    except (SmError, UnicodeDecodeError):
        return ""
