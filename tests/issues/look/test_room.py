"""When a machine has too little room for anything new."""

from __future__ import annotations

import pytest

from sm.issues.look.room import FILES, MEGABYTE, FreeRoom, explain_bytes, explain_disk, show_bytes

GB = 1024 * MEGABYTE
LEAST = 1000 * MEGABYTE
MANY = FreeRoom(10**6, 10**7)


@pytest.mark.parametrize(
    ("free", "total", "least", "lacks"),
    [
        (999 * MEGABYTE, 500 * GB, LEAST, True),
        (1000 * MEGABYTE, 500 * GB, LEAST, False),
        (99 * MEGABYTE, 2000 * MEGABYTE, LEAST, True),
        (100 * MEGABYTE, 2000 * MEGABYTE, LEAST, False),
        (0, 500 * GB, 0, False),
        (0, 0, LEAST, False),
    ],
)
def test_the_limit_is_a_number_or_a_share_of_what_is_small(
    free: int, total: int, least: int, lacks: bool
) -> None:
    assert FreeRoom(free, total).lacks(least) is lacks
    said = explain_bytes("memory", FreeRoom(free, total), least)
    assert bool(said) is lacks


def test_it_is_said_how_much_is_free_and_how_much_has_to_be() -> None:
    said = explain_bytes("memory", FreeRoom(120 * MEGABYTE, 64 * GB), 500 * MEGABYTE)
    assert said == "120 MB of memory are free, and 500 MB have to be"
    assert show_bytes(3 * GB // 2) == "1.5 GB"


def test_a_disk_may_lack_files_alone_or_take_no_writes() -> None:
    plenty, few = FreeRoom(90 * GB, 100 * GB), FreeRoom(FILES - 1, 10**7)
    assert not explain_disk("/tmp", plenty, MANY, LEAST, read_only=False)
    assert not explain_disk("/tmp", plenty, FreeRoom(0, 0), LEAST, read_only=False)  # as on btrfs
    assert "hardly any more files" in explain_disk("/tmp", plenty, few, LEAST, read_only=False)
    assert "takes no writes" in explain_disk("/tmp", plenty, MANY, LEAST, read_only=True)
    assert not explain_disk("/tmp", plenty, few, 0, read_only=True)
