"""Claim of an issue: a ref on the remote that only one installation can create.

It is a commit on the empty tree that names the installation. It consists only of facts that outlive
our state. So an installation always makes the same commit, and recognises its claim even if
everything under the state root is lost.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.adapters.git import Git
from sm.adapters.git_push import ABSENT, PushRefusedError, RefMovedError, Update
from sm.base.errors import SmError, TemporaryError
from sm.base.foreign import read_number
from sm.base.issue_id import IssueId, name_part
from sm.base.text import normalise
from sm.config.schema import ProjectSettings
from sm.sessions.fence import name_claim
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point
from sm.store.paths import Root

LOOKS = 5
"""Greatest number of looks at the remote if it changes meanwhile."""

MACHINE_ID = Path("/etc/machine-id")

SHA256_DIGITS = 64
"""Digits of an object's name in a SHA-256 repository; SHA-1 has 40."""

SIGNATURE = "sm <sm@localhost> 946684800 +0000"
SUBJECT = "claimed by sm"


ON, ATTEMPT = "on", "attempt"
"""Names of the facts of a claim for a session elsewhere, after those of the installation."""
FACTS = 10
"""Greatest number of facts of a claim that are read."""


OVERTAKEN = "kept: another attempt has the issue by now"
NOT_OURS = "kept: it is not ours, or this machine has another name now"


class Claim(StrEnum):
    """Holder of an issue: we since now, we from before, we by another's claim, or another."""

    WON = "won"
    OURS = "ours"
    PLACED = "placed"
    TAKEN = "taken"


class BranchNameError(SmError):
    """The name of another branch on the remote makes this branch impossible."""


name_ref = name_claim
"""Ref that claims an issue."""


def name_wip(issue: IssueId, attempt: int | str) -> str:
    """Return the ref of an attempt's work in progress; of all attempts for '*'."""
    return f"refs/sm/wip/{name_part(issue)}/{attempt}"


class Assignment(Struct, frozen=True):
    """Host that a claim has given its issue to, and the number of the attempt, from 1 on."""

    host: str
    attempt: int


def is_held(issue: IssueId, refs: Mapping[str, str]) -> bool:
    """Say whether the claim exists among the remote's `refs`."""
    return name_ref(issue) in refs


def is_ours(
    git: Git, project: ProjectSettings, issue: IssueId, root: Root, refs: Mapping[str, str]
) -> bool:
    """Say whether the claim among the remote's `refs` is ours.

    Does not ask git, because there may be many claims of others.
    """
    held = refs.get(name_ref(issue), "")
    algorithm = "sha256" if len(held) == SHA256_DIGITS else "sha1"
    tree = _name(algorithm, "tree", b"")
    return held == _name(algorithm, "commit", _commit(git, project, issue, root, tree))


def is_of(session: IssueSession, refs: Mapping[str, str]) -> bool:
    """Say whether the claim among the remote's `refs` is the one that the session works by."""
    if held := session.record.claim:
        return refs.get(name_ref(session.issue)) == held
    project = session.project
    return is_ours(project.git, project.settings, session.issue, project.root, refs)


def claim(
    git: Git,
    project: ProjectSettings,
    issue: IssueId,
    root: Root,
    *,
    first: dict[str, str] | None = None,
    ours: str = "",
) -> Claim:
    """Claim `issue`, and create its missing branch on the remote at the primary branch.

    One push does both or nothing, so exactly one of several claimers wins. `first` is what `look`
    has just seen: the push finds out if that still holds. `ours` is what `make_object` has made for
    an issue that is to be worked on elsewhere.

    Raises:
        BranchNameError: another branch's name is in the way.
        PushRefusedError: the remote refuses us.
        RemoteUnreachableError: and the other errors of `Git`.

    """
    ours = ours or make_object(git, project, issue, root)
    seen: dict[str, str] | None = None
    for _ in range(LOOKS):
        before, seen, first = seen, first or look(git, project, issue), None
        if seen.get(name_ref(issue), ours) != ours:
            return Claim.TAKEN
        _check_name(project, issue, seen)
        try:
            return _push(git, project, issue, ours, seen)
        except RefMovedError:
            continue  # another installation was faster: look which one
        except PushRefusedError:
            # A race inside the remote looks like a refusal.
            if before == seen:
                raise
    raise TemporaryError(f"the claim of issue {issue} keeps changing on the remote: try again")


