from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.base.errors import StateError, TemporaryError
from sm.config.schema import Config
from sm.plugins.chat.checks import check_database
from sm.plugins.chat.threads.database import APPLICATION, LAYOUT, MIGRATIONS
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient, HandoffStatus
from sm.store import sqlite
from sm.store.sqlite import check_shared, open_shared
from tests.chance import dice

IS_ROOT = os.geteuid() == 0
NOBODY = 65534
Plain = Callable[[Path], sqlite3.Connection]


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    """As that user for a while, for whom permissions are in force where `user` is not root."""
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(before)


def as_root() -> contextlib.AbstractContextManager[None]:
    return acting_as(0)


@pytest.fixture
def mortal() -> Iterator[Path]:
    """A folder in which permissions are in force for this test, whoever runs it.

    What is to be imported is imported before: nobody else may be able to read it.
    """
    # Not below that of the test, which its owner alone may enter.
    with tempfile.TemporaryDirectory(prefix="sm-test-", dir="/tmp") as name:
        folder = Path(name)
        one_handoff(folder / "first" / "core.db")
        assert run(["bridge", "get", "hof_1", "--as", "chat"]) == 2
        if not IS_ROOT:
            yield folder
            return
        os.chown(folder, NOBODY, NOBODY)
        with acting_as(NOBODY):
            yield folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "core.db"


def one_handoff(path: Path) -> str:
    with open_bridge(path) as handoffs:
        return handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id


def read(path: Path, ident: str) -> list[str]:
    with open_bridge(path) as handoffs:
        return [entry.content for entry in handoffs.get(ident, HandoffClient.CODE).entries]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def plain() -> Iterator[Plain]:
    """Opens a database as any other program would, until the test ends."""
    with contextlib.ExitStack() as stack:
        yield lambda path: stack.enter_context(
            contextlib.closing(sqlite3.connect(path, isolation_level=None))
        )


def test_it_is_made_for_its_owner_alone(path: Path) -> None:
    one_handoff(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with open_shared(path, LAYOUT) as connection:
        connection.execute("BEGIN IMMEDIATE")
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        connection.execute("ROLLBACK")
    assert modes == {0o600}


def test_it_has_the_tables_of_the_source_and_is_in_wal_mode(path: Path, plain: Plain) -> None:
    one_handoff(path)
    connection = plain(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA user_version").fetchone() == (LAYOUT.version,)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(handoffs)")]
    assert columns == [
        *("id", "title", "project", "chat_last_seen", "code_last_seen"),
        *("status", "created_at", "updated_at"),
    ]
    columns = [row[1] for row in connection.execute("PRAGMA table_info(handoff_entries)")]
    assert columns[:6] == ["seq", "handoff_id", "from_client", "type", "content", "created_at"]


def test_what_was_answered_is_on_the_disk_and_belongs_to_a_handoff(path: Path) -> None:
    with open_shared(path, LAYOUT) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_one_of_the_first_version_is_brought_up_to_date(path: Path, plain: Plain) -> None:
    path.parent.mkdir(mode=0o700)
    connection = plain(path)
    connection.executescript(MIGRATIONS[0])
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("PRAGMA user_version = 1")
    ident = "hof_" + "x" * 21
    connection.execute(
        "INSERT INTO handoffs VALUES (?, 'old', NULL, 0, 0, 'active', '', '')", (ident,)
    )
    connection.execute(
        "INSERT INTO handoff_entries (handoff_id, from_client, type, content, created_at) "
        "VALUES (?, 'chat', 'task', 'from before', '')",
        (ident,),
    )
    connection.close()
    path.chmod(0o600)
    with open_bridge(path) as handoffs:
        handoffs.add(ident, EntryType.DONE, "now", HandoffClient.CODE, key="k")
        assert [entry.content for entry in handoffs.entries(ident)] == ["from before", "now"]


