"""A limit is looked at in each pass, so that has to be cheap however much was used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sm.plugins.cost import follower
from sm.plugins.cost.budget.meter import METER
from sm.sessions.session import Session
from sm.store.files import ensure_private_dir
from tests.bench.measure import Bench, Figure, call_ms, in_turns
from tests.plugins.cost.shop import begin, open_project

READ_MS, UNLIMITED_MS = 2, 0.01
CALLS = 50
ALL = "{issue: $1000000, session: 1G tokens, day: $1000000, project: $1000000}"


def figures(bench: Bench, count: int) -> Iterator[Figure]:
    """A look at four limits, one where nothing is limited, and whether one more issue may begin."""
    folder = bench.folder / "budget"
    state = ensure_private_dir(folder / "state")
    limited = begin(open_project(folder, ALL, machine="{day: $2000000}", root=state), 7)
    unlimited = begin(open_project(folder, "{}", root=state), 8)
    for session in (limited, unlimited):
        follower.follow(session)
    for session, name, budget in (
        (limited, f"a look at five limits, {count:,} requests", READ_MS),
        (unlimited, "a look where nothing is limited", UNLIMITED_MS),
    ):
        [samples] = in_turns(bench.rounds(25, 10), call_ms(_look(session)))
        yield Figure(name=name, unit="ms", samples=[one / CALLS for one in samples], budget=budget)
    [samples] = in_turns(bench.rounds(15, 5), call_ms(lambda: METER.admit(limited.project)))
    yield Figure(name=f"whether an issue may begin, {count:,} requests", unit="ms", samples=samples)


def _look(session: Session) -> Callable[[], None]:
    def look() -> None:
        for _ in range(CALLS):
            METER.read(session)

    return look