def _push(
    git: Git, project: ProjectSettings, issue: IssueId, ours: str, seen: dict[str, str]
) -> Claim:
    updates = _missing_branch(git, project, issue, seen)
    if name_ref(issue) not in seen:
        updates.append(Update(name_ref(issue), ours, ABSENT))
    if not updates:
        return Claim.OURS
    crash_point("claim:before-push")
    changed = git.push(project.remote, *updates)
    crash_point("claim:after-push")
    # Another process of this installation pushes the same object. Then that one is the winner.
    return Claim.WON if name_ref(issue) in changed else Claim.OURS


def _missing_branch(
    git: Git, project: ProjectSettings, issue: IssueId, seen: dict[str, str]
) -> list[Update]:
    branch = f"refs/heads/{project.branch(issue)}"
    if branch in seen:
        return []
    base = git.fetch_branch(
        project.remote, project.primary_branch, at=seen.get(_name_primary(project), "")
    )
    return [Update(branch, base, ABSENT)]


def release(git: Git, project: ProjectSettings, issue: IssueId, root: Root) -> str:
    """Give up our claim; return why it was kept, '' if it is gone."""
    # What is kept of attempts elsewhere goes with it: a person has taken the issue from there.
    refs = git.ls_remote(project.remote, name_ref(issue), name_wip(issue, "*"))
    if not is_held(issue, refs):
        return ""
    if not is_ours(git, project, issue, root, refs):
        return NOT_OURS
    try:
        git.push(project.remote, *(Update(ref, "", sha) for ref, sha in refs.items()))
    except RefMovedError:
        return NOT_OURS if is_held(issue, git.ls_remote(project.remote, name_ref(issue))) else ""
    return ""


def seize(git: Git, project: ProjectSettings, issue: IssueId, root: Root) -> Claim:
    """Claim `issue` even if another installation holds it, because a person decided so.

    Raises:
        RefMovedError: the claim has changed meanwhile.

    """
    ours = make_object(git, project, issue, root)
    seen = look(git, project, issue)
    if seen.get(name_ref(issue), ours) == ours:
        return claim(git, project, issue, root)
    _check_name(project, issue, seen)
    updates = _missing_branch(git, project, issue, seen)
    git.push(project.remote, *updates, Update(name_ref(issue), ours, seen[name_ref(issue)]))
    return Claim.WON


def describe_owner(git: Git, project: ProjectSettings, issue: IssueId) -> str:
    """Return the owner of the claim, in words for a person; '' if there is no claim."""
    sha = git.ls_remote(project.remote, name_ref(issue)).get(name_ref(issue))
    if sha is None:
        return ""
    return ", ".join(_read_facts(git, project, issue, sha)) or f"an unknown claim ({sha[:12]})"


def find_former_place(git: Git, project: ProjectSettings, issue: IssueId, root: Root) -> str:
    """Return where the clone was when it claimed the issue, if it was moved since; else ''.

    Such a claim equals ours except for the clone, which is not where the claim says.
    """
    sha = git.ls_remote(project.remote, name_ref(issue)).get(name_ref(issue))
    if sha is None:
        return ""
    ours = set(_list_facts(git, project, issue, root))
    theirs = set(_read_facts(git, project, issue, sha))
    differing = theirs - ours
    if len(theirs) != len(ours) or len(differing) != 1:
        return ""
    key, _, was_at = differing.pop().partition(": ")
    return "" if key != "clone" or os.path.lexists(was_at) else was_at


def _read_facts(git: Git, project: ProjectSettings, issue: IssueId, sha: str) -> list[str]:
    """Read the facts of a claim; cleaned, and no proof: all with push rights can write one."""
    git.fetch(project.remote, name_ref(issue))
    try:
        message = git.commit_text(sha).partition("\n\n")[2]
    except SmError:
        return []
    lines = [normalise(line)[:200] for line in message.splitlines()]
    return [line for line in lines if ": " in line][:FACTS]


def read_attempt(git: Git, project: ProjectSettings, issue: IssueId, sha: str) -> int:
    """Return the number of the attempt that the claim `sha` is for, whoever's it is; 0 for none."""
    facts = (line.partition(": ") for line in _read_facts(git, project, issue, sha))
    return next((read_number(value) or 0 for key, _, value in facts if key == ATTEMPT), 0)


