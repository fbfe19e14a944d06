"""A budget of each kind is broken by the real client: what is spent beyond it, and the raise."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.issues.rules.allowance import Stage
from tests.e2e.stage import Stage as Place
from tests.e2e.stage import make_stage
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool, Usage
from tests.real.client import environment, seal

SIZE = Usage(input=100, output=100, cache_read=9800)
EACH = 10_000
LIMIT = 10
"""Requests that a limit has room for."""
ASKED, GOES_ON = "Create handoff document now", "[sm] You may go on"
RAISES = {
    "issue": ("{0}", "1"),
    "session": ("{0}", "1", "--session"),
    "day": ("{0}", "--day"),
    "project": ("{0}", "--project"),
}


class Spender:
    """A model that never ends its turn, until it is asked for a handoff document."""

    def __init__(self) -> None:
        self.document = ""
        self.ended_at = 0.0

    def __call__(self, request: Request) -> Reply:
        said = "\n".join(request.said)
        if GOES_ON in said:
            return Reply("I go on.", usage=SIZE)
        if ASKED not in said:
            return Reply("", (Tool.bash("sleep 0.3"),), usage=SIZE)
        if self.document:
            return Reply("It is whole.", usage=SIZE)
        line = next(one for one in said.splitlines() if one.startswith("Write it to "))
        self.document = line.removeprefix("Write it to ").partition(".md")[0].strip("`'\"") + ".md"
        return Reply("", (Tool.bash(f"echo 'So far.' >{self.document}"),), usage=SIZE)


@pytest.fixture
def begin(
    claude: Path, api: Api, tmux_socket: str, tmp_path: Path, root: object
) -> Iterator[Callable[[str], Place]]:
    assert tmux_socket
    assert root
    stages = list[Place]()

    def begin(kind: str) -> Place:
        home = tmp_path / "client-home"
        variables = {k: v for k, v in environment(home, api.url).items() if v}
        for name in ("PATH", "TERM"):
            variables.pop(name)
        command = f"{claude} --dangerously-skip-permissions"
        settings: dict[str, object] = {
            "agent": {"command": command, "env": variables},
            "budget": {kind: f"{LIMIT * EACH} tokens"},
        }
        stage = make_stage(tmp_path, auto=False, settings=settings)
        stages.append(stage)
        seal(home, stage.project.settings.worktree(1))
        stage.file_issue()
        stage.poll()
        return stage

    yield begin
    for stage in stages:
        stage.end()


@pytest.mark.parametrize("kind", list(RAISES))
def test_what_is_spent_beyond_a_budget(api: Api, begin: Callable[[str], Place], kind: str) -> None:
    spender = api.model = Spender()
    stage = begin(kind)
    session = stage.session(1)

    def acted(row: str) -> bool:
        return session.dir.receipts.exists() and f'"{row}"' in session.dir.receipts.read_text()

    def count() -> int:
        return sum(
            one.usage.input + one.usage.output + one.usage.cache_read
            for one in list(api.spent)
            if one.kind is Kind.MAIN
        )

    wait_for(lambda: count() >= LIMIT * EACH, "the limit to be broken", 120)
    broken_at = time.monotonic()
    try:
        wait_for(lambda: acted("limit-stop"), "the interruption", 30)
        stopped_s, beyond = time.monotonic() - broken_at, count() - LIMIT * EACH
        wait_for(lambda: acted("limit-asked"), "the question", 120)
    except AssertionError:
        print(stage.sm("trace", "1").stdout, session.dir.monitor_log.read_text())
        raise
    handoff = count() - LIMIT * EACH - beyond
    print(f"{kind}: stopped after {stopped_s:.1f} s, {beyond:,} tokens beyond, {handoff:,} for it")
    assert stopped_s < 10
    assert Path(spender.document).read_text() == "So far.\n"
    (row,) = json.loads(stage.sm("budget", "--json").stdout)
    assert row["scope"].removeprefix("project-") == kind
    assert row["stage"] in (Stage.OVER, Stage.SPENT)
    assert row["used"] - row["not_known"] <= count() <= row["used"]
    [need] = json.loads(stage.sm("needs", "--json", check=False).stdout)
    words = [word.format(stage.project.name) for word in RAISES[kind]]
    assert need["command"] == " ".join(("sm budget raise", *words, "AMOUNT"))
    stage.sm("budget", "raise", *words, "1M")
    wait_for(lambda: GOES_ON in "\n".join(api.main[-1].said), "it to go on", 30)
