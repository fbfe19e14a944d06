"""The verbs that programs call all the time: a pass of the reactor, one of a rotation, the news.

They have no options, so they do without click, whose import would be a fifth of their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sm.base.errors import UsageError
from sm.base.issue_id import read_issue
from sm.cli.invocation import Invocation, find_project

if TYPE_CHECKING:
    from sm.sessions.session import AnySession


def react(invocation: Invocation, words: list[str]) -> None:
    """Make a pass of the reactor over `SESSION` or `PROJECT ISSUE`.

    A session that is gone is no error.

    Raises:
        UsageError: `words` are neither.

    """
    if len(words) == 1:
        _react_by_record(invocation, words[0])
    elif len(words) == 2 and (issue := read_issue(words[1])):
        from sm.issues.act.reactor import react as react_to_issue
        from sm.store.paths import name_session

        config = invocation.load_config()
        react_to_issue(find_project(config, words[0]), name_session(words[0], issue))
    else:
        raise UsageError("expected a session, or a project and an issue")


def rotate(invocation: Invocation, words: list[str]) -> None:
    """Do what is due now in replacing the context of `SESSION`.

    A session that is gone is no error.

    Raises:
        UsageError: `words` are not one session.

    """
    from sm.context.run import rotate

    if len(words) != 1:
        raise UsageError("expected a session")
    if session := _find(invocation, words[0]):
        rotate(session)


def watch(invocation: Invocation, words: list[str]) -> None:
    """Start the monitor of `SESSION` if it has none, as a hook has found.

    A session that is over gets none.

    Raises:
        UsageError: `words` are not one session.

    """
    from sm.sessions import monitors

    if len(words) != 1:
        raise UsageError("expected a session")
    session = _find(invocation, words[0])
    if session and not session.is_over:
        monitors.ensure(session)


def serve_passes(invocation: Invocation, words: list[str]) -> None:
    """Make the passes that monitors ask for, each in a fork of this process.

    With `SESSION` it makes passes for one monitor of an earlier version, for each line of stdin.

    Raises:
        UsageError: `words` are more, or no monitor has started this process.

    """
    from sm.adapters import own_start
    from sm.passes import server
    from sm.store.root_check import check_root

    if len(words) > 1:
        raise UsageError("expected a session")
    if words:
        if server.serve_lines():
            react(invocation, words)
    elif fork := server.serve(check_root(invocation.root)):
        if invocation.again:
            own_start.fork_by(invocation.again)
        try:
            react(invocation, [fork.session])
        finally:
            fork.tell_learned()


def news(_invocation: Invocation, words: list[str]) -> None:
    """Tell what `JOURNAL POSITION PROJECT…` has behind that position; the last line is its end.

    A project is one word of `dev-poll`: its name, remote and branch, as `shop origin main`.

    Raises:
        UsageError: `words` are something else.

    """
    from pathlib import Path

    from sm.base.output import say
    from sm.views.news import Followed, read_news

    if len(words) < 2 or not words[1].isdecimal():
        raise UsageError("expected a journal, a position in it, and projects")
    followed = [Followed(*word.split(" ", 2)) for word in words[2:]]
    lines, end = read_news(Path(words[0]), int(words[1]), followed)
    for line in lines:
        say(line)
    say(str(end))


PASSES = {
    "react": react,
    "react-server": serve_passes,
    "rotate": rotate,
    "watch": watch,
    "news": news,
}


def _find(invocation: Invocation, name: str) -> AnySession | None:
    from sm.sessions import registry
    from sm.store.root_check import check_root

    return registry.find(check_root(invocation.root), name)


def _react_by_record(invocation: Invocation, name: str) -> None:
    """Make the pass that fits the kind of session on record. The monitor names the state root."""
    from sm.sessions.session import AdHocSession

    session = _find(invocation, name)
    if isinstance(session, AdHocSession):
        from sm.personal.reactor import run_pass

        run_pass(session)
    elif session:
        from sm.issues.act import reactor

        reactor.run_pass(session)
