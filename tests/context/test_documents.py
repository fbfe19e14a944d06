"""The folder of handoff documents: where it is, who may not be led astray by it, what is found."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

import pytest
from msgspec import structs

from sm.base.errors import StateError
from sm.config.schema import HandoffCycle
from sm.context import documents
from sm.context.rotation import Cause, begin
from sm.sessions import registry
from sm.sessions.record import AdHocRecord, IssueRecord
from sm.sessions.session import AdHocSession, IssueSession, Session
from sm.store.paths import Root
from tests.helpers import Repository, git

CYCLE = HandoffCycle()
WHOLE = "".join(f"## {section}\n\n- so\n" for section in CYCLE.sections)
NOW = time.time()


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    path = tmp_path / "work place"
    path.mkdir()
    return path


@pytest.fixture
def session(root: Root, cwd: Path) -> Session:
    return AdHocSession(
        AdHocRecord(
            name="s-00000001",
            provider="peer",
            cwd=cwd,
            config=None,
            state_root=root.path,
            created_at=1000.0,
            command="",
        )
    )


@pytest.fixture
def folder(session: Session) -> Path:
    made = documents.find_folder(session, CYCLE)
    documents.prepare(made)
    return made


def write(folder: Path, name: str, text: str = WHOLE, age_s: float = 0.0) -> Path:
    """A document that was written so long ago."""
    path = folder / name
    path.write_text(text)
    os.utime(path, (NOW - age_s, NOW - age_s))
    return path


def found(folder: Path, before: Collection[str] = ()) -> str:
    """The name of the document that was not there before, '' where there is none."""
    document = documents.find_written(folder, before, CYCLE.sections)
    return Path(document.path).name if document else ""


# The folder


def test_the_folder_of_an_issue_is_in_its_worktree(root: Root, cwd: Path) -> None:
    session = IssueSession(
        IssueRecord(
            name="dev-harb-7",
            provider="peer",
            cwd=cwd,
            config=None,
            state_root=root.path,
            created_at=1000.0,
            project="harb",
            issue=7,
            title="x",
            branch="fix/7",
            base="main",
            remote="origin",
            repo=cwd,
        )
    )
    assert documents.find_folder(session, CYCLE) == cwd / ".sm" / "handoffs"


def test_sessions_that_share_a_directory_share_no_document(session: Session, cwd: Path) -> None:
    other = session.change(name="s-00000002")
    mine, others = documents.find_folder(session, CYCLE), documents.find_folder(other, CYCLE)
    assert mine == cwd / ".sm" / "handoffs" / "s-00000001"
    documents.prepare(mine)
    documents.prepare(others)
    write(others, "handoff-1.md")
    assert not found(mine)
    documents.prune(mine, 1, never=mine)
    assert found(others) == "handoff-1.md"


def test_an_absolute_folder_may_be_anywhere(session: Session, tmp_path: Path) -> None:
    cycle = structs.replace(CYCLE, folder=str(tmp_path / "vault"))
    folder = documents.find_folder(session, cycle)
    assert folder == tmp_path / "vault" / "s-00000001"
    documents.prepare(folder)
    write(folder, "handoff-1.md")
    assert found(folder) == "handoff-1.md"


def test_a_working_directory_reached_by_a_link_is_as_good(session: Session, cwd: Path) -> None:
    link = cwd.with_name("link")
    link.symlink_to(cwd)
    folder = documents.find_folder(session.change(cwd=link), CYCLE)
    documents.prepare(folder)
    assert (cwd / ".sm" / "handoffs" / session.name).is_dir()


def test_a_folder_outside_of_the_working_directory_is_refused(session: Session) -> None:
    with pytest.raises(StateError, match="is not below"):
        documents.find_folder(session, structs.replace(CYCLE, folder="../elsewhere"))


def test_a_working_directory_that_is_gone_is_not_made_again(session: Session, cwd: Path) -> None:
    cwd.rmdir()
    with pytest.raises(StateError, match="is gone"):
        documents.find_folder(session, CYCLE)
    assert not cwd.exists()


@pytest.mark.parametrize("which", [".sm", ".sm/handoffs", ".sm/handoffs/s-00000001"])
def test_no_link_leads_out_of_the_working_directory(
    session: Session, cwd: Path, tmp_path: Path, which: str
) -> None:
    folder = documents.find_folder(session, CYCLE)
    outside = tmp_path / "outside"
    documents.prepare(outside / "handoffs" / session.name)
    write(outside, "handoff-1.md")
    (cwd / which).parent.mkdir(parents=True, exist_ok=True)
    (cwd / which).symlink_to(outside)
    with pytest.raises(StateError, match="a link on the way"):
        documents.prepare(folder)
    assert not found(folder)
    documents.prune(folder, 0, never=folder)
    assert (outside / "handoff-1.md").exists()


@pytest.mark.parametrize("which", [".sm", ".sm/handoffs"])
def test_something_else_in_the_place_of_the_folder_is_an_error(
    session: Session, cwd: Path, which: str
) -> None:
    (cwd / which).parent.mkdir(parents=True, exist_ok=True)
    (cwd / which).write_text("mine")
    with pytest.raises(StateError, match=r"cannot make .*: change handoff_cycle\.folder"):
        documents.prepare(documents.find_folder(session, CYCLE))
    assert (cwd / which).read_text() == "mine"


def test_git_does_not_see_the_documents(session: Session, repository: Repository) -> None:
    clone = repository.clone
    folder = documents.find_folder(session.change(cwd=clone), CYCLE)
    documents.prepare(folder)
    write(folder, "handoff-1.md")
    assert git(clone, "status", "--porcelain", "--untracked-files=all") == ""
    git(clone, "add", "-A")
    assert git(clone, "diff", "--cached", "--name-only") == ""


@pytest.fixture
def tree(repository: Repository) -> Path:
    """A worktree with a session's folder in it, that somebody has made already."""
    (repository.clone / ".sm" / "handoffs").mkdir(parents=True)
    return repository.clone


