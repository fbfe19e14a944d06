"""The section `hosts` of the configuration: other machines on which sessions run."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from sm.config.duration import Seconds
from sm.config.section import Positive, Section

Address = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*$", max_length=255)]
"""`user@host`, `host`, or a `Host` of ~/.ssh/config; it can be no option of ssh."""
Option = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9]*[ =][^\x00-\x1f\x7f]+$")]


class SshHost(Section, frozen=True):
    """A machine that is reached by ssh."""

    address: Annotated[
        Address, Meta(description="as ssh has it: user@host, or a Host of ~/.ssh/config")
    ]
    sessions: Annotated[Positive, Meta(description="how many sessions it has room for")] = 2
    sm: Annotated[
        str,
        Meta(
            description="path of sm there; empty: on its PATH, or in ~/.local/bin",
            pattern=r"^[^\x00-\x1f\x7f]*$",
        ),
    ] = ""
    options: Annotated[
        tuple[Option, ...],
        Meta(description="options of ssh as in ssh_config, such as 'Port=2222'"),
    ] = ()


class Hosts(Section, frozen=True, rename={"lost_after_s": "lost_after"}):
    """Other machines on which sessions run."""

    ssh: Annotated[dict[str, SshHost], Meta(description="machines by names that you choose")] = (
        msgspec.field(default_factory=dict)
    )
    lost_after_s: Annotated[
        Seconds,
        Meta(
            description="a machine that has not answered for so long is lost: its issues are "
            "worked on elsewhere"
        ),
    ] = Seconds(600)
