"""The table of supervision as that of docs/PROTOCOL.md. Run it to print the table."""

from __future__ import annotations

from collections.abc import Iterator

from sm.config import duration
from sm.issues.rules.leftover import Left
from sm.issues.rules.supervision import ROWS, ProjectWords, SupervisionRow


def supervision_table() -> str:
    """One line a row, in the order in which they are tried."""
    return "\n".join(_lines())


AT = ProjectWords("shop", "CLONE", "hub", "backlog")


def _lines() -> Iterator[str]:
    yield "| row | what | fact | after | by | what is done |"
    yield "|---|---|---|---|---|---|"
    for row in ROWS:
        after = duration.show(row.after_s) if row.after_s else ""
        does = str(row.act or _name_command(row))
        yield f"| {row.name} | {row.thing} | {row.fact} | {after} | {row.by} | {does} |"


def _name_command(row: SupervisionRow) -> str:
    """What a person is told to do about it."""
    left = Left(thing=row.thing, name="NAME", issue=7)
    return row.command.format(left=left, at=AT) or "end it, and remove its folder"


if __name__ == "__main__":
    print(supervision_table())