def shown(tree: Path) -> str:
    return git(tree, "status", "--porcelain", "--untracked-files=all")


def test_git_does_not_see_the_documents_in_a_folder_that_was_there_before(tree: Path) -> None:
    folder = tree / ".sm" / "handoffs"
    write(folder, "handoff-2026-01-02-03-04.md")  # by an agent's own mkdir
    assert shown(tree)
    documents.prepare(folder)
    assert shown(tree) == ""


def test_git_does_not_see_the_documents_where_a_session_without_issue_was_before(
    session: Session, tree: Path
) -> None:
    theirs = documents.find_folder(session.change(cwd=tree), CYCLE)
    documents.prepare(theirs)
    write(theirs, "handoff-1.md")
    folder = tree / ".sm" / "handoffs"
    documents.prepare(folder)
    write(folder, "handoff-1.md")
    assert shown(tree) == ""


def test_in_a_folder_that_people_keep_in_git_only_our_documents_are_hidden(tree: Path) -> None:
    folder = tree / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("theirs")
    git(tree, "add", "docs")
    git(tree, "commit", "-qm", "docs")
    documents.prepare(folder)
    write(folder, "handoff-2026-01-02-03-04.md")
    assert shown(tree) == ""
    (folder / "more.md").write_text("theirs")
    assert shown(tree) == "?? docs/more.md"


def test_a_gitignore_that_people_keep_in_git_stays_as_it_is(tree: Path) -> None:
    (tree / "docs").mkdir()
    (tree / "docs" / ".gitignore").write_text("*.tmp\n")
    git(tree, "add", "docs")
    git(tree, "commit", "-qm", "docs")
    documents.prepare(tree / "docs")
    assert shown(tree) == ""


def test_where_git_hides_them_already_nothing_is_added(tree: Path) -> None:
    (tree / ".gitignore").write_text(".sm/\n.gitignore\n")
    folder = tree / ".sm" / "handoffs"
    write(folder, "handoff-1.md")
    documents.prepare(folder)
    assert not (folder / ".gitignore").exists()


