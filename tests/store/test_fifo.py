from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.base.errors import StateError
from sm.store import fifo
from sm.store.fifo import WakeUp
from tests.store.test_files import make_link
from tests.store.test_files import path as path


def test_a_line_in_a_fifo_is_heard_and_nobody_waits_for_a_reader(path: Path) -> None:
    assert fifo.wake_reader(path) is WakeUp.ABSENT
    fifo.ensure_fifo(path)
    assert fifo.wake_reader(path) is WakeUp.UNHEARD
    reader = fifo.open_fifo(path, os.O_RDONLY)
    assert fifo.wake_reader(path, b"harb\n") is WakeUp.HEARD
    assert os.read(reader, 100) == b"harb\n"
    while (answer := fifo.wake_reader(path, b"x" * 99 + b"\n")) is WakeUp.HEARD:
        pass
    assert answer is WakeUp.FULL
    assert len(os.read(reader, 1 << 20)) % 100 == 0, "a line is whole, or not there"
    os.close(reader)
    assert fifo.wake_reader(path) is WakeUp.UNHEARD


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, make_link])
def test_what_is_no_fifo_is_not_written_to(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    assert fifo.wake_reader(path) is WakeUp.ABSENT
    with pytest.raises(OSError, match=re.escape(str(path))):
        fifo.open_fifo(path, os.O_RDWR)
    with pytest.raises(StateError, match="is not a FIFO of yours: remove it"):
        fifo.ensure_fifo(path)
    assert not path.is_file() or path.read_bytes() in (b"", b"theirs")


def test_a_fifo_that_is_made_anew_belongs_to_its_new_reader(path: Path) -> None:
    earlier = fifo.listen_anew(path)
    reader = fifo.listen_anew(path)
    assert fifo.wake_reader(path) is WakeUp.HEARD
    with pytest.raises(BlockingIOError):
        os.read(earlier, 9)
    assert os.read(reader, 9) == b"\n"
    for end in (earlier, reader):
        os.close(end)
