"""Runs commands about a session elsewhere: the same command line, by the `sm` of its node."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING

from sm.base.errors import SmError, TemporaryError
from sm.base.issue_id import IssueId
from sm.base.output import pass_on, say, say_text
from sm.cli.invocation import ElsewhereError
from sm.cli.words import TIME_UP, print_json, read_stdin

if TYPE_CHECKING:
    from typing import Any

    from click import Command, Context

    from sm.issues.runners import NodeAnswer
    from sm.sessions.caller import Caller
    from sm.sessions.project import Project
    from sm.views.place import RemotePlace

FOLLOWS = ("-f", "--follow")
WATCHES = ("-w", "--watch")
"""Options that never end by themselves; the channel to a node has answers, and no streams."""
WAIT_S = 300.0
"""Time for which a node waits at once, in seconds: its answer may take 600 s at the most."""
ROOT_OPTION = "--config"
NOTIFY = "--notify-on-stop"


def call_there(error: ElsewhereError, argv: list[str]) -> int:
    """Have the node's `sm` do what `argv` says; return the exit code.

    Raises:
        SmError: the node does not answer, or the caller may not do this.

    """
    from sm.sessions.caller import identify

    there, (verb, *words) = error.there, _leave_out_root_options(argv)
    caller = identify(there.project.root, os.environ)
    if verb == "send":
        return _send(there, words, caller)
    if caller.session:
        raise SmError(
            f"'{caller.session.label}' may only send messages to sessions on other machines, and "
            f"{error.message}: ask a person"
        )
    if by_hand := BY_PERSON.get(verb):
        return by_hand(there, words)
    if verb in FOLLOWED and any(option in words for option in FOLLOWS):
        options, is_raw = FOLLOWED[verb](words)
        return _follow(there, [verb, *options, there.name], is_raw=is_raw)
    if verb == "context" and any(option in words for option in WATCHES):
        return _watch_context(there, words)
    if verb == "wait" and not any(word.startswith("--message") for word in words):
        return _wait(there, words)
    try:
        return _pass_on(there.call([verb, *words], _read_stdin(words)))
    except TemporaryError:
        done = there.end_lost(verb)  # it may be dead for good
        if done is None:
            raise
        for line in done:
            say(line)
        return 0


def _pass_on(answer: NodeAnswer) -> int:
    """Say what the node's `sm` has said; return its exit code."""
    say_text(answer.stdout, nl=False)
    say_text(answer.stderr, nl=False, err=True)
    return answer.code


def _leave_out_root_options(argv: list[str]) -> list[str]:
    """Return the verb and its words: where the configuration is here, says nothing there."""
    words = list(argv)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == ROOT_OPTION and words:
            words.pop(0)
    return words


def _read_stdin(words: list[str]) -> str:
    return read_stdin() if "-" in words else ""


def _send(there: RemotePlace, words: list[str], caller: Caller) -> int:
    said = [word for word in words if word != NOTIFY]
    sent = there.send(caller, said, _read_stdin(said), notify=len(said) < len(words))
    if sent.answer:
        return _pass_on(sent.answer)
    if "--json" in said:
        status = {"id": sent.id, "session": there.session, "name": there.name}
        print_json(status | {"status": "waiting", "reason": sent.why})
    else:
        say(f"queued for {there.name}: {sent.why}, and gets it when it does ({sent.id})")
    return TIME_UP if any(word.startswith("--wait") for word in said) else 0


def _reply(there: RemotePlace, words: list[str]) -> int:
    from sm.cli.reply import command
    from sm.cli.words import read_text

    *_, text = _read_options("reply", command, words)["given"]
    return _pass_on(there.reply(read_text(text)))


def _wait(there: RemotePlace, words: list[str]) -> int:
    """Wait as long as a person wants, which may be longer than one answer of a node takes."""
    from sm.base.clock import Deadline
    from sm.base.output import warn
    from sm.cli.wait import EVENTS, command

    asked = _read_options("wait", command, words)
    timeout_s: float | None = asked["timeout_s"]
    deadline = Deadline(timeout_s) if timeout_s is not None else None
    while True:
        within_s = min(WAIT_S, deadline.left_s) if deadline else WAIT_S
        argv = ["wait", "--for", asked["event"], "--timeout", f"{max(0.0, within_s):.3f}"]
        answer = there.call([*argv, there.name])
        if answer.code != TIME_UP:
            return _pass_on(answer)
        if deadline and deadline.left_s <= 0:
            warn(f"timed out after {timeout_s:g} s: {there.name} {EVENTS[asked['event']]}")
            return TIME_UP


def _follow(there: RemotePlace, argv: list[str], *, is_raw: bool) -> int:
    """Pass on what the node's `sm` says, as it says it, until it is over, or Ctrl-C."""
    from sm.adapters.foreground import pass_on_output

    command = there.stream(argv)
    sys.stdout.flush()
    text, half = codecs.getincrementaldecoder("utf-8")("replace"), b""

    def take(data: bytes) -> None:
        nonlocal half
        data = half + data
        half = data[len(data.removesuffix(b"\r")) :]  # its LF is still to come
        data = data.removesuffix(b"\r").replace(b"\r\n", b"\n")
        pass_on(data) if is_raw else say_text(text.decode(data), nl=False)

    try:
        return pass_on_output(command, os.environ, take)
    except KeyboardInterrupt:
        return 0  # the way to end it, so no error


def _read_options(verb: str, command: Command, words: list[str]) -> dict[str, Any]:
    # With resilient parsing the session is not looked up again.
    return command.make_context(verb, list(words), resilient_parsing=True).params


def _read_log_options(words: list[str]) -> tuple[list[str], bool]:
    """Return the options of `sm logs` that the words have, and whether they ask for `--raw`."""
    from sm.cli.logs import command

    found = _read_options("logs", command, words)
    named = [f"--{name}" for name in ("follow", "raw", "monitor") if found[name]]
    return [*named, "--lines", str(found["lines"])], bool(found["raw"])


def _read_event_options(words: list[str]) -> tuple[list[str], bool]:
    """Return the options of `sm events`, whose output is never raw."""
    from sm.cli.events import command

    found = _read_options("events", command, words)
    since = [] if found["since"] is None else ["--since", f"{found['since']:g}s"]
    return ["--follow", *since, *["--json"] * bool(found["as_json"])], False


FOLLOWED = {"logs": _read_log_options, "events": _read_event_options}


def _watch_context(there: RemotePlace, words: list[str]) -> int:
    """Show how full its context is, asked again each second, until Ctrl-C. It is drawn here."""
    from sm.cli.context import draw_contexts
    from sm.cli.live import show_live

    is_json = "--json" in words
    show_live("context", lambda *_: draw_contexts([there.read_gauge()]), as_json=is_json)
    return 0


def find_past(ctx: Context, place: tuple[Project, IssueId] | str) -> RemotePlace | None:
    """Find where a session that is over was, if elsewhere; `place` may be its id."""
    from sm.cli.options import load_config
    from sm.config.load import NoConfigError
    from sm.views.place import find_meant_issue, find_past_remote

    try:
        meant = find_meant_issue(load_config(ctx), place) if isinstance(place, str) else place
    except NoConfigError:
        return None
    return find_past_remote(*meant) if meant else None


def _attach(there: RemotePlace, words: list[str]) -> int:
    from sm.cli.attach import check_terminal

    check_terminal()
    enter = there.prepare_attachment(read_only="-r" in words or "--read-only" in words)
    sys.stdout.flush()
    return int(bool(enter()))


BY_PERSON = {"reply": _reply, "attach": _attach}
"""Verbs that take more than a call of the same command line there."""
