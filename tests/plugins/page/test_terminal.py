"""The terminal on the page, by a real tmux and a client without a screen."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from sm.adapters.tmux import Pane, Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Refusal
from sm.messages.presence import find_obstacle, observe_hands
from sm.plugins.page.logins import Book, make_csrf_token
from sm.plugins.page.terminal.page import VIEWS
from sm.plugins.page.terminal.words import AHEAD
from sm.sessions.presence_rule import GONE_S, Disturbance
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.web.server import FRAME_LIMIT
from tests.helpers import put_session, remove_tree, wait_for
from tests.plugins.page.client import TOKEN, Browser, make_server
from tests.plugins.page.watcher import Watcher, ending, log_in, post, refusal
from tests.serving import Served, serving
from tests.viewer import Viewer

pytestmark = pytest.mark.long_lived

NAME = "dev-harb-3"
ROOT = Path(__file__).parents[3]
SIZE = (160, 50)
SAYS = "printf 'ready\\n'; exec cat"
FLOOD = "while :; do printf '%0150d\\n' 7; done"


@pytest.fixture
def session(tmux: Tmux, project: Project) -> IssueSession:
    assert tmux.socket  # before the configuration is read
    return put_session(project, 3, alive=False)


@pytest.fixture
def server(session: IssueSession, tmux: Tmux, tmp_path: Path) -> Iterator[Served]:
    assert (session.name, session.tmux.socket) == (NAME, tmux.socket)
    with serving(tmp_path, "--open", clean=False) as served:
        yield served


def begin(tmux: Tmux, folder: Path, script: str = SAYS) -> Pane:
    """Start the agent's terminal."""
    return start_session(tmux, NAME, folder, ["sh", "-c", script], size=SIZE, title="harb#3")


def window(tmux: Tmux) -> str:
    """The window's size, and what decides it."""
    facts = "#{window_width}x#{window_height} #{window-size}"
    return tmux.command("display-message", "-p", "-t", f"={NAME}:", facts).strip()


def clients(tmux: Tmux) -> list[str]:
    return tmux.command("list-clients", "-F", "#{client_pid} #{client_flags}").split("\n")[:-1]


def _write(tmux: Tmux, text: str) -> None:
    """Have a program write a line to the agent."""
    tmux.command("set-buffer", "-b", "line", f"{text}\n")
    tmux.command("paste-buffer", "-d", "-b", "line", "-t", f"={NAME}:")


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_ten_browsers_see_it_and_the_window_stays_as_it_is(
    server: Served, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path)
    before = window(tmux)
    watchers = [Watcher(server) for _ in range(10)]
    for watcher in watchers:
        word = watcher.wait_for_word("begin")
        assert word["size"] == {"columns": 160, "rows": 51, "below": 1}
        watcher.wait_for(b"ready")
        assert not word.get("types")
    assert window(tmux) == before == "160x50 latest"
    assert len(clients(tmux)) == 10
    pids = [int(line.split()[0]) for line in clients(tmux)]
    assert all("read-only" in line and "ignore-size" in line for line in clients(tmux))
    watchers[0].type(b"not typed\r")
    _write(tmux, "typed elsewhere")
    for watcher in watchers:
        watcher.wait_for(b"typed elsewhere")
        assert b"not typed" not in watcher.shown
        watcher.close()
    wait_for(lambda: not clients(tmux), "all of them to leave")
    wait_for(lambda: not any(map(lives, pids)), "their processes to end")
    assert window(tmux) == before


def test_it_follows_the_window_and_a_person_who_leaves_finds_it_as_it_was(
    server: Served, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path)
    watcher = Watcher(server)
    watcher.wait_for(b"ready")
    person = Viewer(tmux.attach_argv(NAME), (100, 31))
    try:
        word = watcher.wait_for_word("size")
        assert word["size"] == {"columns": 100, "rows": 31, "below": 1}
        assert window(tmux) == "100x30 latest"
    finally:
        person.close()
    wait_for(lambda: len(clients(tmux)) == 1, "the person to leave")
    assert window(tmux) == "100x30 latest"
    watcher.close()
    wait_for(lambda: not clients(tmux), "nobody there")
    assert window(tmux) == "100x30 latest"


