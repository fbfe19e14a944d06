"""What is kept of a forge elsewhere beside its observations: the repository's id, and a sign.

Both can be lost: then the repository is looked up by its configured name, and all is read anew.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import Struct

from sm.errors import SmError
from sm.store.damage import read_rebuildable
from sm.store.files import write_atomic, write_json
from sm.store.paths import ProjectDir


class Known(Struct, frozen=True):
    """The repository that `configured` has meant: its id, which stays, and its present name."""

    configured: str
    id: int
    name: str


class StateFiles:
    """The files in a project's private folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` must be there."""
        self._files = ProjectDir(folder) if folder else None
        self._known: Known | None = None

    @property
    def sign(self) -> Path | None:
        """Gets a new time with each write to the forge."""
        return self._files.forge_written if self._files else None

    @property
    def quota(self) -> Path | None:
        """The ledger."""
        return self._files.quota if self._files else None

    def written(self) -> str:
        """A word that is another one after each write."""
        try:
            return str(self.sign.stat().st_mtime_ns) if self.sign else ""
        except OSError:
            return ""

    def note_written(self) -> None:
        """Give the sign a new time. If that fails, the next interval shows what was written."""
        if self.sign:
            with contextlib.suppress(SmError):
                write_atomic(self.sign, "")

    def read_known(self, configured: str) -> Known | None:
        """The repository as it was last seen, if the configuration names the same one."""
        found = self._known
        if found is None and self._files:
            found = read_rebuildable(self._files.repository, Known)
        return found if found and found.configured == configured else None

    def present_name(self, configured: str) -> str:
        """What the repository is called now, as far as it is known."""
        found = self.read_known(configured)
        return found.name if found else configured

    def remember(self, known: Known) -> None:
        """Keep the repository's id and name."""
        if known == self.read_known(known.configured):
            return
        self._known = known
        if self._files:
            with contextlib.suppress(SmError):
                write_json(self._files.repository, known)
