"""What the real client tells of each request as it is made: compactions, and before a SIGKILL."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.cost.follower import follow
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.records.record import Certainty, Tokens
from sm.plugins.cost.ledger.sums import SumGroup, add_up, read_sums
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.plugins.cost.receivers import end_receivers
from tests.real.api import Api, Kind, Reply, Tool
from tests.real.counting import Counting, list_counted, tokens_of, wait_equal
from tests.real.managed import Managed


@pytest.fixture(autouse=True)
def _no_receiver_stays(root: Root) -> Iterator[None]:
    yield
    end_receivers(root)


def test_a_compaction_is_known_at_once_and_after_a_kill(
    unstarted: Managed, api: Api, sealed: Path
) -> None:
    managed, api.model, api.side_tokens = unstarted, Counting(), 777
    managed.folder.mkdir()
    managed.config = managed.folder / "machine.yaml"
    managed.config.write_text(json.dumps({"cost": {"telemetry": True}}))
    managed.start()
    managed.watch()
    managed.send("<one>")
    managed.wait_state(State.IDLE)
    managed.paste("/compact")
    managed.keys("Enter")
    wait_for(lambda: [one for one in api.spent if one.kind is Kind.COMPACTION], "a compaction")
    managed.wait_state(State.IDLE)
    managed.send("<two>")
    managed.wait_state(State.IDLE)
    path = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(path.exists, "the ledger", 30.0)
    with open_ledger(path) as ledger:

        def list_spent() -> dict[str, Tokens]:
            return {one.request: tokens_of(one) for one in api.spent if one.kind is not Kind.SIDE}

        wait_equal(lambda: list_counted(ledger), list_spent)
        wait_equal(lambda: list_counted(ledger, Certainty.UNKNOWN), dict)
        os.kill(managed.agent.pid, signal.SIGKILL)
        follow(managed.session)
        wait_equal(lambda: list_counted(ledger), list_spent)
        assert add_up(read_sums(ledger, SumGroup.ISSUE)).is_complete


def test_searches_are_known_at_once_and_after_a_kill(
    unstarted: Managed, api: Api, sealed: Path
) -> None:
    """Tokens by telemetry, and the number of fees by the record."""
    counting = Counting()
    managed, api.model, api.side_tokens, api.searches = unstarted, counting, 777, 2
    managed.folder.mkdir()
    managed.config = managed.folder / "machine.yaml"
    managed.config.write_text(json.dumps({"cost": {"telemetry": True}}))
    managed.start()
    managed.watch()
    search = Tool("WebSearch", {"query": "what is new"})
    api.say(Reply("I look.", (search,), usage=counting.use()))
    managed.send("<one>")
    managed.wait_state(State.IDLE)
    path = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(path.exists, "the ledger", 30.0)
    with open_ledger(path) as ledger:

        def list_spent() -> dict[str, Tokens]:
            return {one.request: tokens_of(one) for one in api.spent}

        wait_equal(lambda: list_counted(ledger), list_spent)
        wait_equal(lambda: list_counted(ledger, Certainty.UNKNOWN), dict)
        os.kill(managed.agent.pid, signal.SIGKILL)
        follow(managed.session)
        wait_equal(lambda: list_counted(ledger), list_spent)
        total = add_up(read_sums(ledger, SumGroup.ISSUE))
        assert (total.is_complete, total.tokens.searches) == (True, 2)
        agents = {one.name for one in read_sums(ledger, SumGroup.AGENT)}
        assert agents == {"main", "search"}