def test_a_browser_that_has_logged_in_types_straight_into_it(
    server: Served, session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    pane = begin(tmux, tmp_path)
    watcher = Watcher(server, browser=log_in(server))
    watcher.wait_for_word("begin")
    assert not observe_hands(session).attached
    watcher.want_to_type()
    assert watcher.wait_for_word("begin")["types"] is True
    assert observe_hands(session).attached
    assert window(tmux) == "160x50 latest"
    came_at = time.time()

    def typed() -> bool:
        watcher.type(b"x")
        return observe_hands(session).typed_at >= came_at

    wait_for(typed, "its keys to count as a person's", every_s=0.3)
    long = bytes(ord("a") + number % 26 for number in range(3000))
    watcher.type(b"\r" + long[:1500] + b"\r" + long[1500:] + b"\rlast\r")
    wait_for(lambda: "last" in tmux.capture(pane.id), "all keys")
    assert long[:1500].decode() in tmux.capture(pane.id, 500).replace("\n", "")
    watcher.want_to_look()
    assert not watcher.wait_for_word("begin").get("types")
    assert not observe_hands(session).attached
    watcher.close()


def test_who_has_typed_and_left_is_away_within_seconds_whoever_looks(
    server: Served, session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path)
    with contextlib.closing(Watcher(server)) as watcher:
        watcher.wait_for(b"ready")
        person = Viewer(tmux.attach_argv(NAME), (160, 51))

        def typed() -> bool:
            person.type("x")
            return find_obstacle(session, Disturbance.END) is Refusal.TYPING

        try:
            wait_for(typed, "the keys", every_s=0.3)
        finally:
            person.close()
        wait_for(lambda: not find_obstacle(session, Disturbance.END), "them to be away", GONE_S + 5)


@pytest.mark.parametrize("csrf", ["", "0" * 64])
def test_nobody_types_without_a_login_and_its_csrf(
    server: Served, tmux: Tmux, tmp_path: Path, csrf: str
) -> None:
    pane = begin(tmux, tmp_path)
    for browser in ("", log_in(server)):
        watcher = Watcher(server, browser=browser)
        watcher.wait_for(b"ready")
        watcher.want_to_type(csrf)
        assert watcher.wait_for_word("refused")["why"]
        watcher.type(b"never\r")
        watcher.close()
        wait_for(lambda: not clients(tmux), "it to leave")
    assert "never" not in tmux.capture(pane.id)


def test_a_login_that_has_expired_types_no_more(
    server: Served, session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    pane = begin(tmux, tmp_path)
    browser = log_in(server)
    watcher = Watcher(server, browser=browser)
    watcher.want_to_type()
    while not watcher.wait_for_word("begin").get("types"):
        pass
    _log_out(server, browser)
    watcher.type(b"never\r")
    assert "log in" in watcher.wait_for_word("refused")["why"]
    assert not watcher.wait_for_word("begin").get("types")
    watcher.type(b"never\r")
    _write(tmux, "later")
    watcher.wait_for(b"later")
    assert "never" not in tmux.capture(pane.id)
    watcher.close()
    book = json.decode((session.root.plugins / "page" / "logins.json").read_bytes(), type=Book)
    assert not book.until


def _log_out(server: Served, browser: str) -> None:
    answer = post(server, "/page/logout", {"csrf": make_csrf_token(browser)}, browser)
    assert answer.status == 303


def test_pages_of_others_are_refused(server: Served) -> None:
    port = server.port
    for origin in ("https://evil.example", "null", "http://127.0.0.1:3", ""):
        assert refusal(server, origin=origin) == 403, origin
    assert refusal(server, origin=f"http://localhost:{port}") == 403  # that is another page of ours
    assert refusal(server, headers={"Sec-Fetch-Site": "cross-site"}) == 403
    assert refusal(server) == 0


def test_with_a_token_nobody_looks_without_it(
    session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with serving(session.root.path, "--token-file", str(token), clean=False) as served:
        assert refusal(served) == 401
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        watcher = Watcher(served, origin="", headers=bearer)
        watcher.wait_for(b"ready")
        watcher.close()


def test_a_slow_browser_costs_no_memory_and_does_not_hold_up_the_end(
    server: Served, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path, FLOOD)
    slow = Watcher(server)  # it takes in the first bytes, as much as buffers hold, and no more
    quick = Watcher(server)
    quick.wait_for(b"7")
    size = _memory(server)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        quick.hear()
    assert len(quick.shown) > 100_000
    assert _memory(server) < size + 8_000
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 8
    wait_for(lambda: not clients(tmux), "no client left")
    slow.socket.socket.close()


def test_a_browser_that_draws_slowly_is_waited_for(
    server: Served, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path, FLOOD)
    watcher = Watcher(server, draws=False)
    watcher.wait_for(b"7")
    wait_for(lambda: _silent(watcher), "it to wait")
    assert AHEAD < len(watcher.shown) < 2 * AHEAD
    watcher.socket.send(f'{{"what":"drawn","bytes":{AHEAD}}}')
    before = len(watcher.shown)
    wait_for(lambda: _silent(watcher), "it to wait again")
    assert before + AHEAD // 2 < len(watcher.shown) < before + 2 * AHEAD
    watcher.close()
    wait_for(lambda: not clients(tmux), "it to leave")


@pytest.mark.parametrize(
    "said", ["", "{", '{"what":"kill"}', '{"what":"drawn","bytes":-1}', "x" * 70_000]
)
def test_what_no_page_of_ours_says_ends_it(
    server: Served, tmux: Tmux, tmp_path: Path, said: str
) -> None:
    begin(tmux, tmp_path)
    watcher = Watcher(server)
    watcher.wait_for(b"ready")
    watcher.socket.send(said)
    ending(watcher)
    wait_for(lambda: not clients(tmux), "it to leave")
    again = Watcher(server)
    again.wait_for(b"ready")
    again.close()


def _memory(server: Served) -> int:
    """In KB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_a_browser_that_is_killed_leaves_no_client(
    server: Served, tmux: Tmux, tmp_path: Path
) -> None:
    begin(tmux, tmp_path)
    code = (
        "import sys, time; from tests.plugins.page.watcher import Watcher; "
        "from tests.serving import Served; "
        "one = Watcher(Served(None, sys.argv[1])); one.wait_for(b'ready'); "
        "print('there', flush=True); time.sleep(1000)"
    )
    browser = subprocess.Popen(
        [sys.executable, "-c", code, server.url], stdout=subprocess.PIPE, cwd=ROOT
    )
    with browser:
        assert browser.stdout
        assert browser.stdout.readline() == b"there\n"
        pids = [int(line.split()[0]) for line in clients(tmux)]
        assert len(pids) == 1
        browser.kill()
    wait_for(lambda: not clients(tmux), "no client left")
    wait_for(lambda: not any(map(lives, pids)), "its process to end")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_leaves_no_client(
    server: Served, tmux: Tmux, tmp_path: Path, number: signal.Signals
) -> None:
    begin(tmux, tmp_path)
    watchers = [Watcher(server) for _ in range(3)]
    for watcher in watchers:
        watcher.wait_for(b"ready")
    pids = [int(line.split()[0]) for line in clients(tmux)]
    began = time.monotonic()
    server.stop(number)
    assert time.monotonic() - began < 3
    wait_for(lambda: not clients(tmux), "no client left")
    wait_for(lambda: not any(map(lives, pids)), "their processes to end")
    assert window(tmux) == "160x50 latest"


def test_a_new_terminal_shows_by_itself_and_nobody_types_into_it(
    server: Served, session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    watcher = Watcher(server, browser=log_in(server))
    assert "gone" in watcher.wait_for_word("gone")["why"]
    begin(tmux, tmp_path)
    _note_agent(session)
    watcher.wait_for(b"ready")
    watcher.want_to_type()
    while not watcher.wait_for_word("begin").get("types"):
        pass
    tmux.command("kill-session", "-t", f"={NAME}")
    assert watcher.wait_for_word("gone")
    begin(tmux, tmp_path, SAYS.replace("ready", "another"))
    _note_agent(session)
    assert not watcher.wait_for_word("begin").get("types")
    watcher.wait_for(b"another")
    tmux.command("kill-server")
    assert watcher.wait_for_word("gone")
    remove_tree(session.dir.path)
    session.dir.path.parent.mkdir(exist_ok=True)
    assert "no such session" in ending(watcher)


def _note_agent(session: IssueSession) -> None:
    """What a start does: the record of the agent is another file."""
    session.dir.agent.write_text("{}")


def test_so_many_are_shown_and_no_more(server: Served, tmux: Tmux, tmp_path: Path) -> None:
    begin(tmux, tmp_path)
    watchers = [Watcher(server) for _ in range(VIEWS)]
    for watcher in watchers:
        watcher.wait_for(b"ready")
    assert "are open already" in ending(Watcher(server))
    watchers.pop().close()
    watchers += filter(None, [wait_for(lambda: _open(server), "room for one more")])
    assert len(watchers) == VIEWS
    for watcher in watchers:
        watcher.close()


def _open(server: Served) -> Watcher | None:
    watcher = Watcher(server)
    if (watcher.hear() or {}).get("what") == "begin":
        return watcher
    watcher.close()
    return None


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_long_message_is_not_taken_in_pieces_either(
    server: Served, tmux: Tmux, tmp_path: Path, pieces: int
) -> None:
    begin(tmux, tmp_path)
    watcher = Watcher(server)
    watcher.wait_for(b"ready")
    watcher.socket.send([b"x" * (FRAME_LIMIT // pieces + 1)] * pieces)
    with pytest.raises(ConnectionClosed) as closed:
        watcher.wait_for(b"no such words")
    assert closed.value.rcvd
    assert closed.value.rcvd.code == CloseCode.MESSAGE_TOO_BIG


def test_a_still_screen_costs_next_to_nothing(server: Served, tmux: Tmux, tmp_path: Path) -> None:
    begin(tmux, tmp_path)
    watcher = Watcher(server)
    watcher.wait_for(b"ready")
    wait_for(lambda: _silent(watcher), "it to be still")
    pid = server.process.pid
    before, began = _ticks(pid), time.monotonic()
    _silent(watcher, 2.0)  # tmux may draw its own line anew
    used = (_ticks(pid) - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    assert used < 0.05, used
    watcher.close()


def _silent(watcher: Watcher, for_s: float = 0.5) -> bool:
    try:
        watcher.hear(for_s)
    except TimeoutError:
        return True
    return False


def _ticks(pid: int) -> int:
    """Time of the processor that it and its children have used."""
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, facts[11:15]))


def test_its_text_is_what_the_screen_shows_and_nothing_of_it_is_html(
    session: IssueSession, tmux: Tmux, tmp_path: Path
) -> None:
    pane = begin(tmux, tmp_path, "printf '<b>\\033[31mred</b>\\n'; exec cat")
    wait_for(lambda: "red" in tmux.capture(pane.id), "the screen")
    session.terminal_log.write_text("<b>\033[31mred</b>\n")
    said = Browser(make_server(session.machine)).get(f"/page/terminal/{NAME}/text")
    assert "&lt;b&gt;red&lt;/b&gt;" in said.text
    assert "unsafe" not in said.headers["content-security-policy"]
