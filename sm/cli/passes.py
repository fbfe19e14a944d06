"""The two verbs that programs call all the time: a pass of the reactor, and one of a rotation.

They have no options, so they do without click, whose import would be a fifth of their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sm.cli.invocation import ISSUE, Invocation, find_project
from sm.errors import UsageError

if TYPE_CHECKING:
    from sm.session.registry import AnySession


def react(invocation: Invocation, words: list[str]) -> None:
    """One pass of the reactor over `SESSION` or `PROJECT ISSUE`; one that is gone is no error.

    Raises:
        UsageError: `words` are neither.

    """
    if len(words) == 1:
        _react_by_record(invocation, words[0])
    elif len(words) == 2 and ISSUE.fullmatch(words[1]):
        _react_by_issue(invocation, words[0], int(words[1]))
    else:
        raise UsageError("expected a session, or a project and an issue")


def rotate(invocation: Invocation, words: list[str]) -> None:
    """Do what is due now in replacing the context of `SESSION`; one that is gone is no error.

    Raises:
        UsageError: `words` are not one session.

    """
    from sm.workflow.rotate import rotate

    if len(words) != 1:
        raise UsageError("expected a session")
    if session := _find(invocation, words[0]):
        rotate(session)


PASSES = {"react": react, "rotate": rotate}


def _find(invocation: Invocation, name: str) -> AnySession | None:
    from sm.session import registry
    from sm.store.rootcheck import check_root

    return registry.find(check_root(invocation.root), name)


def _react_by_record(invocation: Invocation, name: str) -> None:
    """As what the session is on record decides. The monitor names the state root."""
    from sm.session.registry import AdHocSession

    session = _find(invocation, name)
    if isinstance(session, AdHocSession):
        from sm.workflow.tend import tend

        tend(session)
    elif session:
        from sm.workflow.host import context_of
        from sm.workflow.reactor import react

        react(context_of(session), name)


def _react_by_issue(invocation: Invocation, project: str, issue: int) -> None:
    from sm.store.paths import session_name
    from sm.workflow.context import Context
    from sm.workflow.reactor import react

    config = invocation.load_config()
    react(Context(config, find_project(config, project)), session_name(project, issue))
