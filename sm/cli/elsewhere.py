"""Runs commands about a session elsewhere: the same command line, by the `sm` of its node."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING

from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.output import pass_on, say, say_text
from sm.cli.invocation import ElsewhereError
from sm.cli.words import TIME_UP, print_json, read_stdin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from click import Command, Context

    from sm.issues.reaching import Elsewhere
    from sm.issues.runners import Runner
    from sm.sessions.caller import Caller
    from sm.sessions.project import Project

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
    from sm.issues import reaching
    from sm.issues.runners import load_runner
    from sm.sessions.caller import identify

    there, (verb, *words) = error.there, _leave_out_root_options(argv)
    runner = load_runner(there.placement.runner)
    caller = identify(there.project.root, os.environ)
    if verb == "send":
        return _send(there, runner, words, caller)
    if caller.session:
        raise SmError(
            f"'{caller.session.label}' may only send messages to sessions on other machines, and "
            f"{_where(there)}: ask a person"
        )
    if by_hand := BY_PERSON.get(verb):
        return by_hand(there, runner, words)
    if verb in FOLLOWED and any(option in words for option in FOLLOWS):
        options, is_raw = FOLLOWED[verb](words)
        return _follow(there, runner, [verb, *options, _name(there)], is_raw=is_raw)
    if verb == "context" and any(option in words for option in WATCHES):
        return _watch_context(there, words)
    if verb == "wait" and not any(word.startswith("--message") for word in words):
        return _wait(there, runner, words)
    try:
        answer = reaching.call(there, runner, [verb, *words], _read_stdin(words))
    except TemporaryError:
        if verb not in ENDED_HERE or not reaching.is_lost(there):
            raise
        for line in ENDED_HERE[verb](there):
            say(line)
        return 0
    say_text(answer.stdout, nl=False)
    say_text(answer.stderr, nl=False, err=True)
    return answer.code


def _kill_here(there: Elsewhere) -> list[str]:
    from sm.issues.kill import kill_lost

    return kill_lost(there.project, there.placement)


def _recover_here(there: Elsewhere) -> list[str]:
    from sm.issues.recover import recover

    session = recover(there.project, there.placement.issue)
    return [f"'{there.placement.host}' is lost: recovering {session.name} here"]


ENDED_HERE = {"kill": _kill_here, "recover": _recover_here}
"""Verbs that this machine carries out once the host is lost: it may be dead for good."""


def _leave_out_root_options(argv: list[str]) -> list[str]:
    """Return the verb and its words: where the configuration is here, says nothing there."""
    words = list(argv)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == ROOT_OPTION and words:
            words.pop(0)
    return words


def _where(there: Elsewhere) -> str:
    from sm.issues.reaching import explain

    return explain(there)


def _name(there: Elsewhere) -> str:
    from sm.issues.reaching import name_there

    return name_there(there)


def _read_stdin(words: list[str]) -> str:
    return read_stdin() if "-" in words else ""


def _send(there: Elsewhere, runner: Runner, words: list[str], caller: Caller) -> int:
    from sm.issues import kept_messages, reaching
    from sm.messages.queue import make_id

    ident, said = make_id(), [word for word in words if word != NOTIFY]
    if len(said) < len(words):
        reaching.await_turn(there, ident, caller)
    sender = ["--from", caller.session.address] if caller.session else []
    argv = ["send", "--id", ident, *sender, *said]
    message = kept_messages.make_message(there.placement.session, argv, _read_stdin(said), ident)
    answer = kept_messages.send(there, runner, message)
    if answer is None:
        name, why = reaching.name_there(there), kept_messages.explain_waiting(there)
        if "--json" in said:
            status = {"id": ident, "session": there.placement.session, "name": name}
            print_json(status | {"status": "waiting", "reason": why})
        else:
            say(f"queued for {name}: {why}, and gets it when it does ({ident})")
        return TIME_UP if any(word.startswith("--wait") for word in said) else 0
    if answer.code not in kept_messages.DELIVERED:
        reaching.forget_turn(there, ident)
    say_text(answer.stdout, nl=False)
    say_text(answer.stderr, nl=False, err=True)
    return answer.code


def _reply(there: Elsewhere, runner: Runner, words: list[str]) -> int:
    from sm.cli.reply import command
    from sm.cli.words import read_text
    from sm.issues.reply_elsewhere import reply

    *_, text = _read_options("reply", command, words)["given"]
    answer = reply(there, runner, read_text(text))
    say_text(answer.stdout, nl=False)
    say_text(answer.stderr, nl=False, err=True)
    return answer.code


def _wait(there: Elsewhere, runner: Runner, words: list[str]) -> int:
    """Wait as long as a person wants, which may be longer than one answer of a node takes."""
    from sm.base.clock import Deadline
    from sm.base.output import warn
    from sm.cli.wait import EVENTS, command
    from sm.issues import reaching

    asked = _read_options("wait", command, words)
    timeout_s: float | None = asked["timeout_s"]
    deadline = Deadline(timeout_s) if timeout_s is not None else None
    while True:
        within_s = min(WAIT_S, deadline.left_s) if deadline else WAIT_S
        argv = ["wait", "--for", asked["event"], "--timeout", f"{max(0.0, within_s):.3f}"]
        answer = reaching.call(there, runner, [*argv, _name(there)])
        if answer.code != TIME_UP:
            say_text(answer.stdout, nl=False)
            say_text(answer.stderr, nl=False, err=True)
            return answer.code
        if deadline and deadline.left_s <= 0:
            warn(f"timed out after {timeout_s:g} s: {_name(there)} {EVENTS[asked['event']]}")
            return TIME_UP


def _follow(there: Elsewhere, runner: Runner, argv: list[str], *, is_raw: bool) -> int:
    """Pass on what the node's `sm` says, as it says it, until it is over, or Ctrl-C."""
    from sm.adapters.foreground import pass_on_output

    command = runner.stream(there.project, there.placement, argv)
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


