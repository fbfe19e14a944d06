"""What a node's bytes may have a browser do, and that a real client's bytes stay as they are."""

from __future__ import annotations

import time

import pytest

from sm.plugins.page.terminal import output_filter
from sm.plugins.page.terminal.output_filter import AT_ONCE, MARKS, MOST, Tamer
from tests.chance import dice

PLAIN = (
    "\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b[m\x1b[38;2;255;128;0mwords\x1b[K\x1b[24;80H\x1b[5L\x1b[3M"
    "\x1b[10P\x1b[4@\x1b[2S\x1b[?2026l\x1b[?25l\r\n\x1b(B\x1b[>4;2m\x1b[6 q é ✻ 日本 👩‍👩‍👧 e\u0301"
).encode()


def tame(*pieces: bytes | str) -> str:
    tamer = Tamer()
    said = [one.encode() if isinstance(one, str) else one for one in pieces]
    return b"".join(map(tamer.tame, said)).decode()


def test_what_a_client_draws_stays_as_it_is_in_whatever_pieces_it_comes() -> None:
    fall = dice(53)
    assert tame(PLAIN) == PLAIN.decode()
    for _ in range(300):
        cuts = sorted(fall.sample(range(1, len(PLAIN)), fall.randrange(1, 12)))
        pieces = [PLAIN[a:b] for a, b in zip([0, *cuts], [*cuts, len(PLAIN)], strict=True)]
        assert tame(*pieces) == PLAIN.decode()


@pytest.mark.parametrize(
    "number", ["2000000000", "0" * 40 + "9" * 20, "501", "2000\n000000", "2\x7f000"]
)
def test_nothing_is_repeated_more_often_than_a_screen_has_room(number: str) -> None:
    for kind in (*output_filter.REPEATS, " @", " A", "'}", "'~"):
        for start in ("\x1b[", "\u009b"):
            assert tame(f"x{start}{number}{kind}y") == f"x\x1b[{MOST}{kind}y"
        halves = tame(f"\x1b[{number[:3]}", f"{number[3:]}{kind}")
        assert halves == f"\x1b[{MOST}{kind}"


def test_a_sequence_of_endless_values_is_none() -> None:
    assert tame("a\x1b[" + "1;" * 1000 + "Lb") == "ab"


def test_many_that_are_each_allowed_are_not_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    tamer = Tamer()
    said = tamer.tame(b"\x1b[500L" * 10_000).decode()
    assert said.count("\x1b[500L") == AT_ONCE / 500
    assert said.count("\x1b[L") == 10_000 - AT_ONCE / 500
    clock[0] += 1.0
    said = tamer.tame(b"\x1b[500L" * 100).decode()
    assert said.count("\x1b[500L") == output_filter.PER_S / 500


def test_no_letter_has_a_pile_of_marks() -> None:
    assert tame("e" + "\u0301" * 200_000 + "x") == "e" + "\u0301" * MARKS + "x"
    pieces = ["e", *("\u0301\u200b" for _ in range(100)), "x", "\u0301" * 3, "y"]
    assert tame(*pieces) == "e" + "\u0301\u200b" * (MARKS // 2) + "x" + "\u0301" * 3 + "y"


def test_a_sequence_without_an_end_is_none() -> None:
    tamer = Tamer()
    assert tamer.tame(b"\x1b[" + b"1" * 10_000) == b""
    assert tamer.tame(b"words").endswith(b"words")


@pytest.mark.parametrize("piece", ["\n", "1", ";", " ", "\x1b", "\x1b[", "\x1b[\n", "\u0301", "1 "])
def test_no_text_takes_long(piece: str) -> None:
    began, tamer = time.process_time(), Tamer()
    tamer.tame(b"\x1b[" + piece.encode() * 100_000 + b"\xff")
    assert time.process_time() - began < 5


def test_half_a_letter_waits_for_its_other_half() -> None:
    assert tame(b"\xe6\x97", b"\xa5") == "日"
    assert tame(b"\xff!") == "\ufffd!"