def test_a_folder_that_was_made_but_not_kept_out_of_git_yet_is_so_then(folder: Path) -> None:
    (folder / ".gitignore").unlink()  # killed in between
    documents.prepare(folder)
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_folder_that_people_use_stays_as_it_is(session: Session) -> None:
    folder = documents.find_folder(session, CYCLE)
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("ours")
    documents.prepare(folder)
    assert not (folder / ".gitignore").exists()


def test_a_document_that_an_agent_writes_right_into_the_folder_is_hidden_from_git(
    session: Session, cwd: Path
) -> None:
    """Below a folder with an odd name, and in a worktree: neither has a file for that itself."""
    git(cwd, "init", "-q")
    place = cwd / "odd [1]*"
    place.mkdir()
    inside = structs.replace(session.record, cwd=place)
    odd, cycle = (
        AdHocSession(cast(AdHocRecord, inside)),
        structs.replace(CYCLE, folder=".bmad/handoffs"),
    )
    before = (cwd / ".git" / "info" / "exclude").read_text()
    for _ in range(2):
        documents.hide_beside(odd, cycle)
    said = (cwd / ".git" / "info" / "exclude").read_text()
    assert said == f"{before}/odd \\[1\\]\\*/.bmad/handoffs/handoff-*.md\n"
    written = place / ".bmad" / "handoffs"
    written.mkdir(parents=True)
    (written / "handoff-x-2026-01-01.md").write_text("# Handoff\n")
    assert git(cwd, "status", "--porcelain", "--untracked-files=all") == ""
    (written / "notes.md").write_text("a person's\n")
    assert "notes.md" in git(cwd, "status", "--porcelain", "--untracked-files=all")
    assert not (written / ".gitignore").exists()


def test_outside_of_a_repository_there_is_nothing_to_hide(session: Session, cwd: Path) -> None:
    documents.hide_beside(session, CYCLE)
    assert list(cwd.iterdir()) == []


def test_a_gitignore_of_somebody_else_stays_as_it_is(folder: Path) -> None:
    (folder / ".gitignore").write_text("!*\n")
    documents.prepare(folder)
    assert (folder / ".gitignore").read_text() == "!*\n"


# What was written


def test_there_is_no_document_before_one_is_written(folder: Path) -> None:
    assert not found(folder)
    assert documents.find_written(folder / "none", (), ()) is None


def test_a_document_of_before_the_request_is_not_taken(folder: Path) -> None:
    write(folder, "handoff-2026-01-02-03-04.md", age_s=61)
    before = documents.read_stamps(folder)
    assert not found(folder, before)
    write(folder, "handoff-2026-01-02-03-04.md", age_s=59)  # written again since
    assert found(folder, before) == "handoff-2026-01-02-03-04.md"


def test_a_document_of_the_moment_of_the_request_is_taken(folder: Path) -> None:
    before = documents.read_stamps(folder)
    (folder / "handoff-1.md").write_text(WHOLE)
    assert found(folder, before) == "handoff-1.md"


def test_of_several_the_newest_wins_whatever_its_name(folder: Path) -> None:
    write(folder, "handoff-2026-01-02-03-04.md", age_s=10)
    write(folder, "handoff-mine.md", age_s=5)
    write(folder, "handoff-2030-01-02-03-04.md", age_s=20)
    write(folder, "notes.md")
    assert found(folder) == "handoff-mine.md"


def test_what_was_there_before_is_no_answer_whatever_its_time(folder: Path) -> None:
    write(folder, "handoff-old.md", age_s=-3600)  # from the future
    before = documents.read_stamps(folder)
    assert len(before) == 1
    assert not found(folder, before)
    write(folder, "handoff-new.md", age_s=86400)  # by a clock that is behind, or moved here
    assert found(folder, before) == "handoff-new.md"


def test_one_that_was_there_counts_once_it_is_written_again(folder: Path) -> None:
    path = write(folder, "handoff-old.md", age_s=3600)
    before = documents.read_stamps(folder)
    path.write_text(f"{WHOLE}more\n")
    assert found(folder, before)


