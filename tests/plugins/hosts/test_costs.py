"""What agents use on a node counts at home, over a real ssh, and a budget of home holds there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from sm.plugins.cost.ledger.entries import EntryOwner, open_ledger
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.plugins.cost.lines import add_lines, enter, write_answer
from tests.plugins.cost.shop import OUTPUT_OF_A_DOLLAR
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    """A node whose session has its first prompt."""
    with living(tmp_path, auto=False) as made:
        made.stage.file_issue()
        made.stage.poll()
        wait_for(made.stage.told, "the first prompt")
        yield made


def spend(node: Path, ident: str, dollars: float = 0.1) -> None:
    """The agent on a node, which has that folder, writes down a request that nobody has read."""
    at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    transcript = node / "s1.jsonl"
    with open_ledger(node / "home" / ".local" / "share" / "sm" / "ledger.db") as ledger:
        if not transcript.exists():
            transcript.touch()
            began = write_answer("first", at=at)
            enter(ledger, add_lines(transcript, [began]), EntryOwner("dev-harb-1", "harb", 1))
    line = write_answer(ident, round(dollars * OUTPUT_OF_A_DOLLAR), at=at)
    add_lines(transcript, [line])


def test_what_a_node_has_used_is_known_here_to_the_token(world: World) -> None:
    spend(world.box.place, "r1")
    here = json.loads(world.stage.sm("cost", "--json").stdout)
    there = json.loads(world.box.sm("cost", "--json").stdout)
    assert here == there
    assert here[0]["requests"] == 2
    assert here[0]["price"] > 0.1
    assert "box" in world.stage.sm("cost", "--by", "host").stdout
    assert "$0.1" in world.stage.sm("status").stdout
    world.box.sshd.stop(cut=True)
    spend(world.box.place, "r2")
    silent = world.stage.sm("cost")
    assert "without what agents on 'box' have used in the last " in silent.stderr
    world.box.sshd.start()

    def is_heard() -> bool:
        return "without" not in world.stage.sm("cost").stderr

    wait_for(is_heard, "the host to be back", 60)
    assert json.loads(world.stage.sm("cost", "--json").stdout)[0]["requests"] == 3


def test_a_budget_of_here_holds_there_and_nothing_more_begins(world: World) -> None:
    config = yaml.safe_load(world.stage.config.read_text())
    config["budget"] = {"day": "$1", "unknown": "allow"}
    world.stage.config.write_text(yaml.safe_dump(config))
    spend(world.box.place, "r1", 2.0)
    world.stage.poll()

    def read_row() -> str:
        (row,) = json.loads(world.box.sm("status", "--json").stdout)[0]["sessions"]
        return json.dumps(row)

    wait_for(lambda: "of $1.00 for harb today" in read_row(), "the session there to be held", 60)
    world.stage.file_issue("Another")
    assert "nothing new is placed: $2." in world.stage.poll().stdout
    world.stage.sm("budget", "raise", "harb", "--day", "5")
    wait_for(lambda: "of $1.00 for harb today" not in read_row(), "it to go on", 60)
