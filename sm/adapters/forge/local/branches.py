"""Facts about branches that were found out, kept so that git is asked once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from sm.adapters.forge.local.repository import BareRepository
from sm.base.errors import StateError
from sm.store.files import read_json, write_json

AT_ONCE = 100
"""Number of merges that one git is asked to try."""

REMEMBERED = 2000
"""Number of pairs of commits; the oldest are forgotten first."""


class Branches(Struct, dict=True):
    """Branches at one moment, and what has been found out about them."""

    repository: BareRepository
    _within: dict[str, frozenset[str]] = field(default_factory=dict)
    _ancestors: dict[tuple[str, str], bool] = field(default_factory=dict)

    @cached_property
    def heads(self) -> dict[str, str]:
        """Commit of each branch."""
        return self.repository.heads()

    def contains(self, base: str, commit: str) -> bool:
        """Whether the branch `base` contains `commit`; asks git once for all heads together."""
        whole = self.heads.get(base)
        if whole is None:
            return False
        if whole not in self._within:
            self._within[whole] = self.repository.heads_within(whole)
        if commit in self._within[whole]:
            return True
        if commit in self.heads.values():
            return False
        pair = (whole, commit)
        if pair not in self._ancestors:
            self._ancestors[pair] = self.repository.contains(*pair)
        return self._ancestors[pair]


class Conflicts(Struct):
    """Commits that conflict with one another: never changes, so it is kept from run to run."""

    path: Path
    repository: BareRepository
    _known: dict[str, bool] | None = None
    _kept: int = 0

    def would_conflict(self, base: str, head: str) -> bool:
        """Whether merging `head` into `base` would conflict; False where one of them is gone."""
        if not base or not head:
            return False
        known = self._load()
        pair = f"{base} {head}"
        if pair not in known:
            known[pair] = bool(self.repository.try_merge(base, head).conflicts)
        return known[pair]

    def learn(self, base: str, heads: Iterable[str]) -> None:
        """Find out about many at once: git takes far longer to start than to try a merge."""
        known = self._load()
        unknown = [head for head in dict.fromkeys(heads) if f"{base} {head}" not in known]
        for first in range(0, len(unknown), AT_ONCE):
            some = unknown[first : first + AT_ONCE]
            for head, conflicts in zip(
                some, self.repository.find_conflicting(base, some), strict=False
            ):
                known[f"{base} {head}"] = conflicts

    def keep(self) -> None:
        """Write down what has been found out since it was last written down."""
        if self._known is not None and len(self._known) > self._kept:
            self._kept = len(self._known)
            with contextlib.suppress(StateError):  # only a memory
                write_json(self.path, dict(list(self._known.items())[-REMEMBERED:]))

    def _load(self) -> dict[str, bool]:
        if self._known is None:
            try:
                self._known = read_json(self.path, dict[str, bool]) or {}
            except StateError:
                self._known = {}  # only a memory: found out again
            self._kept = len(self._known)
        return self._known
