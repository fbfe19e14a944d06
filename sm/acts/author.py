"""Name under which a review, a comment or a merge is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sm.base.errors import UsageError

if TYPE_CHECKING:
    from sm.sessions.project import Project


def find_author_name(project: Project, given: str | None) -> str:
    """Find whose name it is: the one given, else git's user, else the user of this machine."""
    from sm.adapters.git_call import call
    from sm.sessions.project import find_person

    if given is not None:
        if not given.strip():
            raise UsageError("--as is empty: give a name")
        return given
    name = call(project.settings.repo, "config", "user.name", accept=(0, 1)).stdout.strip()
    return name or find_person()
