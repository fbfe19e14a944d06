"""Combined status of a commit, of all that CI says of it. Pure.

A commit has statuses and check runs, of several programs. It has failed if one of them has; else it
is being checked while one of them has no result; it has passed once every one has passed. If the
forge requires some of them before a merge, this holds of those alone, and one that has not begun
is still to come. What the others say is told beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct, structs

from sm.adapters.forge.model import Check, CheckState

MOST, DEEP = 200, 20
"""Patterns that one with alternatives stands for, and how many it may have of those; one with more
is only a name.
"""
SPECIAL = "*?["


def matches(name: str, pattern: str) -> bool:
    """Whether the pattern, or the name that it is as well, means `name`.

    Forgejo and Gitea name required checks by patterns of `gobwas/glob`. Beside what `fnmatch` has
    there are alternatives, `{a,b}`, and a backslash takes a character as it is. No character
    separates: `*` goes over slashes (`services/pull/commit_status.go`).
    """
    return name == pattern or any(fnmatchcase(name, one) for one in expand(pattern))


@lru_cache(maxsize=1000)
def expand(pattern: str) -> tuple[str, ...]:
    """The patterns of `fnmatch` that it stands for; none if it is too long, or has no end."""
    if pattern.count("{") > DEEP:
        return ()
    found, rest = _read(pattern, "")
    return tuple(found) if not rest and len(found) <= MOST else ()


def _read(text: str, ends: str) -> tuple[list[str], str]:
    """Return what `text` stands for up to one of `ends`, and the rest from there."""
    found = [""]
    while text and text[0] not in ends:
        choices, text = _read_one(text)
        found = [begun + one for begun in found for one in choices][: MOST + 1]
    return found, text


def _read_one(text: str) -> tuple[list[str], str]:
    """Return what the first character begins, each way to read it, and the rest."""
    first, rest = text[0], text[1:]
    if first == "{":
        return _read_alternatives(rest)
    if first == "\\" and rest:
        return [f"[{rest[0]}]" if rest[0] in SPECIAL else rest[0]], rest[1:]
    if first == "[" and "]" in rest[1:]:
        end = text.index("]", 2) + 1
        return [text[:end]], text[end:]
    return [first], rest


def _read_alternatives(text: str) -> tuple[list[str], str]:
    found = list[str]()
    while True:
        one, text = _read(text, ",}")
        found += one
        if not text:  # it is never closed, which makes it no pattern at all
            return [""] * (MOST + 1), ""
        closes, text = text[0] == "}", text[1:]
        if closes:
            return found[: MOST + 1], text


PASSED = frozenset({"success", "neutral", "skipped"})
UNBEGUN = "startup_failure"
"""The word for something that could not begin, such as a workflow whose file is wrong."""
APPROVAL = "approval"
"""Our word for something that begins once a person has approved it where CI runs."""
FAILED = frozenset({"failure", "error", "timed_out", "action_required", "warning", UNBEGUN})
"""The words for a failure. With `action_required` an app asks the author of the commit for
something; the GitHub CLI counts it as a failure, too (cli/cli, `api/queries_pr.go`)."""
BROKEN = frozenset({"cancelled", "stale", "killed"})
"""CI itself has ended it, so it says nothing of the commit. Any other word means: not yet."""
BAD = (CheckState.FAILURE, CheckState.BROKEN)
NAMED = 5
"""Most parts that are named as failed, or as not begun."""


class StatusPart(Struct, frozen=True):
    """One status or check run: its word in small letters, and since when it has it.

    Parts with the same `key` are runs of the same thing: two workflows may have a job of one name.
    """

    name: str
    word: str
    url: str = ""
    at: float = 0.0
    id: int = 0
    key: str = ""
    has_log: bool = False
    text: str = ""

    @property
    def state(self) -> CheckState:
        """The state that the word means."""
        if self.word in PASSED:
            return CheckState.SUCCESS
        if self.word in FAILED:
            return CheckState.FAILURE
        return CheckState.BROKEN if self.word in BROKEN else CheckState.PENDING


def combine(
    parts: Iterable[StatusPart], head: str, *, expected: bool, required: Collection[str] = ()
) -> Check:
    """Combine what the parts say of the commit `head`; without any it is PENDING if `expected`.

    `required` are the names of the parts that decide, as the forge has them: see `patterns`.
    """
    latest = list(_latest(parts).values())
    missing = find_missing(latest, required)
    decisive = find_decisive(latest, required)
    others = [part.name for part in latest if part not in decisive and part.state in BAD]
    found = _combine(decisive, head, expected=expected or bool(required), waits=bool(missing))
    return structs.replace(found, missing=missing[:NAMED], optional=tuple(others[:NAMED]))


def _combine(parts: list[StatusPart], head: str, *, expected: bool, waits: bool) -> Check:
    if not parts:
        return Check(CheckState.PENDING, head) if expected else Check(CheckState.NONE, head)
    states = {part.state for part in parts} | ({CheckState.PENDING} if waits else set())
    order = (CheckState.FAILURE, CheckState.PENDING, CheckState.BROKEN, CheckState.SUCCESS)
    state = next(one for one in order if one in states)
    meant = [part for part in parts if part.state is state]
    at = max((part.at for part in meant), default=0.0)
    if held := [part for part in meant if part.word == APPROVAL]:
        return Check(state, head, url=held[0].url, at=at, unapproved=held[0].name or "CI")
    if state in (CheckState.SUCCESS, CheckState.PENDING):
        return Check(state, head, at=at)
    names = ", ".join(part.name for part in meant[:NAMED])
    more = f" and {len(meant) - NAMED} more" if len(meant) > NAMED else ""
    return Check(state, head, names + more, meant[0].url, at=at)


def find_failed(parts: Iterable[StatusPart], required: Collection[str] = ()) -> list[StatusPart]:
    """The parts that have failed, or broken where none has failed; of the required ones alone."""
    latest = find_decisive(list(_latest(parts).values()), required)
    failed = [part for part in latest if part.state is CheckState.FAILURE]
    return failed or [part for part in latest if part.state is CheckState.BROKEN]


def find_decisive(parts: list[StatusPart], required: Collection[str]) -> list[StatusPart]:
    """The parts that decide: all, if none is required.

    While one of those is missing, so do those that could not begin, or not yet: they may be why.
    """
    if not required:
        return parts
    is_short = bool(find_missing(parts, required))
    return [
        part
        for part in parts
        if (is_short and part.word in (UNBEGUN, APPROVAL))
        or any(matches(part.name, name) for name in required)
    ]


def find_missing(parts: Collection[StatusPart], required: Collection[str]) -> tuple[str, ...]:
    """Return the required parts that have not begun."""
    return tuple(name for name in required if not any(matches(part.name, name) for part in parts))


def _latest(parts: Iterable[StatusPart]) -> dict[str, StatusPart]:
    """Keep the last part of each key: one that was run again has only its new result."""
    found: dict[str, StatusPart] = {}
    for part in sorted(parts, key=lambda part: (part.at, part.id)):
        found[part.key or part.name] = part
    return dict(sorted(found.items()))
