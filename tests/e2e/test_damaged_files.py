"""Every file of docs/STATE.md damaged, under a session that is at work.

What is in a file is damaged in one of four ways, and in each of them by bin/soak;
tests/store/test_state_files.py has the reader of each file and all ways.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.sessions import agent, monitors
from sm.store import journal
from sm.store.paths import PRIVATE, QUEUE, EntryKind, ProjectDir, Root, SessionDir, layout
from sm.views.event_words import describe, name_event
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import wait_for

Damage = Callable[[Path, bytes], object]


def is_empty(path: Path, before: bytes) -> None:
    path.write_bytes(b"")


def is_half(path: Path, before: bytes) -> None:
    path.write_bytes(before[: len(before) // 2] or b"{")


def is_garbage(path: Path, before: bytes) -> None:
    path.write_bytes(b'\xff\x00{"[["' * 40)


def is_of_another_type(path: Path, before: bytes) -> None:
    path.write_bytes(b"[1, null]\n")


def is_another_kind(path: Path, before: bytes) -> None:
    if path.is_dir():
        shutil.rmtree(path)
        path.write_bytes(b"in the way")
    else:
        path.unlink(missing_ok=True)
        path.mkdir()


def remove(path: Path) -> None:
    """Whatever is there; a pass that the monitor has asked for may just be writing below it."""

    def is_removed() -> bool:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return not os.path.lexists(path)

    wait_for(is_removed, f"{path.name} to be gone")


def leads_nowhere(path: Path, before: bytes) -> None:
    remove(path)
    path.symlink_to("nowhere")


def is_a_fifo(path: Path, before: bytes) -> None:
    remove(path)
    os.mkfifo(path, 0o600)


def may_not_be_used(path: Path, before: bytes) -> None:
    if path.exists():
        path.chmod(0o000)
    else:
        path.touch(0o000)  # at once: a file that holds nothing may be cleared


ALONE = {"identity.json", "over", "paused", "braked", "hold", "rotation.json", "poll.lock", "lock"}
"""Files whose damage changes what becomes of the others: they are damaged by themselves."""
TOGETHER = 8
"""As many others are damaged at once: tests/store/test_state_files.py has the reader of each."""

Ways = tuple[Damage, ...]
IN_A_FILE: Ways = (is_empty, is_half, is_garbage, is_of_another_type)
IN_PLACE: Ways = (is_another_kind, leads_nowhere, is_a_fifo, may_not_be_used)
WAYS: list[Ways] = [(one,) for one in IN_PLACE]
WAYS += [(one,) for one in IN_A_FILE] if "SM_SOAK_MESSAGES" in os.environ else [IN_A_FILE]
"""The ways of each journey, which its files have in turn."""


def places(root: Root, project: ProjectDir, session: SessionDir) -> dict[Path, EntryKind]:
    """Every name that docs/STATE.md has in the private directory, as test_docs.py has it."""
    found = {root.private / name: kind for name, kind in PRIVATE.items()}
    found |= {project.path / name: kind for name, kind in layout(ProjectDir).items()}
    found |= {session.path / name: kind for name, kind in layout(SessionDir).items()}
    return found | {session.queue / name: kind for name, kind in QUEUE.items()}


def gather(found: dict[Path, EntryKind], ways: Ways) -> list[dict[Path, Damage]]:
    """What is damaged at once, and how: a folder by itself, which has the others in it."""
    damage = {path: ways[number % len(ways)] for number, path in enumerate(found)}
    files = [path for path, kind in found.items() if kind is EntryKind.FILE]
    others = [path for path in files if path.name not in ALONE]
    single = [path for path in found if path not in others]
    if ways[0] in IN_A_FILE:
        single = [path for path in single if path in files]
    batches = [others[at : at + TOGETHER] for at in range(0, len(others), TOGETHER)]
    batches += [[path] for path in single]
    return [{path: damage[path] for path in batch} for batch in batches]


def look(stage: Stage) -> None:
    """What people look at, while it is damaged: no command ends as if that were unexpected."""
    config = ["--config", str(stage.config)]
    for argv in (["status", "--json"], ["children"], ["queue", "harb#1"], ["trace", "harb", "1"]):
        assert run([*config, *argv]) in (0, 1, 2)


def go_on(stage: Stage) -> None:
    """A tick, and a pass over the session."""
    config = ["--config", str(stage.config)]
    assert run([*config, "poll"]) == 0
    assert run([*config, "react", "harb", "1"]) == 0


def hears_of_ci(stage: Stage) -> bool:
    """Whether the agent has heard; ticks go on, because a lost `watch` leaves no other sign."""
    stage.poll()
    return any("CI passed for" in each for each in stage.told())


def keeps_its_monitor(stage: Stage) -> bool:
    """Whether a second tick finds the monitor that the first one has found or started."""
    stage.poll()
    wait_for(lambda: monitors.is_watched(stage.session(1)), "a monitor")
    return "restart the monitor" not in stage.poll().stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ways[0].__name__)
def test_no_damaged_file_stops_a_tick_a_session_or_its_agent(
    stage_of: MakeStage, ways: Ways
) -> None:
    stage = stage_of(settings={"max_sessions": 1})
    stage.file_issue()
    stage.poll()
    project, session = stage.project, stage.session(1)
    wait_for(lambda: stage.told(), "the first prompt")
    pid = stage.agent_pid(1)
    for batch in gather(places(project.root, project.directory, session.dir), ways):
        for path, damage in batch.items():
            damage(path, path.read_bytes() if path.is_file() else b"")
        look(stage)
        go_on(stage)
        for path in batch:
            if path.name in {"crash.log", "over"}:
                path.unlink(missing_ok=True)  # for the one a test fails; the other says it is over
        known = agent.load(stage.session(1).dir)
        assert known, batch
        assert known.pid == pid, batch
    told = [
        describe(event)
        for event in journal.read(project.root.journal)
        if name_event(event) == "problem"
    ]
    assert told
    stage.push_work(1)
    stage.write_phase(1, "PHASE:awaiting_ci")
    wait_for(lambda: hears_of_ci(stage), "CI")
    wait_for(lambda: keeps_its_monitor(stage), "a monitor that stays")
