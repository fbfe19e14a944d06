"""Record of a session: its identity. Only its name and its parent change."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.base.issue_id import IssueId


class Record(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Identity of a session. Its name, never reused, is that of its directory and tmux session.

    `provider` names the profile of its agent, `parent` the session that began it. `config` is the
    value for `--config`, or None. `created_at` is in seconds since 1970.
    """

    name: str
    provider: str
    cwd: Path
    config: Path | None
    state_root: Path
    created_at: float
    parent: str = ""


class IssueRecord(Record, frozen=True, kw_only=True, tag="issue"):
    """A session that works on an issue; `cwd` is its worktree.

    One that another installation has placed here has the number of its `attempt`, from 1 on, and
    the SHA of the `claim` that names it.
    """

    project: str
    issue: IssueId
    title: str
    branch: str
    base: str
    remote: str
    repo: Path
    attempt: int = 0
    claim: str = ""


class AdHocRecord(Record, frozen=True, kw_only=True, tag="ad-hoc"):
    """A session that `sm new` has begun; `alias` is its given name, or ''."""

    command: str
    alias: str = ""


AnyRecord = IssueRecord | AdHocRecord
