"""A budget of each kind is broken by the real client: what is spent beyond it, and the raise."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from sm.adapters.agent.codex import CODEX
from sm.issues.rules.allowance import Stage
from sm.plugins.cost.database import COUNTS
from sm.plugins.cost.ledger import BILLIONTHS
from sm.plugins.cost.prices import find_price
from tests.e2e.stage import Stage as Place
from tests.e2e.stage import make_stage
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool, Usage
from tests.real.client import Clients, environment, seal
from tests.real.codex import CONFIG
from tests.real.responses import exec_command

SIZE = Usage(input=100, output=100, cache_read=9800)
EACH = 10_000
LIMIT = 10
"""Requests that a limit has room for."""
BEYOND = 10
"""Requests beyond it at most until the turn is interrupted, however slow the machine is."""
TOKENS, DOLLARS = f"{LIMIT * EACH} tokens", 0.08
"""As much in both units, more or less."""
ASKED, GOES_ON = "Create handoff document now", "[sm] You may go on"
RAISES = {
    "issue": ("{0}", "1"),
    "session": ("{0}", "1", "--session"),
    "day": ("{0}", "--day"),
    "project": ("{0}", "--project"),
}


class Spender:
    """A model that never ends its turn, until it is asked for a handoff document.

    `run` is how its client is asked to run a command.
    """

    def __init__(self, run: Callable[[str], Tool] = Tool.bash) -> None:
        self.run = run
        self.document = ""

    def __call__(self, request: Request) -> Reply:
        said = "\n".join(request.said)
        if GOES_ON in said:
            return Reply("I go on.", usage=SIZE)
        if ASKED not in said:
            return Reply("", (self.run("sleep 0.3"),), usage=SIZE)
        if self.document:
            return Reply("It is whole.", usage=SIZE)
        line = next(one for one in said.splitlines() if one.startswith("Write it to "))
        self.document = line.removeprefix("Write it to ").partition(".md")[0].strip("`'\"") + ".md"
        return Reply("", (self.run(f"echo 'So far.' >{self.document}"),), usage=SIZE)


Begin = Callable[[str, str], Place]
"""Has an issue begun under a limit of that kind, so high."""


@pytest.fixture
def client() -> str:
    """Which client works on the issue."""
    return "claude"


@pytest.fixture
def begin(
    client: str, pinned: Clients, api: Api, tmux_socket: str, tmp_path: Path, root: object
) -> Iterator[Begin]:
    assert tmux_socket
    assert root
    stages = list[Place]()

    def begin(kind: str, limit: str) -> Place:
        home = tmp_path / "client-home"
        variables = {k: v for k, v in environment(home, api.url).items() if v}
        for name in ("PATH", "TERM"):
            variables.pop(name)
        commands = {
            "claude": f"{pinned.claude} --dangerously-skip-permissions",
            "codex": shlex.join([str(pinned.codex), *CODEX.command.split()[1:]]),
        }
        settings: dict[str, object] = {
            "agent": {"command": commands[client], "env": variables},
            "budget": {kind: limit},
        }
        stage = make_stage(tmp_path, auto=False, settings=settings)
        stages.append(stage)
        worktree = stage.project.settings.worktree(1)
        seal(home, worktree)
        (home / ".codex").mkdir()
        told = CONFIG.format(url=api.url, cwd=json.dumps(str(worktree)))
        (home / ".codex" / "config.toml").write_text(told)
        stage.file_issue()
        stage.poll()
        return stage

    yield begin
    for stage in stages:
        stage.end()


def count_tokens(api: Api) -> int:
    """What the API has counted."""
    return sum(
        one.usage.input + one.usage.output + one.usage.cache_read
        for one in list(api.spent)
        if one.kind is Kind.MAIN
    )


def count_dollars(api: Api) -> float:
    """The list price of that."""
    prices = (
        find_price(one.model, time.time(), {**dict.fromkeys(COUNTS, 0), **asdict(one.usage)})
        for one in list(api.spent)
        if one.kind is Kind.MAIN
    )
    return sum(price or 0 for price in prices) / BILLIONTHS


@pytest.mark.parametrize("kind", ["session", "project"])
def test_what_is_spent_beyond_a_budget(api: Api, begin: Begin, kind: str) -> None:
    spender = api.model = Spender()
    stage = begin(kind, TOKENS)
    break_limit(stage, spender, kind, "1M", lambda: count_tokens(api) / (LIMIT * EACH))
    wait_for(lambda: GOES_ON in "\n".join(api.main[-1].said), "it to go on")


@pytest.mark.parametrize("kind", ["issue", "day"])
def test_what_is_spent_beyond_a_budget_in_money(api: Api, begin: Begin, kind: str) -> None:
    spender = api.model = Spender()
    stage = begin(kind, f"${DOLLARS}")
    break_limit(stage, spender, kind, "5", lambda: count_dollars(api) / DOLLARS)
    wait_for(lambda: GOES_ON in "\n".join(api.main[-1].said), "it to go on")


@pytest.mark.parametrize("client", ["codex"])
def test_what_codex_spends_beyond_a_budget(api: Api, begin: Begin, client: str) -> None:
    spender = api.model = Spender(exec_command)
    stage = begin("issue", TOKENS)
    title = 1 / LIMIT  # which counts as the largest request
    break_limit(
        *(stage, spender, "issue", "1M", lambda: count_tokens(api) / (LIMIT * EACH)),
        broken=1 - title,
    )
    wait_for(lambda: GOES_ON in "\n".join(api.main[-1].said), f"{client} to go on")


def break_limit(
    stage: Place,
    spender: Spender,
    kind: str,
    more: str,
    measure: Callable[[], float],
    broken: float = 1.0,
) -> None:
    """The story of a limit, up to its raise by so much; `measure` is what part of it is used.

    It is `broken` earlier if there are requests of which nobody knows what they have used.
    """
    session = stage.session(1)

    def acted(row: str) -> bool:
        return session.dir.receipts.exists() and f'"{row}"' in session.dir.receipts.read_text()

    try:
        wait_for(lambda: measure() >= broken, "the limit to be broken")
        broken_at = time.monotonic()
        wait_for(lambda: acted("limit-stop"), "the interruption")
        stopped_s, beyond = time.monotonic() - broken_at, measure() - broken
        wait_for(lambda: acted("limit-asked"), "the question")
    except AssertionError:
        print(stage.sm("trace", "1").stdout, session.dir.monitor_log.read_text())
        raise
    handoff = measure() - broken - beyond
    print(f"{kind}: stopped after {stopped_s:.1f} s, {beyond:.0%} beyond, {handoff:.0%} for it")
    assert beyond * LIMIT <= BEYOND
    assert Path(spender.document).read_text() == "So far.\n"
    (row,) = json.loads(stage.sm("budget", "--json").stdout)
    assert row["scope"].removeprefix("project-") == kind
    assert row["stage"] in (Stage.OVER, Stage.SPENT)
    used = measure() * row["limit"]
    assert row["used"] - row["not_known"] <= used * 1.0001
    assert used <= row["used"] * 1.0001
    need = stage.find_need("budget")
    words = [word.format(stage.project.name) for word in RAISES[kind]]
    assert need["command"] == " ".join(("sm budget raise", *words, "AMOUNT"))
    stage.sm("budget", "raise", *words, more)
