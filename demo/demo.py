"""Runs the main job on a small real project and shows it live. Started by bin/demo."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents import Agent
    from person import People
    from progress import Played, Progress
    from show import View
    from stage import Stage
    from web import Web

LOOK_S = 0.4
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
IMPATIENCE_S = 1.0
"""Signals that follow one so closely mean the same."""
WAIT_S = 60.0
"""With `--web` the script waits so long for a person."""
LONGEST_WAIT_S = 3600.0
STAY_S = 120.0
"""Seconds for which the page is served after the last merge."""


class Interrupted(BaseException):
    """Somebody wants the demo to stop."""


_interrupted_at = -IMPATIENCE_S


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Stop."""
    global _interrupted_at
    before, _interrupted_at = _interrupted_at, time.monotonic()
    if _interrupted_at - before > IMPATIENCE_S:
        raise Interrupted


def ignore_signals() -> None:
    """Let nothing interrupt us from here on."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main() -> int:
    """Run the demo; returns its exit code."""
    for number in SIGNALS:
        signal.signal(number, interrupt)
    parser = argparse.ArgumentParser(prog="demo", add_help=False)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--agent", choices=["script", "claude"], default="script")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--web", action="store_true")
    parser.add_argument("--wait", type=read_seconds, default=WAIT_S)
    parser.add_argument("--slurm", action="store_true")
    options = parser.parse_args()
    if options.slurm and (options.web or options.agent != "script"):
        parser.error("--slurm goes with neither --web nor --agent")
    try:
        agent = chosen(options.agent, yes=options.yes)
        if isinstance(agent, int):
            return agent
        wait_s = options.wait if options.web else None
        stage = build_stage(agent, slurm=options.slurm)
        if isinstance(stage, int):
            return stage
        return run(stage, plain=options.plain, keep=options.keep, wait_s=wait_s)
    except Interrupted:
        print("demo: interrupted, all is stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read what we print has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def read_seconds(text: str) -> float:
    """A number of seconds from the command line."""
    seconds = float(text)
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise ValueError(text)
    return seconds


def chosen(name: str, *, yes: bool) -> Agent | int:
    """The agent that is asked for, once the person has agreed; else an exit code."""
    from agents import SCRIPTED, AgentError, check_answers, own_claude, question

    if name == "script":
        return SCRIPTED
    try:
        agent = own_claude(os.environ)
        print(question(agent), flush=True)
        if not yes and not sys.stdin.isatty():
            print(
                "demo: this uses your account, so you are asked first: start it in a terminal, or "
                "say '--yes'",
                file=sys.stderr,
            )
            return UNUSABLE
        if not yes and input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
            print("nothing was started")
            return FAILED
        check_answers(agent)
    except EOFError:
        print("\nnothing was started")
        return FAILED
    except AgentError as error:
        print(f"demo: {error}", file=sys.stderr)
        return FAILED
    return agent


def build_stage(agent: Agent, *, slurm: bool) -> Stage | int:
    """The stage that is asked for, of which nothing exists yet; else an exit code."""
    if not slurm:
        from stage import Stage

        return Stage.new(agent)
    from cluster import find_missing
    from nodes import NodesStage

    if missing := find_missing():
        print(f"demo: Slurm is missing here: {missing}", file=sys.stderr)
        return FAILED
    return NodesStage.new(agent)


def run(stage: Stage, *, plain: bool, keep: bool, wait_s: float | None = None) -> int:
    """Set the stage up, play, check, and clear everything away again.

    With `wait_s` the page is open, and what needs a person is left to them for so many seconds.
    """
    from rich.console import Console
    from show import Board, Lines, summary
    from stage import DemoError

    from sm.base import plugin
    from sm.base.errors import SmError
    from sm.plugins import find_plugins

    plugin.use(find_plugins)  # whose words some events have
    console = Console(highlight=False)
    view = Lines() if plain or not console.is_terminal else Board(console, stage)
    try:
        # Two of them, because an interrupt may come in the midst of any line, of this one too.
        try:
            played = play(stage, view, wait_s)
            summary(console, played)
            code = FAILED if played.problems else 0
            if played.problems:
                explain(stage, DemoError("\n".join(played.problems)))
                keep = True
        except (DemoError, SmError) as error:
            explain(stage, error)
            code, keep = FAILED, True
        finally:
            ignore_signals()
    finally:
        stage.clear()
        if keep:
            print(f"kept: '{stage.path}'", file=sys.stderr)
        else:
            stage.remove()
    return code


def play(stage: Stage, view: View, wait_s: float | None = None) -> Played:
    """Run dev-poll and be the people around it until all is over; returns how it ended.

    Raises:
        DemoError: the end does not come.

    """
    from check import problems
    from costs import read_costs
    from patience import Patience
    from person import People
    from progress import Played, Progress

    environ, web = dict(os.environ), None
    with view, ExitStack() as open_:
        stage.enter()
        stage.build(view.say)
        if wait_s is not None:
            web = open_.enter_context(serve(stage, view, environ))
        progress = Progress(stage)
        people = People(stage, view.deed, Patience(wait_s or 0.0, web.has_visitor if web else None))
        stage.start()
        while not progress.is_over:
            take_a_look(stage, progress, people, view)
            if web:
                web.tell_waits(find_waits(progress, people))
            time.sleep(LOOK_S)
        took_s = progress.elapsed_s
        if web and web.has_visitor():
            linger(view)
        open_.close()
        stage.end()
    costs = read_costs(stage)
    return Played(progress, people, took_s, costs, tuple(problems(stage, progress, people)))


def take_a_look(stage: Stage, progress: Progress, people: People, view: View) -> None:
    """Find out what has happened, show it, and do what people do about it.

    Raises:
        DemoError: it has taken too long, or does not go on.

    """
    from stage import DemoError

    stage.check_poll()
    progress.look()
    people.hear(progress.needs)
    view.update(progress, people)  # what is needed, before it is answered
    people.act(progress.active, progress.needs)
    view.update(progress, people)
    deadline_s = stage.agent.deadline_s + (LONGEST_WAIT_S if stage.is_shared else 0.0)
    if progress.elapsed_s > deadline_s:
        raise DemoError(f"not all issues were over within {deadline_s:g} s")


@contextmanager
def serve(stage: Stage, view: View, environ: Mapping[str, str]) -> Iterator[Web]:
    """Serve the page, and say where it is; `environ` is the person's."""
    from web import Web

    stage.is_shared = True
    with Web(stage, environ) as web:
        has_browser = web.open_browser()
        view.keep(f"the page{', which your browser opens' if has_browser else ''}: {web.link}")
        yield web


