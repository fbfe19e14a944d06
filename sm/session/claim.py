"""Who works on an issue: a ref on the remote that only one can create.

The claim is a commit on the empty tree that names the installation. It is made from nothing
but facts that outlive our state, so the same installation always makes the same commit and
knows its own claim again after everything under the state root was lost.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from sm.adapters.git import Git
from sm.adapters.gitpush import ABSENT, PushRefusedError, RefMovedError, Update
from sm.config.schema import Project
from sm.errors import SmError, TemporaryError
from sm.store.crash import crash_point
from sm.store.paths import Root
from sm.text import normalise

LOOKS = 5
"""How often the remote is looked at again when it changes under our hands."""

MACHINE_ID = Path("/etc/machine-id")

SHA256_DIGITS = 64
"""Of an object's name in a repository of that format; in the others it is 40, of SHA-1."""

SIGNATURE = "sm <sm@localhost> 946684800 +0000"
SUBJECT = "claimed by sm"


class Claim(StrEnum):
    """Whose the issue is: won just now, ours from before, or somebody else's."""

    WON = "won"
    OURS = "ours"
    TAKEN = "taken"


class BranchNameError(SmError):
    """The branch cannot exist beside another one of the remote."""


def ref(issue: int) -> str:
    """The ref that claims `issue`."""
    return f"refs/sm/claims/{issue}"


def is_held(issue: int, refs: Mapping[str, str]) -> bool:
    """Whether anybody holds the claim, by what the remote's `refs` were."""
    return ref(issue) in refs


def is_ours(git: Git, project: Project, issue: int, root: Root, refs: Mapping[str, str]) -> bool:
    """Whether this installation holds the claim, by what the remote's `refs` were.

    Git is not asked: others may hold any number of claims.
    """
    held = refs.get(ref(issue), "")
    algorithm = "sha256" if len(held) == SHA256_DIGITS else "sha1"
    tree = _name(algorithm, "tree", b"")
    return held == _name(algorithm, "commit", _commit(git, project, issue, root, tree))


def claim(git: Git, project: Project, issue: int, root: Root) -> Claim:
    """Claim `issue`, and create its branch on the remote at the primary branch if it is missing.

    One push does both or neither, so of any number of claimers exactly one wins.

    Raises:
        BranchNameError: another branch's name is in the way.
        PushRefusedError: the remote does not let us.
        RemoteUnreachableError: and the other errors of `Git`.

    """
    ours = _object(git, project, issue, root)
    seen: dict[str, str] | None = None
    for _ in range(LOOKS):
        before, seen = seen, _look(git, project, issue)
        if seen.get(ref(issue), ours) != ours:
            return Claim.TAKEN
        _check_name(project, issue, seen)
        try:
            return _push(git, project, issue, ours, seen)
        except RefMovedError:
            continue  # somebody was faster: look who
        except PushRefusedError:
            # The remote may have lost a race on its side, which looks like a refusal.
            if before == seen:
                raise
    raise TemporaryError(f"the claim of issue {issue} keeps changing on the remote: try again")


def _push(git: Git, project: Project, issue: int, ours: str, seen: dict[str, str]) -> Claim:
    updates = _missing_branch(git, project, issue, seen)
    if ref(issue) not in seen:
        updates.append(Update(ref(issue), ours, ABSENT))
    if not updates:
        return Claim.OURS
    crash_point("claim:before-push")
    changed = git.push(project.remote, *updates)
    crash_point("claim:after-push")
    # Another process of this installation pushes the very same object: then it is the winner.
    return Claim.WON if ref(issue) in changed else Claim.OURS


def _missing_branch(git: Git, project: Project, issue: int, seen: dict[str, str]) -> list[Update]:
    branch = f"refs/heads/{project.branch(issue)}"
    if branch in seen:
        return []
    base = git.fetch_branch(project.remote, project.primary_branch)
    return [Update(branch, base, ABSENT)]


