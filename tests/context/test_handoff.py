"""`sm handoff`: what it accepts and refuses. The agent on record is the process of the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.context import rotation_files
from sm.messages import queue
from sm.sessions.agent import load
from sm.sessions.session import AdHocSession
from sm.store.paths import Root
from tests.company import SM, Company
from tests.forked import run_sm
from tests.residents import settle

SCHEDULED = "Handoff scheduled — will execute after current turn completes\n"
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def session(root: Root, tmp_path: Path) -> AdHocSession:
    return settle(root, tmp_path, "s-1", provider="claude")


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Run `sm handoff` as the agent of `session`, in its working directory."""

    def call(
        session: AdHocSession | None, *args: str | Path, **env: str
    ) -> subprocess.CompletedProcess[str]:
        own = session.environment if session else {}
        return run_sm("handoff", *map(str, args), env=os.environ | own | env, cwd=tmp_path)

    return call


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text("what is next")
    return path


def failed(done: subprocess.CompletedProcess[str], code: int, message: str) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"sm: {message}\n")


def wish(session: AdHocSession) -> str:
    found = rotation_files.read_wish(session.dir)
    return found.path if found else ""


def test_it_is_scheduled_and_nothing_else_reaches_the_agent(
    session: AdHocSession, call: Call, notes: Path
) -> None:
    done = call(session, notes)
    assert (done.returncode, done.stdout, done.stderr) == (0, SCHEDULED, "")
    assert wish(session) == str(notes)
    assert not queue.passes(session.dir, "abc")


def test_a_relative_path_counts_from_where_it_is_called(
    session: AdHocSession, call: Call, notes: Path
) -> None:
    assert call(session, Path("nowhere/..") / notes.name).returncode == 0
    assert wish(session) == str(notes)


def test_a_link_stands_for_the_file_that_it_leads_to_now(
    session: AdHocSession, call: Call, notes: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(notes)
    assert call(session, link).returncode == 0
    assert wish(session) == str(notes)


def test_the_last_call_wins(session: AdHocSession, call: Call, notes: Path) -> None:
    later = notes.with_name("later.md")
    later.write_text("this one")
    assert call(session, notes).returncode == 0
    assert call(session, later).returncode == 0
    assert wish(session) == str(later)


@pytest.mark.parametrize(
    "name",
    [b"a\xff.md", b"a\nb.md", b"a\x1b[201~b.md", b"a b\r.md", b"a\tb.md", "a\u2028b.md".encode()],
)
def test_a_name_that_cannot_be_typed_is_refused(
    session: AdHocSession, call: Call, tmp_path: Path, name: bytes
) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_text("what is next")
    shown = repr(str(path))[1:-1]
    message = f"cannot hand off '{shown}': no agent can be told that name: rename it"
    failed(call(session, path), 1, message)
    assert not session.dir.hold.exists()
    assert wish(session) == ""


@pytest.mark.parametrize("name", ["it's süß – “so”.md", "a b .md", "👩\u200d💻.md"])
def test_any_other_name_is_accepted(
    session: AdHocSession, call: Call, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("what is next")
    assert call(session, path).returncode == 0
    assert wish(session) == str(path)


def test_an_agent_without_hooks_is_handed_off_though_nobody_sends_anything(
    company: Company,
) -> None:
    company.new("bob", provider="mute")
    session, notes = company.session("bob"), company.folder / "notes.md"
    notes.write_text("what is next")
    known, tmux = load(session.dir), session.tmux
    assert known
    # As a person types it: what goes through the queue wakes the monitor for reasons of its own.
    tmux.command("set-buffer", "-b", "typed", f"run: {SM} handoff {notes}")
    tmux.command("paste-buffer", "-p", "-d", "-b", "typed", "-t", known.pane_id)
    tmux.command("send-keys", "-t", known.pane_id, "Enter")
    company.hears("bob", f"Read {notes} and continue")


def test_outside_of_a_session_it_is_refused(call: Call, notes: Path) -> None:
    message = (
        "CLAUDE_SESSION_MANAGER_ID not set. sm handoff can only be called from within a session."
    )
    failed(call(None, notes), 2, message)


def test_a_session_that_is_not_there_is_refused(root: Root, call: Call, notes: Path) -> None:
    done = call(None, notes, CLAUDE_SESSION_MANAGER_ID="s-gone", SM_STATE_ROOT=str(root.path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "'s-gone'" in done.stderr


def test_a_state_that_cannot_be_reached_is_told(session: AdHocSession, call: Call) -> None:
    session.dir.identity.write_text("{")
    done = call(session, "notes.md")
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["gone", "no directory"])
def test_a_state_root_that_is_out_of_reach_is_no_fault_of_the_agent(
    session: AdHocSession, call: Call, notes: Path, tmp_path: Path, how: str
) -> None:
    """Its id is right, so it is not told to unset it: nothing can be reached, which is a 2."""
    root = tmp_path / "elsewhere"
    if how == "no directory":
        Root(root).private.mkdir(mode=0o700, parents=True)
        Root(root).sessions.write_text("")
    done = call(session, notes, SM_STATE_ROOT=str(root))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sm: cannot reach the session: ")
    assert str(root) in done.stderr
    assert "unset" not in done.stderr


def test_a_file_that_is_missing_is_named_whole(
    session: AdHocSession, call: Call, tmp_path: Path
) -> None:
    failed(call(session, "none.md"), 1, f"File not found: {tmp_path}/none.md")
    failed(call(session, tmp_path), 1, f"File not found: {tmp_path}")
    failed(call(session, "x" * 300), 1, f"File not found: {tmp_path}/{'x' * 300}")
    assert not wish(session)


def test_a_document_that_says_nothing_is_refused_at_once(
    session: AdHocSession, call: Call, tmp_path: Path
) -> None:
    empty, link = tmp_path / "empty.md", tmp_path / "link.md"
    empty.touch()
    link.symlink_to(empty)
    for path in (empty, link):
        failed(call(session, path), 1, f"cannot hand off '{path}': it is empty")
    assert not wish(session)


def test_no_file_at_all_is_wrong_usage(session: AdHocSession, call: Call) -> None:
    assert call(session).returncode == 2


def test_another_session_is_nobody_s_to_rotate(
    root: Root, session: AdHocSession, call: Call, notes: Path, tmp_path: Path
) -> None:
    other = settle(root, tmp_path, "s-2", provider="claude")
    other.dir.agent_pid.unlink()  # its agent is not the one that calls
    done = call(session, notes, CLAUDE_SESSION_MANAGER_ID="s-2")
    assert done.returncode == 1
    assert "a session can only act as itself" in done.stderr
    assert not wish(other)


def test_the_codex_app_has_no_terminal_and_is_refused(
    root: Root, call: Call, notes: Path, tmp_path: Path
) -> None:
    app = settle(root, tmp_path, "s-3", provider="codex-app")
    failed(call(app, notes), 1, "sm handoff is not supported for codex-app sessions")
    assert not app.dir.hold.exists()


def test_an_agent_without_a_command_to_clear_is_refused(
    root: Root, call: Call, notes: Path, tmp_path: Path
) -> None:
    plain = settle(root, tmp_path, "s-4")
    done = call(plain, notes)
    assert done.returncode == 1
    assert "has no command that clears the context" in done.stderr