def linger(view: View, stay_s: float = STAY_S) -> None:
    """Keep the page for a person who is there, for a while, or until they press Enter here.

    They look at the browser, so the demo ends by itself as well.
    """
    if sys.stdin.isatty():
        view.keep(f"all is over: the page stays for {stay_s:.0f} s, or until you press Enter here")
        select.select([sys.stdin], [], [], stay_s)


def find_waits(progress: Progress, people: People) -> dict[str, float]:
    """Until when each session is left to the person."""
    left = people.left
    return {need.session: left[need.key] for need in progress.needs if need.key in left}


def explain(stage: Stage, error: Exception) -> None:
    """Say what went wrong, and tell the story of every issue that was begun and is not closed."""
    from cast import NAME
    from stage import DemoError

    from sm.adapters.forge.model import IssueState
    from sm.store import journal
    from sm.store.paths import name_session

    print(f"demo: {error}", file=sys.stderr, flush=True)
    if not stage.config.exists():
        return
    begun = {event.session for event in journal.read(stage.project.root.journal)}
    for issue in stage.project.forge.issues.find(IssueState.OPEN)[0]:
        if name_session(NAME, issue.number) in begun:
            try:
                story = stage.run("sm", "trace", NAME, str(issue.number))
            except DemoError as problem:
                story = str(problem)
            print(f"\n$ sm trace {NAME} {issue.number}\n{story}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
