"""Pushes several refs at once, all or none, each only if the remote has the expected value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sm.adapters.git_call import call, read_first_line
from sm.adapters.process import CommandError, Result
from sm.base.act_guard import before_act
from sm.base.errors import SmError
from sm.base.redact import redact

ABSENT = ""
"""Expected value of a ref that must not exist."""

PUSH = (
    "push",
    "--porcelain",
    "--atomic",
    "--no-follow-tags",
    "--no-recurse-submodules",
)


RACED = re.compile(
    r"^remote: error: cannot lock ref '([^']+)': "
    r"(?:is at \w+ but expected |reference already exists)",
    re.MULTILINE,
)


class RefMovedError(SmError):
    """A ref on the remote has not the expected value; nothing was pushed."""


class RefExistsError(RefMovedError):
    """A ref that must not exist is on the remote; nothing was pushed."""


class PushRefusedError(SmError):
    """The remote refuses the push (a protected branch, a hook, a name conflict)."""


class Update(Struct, frozen=True):
    """One ref of a push: its full name, the new value, and the value it must have before.

    An empty `new` deletes it; `expected` ABSENT demands that it does not exist yet.
    """

    ref: str
    new: str
    expected: str


NO_HOOK = "--no-verify"
"""The user's hook is only for pushes of the user, or in the user's place."""


def push(
    repo: Path,
    remote: str,
    updates: Sequence[Update],
    *,
    verify: bool = False,
    timeout_s: float | None = None,
    settings: Sequence[tuple[str, str]] = (),
) -> frozenset[str]:
    """See `sm.adapters.git.Git.push`."""
    options = PUSH if verify else (*PUSH, NO_HOOK)
    leases = [f"--force-with-lease={one.ref}:{one.expected}" for one in updates]
    specs = [f"{one.new}:{one.ref}" for one in updates]
    before_act()
    try:
        args = (*options, *leases, "--", remote, *specs)
        result = call(repo, *args, remote=remote, timeout_s=timeout_s, settings=settings)
    except CommandError as error:
        raise _refusal(error.result, remote, updates) from error
    return frozenset(ref for flag, ref, _ in _report(result) if flag not in "=!")


def _report(result: Result) -> list[tuple[str, str, str]]:
    """Return flag, ref and summary of each ref (git-push(1), OUTPUT; `--porcelain`)."""
    rows = [line.split("\t") for line in result.lines]
    return [(row[0], row[1].rpartition(":")[2], row[2]) for row in rows if len(row) == 3]


def _refusal(result: Result, remote: str, updates: Sequence[Update]) -> SmError:
    expected = {update.ref: update.expected for update in updates}
    rejected = [(ref, why) for flag, ref, why in _report(result) if flag == "!"]
    raced = RACED.search(result.stderr)  # by the remote's words: another push has just changed it
    stale = [ref for ref, why in rejected if "(stale info)" in why]
    if ref := stale[0] if stale else raced and raced[1]:
        if expected.get(ref) == ABSENT:
            return RefExistsError(f"'{ref}' exists on remote '{remote}' already")
        return RefMovedError(f"'{ref}' on remote '{remote}' has changed meanwhile")
    said = [
        redact(line.removeprefix("remote:").strip())
        for line in result.stderr.splitlines()
        if line.startswith("remote:") and line.removeprefix("remote:").strip()
    ]
    reasons = said or [f"{ref} {why}" for ref, why in rejected] or [read_first_line(result)]
    return PushRefusedError(f"remote '{remote}' refuses the push: {'; '.join(reasons)[:1000]}")
