"""The record of rotations: what an entry says, how often cycles came, what is damaged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.base.errors import StateError
from sm.context import decide, health_log
from sm.context.health_log import (
    CODES,
    HOUR_S,
    RAISED,
    RotationOutcome,
    find_code,
    judge_error,
    make_entry,
)
from sm.context.rotation import Cause, RotationRecord, RotationStage, begin
from sm.store import journal
from sm.store.paths import Root
from tests.helpers import HANG_S, REPOSITORY, wait_for

NOW = 1_767_000_000.0
STEPS = (
    *(
        (RotationStage.REQUEST, NOW - 60.0),
        (RotationStage.DOCUMENT, NOW - 59.5),
        (RotationStage.QUIET, NOW - 10.0),
    ),
    *(
        (RotationStage.CLEAR, NOW - 9.0),
        (RotationStage.RESUME, NOW - 8.5),
        (RotationStage.VERIFY, NOW - 8.0),
    ),
)


def rotation(ident: str = "r1", cause: Cause = Cause.CYCLE) -> RotationRecord:
    """One that began a minute ago and has come to its last step."""
    begun = begin(ident, cause, NOW - 60, "context")
    return structs.replace(
        begun, percent=87.0, document="/x/handoff-1.md", step=RotationStage.VERIFY, steps=STEPS
    )


def entry(ident: str = "r1", at: float = NOW, **words: str) -> RotationOutcome:
    cause = Cause(words.pop("cause", Cause.CYCLE))
    known = {"project": "harb", "session": "dev-harb-7"}
    return make_entry(rotation(ident, cause), at, **(known | words))


def test_a_finished_rotation_is_recorded_as_the_source_has_it(root: Root) -> None:
    assert health_log.append(root, entry())
    written = json.loads(root.health.read_text())
    assert written == {
        "rotation": "r1",
        "at": NOW,
        "project": "harb",
        "session": "dev-harb-7",
        "check_type": "handoff",
        "status": "unconfirmed",
        "details": {
            "cause": "cycle",
            "context_at_trigger": 87.0,
            "handoff_file": "/x/handoff-1.md",
            "cycle_duration_ms": 60_000,
            "steps": [
                {"step": "request", "at": NOW - 60, "duration_ms": 500, "outcome": "ok"},
                {"step": "document", "at": NOW - 59.5, "duration_ms": 49_500, "outcome": "ok"},
                {"step": "quiet", "at": NOW - 10, "duration_ms": 1000, "outcome": "ok"},
                {"step": "clear", "at": NOW - 9, "duration_ms": 500, "outcome": "ok"},
                {"step": "resume", "at": NOW - 8.5, "duration_ms": 500, "outcome": "ok"},
                {"step": "verify", "at": NOW - 8, "duration_ms": 8000, "outcome": "ok"},
            ],
            "context_fraction": 0.87,
            "error": "",
            "task": "",
        },
        "action_taken": "Automated handoff cycle completed successfully",
        "result": "ok",
        "error_code": "",
    }


def test_one_that_was_given_up_says_where_and_why(root: Root) -> None:
    health_log.append(root, entry(error="nothing shows that it goes on"))
    (written,) = health_log.read_recent(root)
    assert (written.status, written.action_taken) == ("failed", "Manual intervention required")
    assert (written.result, written.error_code) == ("critical", "no_sign_of_life")
    assert written.details.error == "nothing shows that it goes on"
    assert [stage.outcome for stage in written.details.steps] == ["ok"] * 5 + ["failed"]


@pytest.mark.parametrize(
    ("changes", "error", "status"),
    [
        ({"task": "tokens", "went_on": True}, "", "confirmed"),
        ({"went_on": True}, "", "unconfirmed"),
        ({}, "", "unconfirmed"),
        ({"went_on": True}, "it has not named its task", "unconfirmed"),
        ({}, "nothing shows that it goes on", "failed"),
    ],
)
def test_only_an_agent_that_has_named_its_task_is_confirmed(
    root: Root, changes: dict[str, object], error: str, status: str
) -> None:
    record = structs.replace(rotation(), **changes)
    health_log.append(root, make_entry(record, NOW, project="", session="s-1", error=error))
    (written,) = health_log.read_recent(root)
    assert (written.status, written.details.error) == (status, error)


def test_every_error_has_a_code_that_stays() -> None:
    source = Path(decide.__file__).read_text()
    reasons = re.findall(r'Act\.GIVE_UP, \w+, f?"([^"{]+)', source)
    reasons += re.findall(r'^(?:COMPACTED|NO_\w+) = "(.+)"', source, re.MULTILINE)
    assert len(reasons) > 8
    codes = {find_code(reason) for reason in reasons}
    assert "handoff_failed" not in codes
    assert codes | {"document_unreadable"} == set(CODES.values())
    assert (find_code(""), find_code("the record is damaged")) == ("", "handoff_failed")
    assert [judge_error(""), judge_error("x")] == ["ok", "critical"]
    document = (Path(__file__).parents[2] / "docs" / "CONTEXT.md").read_text()
    assert all(f"`{code}`" in document for code in [*codes, "handoff_failed"])


def test_records_of_before_an_ended_turn_was_no_proof_are_read(root: Root) -> None:
    health_log.append(root, entry("r1"))
    health_log.append(root, entry("r2", error="x"))
    text = root.health.read_text()
    root.health.write_text(
        text.replace('"unconfirmed"', '"ok"').replace('"failed","details"', '"critical","details"')
    )
    assert '"critical"' in root.health.read_text()
    assert [one.status for one in health_log.read_recent(root)] == ["failed", "unconfirmed"]


def test_an_unknown_percentage_is_null(root: Root) -> None:
    record = structs.replace(rotation(), percent=None)
    health_log.append(root, make_entry(record, NOW, project="", session="s-1"))
    assert json.loads(root.health.read_text())["details"]["context_at_trigger"] is None


def test_a_rotation_has_one_record_however_often_it_is_told(root: Root) -> None:
    assert health_log.append(root, entry("r1"))
    assert health_log.append(root, entry("r2", NOW + 1))
    assert health_log.append(root, entry("r1", session="s-1"))  # another session's
    assert not health_log.append(root, entry("r1", NOW + 2))
    assert len(list(health_log.read_recent(root))) == 3


def test_a_clock_that_was_set_back_breaks_nothing(root: Root) -> None:
    health_log.append(root, entry("r1", NOW + HOUR_S))
    assert health_log.append(root, entry("r2", NOW))
    assert [one.rotation for one in health_log.read_recent(root)] == ["r2", "r1"]


def test_the_newest_come_first_and_of_one_session_if_asked(root: Root) -> None:
    for number, session in enumerate(("a", "b", "a")):
        health_log.append(root, entry(f"r{number}", NOW + number, session=session))
    assert [one.rotation for one in health_log.read_recent(root)] == ["r2", "r1", "r0"]
    assert [one.rotation for one in health_log.read_recent(root, "a")] == ["r2", "r0"]
    assert not list(health_log.read_recent(root, "c"))


def test_without_a_record_there_is_nothing(root: Root) -> None:
    assert not list(health_log.read_recent(root))
    assert health_log.find_raise(root, "dev-harb-7", NOW) == 0


@pytest.mark.parametrize(
    "line",
    [b"{", b"\xff\xfe", b"[]", b"{}", b'{"rotation": 1}', b"[" * 100_000, b"", b"\x00" * 4096],
)
def test_damaged_lines_are_passed_over(root: Root, line: bytes) -> None:
    health_log.append(root, entry("r1"))
    with root.health.open("ab") as file:
        file.write(line)  # a power cut has left it without its end
    health_log.append(root, entry("r2", NOW + 1))
    assert [one.rotation for one in health_log.read_recent(root)] == ["r2", "r1"]


def test_a_line_is_short_whatever_went_on(root: Root) -> None:
    steps = STEPS * 100
    record = structs.replace(rotation(), steps=steps)
    health_log.append(root, make_entry(record, NOW, project="", session="s-1", error="ä" * 9999))
    assert len(root.health.read_bytes()) < journal.LINE_LIMIT + 1000
    (written,) = health_log.read_recent(root)
    assert written.details.steps[-1].outcome == "failed"


def test_the_record_is_bounded_as_the_journal_is(root: Root) -> None:
    for number in range(12):
        health_log.append(root, entry(f"r{number}", NOW + number))
        if number in (3, 8):  # and much more
            os.truncate(root.health, journal.ROTATE_AT + 1)
    before = root.health.with_name("health.jsonl.1")
    assert before.exists()
    kept = [one.rotation for one in health_log.read_recent(root)]
    assert kept[:3] == ["r11", "r10", "r9"]
    assert root.health.stat().st_size + before.stat().st_size < 3 * journal.ROTATE_AT


def test_it_is_nobody_elses_to_read(root: Root) -> None:
    health_log.append(root, entry())
    assert root.health.stat().st_mode & 0o777 == 0o600
    assert root.private.stat().st_mode & 0o777 == 0o700


def test_many_sessions_may_end_theirs_at_the_same_time(root: Root, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from sm.context.rotation import Cause, begin\n"
        "from sm.context import health_log\n"
        "from sm.store.paths import Root\n"
        "for number in range(50):\n"
        "    record = begin(f'r{number}', Cause.CYCLE, 1.0, '')\n"
        "    entry = health_log.make_entry(record, 2.0 + number, project='', session=sys.argv[2])\n"
        "    assert health_log.append(Root(Path(sys.argv[1])), entry)\n"
    )
    argv = [sys.executable, str(script), str(root.path)]
    with_path = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    writers = [subprocess.Popen([*argv, f"s-{n}"], env=with_path) for n in range(4)]
    assert [writer.wait(HANG_S) for writer in writers] == [0] * 4
    assert len(list(health_log.read_recent(root))) == 200
    assert len(list(health_log.read_recent(root, "s-2"))) == 50


def test_a_killed_writer_leaves_a_record_that_can_be_read(root: Root) -> None:
    pid = os.fork()
    if not pid:
        try:
            while True:
                health_log.append(root, entry(f"r{os.times().elapsed}", NOW))
        finally:
            os._exit(1)
    try:
        wait_for(lambda: root.health.exists() and root.health.stat().st_size > 20_000, "lines")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert health_log.append(root, entry("after", NOW + 1))
    assert next(health_log.read_recent(root)).rotation == "after"


# How often


def cycles_at(root: Root, *ages_s: float, cause: str = "cycle", session: str = "a") -> None:
    """Cycles that ended so long before NOW."""
    for number, age_s in enumerate(ages_s):
        found = entry(f"{cause}{number}", NOW - age_s, cause=cause, session=session)
        health_log.append(root, found)


@pytest.mark.parametrize(
    ("ages_s", "raised"),
    [
        ((), 0.0),
        ((60.0,), 0.0),
        ((1800.0, 60.0), RAISED),
        ((3700.0, 200.0), RAISED),
        ((3900.0, 200.0), 0.0),  # more than an hour between them
        ((6000.0, 3601.0), 0.0),  # an hour ago it was so, and is over
        ((6000.0, 3599.0), RAISED),
        ((9000.0, 6000.0, 3599.0), RAISED),
    ],
)
def test_after_more_than_one_cycle_an_hour_the_next_begins_later_for_an_hour(
    root: Root, ages_s: tuple[float, ...], raised: float
) -> None:
    cycles_at(root, *ages_s)
    assert health_log.find_raise(root, "a", NOW) == raised


def test_cycles_of_other_sessions_and_other_rotations_do_not_count(root: Root) -> None:
    cycles_at(root, 1800.0, 60.0, session="b")
    cycles_at(root, 1700.0, 1600.0, cause="handoff")
    cycles_at(root, 1500.0, 1400.0, cause="command")
    cycles_at(root, 100.0)
    assert health_log.find_raise(root, "a", NOW) == 0
    assert health_log.find_raise(root, "b", NOW) == RAISED


def test_cycles_that_were_given_up_do_not_count(root: Root) -> None:
    for number, error in enumerate(("", "no document", "no document")):
        health_log.append(root, entry(f"r{number}", NOW - 100 + number, error=error))
    assert health_log.find_raise(root, "dev-harb-7", NOW) == 0
    health_log.append(root, entry("r3", NOW - 10))
    assert health_log.find_raise(root, "dev-harb-7", NOW) == RAISED


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_record_that_cannot_be_read_raises_no_threshold_and_says_so(
    root: Root, make: Callable[[Path], None]
) -> None:
    root.private.mkdir(mode=0o700, parents=True, exist_ok=True)
    make(root.health)
    assert health_log.find_raise(root, "dev-harb-7", NOW) == 0
    with pytest.raises(StateError, match=r"health\.jsonl"):
        health_log.append(root, entry())


def test_a_long_record_is_read_no_further_than_the_time_that_counts(root: Root) -> None:
    health_log.append(root, entry("old", NOW - 9000, session="b"))
    old = root.health.read_bytes()
    root.health.write_bytes(old * (journal.LOOK_BACK // len(old)))
    decoded = 0

    def counted(path: Path) -> Iterator[bytes]:
        nonlocal decoded
        for line in lines(path):
            decoded += 1
            yield line

    lines = journal.read_backwards
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(journal, "read_backwards", counted)
        health_log.append(root, entry("r1"))
        health_log.find_raise(root, "a", NOW)
    assert decoded < 10
