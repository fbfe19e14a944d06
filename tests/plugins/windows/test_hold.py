"""What sessions have told of their windows holds all sessions of the account, and no others."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from sm.adapters.agent.codex import CODEX
from sm.config.load import load_machine
from sm.issues import meters
from sm.issues.rules import allowance
from sm.issues.rules.allowance import Allowance
from sm.plugins.windows import figures
from sm.plugins.windows.figures import locate
from sm.sessions import registry
from sm.sessions.failure import parse_usage
from sm.sessions.machine import Machine
from sm.sessions.session import IssueSession
from sm.store.paths import Root, SessionDir
from tests.adapters.agent.test_codex_rollout import PRIMARY, SECONDARY, line
from tests.chance import dice
from tests.e2e.stage import Stage, make_stage
from tests.helpers import put_session
from tests.residents import settle

HOUR_S = 3600
NOW = int(time.time())
RESET = (NOW // 600 + 13) * 600
SETTINGS = {"limits": {"hold": 90}, "profiles": {"generic": {"spending": "claude"}}}
"""The puppet's client seems to keep records."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two looks of a test are one."""
    monkeypatch.setattr(figures, "AGAIN_S", -1.0)


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    return make_stage(tmp_path, auto=False, settings=SETTINGS)


def begin(stage: Stage, folder: Path) -> IssueSession:
    """A session whose client keeps all in `folder`, and has answered nothing yet."""
    session = put_session(stage.project, stage.file_issue())
    transcript = folder / "projects" / "-work" / f"{session.issue}.jsonl"
    told = {"session_id": f"c{session.issue}", "transcript_path": str(transcript)}
    session.dir.context.write_text(json.dumps(told))
    return session


def tell(session: IssueSession, figures: str, at: float = NOW) -> None:
    """The status line's hook writes its line."""
    session.dir.usage.write_text(f"{at:.6f} c 10 200000 {figures} 20000\n".ljust(160))
    os.utime(session.dir.usage, (at, at))


def read(session: IssueSession) -> Allowance | None:
    """What holds it."""
    found = meters.read_allowance(session)
    return found if found and found.stage is allowance.LimitStage.HELD else None


def test_what_one_session_tells_holds_all_of_its_account(stage: Stage, tmp_path: Path) -> None:
    one, two = (begin(stage, tmp_path / "a") for _ in range(2))
    other = begin(stage, tmp_path / "b")
    assert read(one) is None
    tell(one, f"94 {RESET} 41 {RESET + 86400}")
    tell(other, f"12 {RESET} - -")
    held = read(two)
    assert held
    assert held.shown == "five hours: 94 % used"
    assert held == read(one)
    assert read(other) is None
    assert locate().stat().st_mode & 0o777 == 0o600


