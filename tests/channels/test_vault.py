from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.base.errors import StateError
from sm.channels.vault import put_away, read_answer, write_question


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes" / "vault" / "dev-harb-7.md"


def question(path: Path, marker: str = "m1", body: str = "Which database?") -> Path:
    return write_question(path, title="harb #7: Add größe", body=body, marker=marker)


def answer(path: Path) -> str | None:
    return read_answer(path, quiet_s=0)


def write_below(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_question_is_a_private_file_that_a_person_can_read(path: Path) -> None:
    assert question(path) == path
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert text.startswith("# harb #7: Add größe\n")
    assert "> Which database?" in text
    assert "write it below the last heading" in text
    assert list(path.parent.iterdir()) == [path]


def test_asked_twice_keeps_the_answer(path: Path) -> None:
    question(path)
    write_below(path, "Use Postgres.\n")
    question(path)
    assert answer(path) == "Use Postgres."


def test_nothing_written_is_no_answer(path: Path) -> None:
    assert answer(path) is None
    question(path)
    assert answer(path) is None
    write_below(path, "\n<!-- not yet -->\n  \n<!-- and this is half a com")
    assert answer(path) is None


def test_answer_keeps_its_markdown_and_loses_its_comments(path: Path) -> None:
    question(path)
    write_below(path, "\n- one\n- <!-- x -->two\n\n## Answer\nreally\x1b[31m\r\n")
    assert answer(path) == "- one\n- two\n\n## Answer\nreally"


def test_body_cannot_answer_itself(path: Path) -> None:
    question(path, body="a\n## Answer\nyes\r## Answer\ryes\u2028## Answer\n```\n<!-- sm:m2 -->")
    assert answer(path) is None
    write_below(path, "no")
    assert answer(path) == "no"
    question(path, marker="m2")
    assert (path.parent / "answered" / path.name).exists()


def test_title_stays_on_its_line(path: Path) -> None:
    write_question(path, title="a\n## Answer\nyes \x1b[2J", body="b", marker="m")
    assert path.read_text().startswith("# a ## Answer yes\n")
    assert answer(path) is None


def test_file_cut_short_is_no_answer(path: Path) -> None:
    question(path)
    whole = path.read_text()
    for length in range(len(whole)):
        path.write_text(whole[:length])
        assert answer(path) is None


def test_file_being_written_is_left_until_it_rests(path: Path) -> None:
    question(path)
    write_below(path, "Use Post")
    assert read_answer(path, quiet_s=60) is None
    rested = time.time() - 61
    os.utime(path, (rested, rested))
    assert read_answer(path, quiet_s=60) == "Use Post"


def test_new_question_settles_the_one_before(path: Path) -> None:
    for marker in ("m1", "m2", "m3"):
        question(path, marker=marker)
        write_below(path, f"answer to {marker}\n")
    settled = path.parent / "answered"
    assert [answer(f) for f in sorted(settled.iterdir())] == ["answer to m2", "answer to m1"]
    assert answer(path) == "answer to m3"


def test_settled_under_a_name_of_its_own_and_only_once(path: Path) -> None:
    question(path)
    assert put_away(path) == path.parent / "answered" / "dev-harb-7.md"
    assert put_away(path) == path
    question(path)
    assert put_away(path).name == "dev-harb-7-2.md"


def test_a_persons_own_file_is_not_replaced(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("# my notes\n")
    with pytest.raises(StateError, match="is no question of ours"):
        question(path)
    assert path.read_text() == "# my notes\n"


def test_link_is_refused(path: Path) -> None:
    question(path)
    target = path.rename(path.with_name("target"))
    path.symlink_to(target)
    with pytest.raises(StateError, match=str(path)):
        answer(path)


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="file/vault"):
        question(tmp_path / "file" / "vault" / "q.md")


def test_a_persons_own_file_answers_nothing_and_stays(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("# my notes\n\n## Answer\n\n42\n")
    assert answer(path) is None
    assert put_away(path) == path
    assert path.exists()


def test_link_is_not_settled(path: Path) -> None:
    question(path)
    target = path.rename(path.with_name("target"))
    path.symlink_to(target)
    assert put_away(path) == path
    assert path.is_symlink()
