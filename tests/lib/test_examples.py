"""The three example agents of docs/SCRIPTS.md run as they stand, with an agent that is scripted."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.helpers import HANG_S, REPOSITORY, git

EXAMPLES = REPOSITORY / "docs" / "examples"
AGENT = """#!/bin/bash
# Plays an agent: says what it was told, and writes one phase after another.
printf '%s\\n' "${@: -1}" >>"$TOLD"
for phase in $PHASES; do
  printf '%s\\n' "$phase" >"$PHASE_FILE"
  [[ $phase != PHASE:aw* ]] || { IFS= read -r said; printf '%s\\n' "$said" >>"$TOLD"; }
done
[[ -n $PHASES ]] || : >"$SM_STATE_ROOT/claude-idle-$(tmux display-message -p '#S').ts"
exec sleep 600
"""


@pytest.fixture
def folder(tmp_path: Path, root: Root, tmux_socket: str) -> Path:
    assert root.path
    assert tmux_socket
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    git(work, "commit", "-q", "--allow-empty", "-m", "first")
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o700)
    return tmp_path


def play(
    folder: Path, name: str, *args: str, phases: str, **env: str
) -> subprocess.CompletedProcess[str]:
    more = {
        "AGENT": str(folder / "agent"),
        "PHASES": phases,
        "TOLD": str(folder / "told"),
        "PHASE_POLL_INTERVAL": "0.1",
    }
    return subprocess.run(
        [str(EXAMPLES / name / f"{name}-agent.sh"), *args],
        env=os.environ | more | env,
        cwd=folder / "work",
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def read_messages(folder: Path) -> list[str]:
    return (folder / "told").read_text().splitlines()


def test_the_dev_agent_goes_from_ci_to_the_merge(folder: Path) -> None:
    phases = "PHASE:awaiting_ci PHASE:awaiting_ci PHASE:awaiting_review PHASE:done"
    judged = "[[ -e ../seen ]] || { touch ../seen; echo 2 tests failed; exit 1; }"
    done = play(folder, "dev", "harb", "42", "Add a file.", phases=phases, CI=judged)
    assert (done.returncode, done.stderr) == (0, "")
    task, failed, passed, approved = read_messages(folder)
    assert task.startswith("Add a file. Write PHASE:awaiting_ci to ")
    assert failed == "CI failed. Mend it, then write PHASE:awaiting_ci again: 2 tests failed"
    assert passed == "CI passed. Write PHASE:awaiting_review."
    assert approved == "Approved. Merge it, then write PHASE:done."
    assert not (folder / "state" / "dev-session-harb-42.phase").exists()


def test_the_action_agent_carries_its_formula_out(folder: Path) -> None:
    (folder / "formula").write_text("Write the notes.\n")
    done = play(folder, "action", "notes", str(folder / "formula"), phases="PHASE:done")
    assert (done.returncode, done.stderr) == (0, "")
    assert read_messages(folder)[0].startswith("Write the notes. Your very last action: ")


def test_the_gardener_is_asked_what_no_person_has_to_decide(folder: Path) -> None:
    needs = [
        {"kind": kind, "name": f"shop#{at}", "text": f"text {kind}", "command": f"sm reply {at}"}
        for at, kind in enumerate(("question", "dialog", "review", "budget", "login", "blocked"))
    ]
    sm = folder / "sm"
    sm.write_text(f"#!/bin/sh\ncat <<'N'\n{json.dumps(needs)}\nN\nexit 1\n")
    sm.chmod(0o700)
    done = play(folder, "gardener", phases="PHASE:done", SM_COMMAND=str(sm))
    assert (done.returncode, done.stderr) == (0, "")
    said = "\n".join(read_messages(folder))
    assert "shop#0 text question  Command: sm reply 0" in said
    assert "text blocked" in said
    assert not any(f"text {kind}" in said for kind in ("dialog", "review", "budget", "login"))
    sm.write_text("#!/bin/sh\necho '[]'\n")
    (folder / "told").unlink()
    assert play(folder, "gardener", phases="PHASE:done", SM_COMMAND=str(sm)).returncode == 0
    assert not (folder / "told").exists()


@pytest.mark.parametrize(
    ("phases", "code", "said"),
    [
        ("", 1, "action-notes: ended its turn without a phase\n"),
        ("PHASE:escalate", 2, "answer it with: tmux attach -t action-notes\n"),
        ("PHASE:failed", 1, "action-notes: gave up: \n"),
    ],
)
def test_each_end_of_the_loop_is_told(folder: Path, phases: str, code: int, said: str) -> None:
    (folder / "formula").write_text("Write the notes.\n")
    done = play(folder, "action", "notes", str(folder / "formula"), phases=phases)
    assert done.returncode == code
    assert done.stderr.endswith(said)