def test_a_document_that_is_written_again_is_told_by_its_stamp(folder: Path) -> None:
    path = write(folder, "handoff-new.md", age_s=-3600)
    first = documents.find_written(folder, (), CYCLE.sections)
    assert first
    assert documents.find_written(folder, (), CYCLE.sections) == first
    path.write_text("changed")
    os.utime(path, (NOW + 3600, NOW + 3600))
    changed = documents.find_written(folder, (), CYCLE.sections)
    assert changed
    assert changed.stamp != first.stamp


def test_what_cannot_be_told_from_later_ones_is_said(folder: Path) -> None:
    assert documents.read_stamps(folder / "none") == ()
    with pytest.raises(StateError, match="cannot read"):
        documents.read_stamps(write(folder, "file"))


def test_an_empty_document_is_none(folder: Path) -> None:
    write(folder, "handoff-1.md", age_s=10)
    write(folder, "handoff-2.md", " \n\n")
    write(folder, "handoff-3.md", "")
    assert found(folder) == "handoff-1.md"


def test_only_plain_files_that_can_be_read_are_documents(folder: Path, tmp_path: Path) -> None:
    write(folder, "handoff-1.md", age_s=10)
    (folder / "handoff-2.md").symlink_to(write(tmp_path, "elsewhere.md"))
    (folder / "handoff-3.md").symlink_to(tmp_path / "nowhere")
    (folder / "handoff-4.md").mkdir()
    os.mkfifo(folder / "handoff-5.md")
    assert found(folder) == "handoff-1.md"


@pytest.mark.parametrize("name", [b"handoff-\xff.md", b"handoff-a\nb.md", b"handoff-\x1b[0m.md"])
def test_a_name_that_is_no_line_of_text_is_passed_over(folder: Path, name: bytes) -> None:
    (folder / os.fsdecode(name)).write_text(WHOLE)
    assert not found(folder)
    assert documents.read_stamps(folder) == ()
    write(folder, "handoff-1.md", age_s=10)
    assert found(folder) == "handoff-1.md"


def dangle(place: Path) -> None:
    place.symlink_to(place.name)


def shut(place: Path) -> None:
    place.mkdir(mode=0)


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, dangle, shut])
@pytest.mark.parametrize("which", ["a", "a/b"])
def test_whatever_is_in_the_place_of_the_folder_is_an_error_that_can_be_told(
    tmp_path: Path, make: Callable[[Path], None], which: str
) -> None:
    (tmp_path / which).parent.mkdir(exist_ok=True)
    make(tmp_path / which)
    folder = tmp_path / "a" / "b" / "c"
    assert documents.find_written(folder, (), ()) is None
    documents.prune(folder, 0, never=folder)
    for call in (documents.prepare, documents.read_stamps):
        with contextlib.suppress(StateError):
            call(folder)


@pytest.mark.parametrize("name", [b"wor\xffk", b"l" * 300])
def test_a_working_directory_that_cannot_be_named_is_an_error_that_can_be_told(
    session: Session, tmp_path: Path, name: bytes
) -> None:
    place = tmp_path / "place"
    place.symlink_to(os.fsdecode(name))
    with contextlib.suppress(OSError):
        (tmp_path / os.fsdecode(name)).mkdir()
    with pytest.raises(StateError):
        documents.find_folder(session.change(cwd=place), CYCLE)


