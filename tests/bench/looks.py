"""One look at the forge for all hosts: requests of ten issues, and how soon agents hear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import yaml

from sm.adapters.forge.model import CheckState
from sm.sessions.session import IssueSession
from tests.bench.measure import Bench, Figure
from tests.chance import dice
from tests.e2e.stage import make_stage
from tests.e2e.test_polling import looping
from tests.forges.sides import RemoteSide
from tests.helpers import git, wait_for
from tests.issues.test_one_look import HOSTS, SESSIONS, tell
from tests.plugins.hosts.test_one_look import begin, on_github
from tests.plugins.hosts.world import World, living
from tests.sshd import PROGRAM

CHANCE = dice(44)
LOOK_S = 0.005
SOON_MS = 5000.0
"""What a tick each second, a look and a way to the node may take; the machine may be busy."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Requests on one machine and on hosts, then an agent on a node beside one that is here."""
    for kind in () if bench.once else ("gitea", "github"):  # tests/issues/test_one_look.py does it
        yield _requests(bench.folder / kind, kind)
    if PROGRAM is not None:
        rounds = bench.rounds(9, 2)
        away = _measure(bench.folder / "away", rounds, is_away=True)
        here = _measure(bench.folder / "here", rounds, is_away=False)
        for what, place, budget in (
            ("a result of CI", 0, SOON_MS),
            ("an answer to a phase", 1, None),
        ):
            yield Figure(
                name=f"{what} to the agent on a node",
                unit="ms",
                samples=away[place],
                budget=budget,
                beside="to one of this machine",
                others=here[place],
            )


def _requests(folder: Path, kind: str) -> Figure:
    folder.mkdir()
    settings: dict[str, object] = {"ci": {"poll": "1h"}, "poll_interval": "1m"}
    stage = make_stage(folder, auto=False, settings=settings)
    alone, away = tell(kind, stage, 0), tell(kind, stage, HOSTS, first=1 + SESSIONS)
    return Figure(
        name=f"{kind}, {SESSIONS} issues on {HOSTS} hosts: requests",
        unit="",
        samples=[float(away.all)],
        budget=float(alone.all + away.writes),
        beside="on one machine",
        others=[float(alone.all)],
    )


def _measure(folder: Path, rounds: int, *, is_away: bool) -> tuple[list[float], list[float]]:
    """Milliseconds from a failure of CI, and from a phase about a known success, to the words."""
    folder.mkdir()
    with living(folder, auto=False) as world, on_github(world, poll="1h") as side:
        said = yaml.safe_load(world.stage.config.read_text())
        said |= {"runner": "ssh" if is_away else "local", "ci": {"poll": "1s", "max_fixes": 1000}}
        world.stage.config.write_text(yaml.safe_dump(said))
        node = yaml.safe_load(world.box.config.read_text())
        node |= {"ci": {"poll": "1h", "max_fixes": 1000}}
        world.box.config.write_text(yaml.safe_dump(node))
        with looping(world.stage):
            issue = begin(world, side)
            taken = [_take(world, side, issue, f"{number}\n", is_away) for number in range(rounds)]
    return [one[0] for one in taken], [one[1] for one in taken]


def _take(
    world: World, side: RemoteSide, issue: int, content: str, is_away: bool
) -> tuple[float, float]:
    session = world.box.session(issue) if is_away else world.stage.session(issue)
    _push(side, session, content)
    wait_for(lambda: _is_on_offer(side, session), "CI to be waited for", 60)
    time.sleep(1.5 + CHANCE.uniform(0, 1))
    head = side.state.heads()[session.record.branch]
    fail = partial(side.finish, head, CheckState.FAILURE, "build", "no\n")
    result = _time(world, fail, "CI failed")
    side.finish(_push(side, session, f"better {content}"), CheckState.SUCCESS)
    time.sleep(1.5 + CHANCE.uniform(0, 1))
    return result, _time(world, lambda: _write(session, "PHASE:awaiting_ci"), "CI passed")


def _push(side: RemoteSide, session: IssueSession, content: str) -> str:
    worktree = Path(session.worktree)
    (worktree / "work.txt").write_text(content)
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", content.strip())
    git(worktree, "push", "-q", "origin", "HEAD")
    head = git(worktree, "rev-parse", "HEAD")
    side.begin(head)
    if not content.startswith("better"):
        _write(session, "PHASE:awaiting_ci")
    return head


def _write(session: IssueSession, phase: str) -> None:
    session.root.phase("harb", session.issue).write_text(f"{phase}\n")


def _is_on_offer(side: RemoteSide, session: IssueSession) -> bool:
    """Whether there is a pull request of what was pushed, so that its check is waited for."""
    return side.open().pulls.find_newest(session.record.branch) is not None


def _time(world: World, act: Callable[[], None], words: str) -> float:
    heard = len(world.stage.told())
    began = time.perf_counter()
    act()
    wait_for(
        lambda: [one for one in world.stage.told()[heard:] if words in one],
        f"'{words}'",
        60,
        every_s=LOOK_S,
    )
    return (time.perf_counter() - began) * 1000
