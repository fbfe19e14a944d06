"""A project's section `tracker`: what all kinds have. Plugins bring the kinds."""

from __future__ import annotations

from sm.base.issue_id import IssueId
from sm.config.section import KindSection


class TrackerSettings(KindSection, frozen=True):
    """Where issues are, if the forge has only pull requests, reviews and CI."""

    def call(self, name: str) -> str:
        """Return a name of `sm` for a person of the tracker: the forge may have a namesake."""
        return f"{name}@{self.kind}" if name else ""

    def recall(self, name: str) -> str:
        """Return the tracker's own name for that name of `sm`; '' for people of the forge."""
        found = name.removesuffix(f"@{self.kind}")
        return found if found != name else ""

    def link_issue(self, number: IssueId) -> str:
        """The address of an issue's page; '' for none."""
        return ""
