from __future__ import annotations

import json
from pathlib import Path

import pytest

from sm.base.errors import StateError
from sm.base.refusal import Refusal
from sm.issues.act.problem import SessionProblem, read_problem, write_problem
from sm.store.paths import Root, SessionDir
from tests.residents import settle


@pytest.fixture
def directory(root: Root, tmp_path: Path) -> SessionDir:
    return settle(root, tmp_path, "s-000000aa").dir


def left_by_an_older_version(directory: SessionDir, text: str) -> None:
    directory.problem.write_text(text)
    directory.problem.chmod(0o600)


def test_the_file_has_the_code_and_people_read_the_sentence(directory: SessionDir) -> None:
    write_problem(directory, SessionProblem("not delivered yet", Refusal.DRAFT))
    assert json.loads(directory.problem.read_text())["refusal"] == "draft"
    assert Refusal.DRAFT.sentence not in directory.problem.read_text()
    found = read_problem(directory)
    assert found == SessionProblem("not delivered yet", Refusal.DRAFT)
    assert found.sentence == "not delivered yet: a person has half a line typed there"


def test_any_other_problem_is_kept_as_it_is_told(directory: SessionDir) -> None:
    assert read_problem(directory) is None
    write_problem(directory, SessionProblem("no forge: it says\n“403”"))
    found = read_problem(directory)
    assert found == SessionProblem("no forge: it says\n“403”")
    assert found.sentence == "no forge: it says\n“403”"


@pytest.mark.parametrize("refusal", Refusal)
def test_a_sentence_of_an_older_version_is_the_same_problem(
    directory: SessionDir, refusal: Refusal
) -> None:
    """So its time stands, nobody is told anew, and a busy agent is still waited for."""
    left_by_an_older_version(directory, f"not delivered yet: {refusal.sentence}\n")
    assert read_problem(directory) == SessionProblem("not delivered yet", refusal)


@pytest.mark.parametrize(
    "text",
    ["cannot read 'x': permission denied", "not delivered yet: indeterminate", "", "{}", "["],
)
def test_any_other_words_of_an_older_version_stand_for_themselves(
    directory: SessionDir, text: str
) -> None:
    left_by_an_older_version(directory, f"{text}\n")
    assert read_problem(directory) == SessionProblem(text)


def test_what_is_no_file_of_ours_is_said_so(directory: SessionDir) -> None:
    directory.problem.symlink_to("/nowhere")
    with pytest.raises(StateError, match="cannot open"):
        read_problem(directory)
