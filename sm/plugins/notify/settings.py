"""The section `notify` of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sm.base.need import NeedKind
from sm.config.section import Secret, Section

CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
Hours = Annotated[str, Meta(pattern=rf"^$|^{CLOCK}-{CLOCK}$", examples=["22:00-07:00"])]
"""Such as 22:00-07:00, or nothing."""


class NotifyChannel(Section, frozen=True):
    """A service by which people are told, and of what."""

    url: Annotated[
        Secret, Meta(description="address of a service as apprise has it (docs/NOTIFY.md)")
    ] = Secret()
    url_command: Annotated[str, Meta(description="prints the address")] = ""
    url_file: Annotated[
        Path | None, Meta(description="a file with the address, which only you may read (0600)")
    ] = None
    url_env: Annotated[
        str, Meta(description="a variable with the address; monitors keep it, agents do not get it")
    ] = ""
    needs: Annotated[
        tuple[NeedKind, ...], Meta(description="what it tells of: all that waits for a person")
    ] = tuple(NeedKind)
    quiet: Annotated[
        Hours | None,
        Meta(description="its own quiet hours; empty text: none; nothing: those of notify"),
    ] = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variable with the address."""
        return (self.url_env,) if self.url_env else ()


class Notify(Section, frozen=True):
    """How people are told of what waits for them, beside the issue: by services of theirs."""

    channels: Annotated[
        dict[str, NotifyChannel], Meta(description="services by names that you choose")
    ] = msgspec.field(default_factory=dict)
    quiet: Annotated[
        Hours,
        Meta(
            description="hours such as 22:00-07:00 in which only what is urgent is told; "
            "empty: none"
        ),
    ] = ""

    page: Annotated[
        str,
        Meta(
            pattern=r"^$|^https?://[^\s?#]+$",
            examples=["https://sm.example.com"],
            description="where you reach the page of sm serve (docs/PAGE.md): messages link to it",
        ),
    ] = ""

    heartbeat_url: Annotated[
        Secret,
        Meta(
            description="called after each completed tick of dev-poll: a check of healthchecks.io, "
            "or a push monitor of Uptime Kuma"
        ),
    ] = Secret()

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of all channels."""
        return tuple(name for one in self.channels.values() for name in one.variables)

    def find_quiet(self, channel: NotifyChannel) -> str:
        """Return the quiet hours that hold for a channel."""
        return self.quiet if channel.quiet is None else channel.quiet

    def link_to(self, session: str) -> str:
        """Return where the page answers what the session needs, '' without a page."""
        return f"{self.page.rstrip('/')}/#need-{session}" if self.page else ""
