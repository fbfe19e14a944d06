"""Commands about a session that runs elsewhere: the same command line, by the `sm` of its node."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING

from sm.base.errors import SmError, UsageError
from sm.base.output import pass_on, say, say_text
from sm.cli.invocation import ElsewhereError
from sm.cli.words import TIME_UP, print_json, read_stdin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sm.issues.reaching import Elsewhere
    from sm.issues.runners import Runner
    from sm.sessions.caller import Caller
    from sm.sessions.project import Project

FOLLOWS = {"logs": ("-f", "--follow"), "context": ("-w", "--watch")}
"""What would not end by itself; the channel to a node has answers, and no streams."""
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
    if verb == "attach":
        return _attach(there, runner, words)
    if any(option in words for option in FOLLOWS.get(verb, ())):
        if verb != "logs":
            raise UsageError(f"{_where(there)}, from where this is not followed: leave that out")
        return _follow_log(there, runner, words)
    answer = reaching.call(there, runner, [verb, *words], _read_stdin(words))
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


def _where(there: Elsewhere) -> str:
    from sm.issues.reaching import explain

    return explain(there)


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


def _follow_log(there: Elsewhere, runner: Runner, words: list[str]) -> int:
    """Pass on what its terminal says, as it says it, until it is over, or Ctrl-C."""
    from sm.adapters.foreground import pass_on_output
    from sm.issues.reaching import name_there

    options, is_raw = _read_log_options(words)
    argv = runner.stream(there.project, there.placement, ["logs", *options, name_there(there)])
    sys.stdout.flush()
    text, half = codecs.getincrementaldecoder("utf-8")("replace"), b""

    def take(data: bytes) -> None:
        nonlocal half
        data = half + data
        half = data[len(data.removesuffix(b"\r")) :]  # its LF is still to come
        data = data.removesuffix(b"\r").replace(b"\r\n", b"\n")
        pass_on(data) if is_raw else say_text(text.decode(data), nl=False)

    try:
        return pass_on_output(argv, os.environ, take)
    except KeyboardInterrupt:
        return 0  # the way to end it, so no error


def _read_log_options(words: list[str]) -> tuple[list[str], bool]:
    """Return the options of `sm logs` that the words have, and whether they ask for `--raw`."""
    from click import Context

    from sm.cli.logs import command

    # With resilient parsing the session is not looked up again.
    found: Context = command.make_context("logs", list(words), resilient_parsing=True)
    named = [f"--{name}" for name in ("follow", "raw", "monitor") if found.params[name]]
    return [*named, "--lines", str(found.params["lines"])], bool(found.params["raw"])


def tell_nodes(projects: Iterable[Project], *words: str) -> Iterator[str]:
    """Have each node with sessions of these projects do the same; yield what it says, or why not.

    A node that does not answer is told of on stderr: there it has to be said again.
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
