"""Share of another installation's look at the forge, which it has brought to this one.

An installation that places sessions here looks at the forge for all of its hosts, and brings each
what concerns the sessions there: nobody else's issues, no text, nothing of its token. A look of our
own goes on from our own last one, never from a share.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.forge.protocol import Accounted
from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, name_part
from sm.config.schema import ProjectSettings
from sm.issues.look.forge_view import Snapshot
from sm.sessions.fence import name_claim
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.damage import read_rebuildable
from sm.store.files import CLOCK_SLACK_S, SNAPSHOT_LIMIT, backdate, write_json
from sm.store.paths import ProjectDir

LONGEST_S, LONGEST_WAIT_S = 600.0, 30.0
"""Longest promises of a share that are believed: without a new one sessions go on by themselves."""
SHARED_S = 86400.0
"""Seconds after the last share for which the other machines are believed to have sessions, too."""
MOST_SHARERS = 1000

Lines = tuple[str, str]
"""Branch, and the base into which it is to be merged."""


class LookShare(Struct, frozen=True, kw_only=True):
    """Part of a look that concerns some issues, as it travels to a node.

    `taken_at` of `seen` is by the clock of whoever gets it, and no later than the look was. `basis`
    and `account` say for whom it is the same as a look of their own. The next one comes within
    `lasts_s` seconds. A wish for a newer one is met within `wait_s`; 0: nobody hears. `sharers` is
    the number of machines that look at the forge by this account if nothing comes, including the
    share's source. `covers` has branch and base of each issue by the issue's part of names: a JSON
    key is a text.
    """

    seen: Snapshot
    covers: dict[str, Lines]
    basis: str
    account: str
    lasts_s: float
    wait_s: float = 0.0
    sharers: int = 1


class Brought(Struct, frozen=True, kw_only=True):
    """Share as it is kept: it came at `came_at`, and holds until `until` (seconds since 1970)."""

    share: LookShare
    came_at: float
    until: float

    @property
    def seen(self) -> Snapshot:
        """Snapshot that it shows."""
        return self.share.seen

    def lasts(self, now: float) -> bool:
        """Whether the next one is still to be expected; a clock that was set back ends that."""
        return self.came_at <= now + CLOCK_SLACK_S and now < self.until

    def answers(self, newer_than: float, session: IssueSession | None) -> bool:
        """Whether it was taken after that moment, and is about the session, if one is named."""
        return self.seen.taken_at >= newer_than + CLOCK_SLACK_S and (
            session is None or self.is_about(session)
        )

    def is_about(self, session: IssueSession) -> bool:
        """Whether it shows the issue and the branches of the session."""
        record = session.record
        return self.share.covers.get(name_part(record.issue)) == (record.branch, record.base)


# The sender


def narrow(
    project: ProjectSettings,
    seen: Snapshot,
    issues: Collection[IssueId],
    *,
    account: str,
    lasts_s: float,
    wait_s: float,
    sharers: int = 1,
) -> LookShare:
    """Return the part of a look that concerns these issues, by our own clock."""
    base = project.primary_branch
    covers = {name_part(number): (project.branch(number), base) for number in issues}
    lines = {line for pair in covers.values() for line in pair}
    refs = {f"refs/heads/{line}" for line in lines} | {name_claim(number) for number in issues}
    part = Snapshot(
        taken_at=seen.taken_at,
        issues=tuple(one for one in seen.issues if one.number in issues),
        pulls=tuple(one for one in seen.pulls if one.branch in lines),
        refs={ref: commit for ref, commit in seen.refs.items() if ref in refs},
        writers=seen.writers,
    )
    return LookShare(
        seen=part,
        covers=covers,
        basis=describe_basis(project),
        account=account,
        lasts_s=lasts_s,
        wait_s=wait_s,
        sharers=sharers,
    )


def describe_basis(project: ProjectSettings) -> str:
    """Return a word for all that a look depends on, beside the account that looks."""
    forge = project.forge
    basis = (
        *(type(forge).__name__, forge.place, forge.has_ci, project.labels),
        *(project.branch_prefix, project.primary_branch),
    )
    return hashlib.sha256(repr(basis).encode()).hexdigest()[:16]


# The receiver


def check(project: Project, share: LookShare) -> None:
    """Refuse a share that shows another thing than a look from here would.

    A look tells by the account what `sm` has written itself: with another account, its questions
    would be taken for answers of people.

    Raises:
        UsageError: the project is configured otherwise there, or has the token of another account.
        TemporaryError: it cannot be found out whose token ours is.

    """
    name, forge = project.name, project.forge
    if share.basis != describe_basis(project.settings):
        raise UsageError(f"'{name}' is configured otherwise here: forge, labels or branches differ")
    ours = forge.find_account() if isinstance(forge, Accounted) else ""
    if ours != share.account:
        raise UsageError(f"'{name}' has another account here: '{ours}', not '{share.account}'")


def keep(directory: ProjectDir, share: LookShare) -> Brought:
    """Keep the share that has just come, in the place of the one before."""
    now = time.time()
    if share.seen.taken_at > now:  # the clock was set back since it was asked for
        share = structs.replace(share, seen=structs.replace(share.seen, taken_at=now))
    share = structs.replace(share, wait_s=min(share.wait_s, LONGEST_WAIT_S))
    brought = Brought(share=share, came_at=now, until=now + min(share.lasts_s, LONGEST_S))
    _write(directory, brought)
    return brought


def end(directory: ProjectDir, brought: Brought) -> None:
    """Expect nothing more after this share, until another one comes."""
    _write(directory, structs.replace(brought, until=0.0))


def _write(directory: ProjectDir, brought: Brought) -> None:
    mtime_ns = backdate(brought.seen.taken_at)
    write_json(directory.brought, brought, mtime_ns=mtime_ns, limit=SNAPSHOT_LIMIT)


def read(directory: ProjectDir) -> Brought | None:
    """Return the last share; None if none ever came."""
    return read_rebuildable(directory.brought, Brought, limit=SNAPSHOT_LIMIT)


def count_sharers(directory: ProjectDir) -> int:
    """Return how many machines share the forge's limits with this one, itself included."""
    came = read(directory)
    if came is None or not 0 <= time.time() - came.came_at < SHARED_S:
        return 1
    return max(1, min(came.share.sharers, MOST_SHARERS))


def is_newest(directory: ProjectDir) -> bool:
    """Whether the last share is newer than our own last look; mostly none ever came."""
    came = _read_time(directory.brought)
    return came > 0 and came > _read_time(directory.snapshot)


def read_written_at(directory: ProjectDir) -> float:
    """Return when something was last written to the forge from here; 0 for never."""
    return _read_time(directory.forge_written)


def _read_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
