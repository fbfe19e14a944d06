"""Acts of a person on a session or an issue, each with its arguments and its command.

A need carries the act that answers it, and what people read as a command is made from that.
"""

from __future__ import annotations

import shlex
from enum import StrEnum

from msgspec import Struct

from sm.base.issue_id import IssueId


class ActKind(StrEnum):
    """The kinds of acts. The values stand in JSON and in the forms of the page."""

    REPLY = "reply"
    SEND = "send"
    REVIEW = "review"
    """Approval or request for changes, decided once somebody has looked."""
    APPROVE = "approve"
    REQUEST_CHANGES = "request-changes"
    MERGE = "merge"
    RERUN = "rerun"
    ALLOW = "allow"
    """Take the blocked label off an issue."""
    PAUSE = "pause"
    RESUME = "resume"
    ROTATE = "cycle"
    RECOVER = "recover"
    KILL = "kill"
    RAISE = "budget-raise"
    LOWER = "budget-lower"
    ATTACH = "attach"
    """Look into the session's terminal."""
    RUN = "run"
    """Run a command in a shell."""
    VISIT = "visit"
    """Open a page of the forge."""


class Act(Struct, frozen=True, omit_defaults=True):
    """One act with its arguments; unused arguments are '' or 0.

    `session` is an id, `address` what people call the session, such as `shop#7`. `number` is the
    number of an issue, or of the pull request that the act is about, and `head` the commit of that
    pull request. `limit` names a limit as the words of `sm budget raise` do. `label_off` is taken
    off an issue, `label_on` given to it. `line` is the command of RUN or the page's address of
    VISIT.

    `known` is what had been decided when the act was offered: the last verdict on a pull request,
    or by how much a limit was raised. Whoever could not see a later decision has the act refused;
    None skips that check.
    """

    kind: ActKind
    project: str = ""
    number: IssueId = 0
    session: str = ""
    address: str = ""
    head: str = ""
    limit: str = ""
    known: str | None = None
    label_off: str = ""
    label_on: str = ""
    line: str = ""

    @property
    def pull(self) -> int:
        """The number of its pull request; 0 if it is about none."""
        return self.number if isinstance(self.number, int) else 0

    @property
    def command(self) -> str:
        """The shell command for the act, but for TEXT and AMOUNT; '' if there is none."""
        place = f"{self.project} {self.number}"
        match self.kind:
            case ActKind.REPLY:
                return f"sm reply {place} TEXT"
            case ActKind.SEND:
                return f"sm send {_quote(self.address)} TEXT"
            case ActKind.REVIEW:
                return f"sm review {self.project}#{self.number} --approve"
            case ActKind.MERGE:
                return f"sm pr merge {self.project}#{self.number}"
            case ActKind.RERUN:
                return f"sm ci rerun {place}"
            case ActKind.ALLOW:
                off, on = shlex.quote(self.label_off), shlex.quote(self.label_on)
                return f"sm issue label {self.project}#{self.number} --remove {off} --add {on}"
            case ActKind.RAISE:
                return f"sm budget raise {self.limit} AMOUNT"
            case ActKind.ATTACH:
                return f"sm attach {' '.join(map(shlex.quote, self.address.split('#')))}"
            case _:
                return self.line


def _quote(address: str) -> str:
    """Quote an address for a shell; the `#` within a word needs no quotes."""
    plain = address.replace("#", "")
    return address if shlex.quote(plain) == plain else shlex.quote(address)


def run(line: str) -> Act:
    """Make the act of running a command in a shell."""
    return Act(ActKind.RUN, line=line)


LOOK_AT_STATUS = run("sm status")
ASK_DOCTOR = run("sm doctor")
