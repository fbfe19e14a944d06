"""What a single session needs a person for, as every list of needs shows it."""

from __future__ import annotations

from msgspec import Struct

from sm.adapters.forge.model import PullRequest
from sm.base.need import NeedKind
from sm.base.text import one_line
from sm.config.forges import ForgeSettings
from sm.issues.look import escalation
from sm.issues.look.observe import Observation
from sm.issues.rules.needs import Need, find_waiting
from sm.sessions.session import IssueSession

OF_THE_PULL = (NeedKind.REVIEW, NeedKind.MERGE, NeedKind.CI)
"""What is answered where the pull request is."""


class OpenNeed(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person.

    `key` stays the same for as long as it does, and no other need has it. `text` is one sentence,
    and `command` answers it as it stands, but for TEXT. `since` is in seconds since 1970, 0 if that
    is not known. `issue` is 0, and `session`, `title`, `project` and `link` are '', where there is
    none. `session` is an id, and `name` is what people call it.
    """

    key: str
    kind: NeedKind
    project: str = ""
    issue: int = 0
    session: str = ""
    name: str = ""
    title: str = ""
    since: float = 0.0
    text: str
    command: str
    link: str = ""


def make_need(session: IssueSession, seen: Observation) -> OpenNeed | None:
    """What the session needs a person for, by what was `seen` of it; None for nothing."""
    waiting = find_waiting(seen.facts)
    if waiting is None:
        return None
    need = escalation.find_need(session, seen, waiting.row)
    if need.kind is None:
        return None
    return OpenNeed(
        key=f"{session.name}:{need.kind}:{waiting.matter}",
        kind=need.kind,
        project=session.project_name,
        issue=session.issue,
        session=session.name,
        name=session.address,
        title=one_line(session.record.title),
        since=waiting.since,
        text=_tell(need, seen.pull),
        command=need.command,
        link=_link(session.project.settings.forge, need.kind, session.issue, seen.pull),
    )


def _tell(need: Need, pull: PullRequest | None) -> str:
    """Cause and detail in one sentence, with the number that the command may lack."""
    number = pull.name if pull and need.kind in OF_THE_PULL else ""
    details = ": ".join(filter(None, (number, need.detail)))
    return one_line(f"{need.cause} ({details})" if details else need.cause)


def _link(forge: ForgeSettings, kind: NeedKind, issue: int, pull: PullRequest | None) -> str:
    if pull and kind in OF_THE_PULL:
        return forge.link_pull(pull.number)
    return forge.link_issue(issue)
