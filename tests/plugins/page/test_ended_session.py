"""What is left of a session that is over, and the handoff documents of all its contexts."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from sm.adapters.agent.profiles import GENERIC
from sm.context import rotation_files
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.plugins.page.session_parts import MessageStage, list_messages
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.events import RotationStep
from sm.store.files import ensure_private_dir
from tests.helpers import put_session
from tests.plugins.page.client import Browser
from tests.plugins.page.offered import find_here

NAME = "dev-harb-3"
PAGE = f"/page/session/{NAME}"


def write_document(project: Project, folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    project.record(events.Rotation(session=NAME, step=RotationStep.DOCUMENT, document=str(path)))
    return path


@pytest.fixture
def ended(project: Project) -> Project:
    """A project whose issue 3 is merged."""
    project.record(events.Started(session=NAME, title="Add a <checkout>"))
    project.record(events.StepDone(session=NAME, verb=StepVerb.OPEN_PULL, result="#24"))
    project.record(events.Decided(session=NAME, row="merged"))
    project.record(events.StepDone(session=NAME, verb=StepVerb.FORGET))
    ensure_private_dir(project.root.logs)
    log = project.root.logs / f"{NAME}.1.log"
    log.write_text("\x1b[31mworking\x1b[0m\r\n\x1b[2J\x1b[HAll <b>done</b>.\r\n")
    log.chmod(0o600)
    return project


def test_a_session_that_is_over_says_what_came_of_it(ended: Project, browser: Browser) -> None:
    page = browser.get(PAGE).text
    assert "harb#3" in page
    assert "Add a &lt;checkout&gt;" in page
    assert '<p class="outcome">merged, ' in page
    assert "pull request 24" in page
    assert "opened the pull request" in page
    assert "data-position" not in page, "nothing of it changes any more"
    screen = browser.get(f"{PAGE}/screen").text
    assert "All &lt;b&gt;done&lt;/b&gt;." in screen
    assert "\x1b" not in screen
    assert "No handoff document" in browser.get(f"{PAGE}/documents").text


def test_it_links_to_its_pull_request_and_its_issue_on_a_forge(
    ended: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(ended.settings.forge)
    monkeypatch.setattr(kind, "link_pull", lambda _, number: f"https://forge.example/p/{number}")
    monkeypatch.setattr(kind, "link_issue", lambda _, number: "javascript:alert(1)")
    page = browser.get(PAGE).text
    assert 'href="https://forge.example/p/24"' in page
    assert "javascript" not in page


def test_all_handoff_documents_stay_in_reach(
    project: Project, browser: Browser, tmp_path: Path
) -> None:
    session = put_session(project, 3)
    folder = tmp_path / "handoffs"
    folder.mkdir()
    write_document(project, folder, "handoff-a.md", "# First <b>")
    gone = write_document(project, folder, "handoff-b.md", "# Second")
    last = write_document(project, folder, "handoff-c.md", "# Third")
    rotation_files.keep(session.dir, last)
    rotation_files.note_begun(session.dir, last, "c", kept=True)
    gone.unlink()
    assert f"{PAGE}/documents" in browser.get(PAGE).text
    last.write_text("# Changed since")
    found = browser.get(f"{PAGE}/documents").text
    assert found.index("# Third") < found.index("not there any more") < found.index("First &lt;b")
    shutil.rmtree(session.dir.path)
    over = browser.get(f"{PAGE}/documents").text
    assert "First &lt;b&gt;" in over
    assert "# Changed since" in over


def test_a_document_is_no_link_and_no_device(
    project: Project, browser: Browser, tmp_path: Path
) -> None:
    put_session(project, 3)
    secret = tmp_path / "secret"
    secret.write_text("hidden words")
    link = tmp_path / "handoff-x.md"
    link.symlink_to(secret)
    for path in (str(link), "/dev/zero", "\x00", str(tmp_path)):
        project.record(events.Rotation(session=NAME, step=RotationStep.DOCUMENT, document=path))
    found = browser.get(f"{PAGE}/documents")
    assert found.status_code == 200
    assert "hidden words" not in found.text
    assert found.text.count("not there any more") == 4


# Messages


def put(session: IssueSession, ident: str, place: MessageFolder) -> None:
    message = Message(id=ident, text=f"about {ident}", mode=Mode.SEQUENTIAL)
    assert queue.put(session.dir, message)
    order = list(MessageFolder)
    for before, after in pairwise(order[: order.index(place) + 1]):
        assert queue.move(session.dir, message, before, after)


def test_a_message_is_waiting_then_typed_then_seen(project: Project, browser: Browser) -> None:
    session = put_session(project, 3)
    for ident, place in (
        ("aaaaaaaa", MessageFolder.WAITING),
        ("bbbbbbbb", MessageFolder.HANDED),
        ("cccccccc", MessageFolder.DONE),
    ):
        put(session, ident, place)

    def stages() -> dict[str, MessageStage]:
        return {one.message.id[0]: one.stage for one in list_messages(find_here(session))}

    assert session.profile.hooks
    assert stages() == {"a": MessageStage.WAITING, "b": MessageStage.TYPED, "c": MessageStage.SEEN}
    found = browser.get(f"{PAGE}/messages").text
    assert found.index("about aaaaaaaa") < found.index("about bbbbbbbb")
    assert "the agent has not confirmed it yet" in found
    session.__dict__["profile"] = GENERIC
    assert stages() == {"a": MessageStage.WAITING, "b": MessageStage.TYPED, "c": MessageStage.TYPED}
