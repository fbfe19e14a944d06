from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sm.base.errors import SmError, StateError, UsageError
from sm.sessions import registry
from sm.store.paths import Root
from tests.helpers import HANG_S
from tests.terminal import make_session


def test_a_session_is_loaded_as_it_was_created(root: Root, tmp_path: Path) -> None:
    session = make_session(root, tmp_path / 'it\'s a "work" tree')
    assert registry.create(root, session) == session
    assert registry.load(root, session.name) == session
    assert session.dir.path.stat().st_mode & 0o777 == 0o700
    assert session.dir.identity.stat().st_mode & 0o777 == 0o600


def test_a_session_on_record_is_not_overwritten(root: Root, tmp_path: Path) -> None:
    first = registry.create(root, make_session(root, tmp_path / "w"))
    assert registry.create(root, first.change(title="Other")) == first


def test_an_unknown_session_is_a_clear_error(root: Root) -> None:
    with pytest.raises(UsageError, match="no session 'dev-x-1'"):
        registry.load(root, "dev-x-1")
    with pytest.raises(UsageError, match="cannot be a file name"):
        registry.load(root, "../x")
    assert registry.list_all(root) == []


def test_a_damaged_session_is_reported_and_the_others_go_on(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [registry.create(root, make_session(root, tmp_path / "w", issue)) for issue in (1, 3)]
    bad = registry.create(root, make_session(root, tmp_path / "w", 2))
    bad.dir.identity.write_text('{"name": 5')
    linked = registry.create(root, make_session(root, tmp_path / "w", 4))
    linked.dir.identity.rename(tmp_path / "elsewhere")
    linked.dir.identity.symlink_to(tmp_path / "elsewhere")
    (root.sessions / "dev-just-being-created").mkdir()
    reported: list[SmError] = []
    assert registry.list_all(root, reported.append) == good
    assert [type(error) for error in reported] == [StateError, StateError]
    registry.list_all(root)
    assert "sm: '" in capsys.readouterr().err


def test_forgetting_leaves_nothing_behind(root: Root, tmp_path: Path) -> None:
    session = registry.create(root, make_session(root, tmp_path / "w", 7))
    other = registry.create(root, make_session(root, tmp_path / "w", 8))
    mine = [
        root.phase("harb", 7),
        root.ci_result("harb", 7),
        root.renotify("harb", 7),
        root.terminal_log("harb", 7),
        root.idle_marker(session.name),
    ]
    for path in [*mine, root.phase("harb", 8)]:
        path.write_text("x")
    registry.forget(root, session)
    left = {str(path.relative_to(root.path)) for path in root.path.rglob("*harb*")}
    assert left == {"dev-session-harb-8.phase", f"sm-{os.geteuid()}/sessions/{other.name}"}
    assert registry.list_all(root) == [other]


def test_the_remnant_of_an_interrupted_removal_is_no_session_and_is_cleared(
    root: Root, tmp_path: Path
) -> None:
    session = registry.create(root, make_session(root, tmp_path / "w"))
    session.dir.path.rename(root.sessions / f"{registry.REMOVED}{session.name}-1")
    assert registry.list_all(root) == []
    registry.sweep(root)
    assert list(root.sessions.iterdir()) == []


def test_a_link_in_place_of_a_protocol_file_is_removed_not_followed(
    root: Root, tmp_path: Path
) -> None:
    session = registry.create(root, make_session(root, tmp_path / "w"))
    target = tmp_path / "precious"
    target.write_text("x")
    root.phase("harb", 7).symlink_to(target)
    registry.forget(root, session)
    assert target.exists()
    assert not root.phase("harb", 7).is_symlink()


def test_a_poke_wakes_a_listener_and_never_waits_without_one(root: Root, tmp_path: Path) -> None:
    session = make_session(root, tmp_path / "w")
    registry.poke(session.dir)
    registry.create(root, session)
    registry.poke(session.dir)
    heard: list[bytes] = []
    listener = os.open(session.dir.wake, os.O_RDWR)
    reader = threading.Thread(target=lambda: heard.append(os.read(listener, 1)))
    reader.start()
    registry.poke(session.dir)
    reader.join(HANG_S)
    for _ in range(70_000 // 16):  # a full pipe is no reason to wait either
        registry.poke(session.dir)
    os.close(listener)
    assert heard == [b"\n"]


def test_something_else_in_place_of_the_fifo_makes_room_for_one(root: Root, tmp_path: Path) -> None:
    session = registry.create(root, make_session(root, tmp_path / "w"))
    session.dir.wake.unlink()
    session.dir.wake.write_text("")
    registry.create(root, session)
    assert session.dir.wake.is_fifo()
