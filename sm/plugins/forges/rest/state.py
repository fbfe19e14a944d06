"""Files that are kept of a forge elsewhere beside its observations: its id, a sign, rules, logs.

All can be lost: then the repository is looked up by its configured name, and all is read anew.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.plugins.forges.rest.protection import KeptRules
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, write_atomic, write_json
from sm.store.paths import EntryKind, Folder, ProjectDir, StateEntry
from sm.store.repair import repair_folder

STRICT_S = 86400.0
"""Time that a branch is taken to be strict after a refusal, in seconds."""
LOGS = 20
"""Logs that are kept: those written last."""


COMMIT = re.compile(r"[0-9a-f]{40,64}")


def _age(file: Path) -> float:
    try:
        return file.lstat().st_mtime
    except OSError:
        return 0.0


class ForgeFiles(Folder, frozen=True):
    """Files of a forge elsewhere, in the folder of its project."""

    repository = StateEntry("repository.json")
    """The id of the repository on a forge elsewhere, and its present name."""
    account = StateEntry("account.json")
    """The account of the token with which we write to a forge elsewhere."""
    strict_branches = StateEntry("strict-branches.json")
    """Time of a forge's last refusal to merge into a branch what was behind it."""
    rules = StateEntry("rules.json")
    """Conditions that a forge elsewhere sets for a merge into a branch."""
    ci_logs = StateEntry("ci-logs", EntryKind.DIRECTORY)
    """The logs of failed jobs on a forge elsewhere, a file a commit; the last ones are kept."""
    quota = StateEntry("quota.json")
    """The requests to a forge elsewhere, by hour and purpose, and what is left."""
    quota_lock = StateEntry("quota.lock")
    """Held while a request is entered there."""


class KnownRepository(Struct, frozen=True):
    """The repository that `configured` has meant: its id, which stays, and its present name."""

    configured: str
    id: int
    name: str


class KeptAccount(Struct, frozen=True):
    """The account that the token of this `fingerprint` belongs to."""

    fingerprint: str
    name: str


class StrictBranches(Struct, frozen=True):
    """Times at which a forge has last refused to merge into each branch what was behind it."""

    refused: dict[str, float] = {}


class StateFiles:
    """The files in a project's private folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` must be there."""
        self._files = ForgeFiles(folder) if folder else None
        self._sign = ProjectDir(folder).forge_written if folder else None
        if self._files:
            repair_folder(self._files)
        self._known: KnownRepository | None = None
        self._rules: KeptRules | None = None

    @property
    def sign(self) -> Path | None:
        """Gets a new time with each write to the forge."""
        return self._sign

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

    def read_known(self, configured: str) -> KnownRepository | None:
        """The repository as it was last seen, if the configuration names the same one."""
        found = self._known
        if found is None and self._files:
            found = read_rebuildable(self._files.repository, KnownRepository)
        return found if found and found.configured == configured else None

    def present_name(self, configured: str) -> str:
        """Return the present name of the repository, as far as it is known."""
        found = self.read_known(configured)
        return found.name if found else configured

    def read_account(self) -> KeptAccount | None:
        """Return the account whose token was used last."""
        return read_rebuildable(self._files.account, KeptAccount) if self._files else None

    def keep_account(self, account: KeptAccount) -> None:
        """Keep whose token it is. If that fails, it is asked for again."""
        if self._files:
            with contextlib.suppress(SmError):
                write_json(self._files.account, account)

    def read_rules(self) -> KeptRules:
        """The rules of branches as they were last read."""
        if self._rules is None and self._files:
            self._rules = read_rebuildable(self._files.rules, KeptRules)
        return self._rules or KeptRules()

    def keep_rules(self, rules: KeptRules) -> None:
        """Keep the rules of branches. If that fails, the next process reads them anew."""
        if rules == self.read_rules():
            return
        self._rules = rules
        if self._files:
            with contextlib.suppress(SmError):
                write_json(self._files.rules, rules)

    def note_strict(self, branch: str) -> None:
        """Note that the forge has refused a merge into `branch` of what lacked commits of it."""
        if self._files:
            known = read_rebuildable(self._files.strict_branches, StrictBranches)
            refused = {**(known.refused if known else {}), branch: time.time()}
            with contextlib.suppress(SmError):
                write_json(self._files.strict_branches, StrictBranches(refused))

    def is_strict(self, branch: str) -> bool:
        """Whether it has refused that within a day, also of another process."""
        if self._files is None:
            return False
        known = read_rebuildable(self._files.strict_branches, StrictBranches)
        at = known.refused.get(branch, 0.0) if known else 0.0
        return 0 <= time.time() - at < STRICT_S

    def keep_log(self, head: str, text: str) -> str:
        """Keep the log of a commit in a file; its path, '' if nothing is kept."""
        if self._files is None or not COMMIT.fullmatch(head):
            return ""
        try:
            folder = ensure_private_dir(self._files.ci_logs)
            file = folder / f"{head}.log"
            write_atomic(file, text)
            for old in sorted(folder.iterdir(), key=_age, reverse=True)[LOGS:]:
                discard(old)
        except (SmError, OSError):
            return ""  # the part that matters most is told all the same
        return str(file)

    def remember(self, known: KnownRepository) -> None:
        """Keep the repository's id and name."""
        if known == self.read_known(known.configured):
            return
        self._known = known
        if self._files:
            with contextlib.suppress(SmError):
                write_json(self._files.repository, known)