DOCUMENT = """
CREATE TABLE handoffs (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    project TEXT,
    chat_last_seen INTEGER DEFAULT 0,
    code_last_seen INTEGER DEFAULT 0,
    status TEXT DEFAULT 'active',
    created_at TEXT,
    updated_at TEXT
);
CREATE TABLE handoff_entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    handoff_id TEXT NOT NULL REFERENCES handoffs(id),
    from_client TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT
);
"""
"""The tables of the handoff system as its document prints them."""
OLD = "hof_" + "x" * 21


@pytest.fixture
def foreign(path: Path, plain: Plain, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A database that a server of one's own has made from the document."""
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(path))
    path.parent.mkdir(mode=0o700)
    connection = plain(path)
    connection.executescript(DOCUMENT)
    connection.execute("INSERT INTO handoffs (id, title) VALUES (?, 'old')", (OLD,))
    connection.execute(
        "INSERT INTO handoff_entries (handoff_id, from_client, type, content, created_at) "
        "VALUES (?, 'chat', 'task', 'from before', datetime('2026-01-22 14:30:00'))",
        (OLD,),
    )
    path.chmod(0o600)
    return connection


@pytest.mark.parametrize("version", [0, 7])
def test_one_with_the_document_s_own_tables_is_taken_over(
    path: Path, foreign: sqlite3.Connection, version: int
) -> None:
    foreign.execute(f"PRAGMA user_version = {version}")
    foreign.close()
    before = path.read_bytes()
    check_shared(path, LAYOUT)
    assert path.read_bytes() == before
    with open_bridge(path) as handoffs:
        handoffs.add(OLD, EntryType.DONE, "now", HandoffClient.CODE, key="k")
        thread = handoffs.get(OLD, HandoffClient.CHAT)
    assert [entry.content for entry in thread.entries] == ["from before", "now"]
    assert thread.entries[0].created_at == "2026-01-22T14:30:00.000Z"
    assert thread.handoff.updated_at.endswith("Z")
    assert (thread.handoff.status, thread.handoff.chat_last_seen) == (HandoffStatus.ACTIVE, 0)
    [copy] = path.parent.glob("core.db.*.backup")
    [told] = check_database(Config(source=path, projects=(), bridge_database=path))
    assert f"as another program had made it: '{copy}'" in told.what
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("SELECT content FROM handoff_entries").fetchall() == [("from before",)]
        assert kept.execute("PRAGMA user_version").fetchone() == (version,)
        assert len(kept.execute("PRAGMA table_info(handoff_entries)").fetchall()) == 6
    one_handoff(path)
    assert len(list(path.parent.glob("*.backup"))) == 1


def test_its_own_server_may_go_on_with_one_that_was_taken_over(
    path: Path, foreign: sqlite3.Connection
) -> None:
    assert read(path, OLD) == ["from before"]
    foreign.execute(
        "INSERT INTO handoff_entries (handoff_id, from_client, type, content) "
        "VALUES (?, 'code', 'done', 'meanwhile')",
        (OLD,),
    )
    foreign.execute("UPDATE handoffs SET chat_last_seen = NULL, status = NULL")
    assert read(path, OLD) == ["from before", "meanwhile"]


def test_one_that_many_take_over_at_once_is_copied_once(
    path: Path, foreign: sqlite3.Connection
) -> None:
    foreign.close()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read(path, OLD), range(8)))
    assert found == [["from before"]] * 8
    assert len(list(path.parent.glob("*.backup"))) == 1


MORE = """
ALTER TABLE handoffs ADD COLUMN owner TEXT;
ALTER TABLE handoff_entries ADD COLUMN weight INTEGER NOT NULL DEFAULT 3;
CREATE TABLE notes (id INTEGER PRIMARY KEY, handoff TEXT REFERENCES handoffs(id), text TEXT);
CREATE VIRTUAL TABLE found USING fts5(text);
CREATE VIEW seen AS SELECT id FROM handoffs;
CREATE TABLE audit (what TEXT);
CREATE TRIGGER noted AFTER INSERT ON handoff_entries BEGIN INSERT INTO audit VALUES (new.type); END;
CREATE TRIGGER moved AFTER UPDATE ON handoff_entries BEGIN INSERT INTO audit VALUES ('moved'); END;
INSERT INTO notes (handoff, text) VALUES ('hof_abc123', 'kept');
PRAGMA application_id = 5;
PRAGMA user_version = 7;
"""
"""What a server of one's own may keep beside the document's tables."""


