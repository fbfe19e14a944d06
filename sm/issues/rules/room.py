"""Room that a machine needs for anything new: disk, files, memory."""

from __future__ import annotations

from msgspec import Struct

SHARE = 0.05
"""Share of a small disk or memory that has to be free, instead of the usual amount."""

FILES = 10_000
"""Files that a disk must still have room for, or that share of them."""

MEGABYTE = 1 << 20


class FreeRoom(Struct, frozen=True):
    """Free amount of something: bytes, or files. `total` is 0 if that has no limit."""

    free: int
    total: int

    def lacks(self, least: int) -> bool:
        """Say whether less is free than has to be; 0 for `least`: never."""
        return self.total > 0 and self.free < find_least(self.total, least)


def find_least(total: int, least: int) -> int:
    """Return how much has to be free of `total`."""
    return min(least, int(total * SHARE))


def show_bytes(count: int) -> str:
    """Return a number of bytes for people."""
    if count < 1000 * MEGABYTE:
        return f"{count // MEGABYTE} MB"
    return f"{count / (1024 * MEGABYTE):.1f} GB"


def explain_bytes(what: str, room: FreeRoom, least: int) -> str:
    """Return why nothing new is taken up; '' if there is room enough."""
    if not room.lacks(least):
        return ""
    needed = show_bytes(find_least(room.total, least))
    return f"{show_bytes(room.free)} of {what} are free, and {needed} have to be"


def explain_disk(
    where: str, room: FreeRoom, files: FreeRoom, least: int, *, read_only: bool
) -> str:
    """Return why nothing new is taken up; '' if the disk has room enough."""
    if not least:
        return ""
    if read_only:
        return f"the disk of '{where}' takes no writes"
    if said := explain_bytes(f"the disk of '{where}'", room, least):
        return said
    return f"the disk of '{where}' takes hardly any more files" if files.lacks(FILES) else ""
