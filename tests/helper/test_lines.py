from __future__ import annotations

import pytest
from msgspec import Struct

from sm.helper.lines import Lines, WireError, decode_line, encode_line


class Said(Struct, frozen=True):
    words: str


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_come_whole_and_in_order_however_they_are_cut(size: int) -> None:
    said = [Said("one"), Said("two\nlines"), Said(""), Said("…" * 9)]
    whole = b"".join(map(encode_line, said))
    lines, heard = Lines(40), list[Said]()
    for at in range(0, len(whole), size):
        lines.add(whole[at : at + size])
        while line := lines.take():
            heard.append(decode_line(line, Said))
    assert heard == said
    assert not lines.is_cut


def test_a_line_that_is_cut_off_is_none() -> None:
    lines = Lines(100)
    lines.add(encode_line(Said("one")) + encode_line(Said("two"))[:-1])
    assert decode_line(lines.take(), Said) == Said("one")
    assert lines.take() == b""
    assert lines.is_cut
    lines.add(b"\n")
    assert decode_line(lines.take(), Said) == Said("two")


def test_a_blank_line_is_a_line_and_no_value() -> None:
    lines = Lines(100)
    lines.add(b"\n")
    with pytest.raises(WireError, match="no said of sm"):
        decode_line(lines.take(), Said)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_has_a_limit_whether_its_end_has_come_or_not(end: bytes) -> None:
    lines = Lines(10)
    lines.add(b"123456789\n")
    assert lines.take() == b"123456789\n"
    lines.add(b"1234567890" + (end or b"1"))
    with pytest.raises(WireError, match="without an end"):
        lines.take()


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"\xff", b'{"words": 1}', b'{"words": ""', b"[" * 100_000]
)
def test_what_has_another_shape_is_refused(line: bytes) -> None:
    with pytest.raises(WireError, match="no said of sm"):
        decode_line(line, Said)