def theirs(foreign: sqlite3.Connection) -> list[object]:
    """What another thread, and another program's tables, hold."""
    asked = (
        f"SELECT * FROM handoffs WHERE id = '{OLD}'",
        "SELECT seq, handoff_id, from_client, type, content, created_at, weight "
        f"FROM handoff_entries WHERE handoff_id = '{OLD}'",
        "SELECT * FROM notes",
        "SELECT * FROM seen",
    )
    return [foreign.execute(each).fetchall() for each in asked]


@pytest.mark.parametrize("ident", ["hof_abc123", "7", "Ünï côde", "x'; DROP TABLE handoffs; --"])
def test_one_with_more_than_the_document_s_tables_is_used_as_it_is(
    path: Path, foreign: sqlite3.Connection, ident: str, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.execute("INSERT INTO handoffs (id, title, status) VALUES (?, 'theirs', NULL)", (ident,))
    foreign.executescript(MORE)
    before = theirs(foreign)
    assert run(["bridge", "add", ident, "done", "ours"]) == 0
    assert run(["bridge", "get", ident, "--json"]) == 0
    [entry] = json.loads(capsys.readouterr().out.partition("\n")[2])["entries"]
    assert (entry["handoff_id"], entry["content"]) == (ident, "ours")
    assert theirs(foreign) == before
    assert foreign.execute("SELECT what FROM audit").fetchall() == [("done",)]
    assert foreign.execute("PRAGMA application_id").fetchone() == (5,)
    assert foreign.execute("PRAGMA user_version").fetchone() == (7,)
    assert len(list(path.parent.glob("*.backup"))) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("CREATE TABLE handoff_bindings (x)", "it has 'handoff_bindings', which sm would add"),
        ("ALTER TABLE handoff_entries ADD COLUMN key BLOB", "has a column 'key'"),
        (
            "DROP TABLE handoff_entries; CREATE TABLE handoff_entries (seq TEXT PRIMARY KEY, "
            "handoff_id TEXT, from_client TEXT, type TEXT, content TEXT, created_at TEXT)",
            "'seq' of handoff_entries is no INTEGER PRIMARY KEY",
        ),
        (
            "DROP TABLE handoffs; CREATE TABLE handoffs (id TEXT PRIMARY KEY, title, project, "
            "chat_last_seen, code_last_seen, status, created_at, updated_at, owner TEXT NOT NULL)",
            "'owner' of handoffs needs a value",
        ),
        (
            "DROP TABLE handoffs; CREATE TABLE handoffs (id TEXT, title, project, "
            "chat_last_seen, code_last_seen, status, created_at, updated_at)",
            "'id' is not the primary key of handoffs",
        ),
        (
            "DROP TABLE handoffs; CREATE TABLE handoffs (id TEXT PRIMARY KEY, title, project TEXT "
            "NOT NULL DEFAULT '', chat_last_seen, code_last_seen, status, created_at, updated_at)",
            "'project' of handoffs needs a value",
        ),
        ("ALTER TABLE handoffs DROP COLUMN status", "is the database of another program"),
    ],
)
def test_one_that_sm_cannot_write_to_is_left_alone_and_says_why(
    path: Path, foreign: sqlite3.Connection, change: str, why: str
) -> None:
    foreign.execute("PRAGMA foreign_keys = OFF")
    foreign.executescript(change)
    foreign.close()
    before = contents(path.parent)
    with pytest.raises(StateError, match=why):
        one_handoff(path)
    assert contents(path.parent) == before


