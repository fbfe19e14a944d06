from __future__ import annotations

import multiprocessing
import os
import stat

import pytest

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.local.forge import open_forge
from sm.adapters.forge.model import IssueState
from sm.base.errors import StateError, UsageError
from sm.config.schema import ProjectSettings
from tests.helpers import HANG_S
from tests.hub import Hub

PROCESSES, ROUNDS = 8, 5


def test_issue_is_read_by_others_as_it_was_filed(hub: Hub) -> None:
    body = "$(touch x) `y`\r\n\x1b[31m" + "é" * 500_000
    filed = hub.open().issues.add(" Fix:\n it ", body, ["backlog", "b c"], author="Ada L")
    assert (filed.number, filed.title, filed.state) == (1, "Fix: it", IssueState.OPEN)
    assert filed == hub.open().issues.read(1)
    assert (filed.author, filed.labels, filed.body) == ("Ada L", ("backlog", "b c"), body)


def test_numbers_are_never_given_out_twice(hub: Hub) -> None:
    forge = hub.open()
    assert [forge.issues.add("a", author="x").number for _ in range(2)] == [1, 2]
    (hub.folder / "issues" / "0002.md").unlink()
    assert forge.issues.add("b", author="x").number == 3
    (hub.folder / ".number").unlink()
    assert forge.issues.add("c", author="x").number == 4


def test_label_that_is_there_or_gone_already_changes_nothing(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", labels=["one"], author="x")
    before = forge.stamp()
    forge.issues.add_label(1, "one")
    forge.issues.remove_label(1, "two")
    assert forge.stamp() == before
    assert forge.issues.add_label(1, "two").labels == ("one", "two")
    assert forge.issues.remove_label(1, "one").labels == ("two",)
    assert forge.stamp() != before


def test_issues_are_chosen_by_state_and_labels(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", labels=["x", "y"], author="x")
    forge.issues.add("b", labels=["x"], author="x")
    forge.issues.add("c", author="x")
    forge.issues.close(2)
    assert [issue.number for issue in forge.issues.find(IssueState.OPEN)[0]] == [1, 3]
    assert [issue.number for issue in forge.issues.find(labels=["x"])[0]] == [1, 2]
    assert [issue.number for issue in forge.issues.find(IssueState.OPEN, ["x", "y"])[0]] == [1]


def test_comment_with_a_marker_is_posted_once(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", author="x")
    assert forge.issues.comment(1, "first", author="sm", marker="harb-1/7 -->")
    assert not hub.open().issues.comment(1, "again", author="sm", marker="harb-1/7 -->")
    assert forge.issues.comment(1, "plain", author="sm")
    assert forge.issues.comment(1, "plain", author="sm")
    assert [comment.body for comment in forge.issues.read(1).comments] == [
        "first",
        "plain",
        "plain",
    ]
    assert forge.issues.read(1).comments[0].marker == "harb-1/7 -->"


def _write(project: ProjectSettings, name: int) -> None:
    forge = open_forge(project)
    for turn in range(ROUNDS):
        forge.issues.add(f"{name}-{turn}", author="x")
        forge.issues.comment(1, f"{name}-{turn}", author="x")
        forge.issues.comment(1, "once", author="x", marker=f"turn-{turn}")


def test_many_processes_write_at_once_and_nothing_is_lost(hub: Hub) -> None:
    hub.open().issues.add("first", author="x")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(hub.project, n)) for n in range(PROCESSES)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(HANG_S)
    found, problems = hub.open().issues.find()
    assert not problems
    assert [issue.number for issue in found] == list(range(1, PROCESSES * ROUNDS + 2))
    assert len({issue.title for issue in found}) == PROCESSES * ROUNDS + 1
    bodies = [comment.body for comment in found[0].comments]
    assert bodies.count("once") == ROUNDS
    assert len(set(bodies)) == PROCESSES * ROUNDS + 1


def test_half_edited_file_is_named_and_the_others_are_read(hub: Hub) -> None:
    forge = hub.open()
    for title in "abc":
        forge.issues.add(title, author="x")
    hub.edit("issues/0002.md", "state: open", "state: opne")
    (hub.folder / "issues" / "4.md").write_text("---\n---\n")
    (hub.folder / "issues" / ".0001.md.swp").write_text("an editor's own")
    found, problems = forge.issues.find()
    assert [issue.number for issue in found] == [1, 3]
    assert len(problems) == 2
    assert "4.md' is not named like '0007.md'" in problems[0]
    assert problems[1].endswith("0002.md' line 4: state is 'opne': write open or closed")
    with pytest.raises(StateError, match="line 4: state is 'opne'"):
        forge.issues.read(2)
    assert forge.issues.add("d", author="x").number == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("labels", "lables", "line 7: unknown key 'lables': did you mean 'labels'"),
        ("number: 1", "number: 2", "line 2: number is '2', the file's name says 1"),
        ("title: a", "title:", "line 3: 'title' is missing"),
        ("[]", "{a: b}", "line 7: 'labels' has to be a list"),
        ("created: 2", "created: later", "which is no time"),
    ],
)
def test_wrong_value_is_named_with_its_line(hub: Hub, old: str, new: str, said: str) -> None:
    hub.open().issues.add("a", author="x")
    path = hub.folder / "issues" / "0001.md"
    path.write_text(path.read_text().replace(old, new))
    assert said in hub.open().issues.find()[1][0]


