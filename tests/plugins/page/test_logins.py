"""How long a login counts, whatever becomes of the clock and of its file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.plugins.page.login_page import call_browser
from sm.plugins.page.logins import (
    KEY_S,
    LASTS_S,
    LOCKED_S,
    MOST,
    NOTED_S,
    RENEWED_S,
    STEP_S,
    Ages,
    Logins,
    name_browser,
)
from sm.store import lock
from sm.store.files import find_stamp
from sm.web.rights import Keys, Right

SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Safari/604.1"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) (KHTML, like Gecko) Chrome/140.0 Safari/537.36"

ACTS, READS = "a" * 32, "r" * 32
DAY_S = 24 * 3600.0


class Clock:
    """A clock that is set, and seconds that pass all the same."""

    def __init__(self) -> None:
        self.shown, self.passed = 1_772_366_460.0, 50.0

    def wait(self, seconds: float) -> None:
        self.shown += seconds
        self.passed += seconds

    def ages(self) -> Ages:
        return Ages(lambda: self.shown, lambda: self.passed)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "page" / "logins.json"


def start(file: Path, clock: Clock) -> Logins:
    """A server that is started now."""
    return Logins(file, Keys(ACTS, (READS,)), ages=clock.ages())


def test_a_login_is_as_good_as_what_it_was_made_with(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    for secret, right in (
        (ACTS, Right.ACT),
        (READS, Right.READ),
        (logins.make_key(), Right.ACT),
        (logins.make_key(Right.READ), Right.READ),
    ):
        browser = logins.log_in(secret)
        assert logins.find_right(browser) is right
        assert start(file, clock).find_right(browser) is right
    assert logins.log_in("x" * 32) == ""
    assert logins.wrong == 1
    assert logins.find_right("") is Right.NOTHING


def test_a_key_is_good_once_and_for_a_while(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    once, late = logins.make_key(), logins.make_key()
    assert logins.log_in(once)
    assert not logins.log_in(once)
    clock.wait(KEY_S)
    assert not logins.log_in(late)


def test_a_login_ends(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    unused = logins.log_in(ACTS)
    clock.wait(LASTS_S - 1)
    assert start(file, clock).find_right(browser) is Right.ACT
    clock.wait(2)
    assert start(file, clock).find_right(unused) is logins.find_right(unused) is Right.NOTHING


def test_a_login_lives_as_long_as_it_is_used(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browser, reader = logins.log_in(ACTS), logins.log_in(READS)
    for _ in range(9):
        clock.wait(LASTS_S - 60)
        assert start(file, clock).find_right(browser) is logins.find_right(browser) is Right.ACT
        assert logins.find_right(reader) is Right.READ
    stamp = find_stamp(file)
    clock.wait(RENEWED_S / 48)
    assert logins.find_right(browser) is Right.ACT
    assert find_stamp(file) == stamp, "not each look is written down"
    clock.wait(LASTS_S)
    assert logins.find_right(browser) is Right.NOTHING


@pytest.mark.parametrize("back", [60.0, DAY_S, 400 * DAY_S])
def test_a_clock_that_is_set_back_makes_no_login_younger(
    file: Path, clock: Clock, back: float
) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    clock.shown -= back
    clock.wait(LASTS_S - DAY_S)
    assert logins.find_right(browser) is Right.ACT
    clock.shown -= back
    clock.wait(LASTS_S + DAY_S)
    assert logins.find_right(browser) is Right.NOTHING


def test_a_small_step_back_loses_no_login_and_adds_nothing_to_it(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    clock.wait(600)
    assert logins.find_right(browser) is Right.ACT
    clock.shown -= STEP_S - 1
    anew = start(file, clock)
    assert anew.find_right(browser) is Right.ACT
    clock.wait(LASTS_S + STEP_S)
    assert anew.find_right(browser) is Right.NOTHING


def test_after_a_large_step_back_nobody_is_let_in_until_the_clock_is_right(
    file: Path, clock: Clock
) -> None:
    browser = start(file, clock).log_in(ACTS)
    clock.shown -= 30 * DAY_S
    anew = start(file, clock)
    assert anew.find_right(browser) is Right.NOTHING
    clock.shown += 30 * DAY_S
    assert anew.find_right(browser) is Right.ACT
    clock.shown -= 30 * DAY_S
    anew = start(file, clock)
    other = anew.log_in(ACTS)  # from now on this is the time
    assert anew.find_right(other) is Right.ACT
    clock.shown += 30 * DAY_S
    assert start(file, clock).find_right(browser) is Right.NOTHING


def test_two_servers_know_the_same_browsers(file: Path, clock: Clock) -> None:
    one, two = start(file, clock), start(file, clock)
    first, second = one.log_in(ACTS), two.log_in(READS)
    assert one.find_right(second) is Right.READ
    assert two.find_right(first) is Right.ACT
    one.log_out(second)
    assert two.find_right(second) is Right.NOTHING
    assert two.find_right(first) is Right.ACT
    two.forget_all()
    assert one.find_right(first) is Right.NOTHING


def test_all_browsers_are_listed_and_forgotten_by_name(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    old = logins.log_in(ACTS, "Firefox\x1b[31m\u202e")
    clock.wait(60)
    new = logins.log_in(READS, "x" * 500)
    found = logins.list_known()
    assert [one.name for one in found] == [name_browser(new), name_browser(old)]
    assert [one.right for one in found] == [Right.READ, Right.ACT]
    assert "\x1b" not in found[1].about.called
    assert len(found[0].about.called) <= 80
    logins.forget(name_browser(old))
    assert logins.find_right(old) is Right.NOTHING
    assert logins.find_right(new) is Right.READ


@pytest.mark.parametrize(
    ("told", "called"),
    [
        (SAFARI, "Safari on iPhone"),
        (CHROME, "Chrome on Linux"),
        (f"{CHROME} Edg/140.0", "Edge on Linux"),
        ("curl/7.88.1", "curl/7.88.1"),
        ("", ""),
    ],
)
def test_a_browser_is_called_as_people_call_it(told: str, called: str) -> None:
    assert call_browser(told) == called


def test_links_that_were_not_used_let_nobody_in_after_all_were_logged_out(
    file: Path, clock: Clock
) -> None:
    logins = start(file, clock)
    key = logins.make_key()
    logins.forget_all()
    assert not logins.log_in(key)


def test_the_oldest_is_forgotten_first(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browsers = []
    for _ in range(MOST + 1):
        clock.wait(1)
        browsers.append(logins.log_in(ACTS))
    assert logins.find_right(browsers[0]) is Right.NOTHING
    assert all(logins.find_right(one) for one in browsers[1:])


def test_who_only_reads_logs_nobody_out_who_acts(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    acts = logins.log_in(ACTS)
    readers = []
    for _ in range(MOST + 1):
        clock.wait(1)
        readers.append(logins.log_in(READS))
    assert logins.find_right(acts) is Right.ACT
    assert [bool(logins.find_right(one)) for one in readers] == [False] + MOST * [True]


def test_nobody_waits_for_a_server_that_has_the_file_locked(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    clock.wait(NOTED_S + 1)
    with lock.hold(file.with_suffix(".lock")):
        begun = time.monotonic()
        assert logins.find_right(browser) is Right.ACT
        assert time.monotonic() - begun < LOCKED_S
    noted = file.read_bytes()
    assert logins.find_right(browser) is Right.ACT
    assert file.read_bytes() != noted


@pytest.mark.parametrize("content", [b"", b"{", b'{"until": 7}', b"\xff" * 100])
def test_a_damaged_file_logs_all_out_and_stops_nothing(
    file: Path, clock: Clock, content: bytes
) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    file.write_bytes(content)
    assert logins.find_right(browser) is Right.NOTHING
    assert not start(file, clock).list_known()
    again = logins.log_in(ACTS)
    assert start(file, clock).find_right(again) is Right.ACT


def test_without_the_file_all_are_logged_out_at_once(file: Path, clock: Clock) -> None:
    logins = start(file, clock)
    browser = logins.log_in(ACTS)
    file.unlink()
    assert logins.find_right(browser) is Right.NOTHING


def test_a_file_of_before_is_read_and_an_older_sm_takes_no_reader_for_one_that_acts(
    file: Path, clock: Clock
) -> None:
    logins = start(file, clock)
    reader = logins.log_in(READS)
    assert f'"until":{{}},"readers":{{"{name_browser(reader)}"' in file.read_text()
    file.write_text(f'{{"until":{{"{name_browser("old")}":{clock.shown + 9}}}}}\n')
    assert start(file, clock).find_right("old") is Right.ACT