@pytest.mark.parametrize("named", ["a\0b", "/a\0b", "/a/\udcff"])
def test_a_folder_that_is_no_path_is_an_error_that_can_be_told(
    session: Session, named: str
) -> None:
    with pytest.raises(StateError, match="cannot use the path"):
        documents.prepare(documents.find_folder(session, structs.replace(CYCLE, folder=named)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_document_that_cannot_be_read_is_none(folder: Path) -> None:
    write(folder, "handoff-1.md").chmod(0)
    assert not found(folder)


def test_bytes_that_are_no_text_do_no_harm(folder: Path) -> None:
    (folder / "handoff-1.md").write_bytes(b"\xff\xfe## Notes\n\x00\n")
    document = documents.find_written(folder, (), ("Notes", "Next Steps"))
    assert document
    assert "Next Steps" in document.missing


def test_it_is_said_when_it_was_written_and_what_it_lacks(folder: Path) -> None:
    path = write(folder, "handoff-1.md", WHOLE.replace("## Notes\n", ""), age_s=7)
    document = documents.find_written(folder, (), CYCLE.sections)
    assert document
    assert document.path == str(path)
    assert document.written_at == pytest.approx(NOW - 7, abs=0.01)
    assert document.missing == ("Notes",)


@pytest.mark.sweep
def test_only_the_first_megabyte_is_looked_at(folder: Path) -> None:
    write(folder, "handoff-1.md", "x\n" * 600_000 + WHOLE)
    document = documents.find_written(folder, (), CYCLE.sections)
    assert document
    assert document.missing == CYCLE.sections


# Old ones


def asked_for(minute: int) -> str:
    """The name of a document that was asked for."""
    return f"handoff-2026-01-02-03-{minute:02}.md"


def test_old_documents_go_by_their_number(folder: Path) -> None:
    for age in range(6):
        write(folder, asked_for(age), age_s=age)
    documents.prune(folder, 3, never=folder / asked_for(5))
    left = sorted(path.name for path in folder.glob("handoff-*"))
    assert left == [asked_for(0), asked_for(1), asked_for(2), asked_for(5)]


def test_nothing_but_documents_is_ever_removed(folder: Path, tmp_path: Path) -> None:
    kept = write(tmp_path, "elsewhere.md")
    write(folder, "notes.md", age_s=100)
    (folder / asked_for(2)).mkdir()
    (folder / asked_for(3)).symlink_to(kept)
    write(folder, asked_for(1))
    documents.prune(folder, 0, never=folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [".gitignore", asked_for(2), asked_for(3), "notes.md"]
    assert kept.exists()


def test_what_people_have_named_themselves_is_never_removed(folder: Path) -> None:
    names = ["handoff-2026-01-02-03-04-b.md", "handoff-26-01-02-03-04.md", "handoff-guide-1.md"]
    for name in (*names, asked_for(1)):
        write(folder, name, age_s=100)
    documents.prune(folder, 0, never=folder)
    assert sorted(path.name for path in folder.glob("handoff-*")) == names


def test_what_git_tracks_is_never_removed(tree: Path) -> None:
    folder = tree / "docs"
    folder.mkdir()
    write(folder, asked_for(1), age_s=100)
    git(tree, "add", "docs")
    write(folder, asked_for(2), age_s=100)
    documents.prune(folder, 0, never=folder)
    assert [path.name for path in folder.iterdir()] == [asked_for(1)]


def test_where_git_does_not_tell_what_it_tracks_nothing_is_removed(tree: Path) -> None:
    folder = tree / "docs"
    folder.mkdir()
    write(folder, asked_for(1), age_s=100)
    (tree / ".git" / "index").write_bytes(b"damaged")
    documents.prune(folder, 0, never=folder)
    assert [path.name for path in folder.iterdir()] == [asked_for(1)]


# Right in the configured folder


def test_a_document_right_in_the_folder_counts_if_no_other_session_works_there(
    session: Session, folder: Path, root: Root
) -> None:
    old = write(folder.parent, "handoff-old.md")
    record = structs.replace(begin("r", Cause.COMMAND, NOW, "c"), folder=str(folder))
    record = structs.replace(record, beside=documents.read_stamps_beside(session, folder))
    assert documents.find_document(session, record) is None
    new = write(folder.parent, "handoff-new.md")
    found = documents.find_document(session, record)
    assert found
    assert found.path == str(new)
    own = write(folder, "handoff-own.md")
    found = documents.find_document(session, record)
    assert found
    assert found.path == str(own), "the session's own folder goes first"
    own.unlink()
    other = structs.replace(cast("AdHocSession", session).record, name="s-00000002")
    registry.create(root, AdHocSession(structs.replace(other, created_at=time.time())))
    assert documents.find_document(session, record) is None, "it may be the other's"
    assert documents.read_stamps_beside(session, folder) is None
    assert old.exists()
