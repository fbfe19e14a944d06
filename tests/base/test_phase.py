from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.base.phase import REASON_LIMIT, SENTINELS, Phase, PhaseWrite, parse


def read(content: bytes, mtime_ns: int = 1_500_000_000, inode: int = 7) -> PhaseWrite:
    return parse(content, mtime_ns=mtime_ns, inode=inode, size=len(content))


@pytest.mark.parametrize("sentinel", SENTINELS)
def test_every_sentinel_is_read(sentinel: Phase) -> None:
    write = read(f"{sentinel}\n".encode())
    assert (write.phase, write.text, write.reason) == (sentinel, str(sentinel), "")


@pytest.mark.parametrize(
    "content",
    [
        b"PHASE:done",
        b"PHASE:done\r\n",
        b"  PHASE:done \t\n",
        b"PHASE: done\n",
        b"PHASE:done\n\n\n",
        b"PHASE:done\r\nsecond\r\n",
    ],
)
def test_white_space_and_line_ends_do_not_matter(content: bytes) -> None:
    assert read(content).phase is Phase.DONE


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PHASE:failed\nReason: no licence\n", "no licence"),
        (b"PHASE:failed\r\nReason: no licence\r\n", "no licence"),
        (b"PHASE:failed\nno licence\n", "no licence"),
        (b"PHASE:failed\n  Reason:no licence  \nmore\n", "no licence"),
        (b"PHASE:failed\n\n", ""),
        (b"PHASE:failed", ""),
        ("PHASE:failed\nReason: für Ünïcode ✓\n".encode(), "für Ünïcode ✓"),
    ],
)
def test_the_reason_is_on_the_second_line(content: bytes, reason: str) -> None:
    write = read(content)
    assert (write.phase, write.reason) == (Phase.FAILED, reason)


def test_an_endless_reason_is_cut() -> None:
    assert len(read(b"PHASE:failed\n" + b"x" * 100_000).reason) == REASON_LIMIT


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n", b"\nPHASE:done\n"])
def test_an_empty_first_line_is_no_phase(content: bytes) -> None:
    assert read(content).phase is Phase.NONE


@pytest.mark.parametrize(
    "content",
    [b"PHASE:complete", b"phase:done", b"PHASE:done!", b"done", b"\x00\xff\xfe\n", b"x" * 100_000],
)
def test_anything_else_is_unknown_and_shown_in_part(content: bytes) -> None:
    write = read(content)
    assert write.phase is Phase.UNKNOWN
    assert 0 < len(write.text) <= 80


def test_the_word_unknown_is_no_sentinel() -> None:
    assert Phase.UNKNOWN not in SENTINELS
    assert read(b"PHASE:unknown").phase is Phase.UNKNOWN


def test_a_file_looked_at_twice_is_one_write() -> None:
    assert read(b"PHASE:done\n") == read(b"PHASE:done\n")


def test_the_same_text_is_another_write_at_another_time_or_in_another_file() -> None:
    write = read(b"PHASE:done\n")
    assert write.id != read(b"PHASE:done\n", mtime_ns=1_500_000_001).id
    assert write.id != read(b"PHASE:done\n", inode=8).id
    assert write.id != read(b"PHASE:done\n\n").id
    assert write.at == 1.5


@given(st.binary(max_size=300))
def test_no_content_is_too_strange(content: bytes) -> None:
    write = read(content)
    assert write.phase in Phase
    assert write.id
