"""Placements: the issues of a project that are worked on elsewhere, and their last known state."""

from __future__ import annotations

from collections.abc import Mapping

from sm.base.issue_id import IssueId, name_part, rank, read_part
from sm.issues.runners import KnownState, Placement
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, list_names, write_json
from sm.store.paths import ProjectDir

SUFFIX = ".json"
SEEN_LIMIT = 16 * 1024 * 1024
"""Greatest size of the last known states of a project's placements, in bytes; one has about 200."""


def list_placements(directory: ProjectDir) -> list[Placement]:
    """Return the placements of the project, by issue; one whose file is damaged is left out.

    The claim on the remote says the same, so such a file is made again from there.
    """
    names = [name for name in list_names(directory.placements) if name.endswith(SUFFIX)]
    issues = [issue for name in names if (issue := read_part(name.removesuffix(SUFFIX)))]
    found = (read_placement(directory, issue) for issue in sorted(issues, key=rank))
    return [placement for placement in found if placement]


def read_placement(directory: ProjectDir, issue: IssueId) -> Placement | None:
    """Return where the issue is worked on; None if it is not elsewhere."""
    return read_rebuildable(directory.placements / f"{name_part(issue)}{SUFFIX}", Placement)


def keep(directory: ProjectDir, placement: Placement) -> None:
    """Put a placement on record, in the place of an earlier one of its issue."""
    ensure_private_dir(directory.placements)
    path = directory.placements / f"{name_part(placement.issue)}{SUFFIX}"
    write_json(path, placement, durable=True)


def forget(directory: ProjectDir, issue: IssueId) -> None:
    """Remove the record of where the issue is worked on."""
    discard(directory.placements / f"{name_part(issue)}{SUFFIX}")


def read_seen(directory: ProjectDir) -> dict[str, KnownState]:
    """Return what was last seen of the sessions elsewhere, by their names."""
    return read_rebuildable(directory.placed_seen, dict[str, KnownState], limit=SEEN_LIMIT) or {}


def keep_seen(directory: ProjectDir, seen: Mapping[str, KnownState]) -> None:
    """Keep what is known of all sessions elsewhere, for people and for the next look."""
    write_json(directory.placed_seen, dict(seen), limit=SEEN_LIMIT)
