"""A world in which every word of somebody else is an attack on the terminal that shows it."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from msgspec import structs

from sm.adapters.forge.local import forge as local
from sm.adapters.forge.local.check_folder import Verdict
from sm.adapters.forge.model import CheckState, InlineComment, ReviewState
from sm.config.load import load
from sm.context import health_log
from sm.context.rotation import Cause, begin
from sm.messages import queue
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, IssueSession
from sm.store import journal
from sm.store.files import append_line, ensure_private_dir, write_json
from sm.store.paths import Root
from tests.events import samples
from tests.helpers import Repository, git, put_session, put_snapshot

NOISE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[8m\x9b31m\x9d52;c;eA==\x9c\x7f\x08\u202e\u2066\u200b"
"""Clipboard, clear screen, conceal; the same by C1 controls; backspace; bidirectional, hidden."""
HOSTILE = f"evil{NOISE}\r\nsm: forged line\x85\u2028more\x00"
LONG = HOSTILE + "x" * 300_000
"""What people see of it is short."""
TITLE, NAME = HOSTILE + "x" * 900, HOSTILE + "x" * 100
"""As long as the forge takes a title and a name."""
FILE_NAME = f"evil{NOISE}\n\r.md"
MESSAGE = "0123456789abcdef"
BRANCH = "fix/evil\u202e\u009b31m\u2028"
"""All that git allows in the name of a branch."""
OWN_COLOURS = re.compile(r"\x1b\[(?:0|1|2|4|3[0-7]|1;3[0-7]|9[0-7]|[0-9;]*38;5;[0-9;]*)*m")
UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
    r"|[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Controls, line breaks of Unicode, what is no character, bidirectional and hidden ones."""


def unsafe(text: str) -> list[str]:
    """What of `text` a terminal would act upon, or would not show."""
    return [ascii(text[max(0, at.start() - 40) : at.end()]) for at in UNSAFE.finditer(text)]


@dataclass
class World:
    """One project with a session, a session for no issue, and records of all kinds."""

    folder: Path
    project: Project
    session: IssueSession
    other: AdHocSession
    thread: str

    @property
    def names(self) -> dict[str, str]:
        """What arguments of commands name."""
        return {
            "session": self.session.name,
            "other": self.other.name,
            "thread": self.thread,
            "folder": str(self.folder),
            "hostile": HOSTILE.replace("\0", ""),
        }


def make_world(folder: Path, root: Root, repository: Repository) -> World:
    """Fill `folder` and the state root."""
    config = folder / "sm.yaml"
    local.create(folder / "forge", repository.bare)
    config.write_text(yaml.safe_dump(_settings(folder, repository)))
    loaded = load(config, {}, folder)
    project = Project(loaded, loaded.projects[0])
    _fill_forge(project, repository, folder / "forge")
    session = put_session(project, 1, title=LONG, phase=f"PHASE:escalate\nReason: {HOSTILE}")
    _fill_session(root, session)
    other = _settle(root, folder)
    _fill_state(root, project)
    return World(folder, project, session, other, _begin_thread(folder))


def _settings(folder: Path, repository: Repository) -> dict[str, object]:
    return {
        "name": "harb",
        "repo": str(repository.clone),
        "forge": {"kind": "local", "path": str(folder / "forge")},
        "agent": {"command": "cat"},
        "ci": {"command": f"printf %s {shlex.quote(HOSTILE.replace(chr(0), ''))}; false"},
        "max_sessions": 1,
        "bridge_database": str(folder / "core.db"),
        "state_root": str(folder / "state"),
    }


def _fill_forge(project: Project, repository: Repository, forge: Path) -> None:
    git(repository.clone, "switch", "-q", "-c", BRANCH)
    words = HOSTILE.replace("\0", "")  # a file with NUL is binary to git, and none is in a message
    repository.commit("new.txt", f"{words}\n", words)
    project.forge.issues.add(TITLE, HOSTILE, labels=("backlog", HOSTILE), author=HOSTILE)
    project.forge.issues.add(HOSTILE, f"{HOSTILE}\nDepends on #1", labels=("backlog",), author=NAME)
    project.forge.issues.comment(1, HOSTILE, author=HOSTILE)
    pull = project.forge.pulls.open(BRANCH, "main", TITLE, HOSTILE, author=HOSTILE)
    remark = InlineComment(HOSTILE, 1, HOSTILE)
    project.forge.pulls.review(
        pull.number,
        ReviewState.CHANGES_REQUESTED,
        body=HOSTILE,
        comments=(remark,),
        author=HOSTILE,
    )
    checks = ensure_private_dir(forge / "checks" / pull.head)
    (checks / "log").write_text(HOSTILE)
    write_json(checks / "result.json", Verdict(CheckState.FAILURE, HOSTILE, 1, time.time()))
    (forge / "issues" / FILE_NAME).write_text(HOSTILE)
    (forge / "issues" / "0008.md").write_text(f"---\ntitle: {LONG!r}\nstate: open\n---\n")
    (forge / "issues" / "0009.md").write_text(f"---\n{HOSTILE}: [\n---\n")


def _fill_session(root: Root, session: IssueSession) -> None:
    session.dir.problem.write_text(HOSTILE)
    session.dir.problem.chmod(0o600)
    for log in (root.terminal_log("harb", 1), session.dir.monitor_log):
        log.write_text(f"{HOSTILE}\n" * 50)
        log.chmod(0o600)
    message = queue.Message(id=MESSAGE, text=HOSTILE, sender=HOSTILE, summary=HOSTILE)
    queue.put(session.dir, message)
    begun = begin("r-1", Cause.CYCLE, time.time() - 72, "old")
    failed = health_log.make_entry(
        begun, time.time(), project="harb", session=session.name, error=HOSTILE
    )
    assert health_log.append(root, failed)
    for one in samples(HOSTILE):
        journal.record(root.journal, structs.replace(one, session=session.name))


def _settle(root: Root, folder: Path) -> AdHocSession:
    place = folder / f"place{NOISE}"
    place.mkdir()
    session = AdHocSession(
        AdHocRecord(
            name="s-00000001",
            provider="generic",
            cwd=place,
            config=folder / "sm.yaml",
            state_root=root.path,
            created_at=time.time() - 50,
            command=HOSTILE,
            alias=f"ann{NOISE}",
        )
    )
    return registry.create(root, session)


def _fill_state(root: Root, project: Project) -> None:
    for name in (f"dev-harb-{NOISE}", f"evil{NOISE}\n", f"s-{LONG[:200]}".replace("\0", "")):
        foreign = ensure_private_dir(root.sessions / name)
        (foreign / "identity.json").write_text(HOSTILE)
        (foreign / "identity.json").chmod(0o600)
    append_line(root.journal, HOSTILE.replace("\n", "").encode())
    issues, problems = project.forge.issues.find()
    pulls, _ = project.forge.pulls.find()
    put_snapshot(project, *issues, *pulls, problems=tuple(problems))


def _begin_thread(folder: Path) -> str:
    from sm.plugins.chat import operations
    from sm.sessions import machine as machines

    made = operations.create(
        machines.load_here(folder / "sm.yaml"), HOSTILE, HOSTILE, client="chat"
    )
    return made.handoff.id
