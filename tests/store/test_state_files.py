"""Every file of a session and of a project, with what reads it, whatever is in the file's place.

A new file needs its row here. A row says what damage comes to: the file counts as lost, the reader
refuses it by name, or it counts as if it were whole. No reader follows a link, waits for a FIFO, or
ends with another error.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs

from sm.base.errors import StateError
from sm.plugins.forges.rest.state import ForgeFiles, StateFiles
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import IssueSession
from sm.store.paths import ProjectDir, Root, SessionDir, layout
from tests.helpers import an_issue, open_project, put_session, sm_yaml

NOBODY = 65534
NOW = 1_800_000_000.0


class Use(StrEnum):
    """Why no function of ours reads a file."""

    LOCK = "it is held"
    MARK = "it is there, or has a time"
    SHELL = "the hooks or the monitor read it: tests/lib"
    GIVEN = "the launcher or the agent CLI reads it"
    LOG = "it is shown as a terminal's log is: tests/views/test_logs.py"
    FOLDER = "what is in it is read file by file"
    FIFO = "it is read as it is written"


class Damaged(StrEnum):
    """What a damaged file comes to."""

    LOST = "as if it were missing"
    REFUSED = "an error that names it"
    COUNTS = "as if it were there"


class Reader(NamedTuple):
    """A function that reads a file, `module:name` below `sm`, and `call`, which calls it.

    Without `call` it does so in the midst of other work, as in tests/e2e/test_damaged_files.py.
    `good` is content that says something, with NOW for the present time.
    """

    name: str
    call: Callable[[IssueSession], object] | None = None
    damaged: Damaged = Damaged.LOST
    good: bytes = b""


def find_function(name: str) -> Callable[..., object]:
    """The function that a row names."""
    module, _, path = name.partition(":")
    found: object = import_module(f"sm.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    assert callable(found)
    return found


def read_of(
    name: str,
    pick: Callable[[IssueSession], object],
    *more: object,
    damaged: Damaged = Damaged.LOST,
    good: bytes = b"",
) -> Reader:
    """A reader that takes what is picked, and `more`."""

    def call(session: IssueSession) -> object:
        seen = find_function(name)(pick(session), *more)
        return list(seen) if isinstance(seen, Iterator) else seen

    return Reader(name, call, damaged, good)


def read(name: str, damaged: Damaged = Damaged.LOST, good: bytes = b"") -> Reader:
    """A reader that takes the directory of the session."""
    return read_of(name, lambda session: session.dir, damaged=damaged, good=good)


def read_of_project(name: str, *more: object) -> Reader:
    """A reader that takes the directory of the project."""
    return read_of(name, lambda session: session.project.directory, *more)


def read_of_turn(name: str, *states: State) -> Reader:
    """A reader that takes what the hooks have said last, in each of these states."""

    def call(session: IssueSession) -> object:
        told = agent_state.read(session.dir)
        each = [structs.replace(told, state=state) for state in states]
        return [find_function(name)(session.dir, one) for one in each]

    return Reader(name, call)


def read_of_forge(method: str, *args: object) -> Reader:
    """A reader of what is kept of a forge elsewhere."""
    name = f"plugins.forges.rest.state:StateFiles.{method}"
    return read_of(name, lambda session: StateFiles(session.project.directory.path), *args)


REFUSED, COUNTS = Damaged.REFUSED, Damaged.COUNTS

SESSION: dict[str, Use | tuple[Reader, ...]] = {
    "identity.json": (
        Reader(
            "sessions.registry:find",
            lambda session: find_function("sessions.registry:find")(session.root, session.name),
            REFUSED,
        ),
    ),
    "agent.json": (read("sessions.agent:load"),),
    "launch.env": (read("sessions.launch:read_environment", REFUSED, b"A=1\0B=2"),),
    "sandbox": (read_of("sessions.sandboxes:clean", lambda session: session, damaged=REFUSED),),
    "launch.argv": (read("sessions.turn:describe_changed_mode"),),
    "agent.pid": (read("sessions.agent:read_process", REFUSED),),
    "launch.error": (Reader("sessions.agent_process:_await_launcher"),),
    "prompt.md": (read("sessions.launch:read_first_prompt", REFUSED, b"Mend it.\n"),),
    "opening": Use.MARK,
    "wip.json": (read("issues.work.wip:read_saved"),),
    "plan.json": (read("sessions.plan:read_pending"),),
    "receipts.jsonl": (read("sessions.plan:read_receipts", REFUSED),),
    "issue.json": (read("issues.look.issue_text:read_taken"),),
    "issue-edited.json": (read("issues.look.issue_text:read_edited"),),
    "reviews.json": (read("issues.look.reviews:read_taken"),),
    "review-edited.json": (read("issues.look.reviews:read_edited"),),
    "pull-comments.json": (read("issues.look.discussion:read_heard_comments"),),
    "replies": Use.FOLDER,
    "asks": Use.FOLDER,
    "problem": (read("issues.act.problem:read_problem", REFUSED, b"cannot push: no\n"),),
    "next": (Reader("issues.act.reactor:_call_sooner"),),
    "watch": (Reader("sessions.account_faults:_watch"),),
    "shared": Use.SHELL,
    "seen": Use.MARK,
    "phase.seen": Use.MARK,
    "wake": Use.FIFO,
    "pass.answer": Use.FIFO,
    "pass.caller": Use.FIFO,
    "lock": Use.LOCK,
    "monitor.lock": Use.LOCK,
    "monitor.pid": Use.SHELL,
    "monitor.asked": Use.SHELL,
    "monitor.env": (Reader("sessions.monitors:_recall_environment"),),
    "monitor.stands-in": Use.MARK,
    "monitor.log": Use.LOG,
    "settings.json": Use.GIVEN,
    "system-prompt.md": Use.GIVEN,
    "state": (read("sessions.agent_state:read", good=b"busy 1700000000.0 c1 p1\n"),),
    "shown": (read("sessions.agent_state:read"),),
    "screen": (Reader("messages.screen_state:_watch_screen"),),
    "looked": (read_of("messages.unknown_screen:find", lambda session: session),),
    "events": (
        read("sessions.hook_events:read_events", good=b"1700000000.0 Stop c1 -\n"),
        read("sessions.hook_events:list_compactions", good=b"1700000000.0 PreCompact c1 auto\n"),
    ),
    "context": (read("sessions.window:read", good=b'{"transcript_path": "/x", "model": "m"}\n'),),
    "client": (read("sessions.agent:has_lost_client", REFUSED),),
    "stop": (
        read_of_turn("sessions.turn:read", State.IDLE, State.LIMITED),
        read_of_turn("sessions.turn:read_last_words", State.IDLE),
    ),
    "dialog": (
        read("sessions.turn:read_question"),
        read_of_turn("sessions.turn:read_dialog", State.DIALOG),
    ),
    "failure": (
        read_of_turn("sessions.turn:read", State.IDLE, State.LIMITED),
        read("sessions.turn:read_notice"),
    ),
    "usage": (read("context.usage:read", good=b"1700000000.0 c1 42 200000 - - - - 84000\n"),),
    "queue": Use.FOLDER,
    "quoted": Use.FOLDER,
    "delivery.lock": Use.LOCK,
    "expect": (Reader("messages.cancel:_expect_no_more"),),
    "offered": (read("messages.conversation:read_offers", REFUSED),),
    "accepted": Use.FOLDER,
    "steer": Use.SHELL,
    "interrupted.json": (Reader("messages.interrupt:_read_interrupted"),),
    "recalled": Use.MARK,
    "compacting": (read("sessions.window:is_compacting", good=b"NOW\n"),),
    "summed_up": (read("context.usage:read_summed_up", good=b"1000\n"),),
    "blocks": Use.SHELL,
    "hold": (read("messages.queue:read_passing_ids", COUNTS, b"m1\n"),),
    "handoff.json": (read("context.rotation_files:read_wish", REFUSED),),
    "rotation.json": (read("context.rotation_files:read_record", REFUSED),),
    "last-handoff": (
        read("context.rotation_files:read_last_document", good=b"/x/handoff.md\nc1\n"),
        read("context.rotation_files:load_last_document", REFUSED, b"/x/handoff.md\nc1\n"),
    ),
    "handoff.md": (Reader("views.documents:_find_copy"),),
    "handoff-next.md": Use.GIVEN,
    "threshold": (read("context.flags:read_wake_threshold", good=b"80\n"),),
    "context-flags.json": (read("context.flags:read_flags"),),
    "withheld.json": (read("context.progress:read_withheld", REFUSED),),
    "context-settings.json": (read("sessions.settings:read_own", REFUSED),),
    "transcript.log": Use.LOG,
    "typed.json": (read("messages.draft:read_last_typed"),),
    "notify": Use.FOLDER,
    "events.1": (read("sessions.hook_events:read_events", good=b"1700000000.0 Stop c1 -\n"),),
    "told": (read("sessions.hook_events:list_compactions", REFUSED),),
    "setup.log": Use.LOG,
    "setup.process": (Reader("adapters.shell_command:end_leftovers"),),
    "setup-failed": (Reader("issues.work.furnish:_set_up"),),
    "held-back": Use.MARK,
    "held-back.taken": (Reader("messages.follow_up:_read_held"),),
    "paused": (read("sessions.pause:read_mark", COUNTS),),
    "braked": (read("sessions.spending_hold:read", COUNTS),),
    "resumed": (read("sessions.pause:read_resumed_at", good=b"1700000000.0"),),
    "over": (Reader("sessions.address:check_living"),),
}
"""The files of a session."""

PROJECT: dict[str, Use | tuple[Reader, ...]] = {
    "ci": Use.FOLDER,
    "poll.lock": Use.LOCK,
    "polled": (read_of_project("issues.look.tick_record:read_polled"),),
    "poll.missed": (Reader("issues.act.holdups:_tell_of_silence"),),
    "forge.json": (read_of_project("issues.look.snapshot:last_snapshot"),),
    "forge-brought.json": (read_of_project("issues.look.look_share:read"),),
    "look-wanted": Use.MARK,
    "due": (Reader("issues.look.snapshot:_is_due"),),
    "turn": Use.MARK,
    "slots": Use.FOLDER,
    "slot-line": Use.FOLDER,
    "slots.lock": Use.LOCK,
    "slot-freed": Use.MARK,
    "placements": Use.FOLDER,
    "kept-messages.lock": Use.LOCK,
    "lost-messages.json": (read_of_project("plugins.hosts.messages.lost:list_recent", NOW),),
    "unconfirmed-replies": Use.FOLDER,
    "awaited-turns": Use.FOLDER,
    "placed-seen.json": (read_of_project("issues.placements:read_seen"),),
    "doubts.json": (read_of_project("issues.look.backlog:find_doubt", an_issue(1)),),
    "forge.lock": Use.LOCK,
    "verdicts.lock": Use.LOCK,
    "written": Use.MARK,
    "repository.json": (read_of_forge("read_known", "harbor/harb"),),
    "webhooks.json": (read_of_project("issues.look.webhooks:read_heard_webhooks"),),
    "shortage.json": (read_of("issues.look.room:_read", lambda session: session.project),),
    "shortage.told": (Reader("issues.act.holdups:_tell_of_shortages"),),
    "account.json": (read_of_forge("read_account"),),
    "strict-branches.json": (read_of_forge("is_strict", "main"),),
    "rules.json": (read_of_forge("read_rules"),),
    "ci-logs": Use.FOLDER,
    "quota.json": (
        read_of(
            "plugins.forges.web.ledger:read_book",
            lambda session: ForgeFiles(session.project.directory.path).quota,
        ),
    ),
    "quota.lock": Use.LOCK,
}
"""The files of a project, with those of a forge elsewhere."""


def test_each_file_has_a_row_and_each_row_a_file_and_a_reader() -> None:
    assert SESSION.keys() == set(layout(SessionDir))
    assert PROJECT.keys() == {*layout(ProjectDir), *layout(ForgeFiles)}
    for row in (*SESSION.values(), *PROJECT.values()):
        for reader in () if isinstance(row, Use) else row:
            find_function(reader.name)


# Damage


def is_link(path: Path, good: bytes) -> None:
    target = path.with_name("theirs")
    target.write_bytes(good)
    target.chmod(0o600)
    path.symlink_to(target)


def leads_nowhere(path: Path, good: bytes) -> None:
    path.symlink_to("nowhere")


def is_fifo(path: Path, good: bytes) -> None:
    os.mkfifo(path, 0o600)


def is_folder(path: Path, good: bytes) -> None:
    path.mkdir(0o700)


def has_another_name(path: Path, good: bytes) -> None:
    path.write_bytes(good)
    path.chmod(0o600)
    path.with_name("another-name").hardlink_to(path)


def is_of_another_user(path: Path, good: bytes) -> None:
    path.write_bytes(good)
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
IN_PLACE = [
    is_link,
    leads_nowhere,
    is_fifo,
    is_folder,
    has_another_name,
    pytest.param(is_of_another_user, marks=AS_ROOT),
]
CONTENT = {
    "empty": b"",
    "half": b'{"name": "a',
    "no text": b'\xff\x00{"[["\n' * 40,
    "another type": b"[1, null]\n",
    "endless": b"[" * 100_000 + b"\n",
    "a number of many digits": b"9" * 5000 + b"\n",
    "words": b"a b c d e f g h i j\n" * 3,
    "surrogates": b'{"transcript_path": "/a\\ud800b"}\n',
}


@pytest.fixture
def session(root: Root, tmp_path: Path) -> IssueSession:
    """A session on record, whose agent is idle."""
    made = put_session(open_project(sm_yaml(tmp_path)), 1)
    made.project.directory.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(made.dir.state, b"idle 1700000000.0 c1 p1\n")
    write(made.dir.opening, b"p0\n\n")
    return made


def write(path: Path, content: bytes) -> None:
    """A plain file of ours."""
    path.write_bytes(content)
    path.chmod(0o600)


def fill_in(good: bytes) -> bytes:
    """Content with the present time."""
    return good.replace(b"NOW", f"{time.time():.6f}".encode())


def clear(path: Path) -> None:
    """Remove whatever is there, and what stands beside it for the test."""
    for one in (path, path.with_name("another-name"), path.with_name("theirs")):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        one.unlink(missing_ok=True)


def rows(session: IssueSession) -> Iterator[tuple[Path, Reader]]:
    """Each file with each of its readers that can be called; the file is as it was between two."""
    for folder, table in ((session.dir.path, SESSION), (session.project.directory.path, PROJECT)):
        for name, row in table.items():
            for reader in () if isinstance(row, Use) else row:
                if not reader.call:
                    continue
                path = folder / name
                before = path.read_bytes() if path.exists() else None
                clear(path)
                yield path, reader
                clear(path)
                if before is not None:
                    write(path, before)


def try_to_read(session: IssueSession, path: Path, reader: Reader) -> object:
    """What the reader returns, or the error with which it refuses the file."""
    assert reader.call
    refusal = None
    try:
        return reader.call(session)
    except StateError as error:
        refusal = error
    assert str(path) in refusal.message, f"{reader.name} does not name '{path.name}'"
    return refusal


@pytest.mark.parametrize("damage", IN_PLACE)
def test_what_is_no_plain_file_of_ours_is_lost_refused_or_counts(
    session: IssueSession, damage: Callable[[Path, bytes], None]
) -> None:
    wrong = []
    for path, reader in rows(session):
        lost = try_to_read(session, path, reader)
        damage(path, fill_in(reader.good) or b"{}")
        found = try_to_read(session, path, reader)
        is_right = {
            Damaged.LOST: found == lost,
            Damaged.REFUSED: isinstance(found, StateError),
            Damaged.COUNTS: not isinstance(found, StateError) and found != lost,
        }
        if not is_right[reader.damaged]:
            wrong.append((path.name, reader.name, found))
    assert not wrong


@pytest.mark.parametrize("content", CONTENT)
def test_no_content_is_more_than_lost_or_refused(session: IssueSession, content: str) -> None:
    wrong = list[tuple[str, str, object]]()
    for path, reader in rows(session):
        lost = try_to_read(session, path, reader)
        write(path, CONTENT[content])
        found = try_to_read(session, path, reader)
        if isinstance(found, StateError) and reader.damaged is not Damaged.REFUSED:
            wrong.append((path.name, reader.name, found))
        if path.suffix == ".json" and reader.damaged is Damaged.LOST and found != lost:
            wrong.append((path.name, reader.name, found))
    assert not wrong


def test_what_is_whole_is_read(session: IssueSession) -> None:
    for path, reader in rows(session):
        lost = try_to_read(session, path, reader)
        if reader.good:
            write(path, fill_in(reader.good))
            assert try_to_read(session, path, reader) != lost, reader.name