def _watch_context(there: Elsewhere, words: list[str]) -> int:
    """Show how full its context is, asked again each second, until Ctrl-C. It is drawn here."""
    from sm.cli.contexttable import draw_contexts
    from sm.cli.live import show_live
    from sm.views.there import read_gauge

    is_json = "--json" in words
    show_live("context", lambda *_: draw_contexts([read_gauge(there)]), as_json=is_json)
    return 0


def find_past(ctx: Context, place: tuple[Project, int] | str) -> Elsewhere | None:
    """Return where a session that is over was, if elsewhere; `place` may be its id."""
    from sm.cli.options import load_config
    from sm.config.load import NoConfigError
    from sm.issues import reaching

    try:
        meant = reaching.find_issue(load_config(ctx), place) if isinstance(place, str) else place
    except NoConfigError:
        return None
    return reaching.find_past(*meant) if meant else None


def tell_nodes(projects: Iterable[Project], *words: str) -> Iterator[str]:
    """Have each node with sessions of these projects do it as well; yield its words, or why not.

    A node that does not answer is named on stderr: there it has to be said again.
    """
    from sm.base.output import warn
    from sm.issues.placements import list_placements
    from sm.issues.runners import load_runner

    for project in projects:
        nodes = {
            (one.runner, one.host): one
            for one in list_placements(project.root.project(project.name))
        }
        for placement in nodes.values():
            try:
                runner = load_runner(placement.runner)
                answer = runner.call(project, placement, [*words, project.name])
            except SmError as error:
                warn(f"{error.message}: say it again when it does")
                continue
            said = (answer.stderr if answer.code else answer.stdout).strip().splitlines()
            yield from (f"on '{placement.host}': {line}" for line in said)


def _attach(there: Elsewhere, runner: Runner, words: list[str]) -> int:
    from sm.adapters.foreground import run_in_foreground

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: sm logs shows the terminal log without one")
    read_only = "-r" in words or "--read-only" in words
    argv = runner.attach(there.project, there.placement, read_only=read_only)
    sys.stdout.flush()
    return int(bool(run_in_foreground(argv, os.environ)))


BY_PERSON = {"reply": _reply, "attach": _attach}
"""Verbs that take more than a call of the same command line there."""
