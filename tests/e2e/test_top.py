"""`sm top` in a real terminal: a person sees what agents do, and answers there."""

from __future__ import annotations

import re
import sys
from contextlib import AbstractContextManager

import pytest

from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, count_merges, leave_merge, started
from tests.helpers import wait_for
from tests.plugins.top.persons import Screen, a_screen

HOSTILE = "[bold]no[/bold] \x1b[31mred\x1b]0;owned\x07 日本語 e\u0301"


def top(
    stage: Stage, size: tuple[int, int] = (80, 24), **env: str
) -> AbstractContextManager[Screen]:
    # tmux would put a TERM of its own into the environment.
    named = [f"{name}={value}" for name, value in env.items()]
    argv = ["env", *named, sys.executable, "-Im", "sm", "top"]
    return a_screen(argv, stage.environment, stage.folder, size)


def ask(stage: Stage, issue: int, question: str) -> None:
    stage.write_phase(issue, f"PHASE:escalate\n{question}")
    wait_for(lambda: "sm reply" in stage.sm("needs", check=False).stdout, "a need")


def test_a_question_is_answered_where_it_is_read(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    with top(stage) as screen:
        screen.await_text("working")
        ask(stage, issue, "Red or [blue]?")
        screen.await_text("1 needs you")
        screen.press("Space")
        screen.await_text(f"reply to harb#{issue}")
        screen.await_text("Red or [blue]?")
        screen.type("Take [red], please")
        screen.press("Enter")
        screen.await_text(f"answered #{issue}")
        screen.await_text("0 need you")
        wait_for(lambda: "Take [red], please" in "".join(stage.told()), "the answer")
        screen.press("s")
        screen.type("And hurry")
        screen.press("Enter")
        wait_for(lambda: "And hurry" in "".join(stage.told()), "the message")
        screen.press("q")
        screen.await_text("ended with 0")


def ask_for_review(stage: Stage) -> int:
    issue = started(stage)
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: "sm review" in stage.sm("needs", check=False).stdout, "a need")
    return issue


@pytest.mark.parametrize(
    ("size", "env", "key", "words", "told"),
    [
        ((80, 24), {"NO_COLOR": "1"}, "A", "", "Review: approved"),
        ((200, 60), {}, "C", "Say more", "changes requested"),
        ((40, 12), {"TERM": "vt100"}, "C", "Say more", "changes requested"),
    ],
)
def test_a_pull_request_is_reviewed_by_a_key(
    stage_of: MakeStage,
    size: tuple[int, int],
    env: dict[str, str],
    key: str,
    words: str,
    told: str,
) -> None:
    stage = stage_of(settings={"merge": {"by": "agent"}})
    issue = started(stage)
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: "sm review" in stage.sm("needs", check=False).stdout, "a need")
    with top(stage, size, **env) as screen:
        screen.await_text("1 needs you")
        screen.press("M")
        screen.await_text("needs something else")
        screen.press("Space")
        screen.await_text("A approve")
        screen.press(key)
        screen.await_text("What is to change" if words else "A word on it")
        screen.await_text("what it changes at")
        if words:
            screen.press("Enter")  # without a word nothing is sent
            screen.type(words)
        screen.press("Enter")
        screen.await_text("changes-requested #" if words else "approved #")
        heard = wait_for(lambda: [one for one in stage.told() if told in one], "the review")
        assert words in heard[0]


def test_a_merge_that_the_agent_leaves_is_made_by_a_key(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"merge": {"remind": "1s"}})
    issue = started(stage)
    with top(stage) as screen:
        screen.await_text("working")
        leave_merge(stage, issue)
        screen.await_text("M merge")
        screen.press("M")
        screen.await_text("on the forge")
        screen.await_text("what it changes at")
        screen.press("y")
        screen.await_text("merged #")
        wait_for(lambda: stage.is_over(issue), "the end of the session")
    assert count_merges(stage, issue) == 1


def test_a_session_that_ends_while_it_is_watched_says_how(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    with top(stage) as screen:
        screen.await_text("working")
        screen.press("Enter")
        screen.await_text("story, the newest first")
        stage.sm("kill", f"harb#{issue}")
        screen.await_text("over: ")
        screen.press("a")
        screen.await_text("not done")
        screen.press("Escape")
        screen.await_text("0 sessions")
        assert f"harb#{issue}" in screen.show()
        screen.press("q")
        screen.await_text("ended with 0")


def test_the_terminal_of_an_agent_is_entered_and_left(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"recovery": {"pause": "1h"}})
    issue = started(stage)
    with top(stage) as screen:
        screen.await_text("working")
        screen.press("a")
        screen.await_text("leaves")  # the status line of the agent's terminal
        screen.press("C-b", "d")
        screen.await_text("sm top")
        stage.project.tmux.command("kill-server")
        screen.press("?")
        screen.await_text("Nothing moves by itself")
        screen.press("x")
        screen.await_text("1 session")
        screen.press("a")
        screen.await_text(f"not done: the terminal of 'dev-harb-{issue}' is gone")
        screen.press("q")
        screen.await_text("ended with 0")


@pytest.mark.parametrize(
    ("size", "env"),
    [
        ((80, 24), {}),
        ((200, 60), {}),
        ((80, 24), {"NO_COLOR": "1"}),
        ((80, 24), {"TERM": "dumb"}),
        ((80, 24), {"TERM": "vt100"}),
    ],
)
def test_every_session_is_a_line_whatever_the_terminal_and_the_words(
    stage_of: MakeStage, size: tuple[int, int], env: dict[str, str]
) -> None:
    stage = stage_of()
    issue = stage.file_issue(HOSTILE)
    stage.poll()
    wait_for(stage.told, "the first prompt")
    ask(stage, issue, HOSTILE)
    with top(stage, size, **env) as screen:
        screen.await_text("1 needs you")
        shown = screen.show(colours=True)
        [line] = [line for line in screen.show().splitlines() if f"! harb#{issue}" in line]
        assert "[bold]no[/b" in line
        colours = re.findall(r"\x1b\[[0-9;]*m", shown)
        with_colour = [one for one in colours if re.search(r"[\[;](3[0-7]|9[0-7])[;m]", one)]
        assert bool(with_colour) is not bool(env)
        assert "\x1b[7m" in shown or ";7m" in shown  # the selected line
        screen.press("Enter")
        screen.await_text("story, the newest first")
        assert "owned" not in screen.show()
        screen.resize(20, 4)
        screen.press("Escape")
        screen.await_text(f"harb#{issue}")
