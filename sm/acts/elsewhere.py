"""Steers a session on another host: the same verb, carried out by that node's `sm`.

An act on its pull request or issue is done from here, on the forge, as for any other session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from sm.base.act import ActKind
from sm.base.errors import UsageError
from sm.base.refusal import Status
from sm.base.text import one_line
from sm.issues import kept_messages, meters, reaching, reply_elsewhere
from sm.issues.kept_messages import DELIVERED
from sm.issues.meters import SetLimit
from sm.issues.placements import list_placements
from sm.issues.reaching import Elsewhere
from sm.issues.runners import Answer, load_runner
from sm.messages.queue import make_id
from sm.messages.send import check_text
from sm.sessions.caller import Caller, CallerError
from sm.sessions.project import Project
from sm.store.files import list_names
from sm.views.open_need import OpenNeed

PATIENCE_S = 15.0
"""Time that a node is waited for at each step, in seconds: the person who pressed looks on."""
TEXT_LIMIT = 2000
STDIN = "-"

Words = Callable[[Elsewhere], tuple[str, ...]]


def _by_name(verb: str, *more: str) -> Words:
    return lambda there: (verb, reaching.name_there(there), *more)


def _by_issue(verb: str, *more: str) -> Words:
    return lambda there: (verb, there.placement.project, str(there.placement.issue), *more)


VERBS: dict[ActKind, Words] = {
    ActKind.PAUSE: _by_name("pause"),
    ActKind.RESUME: _by_name("resume"),
    ActKind.ROTATE: _by_name("cycle"),
    ActKind.RECOVER: _by_issue("recover"),
    ActKind.KILL: _by_issue("kill"),
}
"""Words with which the node's `sm` is called; a person's text is its stdin, never an option."""
STEERS = frozenset([*VERBS, ActKind.REPLY, ActKind.SEND])
"""Acts that the node carries out; all others are done on the forge, or by a limit."""


def find(projects: list[Project], session: str) -> Elsewhere | None:
    """Return the session elsewhere with that id, if one of these projects has it there."""
    for project in projects:
        directory = project.root.project(project.name)
        if not list_names(directory.placements):
            continue
        for one in list_placements(directory):
            if one.session == session:
                return Elsewhere(project, one)
    return None


def carry_out(caller: Caller, there: Elsewhere, act: ActKind, text: str = "") -> list[str]:
    """Carry out the act; return what the node says of it.

    Raises:
        TemporaryError: the node does not answer; the text says if it may be done all the same.
        SmError: it is refused, there or because an agent asks for it.

    """
    if act is ActKind.SEND:
        return [send(caller, there, text)]
    if caller.session:
        raise CallerError(
            f"'{caller.session.label}' may only send messages to sessions on other machines: "
            "ask a person"
        )
    if act is ActKind.REPLY:
        runner = load_runner(there.placement.runner)
        return _read_lines(reply_elsewhere.reply(there, runner, text, PATIENCE_S))
    return _call(there, VERBS[act](there))


def _call(there: Elsewhere, argv: tuple[str, ...]) -> list[str]:
    runner = load_runner(there.placement.runner)
    return _read_lines(reaching.call(there, runner, argv, "", PATIENCE_S))


def _read_lines(answer: Answer) -> list[str]:
    if answer.code:
        raise reaching.explain_failure(answer)
    return [one_line(line, TEXT_LIMIT) for line in answer.stdout.splitlines() if line.strip()]


def send(caller: Caller, there: Elsewhere, text: str) -> str:
    """Send a message: it has its id from now on, and is kept while its host does not answer."""
    check_text(text)
    ident, name = make_id(), reaching.name_there(there)
    source = ("--from", caller.session.address) if caller.session else ()
    argv = ("send", "--id", ident, *source, "--json", name, STDIN)
    message = kept_messages.make_message(there.placement.session, argv, text, ident)
    answer = kept_messages.send(there, load_runner(there.placement.runner), message, PATIENCE_S)
    if answer is None:
        return (
            f"Message to {name} queued: {kept_messages.explain_waiting(there)}, and gets it then."
        )
    if answer.code not in DELIVERED:
        raise reaching.explain_failure(answer)
    return _tell_sent(name, answer)


def _tell_sent(name: str, answer: Answer) -> str:
    try:
        said = json.loads(answer.stdout)
        status, why = Status(said["status"]), one_line(str(said.get("reason", "")), TEXT_LIMIT)
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"Message to {name} taken by its host."
    return f"Message to {name} {status}{': ' + why if why else ''}."


# Limits


def list_limits(there: Elsewhere, need: OpenNeed | None) -> list[SetLimit]:
    """Return the limits of the session: those set here, and the one that the need is about there.

    A limit that was set here is raised here, also if its node has told of it.
    """
    ours = meters.list_limits(there)
    if need is None or need.act.kind is not ActKind.RAISE:
        return ours
    if any(limit.act == need.act for limit in ours):
        return ours
    change = partial(_change, there, need.act.limit)
    limit = SetLimit(
        key=f"there:{need.act.limit}",
        act=need.act,
        shown=need.text,
        proposal="",
        raised="",
        raise_by=change,
        lower_by=change,
    )
    return [*ours, limit]


def _change(there: Elsewhere, limit: str, text: str) -> str:
    amount = text.split()
    if not amount or any(word.startswith("-") for word in amount):
        raise UsageError("by how much? write an amount, such as 5 or 2M")
    return " ".join(_call(there, ("budget", "raise", *limit.split(), *amount)))