def test_person_writes_into_the_file_with_an_editor(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", "the body", ["backlog"], author="x")
    before = forge.stamp()
    hub.edit("issues/0001.md", "[backlog]", "[backlog, urgent]\npriority: high")
    hub.edit("issues/0001.md", "the body", "the better body")
    with (hub.folder / "issues" / "0001.md").open("a") as file:
        file.write("## Comment by bob\nLooks good.\n")
    assert forge.stamp() != before
    found = forge.issues.read(1)
    assert (found.labels, found.body) == (("backlog", "urgent"), "the better body")
    assert [comment.body for comment in found.comments] == ["Looks good."]
    hub.edit("issues/0001.md", "state: open", "state: Closed")
    assert forge.issues.read(1).state is IssueState.CLOSED
    forge.issues.add_label(1, "more")
    assert "priority: high" in (hub.folder / "issues" / "0001.md").read_text()


def test_comment_written_by_hand_keeps_the_time_at_which_it_was_seen(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", author="x")
    path = hub.folder / "issues" / "0001.md"
    with path.open("a") as file:
        file.write("\n## Comment by bob\n\nYes.\n")
    os.utime(path, (1000, 1000))
    assert forge.issues.read(1).comments[0].at == 1000
    path.touch()
    assert hub.open().issues.read(1).comments[0].at == 1000


def test_issue_written_by_hand_counts(hub: Hub) -> None:
    path = hub.folder / "issues" / "0007.md"
    path.write_text("---\ntitle: By hand\nstate: open\nlabels: backlog, ui\n---\nDo it.\n")
    found = hub.open().issues.read(7)
    assert (found.title, found.labels, found.body) == ("By hand", ("backlog", "ui"), "Do it.")
    assert hub.open().issues.add("next", author="x").number == 8


def test_file_that_is_no_file_of_ours_is_refused(hub: Hub) -> None:
    forge = hub.open()
    forge.issues.add("a", author="x")
    (hub.folder / "issues" / "0002.md").symlink_to(hub.folder / "issues" / "0001.md")
    os.mkfifo(hub.folder / "issues" / "0003.md")
    found, problems = forge.issues.find()
    assert [issue.number for issue in found] == [1]
    assert len(problems) == 2


def test_unusable_title_label_and_number_are_refused(hub: Hub) -> None:
    forge = hub.open()
    with pytest.raises(UsageError, match="the title is empty"):
        forge.issues.add(" \n", author="x")
    with pytest.raises(UsageError, match="cannot be a label"):
        forge.issues.add("a", labels=["b, c"], author="x")
    with pytest.raises(NotFoundError, match="there is no issue 5"):
        forge.issues.read(5)
    with pytest.raises(NotFoundError, match="no issue or pull request 5"):
        forge.issues.comment(5, "x", author="x")


def test_files_are_private_and_nothing_else_is_left(hub: Hub) -> None:
    hub.open().issues.add("a", author="x")
    path = hub.folder / "issues" / "0001.md"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["0001.md"]


def test_every_change_touches_the_stamp(hub: Hub) -> None:
    forge = hub.open()
    os.utime(forge.signs()[0], (1, 1))
    forge.issues.add("a", author="x")
    assert forge.signs()[0].stat().st_mtime > 1