def release(git: Git, project: Project, issue: int, root: Root) -> bool:
    """Give our claim up; False where there is none, or it is not ours and so is left alone."""
    ours = _object(git, project, issue, root)
    if git.ls_remote(project.remote, ref(issue)).get(ref(issue)) != ours:
        return False
    try:
        git.delete_ref(project.remote, ref(issue), expect=ours)
    except RefMovedError:
        return False
    return True


def seize(git: Git, project: Project, issue: int, root: Root) -> Claim:
    """Claim `issue` even where somebody else holds it: a person has decided so.

    Raises:
        RefMovedError: the claim changed while it was being replaced.

    """
    ours = _object(git, project, issue, root)
    seen = _look(git, project, issue)
    if seen.get(ref(issue), ours) == ours:
        return claim(git, project, issue, root)
    _check_name(project, issue, seen)
    updates = _missing_branch(git, project, issue, seen)
    git.push(project.remote, *updates, Update(ref(issue), ours, seen[ref(issue)]))
    return Claim.WON


def owner(git: Git, project: Project, issue: int) -> str:
    """Who holds the claim, in words for a person; '' where nobody does."""
    sha = git.ls_remote(project.remote, ref(issue)).get(ref(issue))
    if sha is None:
        return ""
    git.fetch(project.remote, ref(issue))
    try:
        message = git.commit_text(sha).partition("\n\n")[2]
    except SmError:
        return f"an unknown claim ({sha[:12]})"
    # Anybody who may push can write a claim, so it is only shown, and cleaned before that.
    lines = [normalise(line)[:200] for line in message.splitlines()]
    facts = [line for line in lines if ": " in line][:8]
    return ", ".join(facts) or f"an unknown claim ({sha[:12]})"


def _look(git: Git, project: Project, issue: int) -> dict[str, str]:
    """The claim, the branch, and every branch that its name cannot exist beside."""
    branch = f"refs/heads/{project.branch(issue)}"
    return git.ls_remote(project.remote, ref(issue), branch, f"{branch}/*", *_parents(branch))


def _parents(branch: str) -> list[str]:
    parts = branch.split("/")
    return ["/".join(parts[:length]) for length in range(3, len(parts))]


def _check_name(project: Project, issue: int, seen: dict[str, str]) -> None:
    """Git keeps branches like files: `fix` and `fix/1` cannot both exist."""
    branch = f"refs/heads/{project.branch(issue)}"
    for other in seen:
        if other in _parents(branch) or other.startswith(f"{branch}/"):
            raise BranchNameError(
                f"branch '{project.branch(issue)}' cannot exist beside "
                f"'{other.removeprefix('refs/heads/')}' on remote '{project.remote}': "
                "rename that branch, or set another 'branch_prefix'"
            )


def _object(git: Git, project: Project, issue: int, root: Root) -> str:
    """The claim's commit, written as a raw object: no setting of the user changes its SHA."""
    tree = git.write_object("tree", b"")
    return git.write_object("commit", _commit(git, project, issue, root, tree))


def _commit(git: Git, project: Project, issue: int, root: Root, tree: str) -> bytes:
    facts = {
        "host": _host(),
        "machine": _machine(),
        "uid": str(os.geteuid()),
        "clone": os.path.realpath(git.repo),
        "state": os.path.realpath(root.path),
        "project": project.name,
        "issue": str(issue),
    }
    lines = [f"{key}: {_one_line(value)}" for key, value in facts.items() if value]
    text = f"tree {tree}\nauthor {SIGNATURE}\ncommitter {SIGNATURE}\n\n{SUBJECT}\n\n"
    return (text + "\n".join(lines) + "\n").encode()


def _name(algorithm: str, kind: str, content: bytes) -> str:
    """What git calls an object with that content."""
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def _host() -> str:
    """The first label of the host name: the rest changes with the network that one is in."""
    return os.uname().nodename.partition(".")[0]


def _machine() -> str:
    """A digest of machine-id(5), which is no thing to publish itself; '' where there is none."""
    try:
        found = MACHINE_ID.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"sm claim " + found).hexdigest()[:12] if found else ""


def _one_line(value: str) -> str:
    """`value` on one line and in UTF-8, whatever a path may hold."""
    text = value.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
