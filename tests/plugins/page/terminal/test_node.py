"""The two ends of a terminal elsewhere: what the node's `sm` says, and what is made of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest

from sm.adapters.tmux import Tmux
from sm.helper.lines import WireError, decode_line, encode_line
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.client import LARGEST, Size
from sm.plugins.page.terminal.node import NodeProcess, OldError, SilentError, judge_end
from sm.plugins.page.terminal.remote_screen import clean
from sm.plugins.page.terminal.wire import FromNode, TerminalHello, ToNode
from sm.plugins.page.terminal.words import AHEAD, BrowserWish, TerminalWord
from sm.sessions.project import Project
from tests.helpers import REPOSITORY, put_session, wait_for
from tests.plugins.page.test_terminal import FLOOD, begin, clients

SIZE = Size(160, 51, 1)
HELLO = wire.MARK + encode_line(TerminalHello(wire.PROTOCOL))


@pytest.fixture
def relay(project: Project, tmux: Tmux, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The verb as its own program, for a terminal that shows more than anybody can draw."""
    put_session(project, 3, alive=False)
    begin(tmux, tmp_path, FLOOD)
    argv = [str(REPOSITORY / "bin" / "sm"), "terminal", project.name, "3"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def hear(relay: subprocess.Popen[bytes]) -> FromNode:
    assert relay.stdout
    return decode_line(relay.stdout.readline(), FromNode)


def say(relay: subprocess.Popen[bytes], said: ToNode) -> None:
    assert relay.stdin
    relay.stdin.write(encode_line(said))
    relay.stdin.flush()


@pytest.mark.long_lived
def test_the_verb_shows_no_more_than_is_drawn_and_ends_with_its_stdin(
    relay: subprocess.Popen[bytes], tmux: Tmux
) -> None:
    assert relay.stdin
    assert relay.stdout
    assert relay.stdout.readline() == HELLO
    assert hear(relay).word == TerminalWord("begin", size=SIZE)

    def count_shown() -> int:
        """What comes before its next sign of life says that all is said."""
        count = 0
        while (said := hear(relay)) != FromNode():
            count += len(said.shown)
        return count

    assert AHEAD < count_shown() < 2 * AHEAD
    assert count_shown() == 0
    say(relay, ToNode(wish=BrowserWish("drawn", bytes=AHEAD)))
    assert AHEAD // 2 < count_shown() < 2 * AHEAD
    relay.stdin.close()
    assert relay.wait(10) == 0
    wait_for(lambda: not clients(tmux), "no client left")


@pytest.mark.long_lived
def test_the_verb_says_that_there_is_no_such_session(project: Project) -> None:
    argv = [str(REPOSITORY / "bin" / "sm"), "terminal", project.name, "9"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        hello, *said = process.stdout.readlines()
    assert hello == HELLO
    why = "there is no such session any more"
    assert [decode_line(line, FromNode).word for line in said] == [TerminalWord("over", why)]


def test_what_ends_without_a_hello_is_judged() -> None:
    older = judge_end(2, b"Welcome!\nsm: no such command 'terminal': see 'sm --help'\n")
    assert (type(older), str(older)) == (OldError, "its sm is older")
    assert isinstance(judge_end(2, b"sm: no project 'harb'\n"), OldError)
    silent = judge_end(255, b"ssh: connect to host box: \x1b[31mNo route\x07 to host\r\n\r\n")
    assert isinstance(silent, SilentError)
    assert "No route" in str(silent)
    assert "\x1b" not in str(silent)
    assert str(judge_end(1, b"")) == "it ended with 1"


def test_what_a_node_says_makes_nothing_but_rows() -> None:
    assert clean(TerminalWord("begin", size=SIZE, types=True), types=False) == TerminalWord(
        "begin", size=SIZE
    )
    assert clean(TerminalWord("begin", size=SIZE, types=True), types=True) is not None
    assert clean(TerminalWord("size"), types=False) is None
    gone = clean(TerminalWord("gone", "\x1b]0;title\x07" + "x" * 9999), types=False)
    assert gone is not None
    assert "\x1b" not in gone.why
    assert len(gone.why) < 400
    for what in ("refused", "over", "plain", "alive"):
        assert clean(msgspec.convert({"what": what, "why": "x"}, TerminalWord), types=True) is None
    for columns in (0, -1, LARGEST + 1, 10**9):
        line = msgspec.json.encode(
            {"word": {"what": "size", "size": {"columns": columns, "rows": 9}}}
        )
        with pytest.raises(WireError):
            decode_line(line, FromNode)


HEARD = (
    ("motd\\n" + HELLO.decode().strip() + "\\n" + '{"shown":"aGk="}\\n', "hi"),
    (HELLO.decode().strip() + "\\nclient_loop: broken pipe\\n", "client_loop: broken pipe"),
    (HELLO.decode().strip() + "\\n", "the connection has ended"),
    (HELLO.decode().strip().replace("1", "7") + "\\n", "do not understand one another"),
)


@pytest.mark.parametrize(("says", "heard"), HEARD)
def test_lines_of_a_node_are_heard_and_what_is_none_ends_it(says: str, heard: str) -> None:
    async def listen() -> str:
        node = NodeProcess(["printf", says.replace("%", "%%")])
        try:
            await node.greet()
            return (await node.hear()).shown.decode()
        except (SilentError, OldError) as error:
            return str(error)
        finally:
            await node.end()

    assert heard in anyio.run(listen)


@pytest.mark.parametrize("flood", ["", HELLO.decode()])
def test_a_line_without_an_end_is_not_collected(flood: str) -> None:
    code = f"import sys; sys.stdout.write({flood!r})\nwhile 1: sys.stdout.write('x' * 65536)"

    async def listen() -> str:
        node = NodeProcess([sys.executable, "-c", code])
        try:
            await node.greet()
            await node.hear()
        except SilentError as error:
            return str(error)
        finally:
            await node.end()
        return ""

    began = time.monotonic()
    assert anyio.run(listen) == "a line without an end"
    assert time.monotonic() - began < 20
