"""What only Forgejo and Gitea answer, as far as it is read."""

from __future__ import annotations

from msgspec import Raw, Struct

from sm.adapters.forge.rest.shapes import Number


class Statuses(Struct, frozen=True):
    """A page of the last status of each context. How many there are in all is in a header."""

    statuses: list[Raw] | None = None


class Place(Struct, frozen=True):
    """The repository that an issue is in."""

    full_name: str = ""


class Needed(Struct, frozen=True):
    """An issue or a pull request that another one depends on."""

    number: Number
    state: str
    repository: Place | None = None

    def name(self, repository: str) -> str:
        """What it is called in `repository`."""
        there = self.repository.full_name if self.repository else ""
        return f"#{self.number}" if there in ("", repository) else f"{there}#{self.number}"
