"""The section `budget` of the configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from msgspec import Meta

from sm.config.section import Section, Written
from sm.plugins.cost.ledger.amount import EXPECTED, Amount, parse


class WrittenAmount(Written):
    """An amount as a file has it."""

    KIND = "amount"

    @classmethod
    def read(cls, value: object) -> Self:
        """Read it; a number alone says nothing of its unit."""
        if not isinstance(value, str):
            raise ValueError(f"{EXPECTED}, got {value!r}")
        parse(value)
        return cls(value.strip())

    @property
    def amount(self) -> Amount:
        """The amount."""
        return parse(self)


Optional = WrittenAmount | None


class Budget(Section, frozen=True):
    """What agents may use (docs/COST.md): each limit in money, such as $10, or as 2M tokens."""

    issue: Annotated[Optional, Meta(description="for each issue, over all of its sessions")] = None
    session: Annotated[
        Optional, Meta(description="for each session, from its beginning to its end")
    ] = None
    day: Annotated[
        Optional,
        Meta(
            description="from midnight to midnight: at the top of a file of all projects together, "
            "in a project of that one"
        ),
    ] = None
    project: Annotated[
        Optional, Meta(description="for a project, for good: each raise is a decision")
    ] = None
    estimate: Annotated[
        Optional,
        Meta(
            description="what a new issue is expected to use, until five of the project are over; "
            "empty: what the project's issues have used, or else the limit of an issue"
        ),
    ] = None
    unknown: Annotated[
        Literal["hold", "allow"],
        Meta(
            description="hold: a request without a known price is over a budget in money, and one "
            "that is in no record counts as the largest that is; allow: neither counts"
        ),
    ] = "hold"

    @property
    def allows_unknown(self) -> bool:
        """Whether what nobody knows does not count."""
        return self.unknown == "allow"
