"""Time by whose turn it was, counted by hand, and what else a day has."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, structs

from sm.sessions.history import StepVerb
from sm.store import events, journal
from sm.store.events import Event, RotationStep
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from sm.views.numbers import FIELDS, DayNumbers, Numbers, NumbersReader, add_up
from sm.views.whose_turn import Span, Turn, TurnStanding
from tests.helpers import remove_tree

CI, REVIEW, ESCALATE = "PHASE:awaiting_ci", "PHASE:awaiting_review", "PHASE:escalate"
SESSION = "dev-shop-7"
TODAY = "2026-11-20"
LATER = 5e6
"""Seconds after noon."""

Told = tuple[float, Event]


@pytest.fixture(params=["UTC", "Pacific/Auckland", "America/St_Johns"], autouse=True)
def _elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def noon() -> float:
    """Noon of that day, where the test is."""
    return time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))


def later() -> float:
    """When nothing more happens."""
    return noon() + LATER


def inject(row: str) -> Event:
    return events.StepDone(verb=StepVerb.INJECT, row=row, result=row)


def ask(row: str, need: str) -> Event:
    return events.StepDone(verb=StepVerb.NOTIFY, row=row, need=need, text="?")


def decide(row: str, phase: str = "", written: float = 0.0) -> Event:
    return events.Decided(row=row, phase=phase, written_at=noon() + written if phase else 0.0)


def place(told: Iterable[Told], session: str = SESSION) -> list[Event]:
    """The events, each at so many seconds after noon."""
    return [
        structs.replace(event, at=noon() + at, session="" if event.session == "-" else session)
        for at, event in told
    ]


def count(*told: Told, now: float = LATER) -> DayNumbers:
    numbers = Numbers()
    numbers.take(place(told), noon() + now)
    return add_up(numbers.list_days("", str))


def seconds(found: DayNumbers) -> dict[str, float]:
    """What is not nothing, by whose turn it was."""
    times = {field: getattr(found, field) for field in FIELDS if field.endswith("_s")}
    return {field[:-2]: round(number, 3) for field, number in times.items() if number}


BEGIN = (0, events.Started(title="Mend it"))
END = events.StepDone(verb=StepVerb.FORGET, row="merged")


def test_an_issue_without_trouble() -> None:
    found = count(
        BEGIN,
        (101, decide("open-pull", CI, 100)),  # written at 100, seen at 101
        (400, decide("ci-passed", CI, 100)),
        (401, inject("ci-passed")),
        (451, decide("review-waits", REVIEW, 450)),
        (452, events.StepDone(verb=StepVerb.TELL, row="review-waits", need="review", text="?")),
        (1450, decide("approved", REVIEW, 450)),
        (1451, inject("approved")),
        (1500, decide("merged", "PHASE:done", 1490)),
        (1510, END),
    )
    # Agent: 0-100, 401-450, 1451-1510. CI: 100-401. Review: 450-1451.
    assert seconds(found) == {"agent": 208, "ci": 301, "review": 1001}
    assert (found.merged, found.ci_attempts) == (1, 0)


def test_a_merge_counts_once_as_soon_as_it_is_seen() -> None:
    seen = (1500, decide("merge-seen"))
    assert count(BEGIN, seen).merged == 1
    assert count(BEGIN, seen, seen, (1510, END)).merged == 1
    again = (2000, events.Started(title="Mend it again"))
    assert count(BEGIN, seen, (1510, END), again, (2100, END)).merged == 2


def test_ci_that_fails_and_is_waited_for_again() -> None:
    found = count(
        BEGIN,
        (100, decide("open-pull", CI, 100)),
        (160, decide("ci-failed", CI, 100)),
        (160, inject("ci-failed")),
        (500, decide("ci-passed", CI, 300)),  # the wait since 300 had no event of its own
        (500, inject("ci-passed")),
        (600, END),
    )
    assert seconds(found) == {"agent": 100 + 140 + 100, "ci": 60 + 200}
    assert found.ci_attempts == 1


def test_a_question_is_a_persons_time_until_the_answer() -> None:
    found = count(
        BEGIN,
        (110, decide("escalate", ESCALATE, 100)),
        (111, ask("escalate", "question")),
        (1100, events.Reply(author="ada", text="Round up.")),
        (1102, decide("reply", ESCALATE, 100)),
        (1103, inject("reply")),
        (1200, END),
    )
    assert seconds(found) == {"agent": 100 + 100, "person": 1000}


def test_an_answer_on_the_forge_ends_it_when_it_is_seen() -> None:
    found = count(
        BEGIN,
        (100, ask("question", "question")),
        (400, decide("reply", "", 0)),
        (401, inject("reply")),
        (500, END),
    )
    assert seconds(found) == {"agent": 200, "person": 300}


def test_a_persons_message_answers_and_that_of_another_agent_does_not() -> None:
    found = count(
        BEGIN,
        (100, ask("question", "question")),
        (200, events.MessageSent(id="a", mode="sequential", sender="bob")),
        (300, events.MessageSent(id="b", mode="sequential")),
        (400, END),
    )
    assert seconds(found) == {"agent": 200, "person": 200}


def test_a_person_who_is_asked_while_ci_runs_comes_first() -> None:
    found = count(
        BEGIN,
        (100, decide("open-pull", CI, 100)),
        (200, ask("ci-broken", "ci")),
        (500, decide("ci-passed", CI, 100)),
        (500, inject("ci-passed")),
        (600, END),
    )
    assert seconds(found) == {"agent": 200, "ci": 100, "person": 300}


def test_a_late_review_stays_the_reviewers() -> None:
    found = count(
        BEGIN,
        (100, decide("review-waits", REVIEW, 100)),
        (200, ask("review-timeout", "review")),
        (300, END),
    )
    assert seconds(found) == {"agent": 100, "review": 200}


def test_news_for_the_agent_changes_no_turn() -> None:
    found = count(
        BEGIN,
        (100, decide("open-pull", CI, 100)),
        (150, decide("edited", CI, 100)),
        (150, inject("edited")),
        (300, END),
    )
    assert seconds(found) == {"agent": 100, "ci": 200}


def test_a_limit_is_nobodys_time_until_it_goes_on() -> None:
    found = count(
        BEGIN,
        (100, events.StepDone(verb=StepVerb.PARK, row="park", result="until 13:00")),
        (400, inject("resume")),
        (500, END),
    )
    assert seconds(found) == {"agent": 200, "rest": 300}


def test_a_pause_comes_before_all_else_and_gives_the_turn_back() -> None:
    found = count(
        BEGIN,
        (100, decide("open-pull", CI, 100)),
        (200, events.Paused(session="-", what="shop", by="ada")),
        (250, events.Paused(session="-", what="", by="ada")),
        (300, events.Resumed(session="-", what="", by="ada")),
        (400, events.Resumed(session="-", what="shop", by="ada")),
        (450, events.Paused(session="-", what="another", by="ada")),
        (500, END),
    )
    assert seconds(found) == {"agent": 100, "ci": 200, "rest": 200}


def test_a_dead_agent_is_at_work_again_once_it_is_restarted() -> None:
    found = count(
        BEGIN,
        (100, decide("open-pull", CI, 100)),
        (200, decide("recover", CI, 100)),
        (210, events.StepDone(verb=StepVerb.RECOVER, row="recover", result="2")),
        (250, decide("ci-passed", CI, 100)),  # the old phase is not a new one
        (300, events.RecoverAsked()),
        (400, END),
    )
    assert seconds(found) == {"agent": 100 + 190, "ci": 110}
    assert found.restarts == 2


def test_a_step_that_was_refused_changes_no_turn_and_a_dropped_decision_does_not_count() -> None:
    found = count(
        BEGIN,
        (100, decide("ci-failed", CI, 50)),
        (101, events.StepDone(verb=StepVerb.INJECT, row="ci-failed", trouble="no")),
        (200, events.Dropped(row="ci-failed", reason="waited in vain")),
        (300, END),
    )
    assert seconds(found) == {"agent": 50, "ci": 250}
    assert found.ci_attempts == 0


def test_events_of_an_older_version_count_from_when_they_were_seen() -> None:
    found = count(
        BEGIN,
        (100, events.Decided(row="open-pull", phase=CI)),
        (200, events.Decided(row="ci-failed", phase=CI)),
        (200, inject("ci-failed")),
        (300, END),
    )
    assert seconds(found) == {"agent": 200, "ci": 100}


def test_sessions_beside_each_other_add_up() -> None:
    numbers = Numbers()
    told = (BEGIN, (100, END))
    numbers.take(place(told), later())
    numbers.take(place(told, "dev-shop-8"), later())
    assert add_up(numbers.list_days("", str)).agent_s == 200


def test_a_session_that_is_there_counts_up_to_now_and_one_that_is_lost_does_not() -> None:
    numbers = Numbers()
    numbers.take(place((BEGIN, (10, events.Monitor(state="started")))), later())
    numbers.take(place((BEGIN,), "dev-shop-8"), later())
    for now in (600, 1000):  # looked at twice
        numbers.reach(noon() + now, {"dev-shop-8": (CI, noon() + 400)})
    [day] = numbers.list_days("", str)
    assert seconds(day) == {"agent": 10 + 400, "ci": 600}
    numbers.take(place(((1000, decide("ci-passed", CI, 400)),), "dev-shop-8"), later())
    assert numbers.list_days("", str) == [day]


def test_midnight_divides_a_time() -> None:
    numbers = Numbers()
    numbers.take(place((BEGIN, (36 * 3600, END))), later())  # until midnight of the day after
    days = numbers.list_days("", str)
    assert [(one.day, one.agent_s / 3600) for one in days] == [
        ("2026-11-20", 12),
        ("2026-11-21", 24),
        ("2026-11-22", 0),
    ]
    assert [one.day for one in numbers.list_days("2026-11-21", str)] == [
        "2026-11-21",
        "2026-11-22",
    ]


def test_a_clock_that_was_set_back_takes_no_time() -> None:
    found = count(
        BEGIN,
        (1000, events.Monitor(state="started")),
        (-3000, decide("open-pull", CI, -3001)),  # set back by more than an hour
        (-2900, decide("ci-passed", CI, -3001)),
        (-2900, inject("ci-passed")),
        (-2800, END),
    )
    assert seconds(found) == {"agent": 1100, "ci": 100}


def test_a_span_never_ends_before_it_begins() -> None:
    assert TurnStanding(10.0).advance(5.0) == Span(Turn.AGENT, 5.0, 5.0)


def test_what_is_told_of_times_to_come_happened_by_now() -> None:
    found = count(BEGIN, (9e9, decide("merged", "PHASE:done", 9e9)), (9e9, END), now=50)
    assert seconds(found) == {"agent": 50}
    assert (found.merged, found.day) == (1, "")


def test_a_clock_that_was_never_set_counts_nothing() -> None:
    numbers = Numbers()
    numbers.take([events.Started(at=1000.0, session=SESSION)], later())
    assert numbers.list_days("", str) == []


@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6),
            st.sampled_from(
                [
                    events.Started(),
                    decide("open-pull", CI, 5),
                    decide("review-waits", REVIEW, 1e5),
                    inject("ci-passed"),
                    ask("question", "question"),
                    events.Paused(session="-", what=""),
                    events.Resumed(session="-", what=""),
                    END,
                ]
            ),
        ),
        max_size=30,
    )
)
def test_no_time_is_negative_and_none_is_more_than_has_passed(told: list[Told]) -> None:
    found = count(*told)
    assert all(getattr(found, field) >= 0 for field in FIELDS)
    moved = [b - a for (a, _), (b, _) in pairwise(told)]
    assert sum(seconds(found).values()) <= math.fsum(step for step in moved if step > 0) + 1e-3


def test_rotations_and_restarts_of_sessions_without_an_issue_have_no_project_and_no_time() -> None:
    numbers = Numbers()
    rotated = events.Rotation(step=RotationStep.FINISHED)
    numbers.take(place((BEGIN, (9, rotated), (20, events.Over())), "s-00000001"), later())
    assert numbers.list_days("", str) == [DayNumbers(TODAY, rotations=1)]


def test_the_reader_counts_each_event_once_whatever_the_journal_does(root: Root) -> None:
    def record(*told: Told) -> None:
        for event in place(told):
            journal.append(root.journal, json.encode(event))

    ensure_private_dir(root.private)
    reader = NumbersReader(root)
    assert reader.read(["shop"]) == []
    record(BEGIN, (100, inject("ci-failed")))
    assert add_up(reader.read(["shop"])).agent_s == 100
    assert add_up(reader.read(["shop"])).agent_s == 100  # there is no such session any more
    record((150, events.Rotation(step=RotationStep.FINISHED)))
    root.journal.rename(journal.name_previous(root.journal))
    record((200, END))
    found = add_up(reader.read(["shop"]))
    assert (found.agent_s, found.rotations, found.merged) == (200, 1, 1)
    assert reader.is_cut
    assert add_up(NumbersReader(root).read(["shop"])) == found
    remove_tree(root.private)
    assert add_up(reader.read(["shop"])) == found


def test_a_project_has_its_own_name_again(root: Root) -> None:
    numbers = Numbers()
    numbers.take(place((BEGIN, (5, END)), "dev-a_b-1"), later())
    assert [one.project for one in numbers.list_days("", {"a_b": "a.b"}.__getitem__)] == ["a.b"]
