"""All machines are asked at once, by the runner of a session that each has."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from sm.base import plugin
from sm.base.errors import TemporaryError
from sm.base.plugin import Plugin
from sm.issues import placements
from sm.issues.runners import NodeAnswer, Placement
from sm.plugins import OURS
from sm.plugins.cost.budget import remote_limits
from sm.plugins.cost.ledger import nodes
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.sums import SumGroup, read_sums
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync.home import ask_all
from sm.plugins.cost.sync.node import answer
from sm.plugins.cost.sync.tick import EVERY_S, SELDOM_S, find_pause_s, follow_up, measure_shared
from sm.plugins.cost.sync.wire import Inquiry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer
from tests.plugins.cost.shop import OUTPUT_OF_A_DOLLAR, open_project


class Away:
    """What hosts answer: each has a ledger in its folder, but for those that do otherwise."""

    def __init__(self) -> None:
        self.nodes: dict[str, Machine] = {}
        self.silent = threading.Event()

    def call(
        self,
        project: Project,
        placement: Placement,
        argv: Sequence[str],
        stdin: str = "",
        *,
        patience_s: float | None = None,
        silent_s: float | None = None,
    ) -> NodeAnswer:
        """Do what the node's `sm ledger tell` does."""
        assert argv == ("ledger", "tell")
        match placement.host:
            case "old":
                return NodeAnswer(2, "", "sm: no such command 'ledger': see 'sm --help'\n")
            case "cut":
                raise TemporaryError("host 'cut' does not answer: no route")
            case "odd":
                return NodeAnswer(0, '{"ledger": 7}', "")
            case "dead":
                self.silent.wait(60)
                raise TemporaryError("too late")
        said = answer(self.nodes[placement.host], msgspec.json.decode(stdin, type=Inquiry))
        return NodeAnswer(0, msgspec.json.encode(said).decode(), "")


AWAY = Away()
PLUGIN = Plugin(runners={"away": f"{__name__}:AWAY"})


@pytest.fixture(autouse=True)
def away() -> Iterator[Away]:
    plugin.use(lambda: [*OURS.items(), ("away", f"{__name__}:PLUGIN")])
    AWAY.silent.clear()
    yield AWAY
    AWAY.silent.set()
    AWAY.nodes.clear()
    plugin.use(OURS.items)


def make_node(away: Away, folder: Path, host: str) -> Path:
    """A node; returns where its agents write."""
    place = folder / host
    place.mkdir(mode=0o700)
    node = open_project(place, "{}", ledger=place / "ledger.db", root=place)
    away.nodes[host] = Machine(node.config)
    return place / "s1.jsonl"


def spend(away: Away, host: str, transcript: Path, dollars: float) -> None:
    with open_ledger(find_ledger(away.nodes[host].settings)) as ledger:
        today = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = write_answer(f"{host}-{dollars}", round(dollars * OUTPUT_OF_A_DOLLAR), at=today)
        enter(ledger, add_lines(transcript, [line]), OWNER)


def place(project: Project, issue: int, host: str) -> None:
    one = Placement("shop", issue, f"dev-shop-{issue}", "away", host, 1, "c", "h", 1.0)
    placements.keep(project.directory, one)


def test_one_that_does_not_answer_keeps_no_other_waiting(
    away: Away, tmp_path: Path, root: Root
) -> None:
    project = open_project(tmp_path, "{}", ledger=tmp_path / "home" / "l.db", root=root.path)
    hosts = ("box", "old", "cut", "odd", "dead")
    for number, host in enumerate(hosts, 1):
        place(project, number, host)
    transcript = make_node(away, tmp_path, "box")
    spend(away, "box", transcript, 1.0)
    began = time.monotonic()
    assert ask_all(project.config, root, 5.0) == 1
    assert time.monotonic() - began < 30.0
    with open_ledger(tmp_path / "home" / "l.db") as ledger:
        assert [(one.name, one.requests) for one in read_sums(ledger, SumGroup.HOST)] == [
            ("box", 1)
        ]
    assert [note.partition(": ")[2] for note in nodes.list_unheard(root)] == [
        "host 'cut' does not answer: no route",
        "no answer within 5 s",
        "what it tells is no account of costs: Expected `str`, got `int` - at `$.ledger`",
        "the sm there is too old to tell, install the same version there",
    ]


def test_a_limit_that_many_share_is_told_to_each(away: Away, tmp_path: Path, root: Root) -> None:
    project = open_project(
        tmp_path, "{day: $5, issue: $9}", ledger=tmp_path / "home" / "l.db", root=root.path
    )
    for number, host in enumerate(("box", "oak"), 1):
        place(project, number, host)
        spend(away, host, make_node(away, tmp_path, host), number)
    ask_all(project.config, root, 60.0)
    follow_up(root, measure_shared(project.config, root))
    ask_all(project.config, root, 60.0)
    told = {
        host: {
            str(one.span.scope): sum(
                row.price for row in remote_limits.make_limit(one, time.time()).elsewhere
            )
            for one in remote_limits.list_all(node.settings)
        }
        for host, node in away.nodes.items()
    }
    assert told["box"].keys() == {"project", "issue"}
    assert round(told["box"]["project"] / 1e9) == 2, "what oak has used"
    assert round(told["oak"]["project"] / 1e9) == 1
    assert round(told["oak"]["issue"] / 1e9) == 0


def test_machines_are_told_seldom_while_half_of_each_limit_is_left(
    away: Away, tmp_path: Path, root: Root
) -> None:
    ledger = tmp_path / "home" / "l.db"
    project = open_project(tmp_path, "{day: $5, issue: $1}", ledger=ledger, root=root.path)
    place(project, 1, "box")
    transcript = make_node(away, tmp_path, "box")
    spend(away, "box", transcript, 2.4)
    ask_all(project.config, root, 60.0)
    assert find_pause_s(measure_shared(project.config, root)) == SELDOM_S
    spend(away, "box", transcript, 0.2)
    ask_all(project.config, root, 60.0)
    assert find_pause_s(measure_shared(project.config, root)) == EVERY_S
