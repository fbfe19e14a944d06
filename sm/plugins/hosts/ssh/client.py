"""Asks a node by the link to its host, and starts the process that has the links if need be."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence

from msgspec import Struct

from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.helper.lines import Lines, WireError, decode_line, encode_line
from sm.issues.runners import NoAnswerError
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import HostFolder, LinkFiles, open_folder, open_plugin_folder
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.wire import CallAnswer, Greeting, NodeRequest
from sm.store.files import read_json
from sm.store.paths import Root


class Patience(Struct, frozen=True):
    """Patience of one who would rather do without an answer; None: as long as it takes.

    `in_all_s` is for all of it, `silent_s` for a node that does not even say that it is there,
    `opening_s` for a channel to open. The request goes on its way all the same.
    """

    in_all_s: float | None = None
    silent_s: float | None = None
    opening_s: float | None = None


ENDLESS = Patience()
NONE = Patience(silent_s=0.0, opening_s=0.0)
"""For a node that was silent the last time: what it says now is heard by whoever asks next."""


class LinkRequest(Struct, frozen=True):
    """Request of a command to the node `name`, without its number, and how to reach the node.

    Whoever asks has just read the configuration, and the link may be older.
    """

    name: str
    request: NodeRequest
    host: SshHost
    patience: Patience = ENDLESS


class LinkReply(Struct, frozen=True):
    """The node's answer; or why there is none, and whether the node may have got the request."""

    answer: CallAnswer | None = None
    problem: str = ""
    sent: bool = False
    hello: Greeting | None = None


class HostTrouble(Struct, frozen=True):
    """Trouble with a host: why it does not answer, and since when (seconds since 1970)."""

    since: float
    why: str


START_S = 5.0
"""Time within which a link that was started listens, in seconds."""
START_AGAIN_S = 2.0
LOOK_S = 0.01
MARGIN_S = 2.0
"""Time that the link takes on top of what the node may take, in seconds."""
OPEN_S = 30.0
"""Time that opening a channel may take, in seconds."""


class SshNode(Struct, frozen=True):
    """A host by its name, as it is configured, and what is kept of it."""

    root: Root
    name: str
    host: SshHost

    @property
    def folder(self) -> HostFolder:
        """What is kept of it."""
        return open_folder(self.root, self.name)


def ask(
    node: SshNode,
    argv: Sequence[str],
    *,
    stdin: str = "",
    project: str = "",
    within_s: float = 60.0,
    patience: Patience = ENDLESS,
) -> CallAnswer:
    """Have the node's `sm` run, and return its answer. Once it runs it may take `within_s`.

    Raises:
        NoAnswerError: there is no answer.

    """
    request = NodeRequest(id=0, argv=tuple(argv), stdin=stdin, project=project, within_s=within_s)
    return _ask(node, LinkRequest(node.name, request, node.host, patience)).answer or CallAnswer(
        id=0
    )


def greet(node: SshNode, patience_s: float = OPEN_S) -> Greeting:
    """Return what the node says of itself.

    Raises:
        NoAnswerError: it says nothing.

    """
    request = NodeRequest(id=0, within_s=patience_s)
    hello = _ask(node, LinkRequest(node.name, request, node.host, Patience(patience_s))).hello
    assert hello is not None  # there is one with each answer
    return hello


def read_trouble(folder: HostFolder) -> HostTrouble | None:
    """Return the trouble with the host; None as far as it answers."""
    with contextlib.suppress(SmError):
        return read_json(folder.trouble, HostTrouble)
    return None


def _ask(node: SshNode, asked: LinkRequest) -> LinkReply:
    wait_s = asked.patience.in_all_s
    if wait_s is None:
        wait_s = OPEN_S + asked.request.within_s + MARGIN_S
    deadline = Deadline(wait_s)
    sent = False
    try:
        with _connect(node, deadline) as connection:
            connection.settimeout(max(deadline.left_s, LOOK_S))
            connection.sendall(encode_line(asked))
            sent = True
            reply = decode_line(_read_line(connection, deadline), LinkReply)
    except (OSError, WireError) as error:
        trouble = read_trouble(node.folder)
        late = f"no answer within {wait_s:g} s"
        why = trouble.why if trouble else late if isinstance(error, TimeoutError) else str(error)
        raise NoAnswerError(f"host '{node.name}' does not answer: {why}", sent=sent) from error
    if reply.answer is None:
        raise NoAnswerError(f"host '{node.name}' does not answer: {reply.problem}", sent=reply.sent)
    return reply


def _read_line(connection: socket.socket, deadline: Deadline) -> bytes:
    lines = Lines(wire.LINE_LIMIT)
    while not (line := lines.take()):
        connection.settimeout(max(deadline.left_s, LOOK_S))
        if not (part := connection.recv(1 << 16)):
            raise WireError("the link has ended")
        lines.add(part)
    return line


def _connect(node: SshNode, deadline: Deadline) -> socket.socket:
    """Return a connection to the process of links; one is started if there is none."""
    open_plugin_folder(node.root)
    files = LinkFiles(node.root)
    starting, again = Deadline(min(START_S, deadline.left_s)), Deadline(0.0)
    while not (found := _try_connect(files)):
        if again.is_over:  # one that found an earlier one still there has gone again
            files.helper.start()
            again = Deadline(START_AGAIN_S)
        if starting.is_over:
            raise TimeoutError("the link does not start")
        time.sleep(LOOK_S)
    return found


def _try_connect(files: LinkFiles) -> socket.socket | None:
    folder = os.open(files.path, os.O_RDONLY | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{files.socket.name}")
    except OSError:
        connection.close()
        return None
    finally:
        os.close(folder)
    return connection
