"""When a tick was completed last, and from when on it is missed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from sm.base.errors import TemporaryError, Unable
from sm.config.duration import Seconds
from sm.issues.look.tick_record import (
    LEAST_S,
    RAREST_S,
    Clock,
    Polled,
    find_patience,
    keep_outcome,
    read_polled,
    read_silence,
)
from sm.sessions.project import Project
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import open_project, put_tick, sm_yaml


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path == tmp_path / "state"
    return open_project(sm_yaml(tmp_path))


def lines(*said: str, error: Exception | None = None) -> Iterator[str]:
    yield from said
    if error:
        raise error


def test_a_completed_tick_is_written_down_with_what_it_could_not_do(project: Project) -> None:
    said = ("pick up #1", Unable("cannot pick up #2: no room"))
    assert list(keep_outcome(project.directory, lines(*said))) == list(said)
    tick = read_polled(project.directory)
    assert tick is not None
    assert (tick.error, tick.unable, tick.failed) == ("", ("cannot pick up #2: no room",), True)
    assert tick.clock.at == pytest.approx(time.time(), abs=5)
    assert read_silence(project) is None


def test_a_tick_that_fails_is_completed_too(project: Project) -> None:
    ticking = keep_outcome(project.directory, lines(error=TemporaryError("no route to the forge")))
    with pytest.raises(TemporaryError):
        list(ticking)
    tick = read_polled(project.directory)
    assert tick is not None
    assert tick.error == "no route to the forge"


def test_a_tick_that_is_cut_off_is_not_completed(project: Project) -> None:
    with closing(keep_outcome(project.directory, lines("one", "two"))) as ticking:  # type: ignore[type-var]
        assert next(ticking) == "one"
    assert read_polled(project.directory) is None


def test_a_tick_is_missed_after_two_intervals(project: Project) -> None:
    assert read_silence(project) is None, "none ever came"
    put_tick(project, ago_s=119)
    assert read_silence(project) is None
    put_tick(project, ago_s=121)
    silence = read_silence(project)
    assert silence is not None
    assert silence.for_s == pytest.approx(121, abs=5)


def test_a_tick_that_takes_long_is_not_missed(project: Project) -> None:
    put_tick(project, ago_s=1000)
    with lock.hold(project.directory.poll_lock):
        assert read_silence(project) is None
    assert read_silence(project) is not None


NOW = Clock(5000.0, 1000.0, "b1")


def test_a_clock_that_is_set_and_a_machine_that_sleeps_change_nothing() -> None:
    a_minute_ago = structs.replace(NOW, up_s=940.0)
    for at in (0.0, 4940.0, 9000.0):
        assert NOW.count_since(structs.replace(a_minute_ago, at=at)) == 60.0


def test_before_the_machine_was_started_the_wall_clock_counts() -> None:
    assert NOW.count_since(Clock(4000.0, 5.0, "b0")) == 1000.0
    assert NOW.count_since(Clock(9000.0, 5.0, "b0")) == 0.0, "it was set back meanwhile"


def test_a_clock_set_back_makes_no_tick_missed(project: Project) -> None:
    put_tick(project, ago_s=10)
    os.utime(project.directory.polled, (time.time() + 9000,) * 2)
    assert read_silence(project) is None
    put_tick(project, ago_s=1000)
    os.utime(project.directory.polled, (time.time() + 9000,) * 2)
    assert read_silence(project) is not None


@pytest.mark.parametrize(
    ("gaps_s", "patience_s"),
    [
        ((), 120.0),
        ((60.0, 60.0, 60.0), 120.0),
        ((300.0, 300.0, 300.0), 600.0),  # from cron, every five minutes
        ((300.0, 5.0, 295.0), 590.0),  # and once by hand
        ((60.0, 60.0, RAREST_S), 120.0),  # after a night without
        ((3.0, 1.0, 2.0), 120.0),
    ],
)
def test_ticks_that_come_rarely_are_missed_later(
    project: Project, gaps_s: tuple[float, ...], patience_s: float
) -> None:
    assert find_patience(project, Polled(NOW, gaps_s=gaps_s)) == patience_s


def test_ticks_that_come_often_are_not_missed_within_a_minute(project: Project) -> None:
    often = structs.replace(project.settings, poll_interval_s=Seconds(1))
    project = Project(project.config, often)
    assert find_patience(project, Polled(NOW)) == LEAST_S


def test_the_gaps_between_ticks_are_kept_without_nights(project: Project) -> None:
    put_tick(project, ago_s=RAREST_S * 9, gaps_s=(1.0, 2.0, 3.0))
    list(keep_outcome(project.directory, lines()))
    tick = read_polled(project.directory)
    assert tick is not None
    assert tick.gaps_s == (2.0, 3.0, RAREST_S)
