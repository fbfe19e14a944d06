"""Protocol of an installation and a node: a line of JSON for each thing, bounded.

The node says `Greeting` first, behind a mark, because a login shell may say something before it.
Then each `NodeRequest` is answered by one `CallAnswer` with its number, in whatever order.
"""

from __future__ import annotations

from msgspec import Struct

PROTOCOL = 1
"""Another number: the two do not understand one another."""
MARK = b"sm-node "
"""Begins the line with `Greeting`."""
LINE_LIMIT = 8 << 20
"""Bytes of a line; both sides hang up on a longer one."""
OUTPUT_LIMIT = 1 << 20
"""Bytes of each of a command's outputs; the rest is left out, and the answer says so."""
INPUT_LIMIT = 1 << 20
"""Bytes of what a command gets to read."""
SETTLED, OF_ISSUE = 5, 6
"""Exit codes of `sm host begin`: the issue was settled, or is another's by now; and it is this
issue that the node does not take, while it could begin others."""


class Greeting(Struct, frozen=True):
    """Greeting of a node: version of its `sm`, its protocol, and its clock (seconds since 1970).

    `ident` is the id of its state root, '' for an older `sm`.
    """

    sm: str
    protocol: int
    now: float
    ident: str = ""


class NodeRequest(Struct, frozen=True, kw_only=True):
    """A command line for the node's own `sm`; without `argv` it asks only whether somebody answers.

    `project` is the one in whose clone it is called, so that `7` means an issue of it.
    """

    id: int
    argv: tuple[str, ...] = ()
    stdin: str = ""
    project: str = ""
    within_s: float = 60.0


class CallAnswer(Struct, frozen=True, kw_only=True):
    """Answer to a request. `cut`: there was more output than is passed on.

    `now` is the node's clock, in seconds since 1970, if it was asked only whether it is there.
    """

    id: int
    code: int = 0
    stdout: str = ""
    stderr: str = ""
    cut: bool = False
    now: float = 0.0