def test_no_session_of_sm_new_is_held_and_what_it_tells_holds_others(
    stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text(json.dumps({**SETTINGS, "projects": []}))
    machine = Machine(*load_machine(file, os.environ, tmp_path))
    ann = settle(stage.project.root, tmp_path, "s-000000aa").provide(machine=machine)
    transcript = tmp_path / "a" / "projects" / "-work" / "ann.jsonl"
    told = {"session_id": "ann", "transcript_path": str(transcript)}
    ann.dir.context.write_text(json.dumps(told))
    ann.dir.context.chmod(0o600)
    ann.dir.usage.write_text(f"{NOW:.6f} c 10 200000 94 {RESET} - - 20000\n".ljust(160))
    found = meters.read_allowance(ann)
    assert found
    assert found.stage is allowance.LimitStage.FREE
    held = read(begin(stage, tmp_path / "a"))
    assert held
    assert held.shown == "five hours: 94 % used"


@pytest.mark.parametrize("reread", [0, 16])
def test_a_newer_figure_frees_it_and_one_that_is_only_shown_again_does_not(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reread: int
) -> None:
    monkeypatch.setattr(figures, "REREAD", reread)
    old, new, older = (begin(stage, tmp_path / "a") for _ in range(3))
    tell(old, f"40 {RESET} - -", NOW - 600)
    assert read(old) is None
    tell(new, f"94 {RESET} - -", NOW - 60)
    assert read(old)
    tell(old, f"40 {RESET} - -", NOW - 30)  # its client draws the line anew
    assert read(old)
    tell(older, f"30 {RESET} - -", NOW - 90)
    assert read(old)
    tell(old, f"41 {RESET} - -", NOW - 20)
    assert read(new) is None


def test_a_window_that_is_not_told_of_any_more_ends_with_its_reset(
    stage: Stage, tmp_path: Path
) -> None:
    session = begin(stage, tmp_path / "a")
    tell(session, f"94 {RESET} 12 {RESET}", NOW - 9)
    assert read(session)
    tell(session, f"- - 12 {RESET}", NOW - 5)
    assert read(session)
    tell(session, f"3 {RESET} - -", NOW - 1)
    assert read(session) is None


def test_figures_outlive_their_session_and_the_state(stage: Stage, tmp_path: Path) -> None:
    gone, later = (begin(stage, tmp_path / "a") for _ in range(2))
    tell(gone, f"94 {RESET} - -")
    assert read(gone)
    gone.dir.usage.unlink()
    gone.dir.path.rename(tmp_path / "gone")
    assert read(later)
    tell(later, "- - - -")
    assert read(later)
    assert str(gone.dir.path) not in locate().read_text()


def test_sessions_of_the_account_are_looked_at_when_it_is_held_and_when_it_is_not(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[SessionDir] = []
    monkeypatch.setattr(registry, "poke", woken.append)
    one, two = (begin(stage, tmp_path / "a") for _ in range(2))
    other = begin(stage, tmp_path / "b")
    for session in (one, two, other):
        tell(session, f"12 {RESET} - -", NOW - 100)
    steps = (
        *((89, RESET, False), (91, RESET, True), (95, RESET + 1, False)),
        *((95, RESET - HOUR_S, True), (96, RESET - HOUR_S, False), (97, RESET, True)),
        *((3, RESET, True), (4, RESET, False)),
    )
    for number, (percent, resets_at, is_new) in enumerate(steps):
        woken.clear()
        tell(one, f"{percent} {resets_at} - -", NOW - 99 + number)
        read(one)
        assert bool(woken) is is_new, (percent, resets_at)
        assert set(woken) <= {one.dir, two.dir}
        assert len(woken) in (0, 2)


def test_a_turn_is_looked_at_only_while_it_may_come_to_the_limit(
    stage: Stage, tmp_path: Path
) -> None:
    session = begin(stage, tmp_path / "a")
    for told, is_watched in (
        ("", True),  # its first answer may tell anything
        ("- - - -", False),
        (f"79 {RESET} - -", False),
        (f"81 {RESET} 12 {RESET}", True),
        (f"12 {RESET} 89 {RESET}", True),
    ):
        if told:
            tell(session, told, NOW + len(told))
        found = meters.read_allowance(session)
        assert bool(found) is is_watched
        assert found is None or found.stage is allowance.LimitStage.FREE
        assert meters.find_objection(stage.project) is None


def test_after_the_reset_figures_are_void(stage: Stage, tmp_path: Path) -> None:
    session = begin(stage, tmp_path / "a")
    tell(session, f"94 {NOW - 60} 12 {RESET}")
    assert read(session) is None


def test_another_login_frees_it(stage: Stage, tmp_path: Path) -> None:
    state = tmp_path / ".claude.json"
    state.write_text('{"oauthAccount": {"accountUuid": "a-1"}}')
    session = begin(stage, tmp_path / ".claude")
    tell(session, f"94 {RESET} - -")
    assert read(session)
    state.write_text("")  # just being written
    assert read(session)
    state.write_text('{"oauthAccount": {"accountUuid": "b-2"}}')
    assert read(session) is None


def test_no_issue_is_begun_for_an_account_that_is_held(
    stage: Stage, tmp_path: Path, sealed: Path
) -> None:
    assert meters.find_objection(stage.project) is None
    session = begin(stage, sealed / ".claude")
    tell(session, f"94 {RESET} - -")
    held = meters.find_objection(stage.project)
    assert held
    assert held.shown == "five hours: 94 % used"
    other = begin(stage, tmp_path / "elsewhere")
    assert read(other) is None


def test_a_wrapper_that_chooses_the_account_is_known_by_its_sessions(
    stage: Stage, tmp_path: Path
) -> None:
    session = begin(stage, tmp_path / "chosen")
    tell(session, f"94 {RESET} - -")
    assert meters.find_objection(stage.project)


def test_what_codex_tells_in_its_rollout_counts_in_the_same_way(
    stage: Stage, tmp_path: Path
) -> None:
    session = begin(stage, tmp_path / "unused").provide(profile=CODEX)
    rollout = tmp_path / "codex" / "sessions" / "2026" / "11" / "28" / "rollout-1.jsonl"
    rollout.parent.mkdir(parents=True)
    session.dir.context.write_text(json.dumps({"session_id": "c", "transcript_path": str(rollout)}))
    assert read(session) is None
    rollout.write_text(line(PRIMARY | {"resets_at": RESET}, SECONDARY | {"resets_at": RESET + 9}))
    held = read(session)
    assert held
    assert held.shown == "five hours: 94 % used"
    said = session.dir.usage.read_text()
    assert parse_usage(said).five_hours.resets_at == RESET
    written = session.dir.usage.stat().st_mtime_ns
    assert read(session) == held
    assert session.dir.usage.stat().st_mtime_ns == written


def test_without_the_setting_nothing_is_read_or_written(tmp_path: Path, root: Root) -> None:
    stage = make_stage(tmp_path, auto=False)
    session = begin(stage, tmp_path / "a")
    tell(session, f"100 {RESET} 100 {RESET}")
    assert meters.read_allowance(session) is None
    assert meters.find_objection(stage.project) is None
    assert not locate().exists()


def test_a_file_that_is_damaged_is_made_anew(stage: Stage, tmp_path: Path) -> None:
    session = begin(stage, tmp_path / "a")
    tell(session, f"94 {RESET} - -")
    held = read(session)
    assert held
    for damage in ("", "{", "[1]", '{"accounts": {"x": 5}}'):
        locate().write_text(damage)
        assert read(session) == held


def test_a_full_disk_does_not_free_what_is_known(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_more: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(figures, "write_json", fail)
    session = begin(stage, tmp_path / "a")
    tell(session, f"94 {RESET} - -")
    assert read(session)
    assert not locate().exists()


def test_killed_passes_leave_what_was_told(stage: Stage, tmp_path: Path) -> None:
    """Sixteen of them at once, each of which is killed somewhere."""
    sessions = [begin(stage, tmp_path / "a") for _ in range(4)]
    chance = dice(1)
    for number in range(16):
        tell(sessions[number % 4], f"{50 + number} {RESET} - -", NOW - 100 + number)
        child = os.fork()
        if not child:
            while True:
                figures.gather(stage.project.root, 90)
                os.utime(sessions[0].dir.usage)
        time.sleep(chance.random() / 50)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    tell(sessions[3], f"94 {RESET} - -", time.time())
    assert read(sessions[0])
    found = json.loads(locate().read_text())
    assert len(found["sessions"]) == 4
