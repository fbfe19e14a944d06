"""A budget of each kind is broken by the real client: what is spent beyond it, and the raise."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
import yaml

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.issues.rules.allowance import LimitStage
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import BILLIONTHS
from sm.plugins.cost.ledger.prices import find_price
from sm.sessions import monitors
from tests.e2e.stage import Stage as Place
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool, Usage
from tests.real.client import Clients
from tests.real.responses import exec_command
from tests.real.stages import make_real_stage

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
        settings: dict[str, object] = {"budget": {kind: limit}} if limit else {}
        stage = make_real_stage(client, pinned, api, tmp_path, settings)
        stages.append(stage)
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


def test_what_is_spent_beyond_a_budget_in_money(api: Api, begin: Begin) -> None:
    spender = api.model = Spender()
    stage = begin("day", f"${DOLLARS}")
    break_limit(stage, spender, "day", "5", lambda: count_dollars(api) / DOLLARS)
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


def run_on(_: Request) -> Reply:
    """A model that runs one command after another, whatever it is told."""
    return Reply("", (Tool.bash("sleep 0.3"),), usage=SIZE)


def list_rows(stage: Place) -> list[str]:
    """The rows of the matrix that have acted, in their order, once for each time."""
    if not (receipts := stage.session(1).dir.receipts).exists():
        return []
    found = [json.loads(line) for line in receipts.read_text().splitlines()]
    return [one["row"] for one in found if one.get("verb") is None]


def have_asked(stage: Place, times: int) -> bool:
    """Whether a person was asked so often about a limit that is used up."""
    return list_rows(stage).count("limit-asked") == times


def test_each_turn_after_an_interruption_has_its_limit_too(api: Api, begin: Begin) -> None:
    """The request for a document is ignored; and after a raise all goes on from there."""
    api.model = run_on
    stage = begin("issue", TOKENS)
    allowed = LIMIT * EACH
    for times in (1, 2):
        wait_for(partial(have_asked, stage, times), "the question")
        rows = [row for row in list_rows(stage) if row != "limit-near"]
        print(f"{count_tokens(api):,} of {allowed:,} tokens: {rows}")
        assert rows[-2:] == ["limit-stop", "limit-asked"]
        if times == 1:  # later no document is asked for if records come late, on a busy machine
            assert rows == ["limit-stop", "limit-handoff", "limit-stop", "limit-asked"]
        # The reserve, of which nobody can have known the last requests.
        assert count_tokens(api) <= allowed + 6 * EACH + BEYOND * EACH
        count = len(api.main)
        stage.poll()
        assert len(api.main) == count, "nothing goes on"
        if times == 1:
            stage.sm("budget", "raise", "harb", "1", "200k")
            allowed += 200_000


def write_budget(stage: Place, budget: dict[str, str]) -> None:
    """A person edits the configuration."""
    settings = yaml.safe_load(stage.config.read_text())
    stage.config.write_text(yaml.safe_dump(settings | {"budget": budget}))


def find_ours(stage: Place) -> list[Process]:
    """The processes of `sm` that look after the session."""
    root = stage.project.root
    servers = (
        process
        for process, place in procfs.find_by_variable("SM_STATE_ROOT")
        if Path(place) == root.path and "react-server" in procfs.read_command(process)
    )
    return [*(process for _, process in monitors.find_all(root)), *servers]


def test_a_budget_set_in_mid_turn_counts_though_all_of_sm_was_killed(
    api: Api, begin: Begin
) -> None:
    """A hook of the agent starts the watch again, with the environment of the one before."""
    api.model = run_on
    stage = begin("issue", "")
    wait_for(lambda: len(api.main) > 2, "the turn")
    killed = wait_for(lambda: len(found := find_ours(stage)) > 1 and found, "the processes of sm")
    assert killed
    procfs.send(set(killed), signal.SIGKILL)
    wait_for(lambda: not any(map(procfs.is_running, killed)), "their end")
    assert not monitors.is_watched(stage.session(1))
    write_budget(stage, {"issue": TOKENS})
    wait_for(lambda: count_tokens(api) >= LIMIT * EACH, "the limit to be broken")
    wait_for(lambda: "limit-stop" in list_rows(stage), "the interruption")
    print(f"{count_tokens(api):,} tokens")
    assert count_tokens(api) <= (LIMIT + BEYOND) * EACH
    assert monitors.is_watched(stage.session(1))
    wait_for(lambda: have_asked(stage, 1), "the question")
    write_budget(stage, {"issue": "2M tokens"})
    wait_for(lambda: "limit-over" in list_rows(stage), "it to go on")
    lowered_at = len(api.main)
    write_budget(stage, {"issue": TOKENS})
    wait_for(lambda: list_rows(stage).count("limit-stop") > 1, "the interruption")
    assert len(api.main) <= lowered_at + BEYOND


def test_a_turn_whose_spending_nobody_knows_is_interrupted_within_ten_seconds(
    api: Api, begin: Begin, sealed: Path
) -> None:
    api.model = run_on
    stage = begin("issue", "5M tokens")
    ledger = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(lambda: len(api.main) > 2 and ledger.exists(), "the turn")
    with contextlib.closing(sqlite3.connect(ledger, timeout=HANG_S)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # so that it can be read, and nothing is entered
        locked_at, count = time.monotonic(), len(api.main)
        wait_for(lambda: "limit-stop" in list_rows(stage), "the interruption")
        stopped_s, beyond = time.monotonic() - locked_at, len(api.main) - count
        print(f"interrupted after {stopped_s:.1f} s and {beyond} requests: {list_rows(stage)}")
        assert [row for row in list_rows(stage) if row.startswith("limit")] in (
            ["limit-held", "limit-stop"],
            ["limit-stop"],
        )
    assert stopped_s < (10 if is_quiet() else 40)
    wait_for(lambda: "limit-over" in list_rows(stage), "it to go on")


def is_quiet() -> bool:
    """Whether nobody else needs the processors: only then a time says something."""
    return os.getloadavg()[0] < 2 * (os.cpu_count() or 1)


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
        # What is not known yet counts, so a turn may be stopped just below the limit.
        wait_for(lambda: measure() >= broken or acted("limit-stop"), "the limit to be broken")
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
    if acted("limit-handoff"):  # not where nobody knew for a moment what was spent
        assert Path(spender.document).read_text() == "So far.\n"
    (row,) = json.loads(stage.sm("budget", "--json").stdout)
    assert row["scope"].removeprefix("project-") == kind
    assert row["stage"] in (LimitStage.OVER, LimitStage.SPENT)
    used = measure() * row["limit"]
    assert row["used"] - row["not_known"] <= used * 1.0001
    assert used <= row["used"] * 1.0001
    need = stage.find_need("budget")
    words = [word.format(stage.project.name) for word in RAISES[kind]]
    assert need["command"] == " ".join(("sm budget raise", *words, "AMOUNT"))
    stage.sm("budget", "raise", *words, more)
