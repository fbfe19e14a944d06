"""A project's section `tracker`: what all kinds have. Plugins bring the kinds."""

from __future__ import annotations

from sm.base.issue_id import IssueId
from sm.config.section import Section


class TrackerSettings(Section, frozen=True, tag_field="kind"):
    """Where issues are, if the forge has only pull requests, reviews and CI."""

    @property
    def kind(self) -> str:
        """Which tracker it is: the tag of the subclass."""
        return str(self.__struct_config__.tag)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        raise NotImplementedError

    def call(self, name: str) -> str:
        """Return what `sm` calls a person of the tracker: the forge may have others of the name."""
        return f"{name}@{self.kind}" if name else ""

    def recall(self, name: str) -> str:
        """Return the name there of somebody whom `sm` calls so; '' for people of the forge."""
        found = name.removesuffix(f"@{self.kind}")
        return found if found != name else ""

    def link_issue(self, number: IssueId) -> str:
        """The address of an issue's page; '' for none."""
        return ""
