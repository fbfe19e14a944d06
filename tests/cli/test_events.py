"""`sm events`: the stream of what happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from sm.__main__ import run
from sm.store import journal
from sm.store.events import KINDS, Claimed, Decided, EventKind, Problem, RotationStep, kind_of
from sm.store.paths import Root
from tests.events import encode_line
from tests.helpers import HANG_S, REPOSITORY, sm_yaml, wait_for


@pytest.fixture(autouse=True)
def place(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SM_CONFIG", str(sm_yaml(tmp_path)))
    root.private.mkdir(mode=0o700)


def happen(root: Root, text: str, session: str = "dev-harb-7") -> None:
    journal.record(root.journal, Problem(session=session, text=text))


def follow(*words: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
    command = [sys.executable, "-Im", "sm", "events", "--follow", *words]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def following(root: Root) -> Iterator[subprocess.Popen[str]]:
    """`sm events --follow --json`, which has told what was there."""
    happen(root, "before")
    process = follow("--since", "1h", "--json")
    assert process.stdout
    assert json.loads(process.stdout.readline())["text"] == "before"
    with process:
        yield process
        process.kill()


def test_each_event_is_a_line_in_words(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    journal.record(root.journal, Claimed(session="dev-harb-7", how="won"))
    decided = Decided(session="dev-harb-7", row="ci-failed", phase="PHASE:awaiting_ci")
    journal.record(root.journal, decided)
    happen(root, "two\nlines", "s-000000aa")
    assert run(["events"]) == 0
    lines = [line[21:] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "dev-harb-7      claimed the issue",
        "dev-harb-7      CI failed",
        "s-000000aa      problem: two lines",
    ]


@pytest.mark.parametrize("called", [("harb#7",), ("harb", "7"), ("7",), ("dev-harb-7",)])
def test_one_session_is_named_as_everywhere_also_when_it_is_over(
    root: Root, capsys: pytest.CaptureFixture[str], called: tuple[str, ...]
) -> None:
    happen(root, "here")
    happen(root, "there", "dev-harb-77")
    assert run(["events", *called, "--json"]) == 0
    [event] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (event["kind"], event["session"], event["text"]) == ("problem", "dev-harb-7", "here")


def test_an_unknown_session_and_an_unknown_time_are_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["events", "s-000000ab"]) == 2
    assert "no session" in capsys.readouterr().err
    assert run(["events", "--since", "soon"]) == 2
    assert "expected a time such as 30s, 10m or 2h, got 'soon'" in capsys.readouterr().err


def test_since_counts_back_from_now(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    old = Problem(session="s-000000aa", text="old", at=time.time() - 601)
    root.journal.write_bytes(encode_line(old))
    root.journal.chmod(0o600)
    happen(root, "new")
    assert run(["events", "--since", "10m"]) == 0
    assert "old" not in capsys.readouterr().out
    assert run(["events", "--since", "10m30s"]) == 0
    assert "problem: old" in capsys.readouterr().out


def test_a_follower_tells_what_comes_and_ends_quietly_on_ctrl_c(
    root: Root, following: subprocess.Popen[str]
) -> None:
    assert following.stdout
    for text in ("one", "two"):
        happen(root, text)
        assert json.loads(following.stdout.readline())["text"] == text
        root.journal.replace(journal.name_previous(root.journal))
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=HANG_S)
    assert (following.returncode, out, err) == (0, "", "")


def test_a_follower_whose_reader_has_gone_ends_quietly_though_nothing_happens(
    following: subprocess.Popen[str],
) -> None:
    assert following.stdout
    assert following.stderr
    following.stdout.close()
    wait_for(lambda: following.poll() is not None, "its end")
    assert (following.returncode, following.stderr.read()) == (1, "")


def test_a_follower_tells_from_now_on_alone(root: Root, tmp_path: Path) -> None:
    happen(root, "before")
    output = tmp_path / "output"

    def is_told() -> bool:
        happen(root, "after")  # again: it is not known from outside when it has begun to look
        return "after" in output.read_text()

    with output.open("w") as file, follow(stdout=file) as process:
        wait_for(is_told, "an event")
        process.kill()
    assert "before" not in output.read_text()


def test_waiting_costs_next_to_nothing(root: Root, following: subprocess.Popen[str]) -> None:
    """Looks for two seconds: a busy loop would use all of them."""
    statistics = Path(f"/proc/{following.pid}/stat")

    def used_s() -> float:
        fields = statistics.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, began = used_s(), time.monotonic()
    wait_for(lambda: time.monotonic() > began + 2, "two seconds")
    assert used_s() - before < 0.2


def test_every_kind_and_field_is_documented() -> None:
    text = (REPOSITORY / "docs/EVENTS.md").read_text()
    table = dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", text, re.MULTILINE))
    for kind in KINDS:
        fields = set(kind.__struct_fields__) - {"at", "session"}
        assert set(re.findall(r"`(\w+)`:", table[kind_of(kind)])) == fields, kind
    assert set(table) == {"kind", "at", "session", "words", *EventKind, *RotationStep}