def test_a_row_that_means_nothing_here_is_named_and_all_stays_as_it_is(
    path: Path, foreign: sqlite3.Connection
) -> None:
    foreign.execute("UPDATE handoff_entries SET type = 'wish'")
    with pytest.raises(StateError, match="a row has 'wish' where only context, task, "):
        one_handoff(path)
    assert not list(path.parent.glob("*.backup"))
    assert foreign.execute("SELECT type, created_at FROM handoff_entries").fetchall() == [
        ("wish", "2026-01-22 14:30:00")
    ]
    assert len(foreign.execute("PRAGMA table_info(handoff_entries)").fetchall()) == 6


def test_a_newer_version_is_left_alone(path: Path, plain: Plain) -> None:
    one_handoff(path)
    connection = plain(path)
    connection.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StateError, match=r"newer sm \(version 3, this one knows 2\): update sm"):
        one_handoff(path)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(path: Path, plain: Plain) -> None:
    path.parent.mkdir(mode=0o700)
    connection = plain(path)
    connection.execute("CREATE TABLE handoffs (id)")
    connection.close()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(StateError, match="is the database of another program"):
        one_handoff(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [b"no database at all, but longer than a header" * 99, b"x"])
def test_a_damaged_file_is_named_and_not_overwritten(path: Path, damage: bytes) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(damage)
    path.chmod(0o600)
    with pytest.raises(StateError, match=r"is damaged: nothing was written; put a copy"):
        one_handoff(path)
    assert path.read_bytes() == damage


def test_a_page_that_was_overwritten_is_found(path: Path) -> None:
    with open_bridge(path) as handoffs:
        ident = handoffs.create("t", "x" * 50_000, client=HandoffClient.CHAT).handoff.id
    content = bytearray(path.read_bytes())
    content[4096:] = dice(2).randbytes(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StateError, match="is damaged"), open_bridge(path) as handoffs:
        handoffs.get(ident, HandoffClient.CODE)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        "handoffs SET status = 'actiwe'",
        "handoffs SET code_last_seen = 'x'",
        "handoff_entries SET type = 'tbsk'",
        "handoff_entries SET content = x'6300ff'",
    ],
)
def test_a_row_that_nobody_can_have_written_is_damage(path: Path, damage: str) -> None:
    ident = one_handoff(path)
    with open_shared(path, LAYOUT) as connection:
        connection.execute(f"UPDATE {damage}")
    with pytest.raises(StateError, match=f"'{path}' is damaged: nothing was written"):
        read(path, ident)


@pytest.mark.parametrize("what", ["link", "folder", "open file", "open folder"])
def test_what_is_not_ours_alone_is_refused(path: Path, what: str) -> None:
    one_handoff(path)
    if what == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to(path.with_name("elsewhere"))
    elif what == "folder":
        path.unlink()
        path.mkdir()
    else:
        (path if what == "open file" else path.parent).chmod(0o777)
    with pytest.raises(StateError):
        one_handoff(path)


def test_a_folder_that_cannot_be_written_is_named(mortal: Path) -> None:
    path = mortal / "folder" / "core.db"
    ident = one_handoff(path)
    before = contents(path.parent)
    path.parent.chmod(0o500)
    for use in (lambda: one_handoff(path), lambda: read(path, ident)):
        with pytest.raises(StateError, match=f"cannot write '{path}', or beside it: .* permiss"):
            use()
    assert contents(path.parent) == before
    path.parent.chmod(0o700)
    assert read(path, ident) == ["c"]


def test_a_file_that_cannot_be_written_can_be_read(mortal: Path) -> None:
    path = mortal / "folder" / "core.db"
    ident = one_handoff(path)
    before = path.read_bytes()
    path.chmod(0o400)
    with pytest.raises(StateError, match=f"cannot write '{path}', or beside it: attempt to write"):
        one_handoff(path)
    assert read(path, ident) == ["c"]
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_made_is_named(mortal: Path) -> None:
    (mortal / "folder").mkdir(mode=0o500)
    for path, what in (
        (mortal / "folder" / "core.db", f"cannot create '{mortal}/folder/core.db'"),
        (mortal / "folder" / "sm" / "core.db", f"cannot make '{mortal}/folder/sm'"),
        (Path("/proc/core.db"), "'/proc/core.db'"),
    ):
        with pytest.raises(StateError, match=what):
            one_handoff(path)


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a file of somebody else's")
def test_the_file_of_somebody_else_is_left_alone(mortal: Path) -> None:
    path = mortal / "folder" / "core.db"
    one_handoff(path)
    before = path.read_bytes()
    with as_root():
        os.chown(path, 0, 0)
    with pytest.raises(StateError, match=f"'{path}'"):
        one_handoff(path)
    with as_root():
        assert path.read_bytes() == before
        path.chmod(0o666)
    with pytest.raises(StateError, match=f"'{path}' is not owned by you"):
        one_handoff(path)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder away")
