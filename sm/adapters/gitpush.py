"""One push of several refs, all or none, each only if it is on the remote where it should be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sm.adapters.gitcall import call, first_line
from sm.adapters.process import CommandError, Result
from sm.errors import SmError
from sm.redact import redact

ABSENT = ""
"""As an expected value: the ref must not exist."""

PUSH = (
    "push",
    "--porcelain",
    "--atomic",
    "--no-verify",  # the user's hook is for the user's pushes: we push no new code
    "--no-follow-tags",
    "--no-recurse-submodules",
)


class RefMovedError(SmError):
    """A ref on the remote is not where it was expected; nothing was pushed."""


class RefExistsError(RefMovedError):
    """A ref that was to be created is on the remote already; nothing was pushed."""


class PushRefusedError(SmError):
    """The remote does not take the push (a protected branch, a hook, a name conflict)."""


class Update(Struct, frozen=True):
    """One ref of a push: its full name, the new value, and the value it must have before.

    `new` empty deletes it; `expected` ABSENT demands that it does not exist yet.
    """

    ref: str
    new: str
    expected: str


def push(repo: Path, remote: str, updates: Sequence[Update]) -> frozenset[str]:
    """See `sm.adapters.git.Git.push`."""
    leases = [f"--force-with-lease={one.ref}:{one.expected}" for one in updates]
    specs = [f"{one.new}:{one.ref}" for one in updates]
    try:
        result = call(repo, *PUSH, *leases, "--", remote, *specs, remote=remote)
    except CommandError as error:
        raise _refusal(error.result, remote, updates) from error
    return frozenset(ref for flag, ref, _ in _report(result) if flag not in "=!")


def _report(result: Result) -> list[tuple[str, str, str]]:
    """Flag, ref and summary of each ref (git-push(1), OUTPUT; `--porcelain`)."""
    rows = [line.split("\t") for line in result.lines]
    return [(row[0], row[1].rpartition(":")[2], row[2]) for row in rows if len(row) == 3]


def _refusal(result: Result, remote: str, updates: Sequence[Update]) -> SmError:
    expected = {update.ref: update.expected for update in updates}
    rejected = [(ref, why) for flag, ref, why in _report(result) if flag == "!"]
    for ref, why in rejected:
        if "(stale info)" in why and expected.get(ref) == ABSENT:
            return RefExistsError(f"'{ref}' exists on remote '{remote}' already")
        if "(stale info)" in why:
            return RefMovedError(f"'{ref}' on remote '{remote}' has changed meanwhile")
    said = [
        redact(line.removeprefix("remote:").strip())
        for line in result.stderr.splitlines()
        if line.startswith("remote:") and line.removeprefix("remote:").strip()
    ]
    reasons = said or [f"{ref} {why}" for ref, why in rejected] or [first_line(result)]
    return PushRefusedError(f"remote '{remote}' refuses the push: {'; '.join(reasons)[:1000]}")