def read_assignment(
    git: Git, project: ProjectSettings, issue: IssueId, root: Root, sha: str
) -> Assignment | None:
    """Return what the claim `sha` on the remote assigns; None if it is not ours or assigns none."""
    theirs = _read_facts(git, project, issue, sha)
    said = dict(line.split(": ", 1) for line in theirs)
    attempt = read_number(said.get(ATTEMPT, ""))
    if not attempt or ON not in said:
        return None
    found = Assignment(said[ON], attempt)
    return found if theirs == _list_facts(git, project, issue, root, found) else None


def look(git: Git, project: ProjectSettings, issue: IssueId) -> dict[str, str]:
    """Return the refs of claim, branch, base, and every branch that prevents the branch's name."""
    branch = f"refs/heads/{project.branch(issue)}"
    beside = (f"{branch}/*", *_parents(branch))
    return git.ls_remote(project.remote, name_ref(issue), branch, _name_primary(project), *beside)


def find_head(project: ProjectSettings, issue: IssueId, seen: Mapping[str, str]) -> str:
    """Return the branch's commit on the remote after a claim, by the look before it."""
    branch = f"refs/heads/{project.branch(issue)}"
    return seen.get(branch, "") or find_base(project, seen)


def find_base(project: ProjectSettings, seen: Mapping[str, str]) -> str:
    """Return the primary branch's commit on the remote, by that look; '' if not seen."""
    return seen.get(_name_primary(project), "")


def _name_primary(project: ProjectSettings) -> str:
    return f"refs/heads/{project.primary_branch}"


def _parents(branch: str) -> list[str]:
    parts = branch.split("/")
    return ["/".join(parts[:length]) for length in range(3, len(parts))]


def _check_name(project: ProjectSettings, issue: IssueId, seen: dict[str, str]) -> None:
    """Refuse a name that git cannot keep, like files: `fix` and `fix/1` cannot both exist."""
    branch = f"refs/heads/{project.branch(issue)}"
    for other in seen:
        if other in _parents(branch) or other.startswith(f"{branch}/"):
            raise BranchNameError(
                f"branch '{project.branch(issue)}' cannot exist beside "
                f"'{other.removeprefix('refs/heads/')}' on remote '{project.remote}': "
                "rename that branch, or set another 'branch_prefix'"
            )


def make_object(
    git: Git, project: ProjectSettings, issue: IssueId, root: Root, on: Assignment | None = None
) -> str:
    """Write the claim's commit as a raw object: no setting of the user changes its SHA."""
    tree = git.empty_tree
    return git.write_object("commit", _commit(git, project, issue, root, tree, on))


def _commit(
    git: Git,
    project: ProjectSettings,
    issue: IssueId,
    root: Root,
    tree: str,
    on: Assignment | None = None,
) -> bytes:
    lines = _list_facts(git, project, issue, root, on)
    text = f"tree {tree}\nauthor {SIGNATURE}\ncommitter {SIGNATURE}\n\n{SUBJECT}\n\n"
    return (text + "\n".join(lines) + "\n").encode()


def _list_facts(
    git: Git, project: ProjectSettings, issue: IssueId, root: Root, on: Assignment | None = None
) -> list[str]:
    facts = {
        "host": os.uname().nodename.partition(".")[0],  # the rest changes with the network
        "machine": _machine(),
        "uid": str(os.geteuid()),
        "clone": os.path.realpath(git.repo),
        "state": os.path.realpath(root.path),
        "project": project.name,
        "issue": str(issue),
        ON: on.host if on else "",
        ATTEMPT: str(on.attempt) if on else "",
    }
    return [f"{key}: {_escape_unprintable(value)}" for key, value in facts.items() if value]


def _name(algorithm: str, kind: str, content: bytes) -> str:
    """Return git's name for an object with that content."""
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def _machine() -> str:
    """Return a digest of machine-id(5), which must not be published itself; '' if there is none."""
    try:
        found = MACHINE_ID.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"sm claim " + found).hexdigest()[:12] if found else ""


def _escape_unprintable(value: str) -> str:
    """Escape in `value` what is not printable, so that it is one line of UTF-8."""
    text = value.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