def test_the_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "core.db"
    one_handoff(path)
    os.chown(path.parent, NOBODY, NOBODY)
    with pytest.raises(StateError, match=f"'{path.parent}' can be written by other users"):
        one_handoff(path)


def test_the_command_says_what_cannot_be_written(
    mortal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mortal / "folder" / "core.db"
    monkeypatch.chdir(mortal)
    for name in ("HOME", "SM_STATE_ROOT"):
        monkeypatch.setenv(name, str(mortal / name))
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(path))
    ident = one_handoff(path)
    path.parent.chmod(0o500)
    for args in (("add", ident, "task", "x"), ("get", ident), ("create", "t", "c")):
        assert run(["bridge", *args]) == 1
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert stderr.startswith(f"sm: cannot write '{path}', or beside it: ")
        assert stderr.count("\n") == 1
    path.parent.chmod(0o700)
    assert read(path, ident) == ["c"]


def test_who_holds_it_too_long_is_told_of(
    path: Path, monkeypatch: pytest.MonkeyPatch, plain: Plain
) -> None:
    one_handoff(path)
    other = plain(path)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite, "BUSY_S", 0.1)  # else it is waited for half a minute
    with pytest.raises(TemporaryError, match=r"was in use for 0\.1 s: try again"):
        one_handoff(path)
    other.execute("ROLLBACK")
    one_handoff(path)


def test_a_reader_does_not_wait_for_a_writer(path: Path, plain: Plain) -> None:
    ident = one_handoff(path)
    other = plain(path)
    other.execute("BEGIN IMMEDIATE")
    with open_bridge(path) as handoffs:
        assert handoffs.get(ident, HandoffClient.CODE).new_entries
    other.execute("ROLLBACK")


def test_opening_it_once_more_takes_no_lock_away(path: Path) -> None:
    ident = one_handoff(path)
    program = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute({!r}); db.close()"
    with open_shared(path, LAYOUT):
        read(path, ident)
        # Whoever believes to be the last one here deletes the journal that others write to.
        argv = [sys.executable, "-c", program.format("SELECT * FROM handoffs"), str(path)]
        subprocess.run(argv, check=True)
        assert path.with_name("core.db-wal").exists()


def test_what_is_being_made_is_not_taken_for_another_programs(tmp_path: Path) -> None:
    calls = 8
    with ThreadPoolExecutor(calls) as threads:
        for number in range(25):
            path = tmp_path / str(number) / "core.db"
            at_once = threading.Barrier(calls)

            def make(_: int, path: Path = path, at_once: threading.Barrier = at_once) -> None:
                at_once.wait()
                one_handoff(path)

            list(threads.map(make, range(calls)))


def test_many_may_make_it_at_once(path: Path, plain: Plain) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from sm.plugins.chat.threads.handoffs import open_bridge\n"
        "from sm.plugins.chat.threads.records import HandoffClient\n"
        "with open_bridge(Path(sys.argv[1])) as handoffs:\n"
        "    handoffs.create('t', 'c', client=HandoffClient.CODE)\n"
    )
    argv = [sys.executable, "-c", program, str(path)]
    started = [subprocess.Popen(argv, stderr=subprocess.PIPE) for _ in range(8)]
    failed = [said for one in started if (said := one.communicate()[1]) or one.returncode]
    assert not failed
    assert plain(path).execute("SELECT count(*) FROM handoffs").fetchone() == (8,)
