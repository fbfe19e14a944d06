"""The demo's agent on a terminal of its own: it goes on from whatever state git shows."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.model import (
    NO_CHECK,
    Check,
    CheckState,
    InlineComment,
    Issue,
    IssueState,
    Review,
    ReviewState,
)
from sm.base.phase import Phase
from sm.issues.rules.material import Material
from sm.issues.rules.prompts import write_prompt
from tests.helpers import HANG_S, REPOSITORY, Repository, git, make_repository, wait_for

AGENT = REPOSITORY / "demo" / "agent.py"
BRANCH = "fix/2"
FUNCTIONS = ("shorten", "join_names", "reading_minutes")


class Terminal:
    """The agent at work in `folder`, and what its terminal shows."""

    def __init__(self, folder: Path, phase_file: Path, prompt: str) -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._shown = b""
        self.phase_file = phase_file
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(AGENT), prompt],
            cwd=folder,
            env=os.environ
            | {"PHASE_FILE": str(phase_file), "SM_SESSION_DIR": str(phase_file.parent)},
            stdin=theirs,
            stdout=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def shown(self) -> str:
        """All that it has shown so far."""
        try:
            while data := os.read(self._ours, 65536):
                self._shown += data
        except OSError:
            pass
        return self._shown.decode("utf-8", "replace")

    def wait_for_composer(self) -> None:
        """Wait until it is idle: the last thing drawn is its input line."""
        wait_for(lambda: self.shown().endswith("❯ "), "the composer")

    def paste(self, text: str) -> None:
        """Paste a message and press Enter, as tmux does."""
        before = len(self.shown())
        os.write(self._ours, f"\x1b[200~{text}\x1b[201~\r".encode())
        wait_for(lambda: "✻" in self.shown()[before:], "its beginning")
        self.wait_for_composer()

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._ours, key)

    def phase(self) -> str:
        """What it wrote last."""
        return self.phase_file.read_text()

    def end(self) -> None:
        """Kill it and close the terminal; again does nothing."""
        if self._ours < 0:
            return
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        self._ours = -1


Start = Callable[[str], Terminal]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = make_repository(tmp_path)
    planned = "".join(f"\n## {f}\n\nPlanned.\n" for f in FUNCTIONS)
    made.commit("README.md", f"# textkit\n{planned}")
    git(made.clone, "checkout", "-q", "-b", BRANCH)
    git(made.clone, "push", "-q", "origin", BRANCH)
    return made


@pytest.fixture
def start(repository: Repository, tmp_path: Path) -> Iterator[Start]:
    made: list[Terminal] = []

    def begin(prompt: str) -> Terminal:
        made.append(Terminal(repository.clone, tmp_path / "phase", prompt))
        made[-1].wait_for_composer()
        return made[-1]

    (tmp_path / "phase").touch()
    yield begin
    for terminal in made:
        terminal.end()


def _material(
    function: str = "shorten", phase: Phase = Phase.NONE, check: Check = NO_CHECK
) -> Material:
    issue = Issue(2, f"Add {function}()", IssueState.OPEN, "ada", 0.0, body=f"`{function}()` …")
    return Material(
        project="textkit",
        issue=issue,
        branch=BRANCH,
        base="main",
        remote="origin",
        phase_file="phase",
        nonce="1a2b3c4d",
        phase=phase,
        phase_text=phase.value,
        check=check,
    )


def _edit(repository: Repository) -> None:
    (repository.clone / "textkit").mkdir()
    (repository.clone / "textkit" / "short.py").write_text("# half of it\n")


def _commit(repository: Repository) -> None:
    _edit(repository)
    git(repository.clone, "add", "--all")
    git(repository.clone, "commit", "-q", "-m", "half")


def _push(repository: Repository) -> None:
    _commit(repository)
    git(repository.clone, "push", "-q", "origin", BRANCH)


@pytest.mark.parametrize("before", [lambda _: None, _edit, _commit, _push])
def test_it_goes_on_from_what_was_left(
    repository: Repository, start: Start, before: Callable[[Repository], None]
) -> None:
    before(repository)

    agent = start(write_prompt("recovery", _material()))

    assert agent.phase() == "PHASE:awaiting_ci\n"
    assert git(repository.clone, "status", "--porcelain") == ""
    pushed = git(repository.bare, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    assert pushed == ["README.md", "tests/test_short.py", "textkit/short.py"]
    assert "def shorten(" in git(repository.bare, "show", f"{BRANCH}:textkit/short.py")


def test_it_leaves_finished_work_alone(repository: Repository, start: Start) -> None:
    first = start(write_prompt("start", _material()))
    first.end()
    head = git(repository.bare, "rev-parse", BRANCH)
    first.phase_file.write_text("")

    second = start(write_prompt("recovery", _material(phase=Phase.AWAITING_CI)))

    assert second.phase() == ""
    assert git(repository.bare, "rev-parse", BRANCH) == head


def test_it_mends_only_what_the_log_shows(repository: Repository, start: Start) -> None:
    agent = start(write_prompt("start", _material()))
    log = "FAIL: test_result_fits_the_width (tests.test_short.ShortenTest)\nFAILED (failures=1)"
    failed = Check(CheckState.FAILURE, "c0ffee", "unit tests", log=log)

    agent.paste(write_prompt("ci-failed", _material(phase=Phase.AWAITING_CI, check=failed)))

    module = git(repository.bare, "show", f"{BRANCH}:textkit/short.py")
    assert "text[: width - 1]" in module
    assert agent.phase() == "PHASE:awaiting_ci\n"


def test_a_log_that_it_does_not_understand_makes_it_ask(start: Start) -> None:
    agent = start(write_prompt("start", _material()))
    failed = Check(CheckState.FAILURE, "c0ffee", "unit tests", log="Segmentation fault")

    agent.paste(write_prompt("ci-failed", _material(phase=Phase.AWAITING_CI, check=failed)))

    assert agent.phase().startswith(
        "PHASE:escalate\nReason: cannot tell from the log why CI fails\n"
    )


def test_it_goes_to_the_line_of_a_remark(repository: Repository, start: Start) -> None:
    agent = start(write_prompt("start", _material("join_names")))
    remark = InlineComment("textkit/names.py", 6, "an empty list ends in a ValueError")
    review = Review("1", "eve", 0.0, ReviewState.CHANGES_REQUESTED, "c0ffee", comments=(remark,))

    agent.paste(write_prompt("review-changes", structs.replace(_material(), review=review)))

    module = git(repository.bare, "show", f"{BRANCH}:textkit/names.py").splitlines()
    assert module[5:8] == ["    if not names:", '        return ""', "    *others, last = names"]
    assert agent.phase() == "PHASE:awaiting_review\n"


@pytest.mark.parametrize(
    ("words", "third"),
    [
        ("An empty list fails.", '        return ""'),
        ("Be nice\nto all", "# A person: Be nice to all"),
    ],
)
def test_it_does_what_it_knows_about_a_remark_on_no_line_and_writes_the_rest_down(
    repository: Repository, start: Start, words: str, third: str
) -> None:
    agent = start(write_prompt("start", _material("join_names")))
    review = Review("1", "eve", 0.0, ReviewState.CHANGES_REQUESTED, "c0ffee", words)

    agent.paste(write_prompt("review-changes", structs.replace(_material(), review=review)))

    module = git(repository.bare, "show", f"{BRANCH}:textkit/names.py").splitlines()
    assert third in module
    assert agent.phase() == "PHASE:awaiting_review\n"


@pytest.mark.parametrize(("answer", "function"), [("Down, please", "floor"), ("Up.", "ceil")])
def test_the_answer_decides(
    repository: Repository, start: Start, answer: str, function: str
) -> None:
    agent = start(write_prompt("start", _material("reading_minutes")))
    assert (
        agent.phase() == "PHASE:escalate\nReason: 410 words are 2.05 minutes: round up, or down?\n"
    )

    agent.paste(write_prompt("reply", structs.replace(_material(), reply="As you like it")))
    assert agent.phase().startswith("PHASE:escalate\nReason: what is to be done about")
    agent.paste(write_prompt("reply", structs.replace(_material(), reply=answer)))

    assert f"math.{function}(" in git(repository.bare, "show", f"{BRANCH}:textkit/reading.py")
    assert agent.phase() == "PHASE:awaiting_ci\n"


def test_a_message_that_it_does_not_understand_makes_it_ask(start: Start) -> None:
    agent = start(write_prompt("start", _material()))

    agent.paste("Make me a sandwich")

    assert agent.phase().startswith("PHASE:escalate\nReason: ")
    assert "sandwich" in agent.phase()


def test_the_end_of_its_input_ends_it(start: Start) -> None:
    agent = start(write_prompt("start", _material()))

    agent.press(b"\x04")

    assert agent.process.wait(timeout=HANG_S) == 0
