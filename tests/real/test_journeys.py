"""The main job with the real Claude Code: bin/demo as a person runs it, its model a script."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.real import developer
from tests.real.api import Api, Failure, Request
from tests.real.client import FRUGAL, KEY, Clients

DEMO = Path(__file__).resolve().parents[2] / "bin" / "demo"
END_S = 240.0
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""What keeps the client from calling anybody but the scripted API; from its own settings."""

PASSED, APPROVED = "[sm] CI passed", "[sm] Review: approved"
HEARD = {
    1: ("You work on", PASSED, APPROVED),
    2: ("You work on", "[sm] CI failed", PASSED, APPROVED),
    3: ("You work on", PASSED, "[sm] Review of #", APPROVED),
    4: ("You work on", "You take over", PASSED, APPROVED),
    5: ("You work on", "[sm] A person answered", PASSED, APPROVED),
}
"""By issue: how the messages begin that its agent is to get, each once, in this order."""


@dataclass
class Person:
    """Whoever runs the demo: with a HOME that knows nothing of it, and a client on the PATH."""

    home: Path
    program: Path
    api: Api

    def __post_init__(self) -> None:
        """Make the HOME as that of somebody who uses the client, and trusts no folder yet."""
        (self.home / ".claude").mkdir(parents=True)
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))
        self.settings.write_text(json.dumps({"env": QUIET}))
        self.client.parent.mkdir()
        frugal = " ".join(f"{name}={value}" for name, value in FRUGAL.items())
        client = shlex.quote(str(self.program))
        self.client.write_text(f'#!/bin/sh\nexec env {frugal} {client} "$@"\n')
        self.client.chmod(0o755)

    @property
    def client(self) -> Path:
        """The client on the PATH."""
        return self.home / "bin" / "claude"

    @property
    def settings(self) -> Path:
        """The client's settings."""
        return self.home / ".claude" / "settings.json"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the demo."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.client.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.api.url,
            "SM_PYTHON": sys.executable,
        }

    def demo(self, *options: str) -> subprocess.Popen[str]:
        """Start it."""
        return subprocess.Popen(
            [DEMO, "--agent", "claude", "--plain", *options],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def person(pinned: Clients, api: Api, tmp_path: Path) -> Person:
    api.model = developer.model
    return Person(tmp_path / "person", pinned.claude, api)


@dataclass
class Seen:
    """What the files of the sessions showed while it ran, by session."""

    place: Path | None = None
    states: defaultdict[str, set[State]] = field(default_factory=lambda: defaultdict(set))
    events: dict[str, str] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def look_on(self) -> None:
        """Look until it is over."""
        while not self.over.wait(0.05):
            if self.place and (self.place / "state").is_dir():
                self._look(Root(self.place / "state"))

    def _look(self, root: Root) -> None:
        for folder in root.sessions.glob("dev-*"):
            directory = root.session(folder.name)
            self.states[folder.name].add(agent_state.read(directory).state)
            if root.idle_marker(folder.name).exists():
                self.marked.add(folder.name)
            try:
                self.events[folder.name] = directory.events.read_text()
            except FileNotFoundError:
                continue


@pytest.mark.timeout(END_S + 60)
def test_five_issues_are_merged_by_the_real_client(person: Person) -> None:
    seen = Seen()
    watcher = threading.Thread(target=seen.look_on)
    watcher.start()
    with person.demo("--yes") as demo:
        said = _said(demo, seen)
    seen.over.set()
    watcher.join()
    print(said)

    assert demo.returncode == 0
    assert "5 of 5 merged" in said
    for journey in ("mended the fault", "at a line", "recovered from", "went on with the answer"):
        assert journey in said
    _each_message_once(person.api.main)
    _protocol_in_every_prompt(person.api.main)
    _hooks_told(seen)
    _nothing_left(person, seen)


def _said(demo: subprocess.Popen[str], seen: Seen) -> str:
    """All that it prints, to its end."""
    assert demo.stdout is not None
    timer = threading.Timer(END_S, demo.terminate)
    timer.start()
    said = ""
    for line in demo.stdout:
        said += line
        if found := re.search(r"making a small project in (\S+)/textkit", line):
            seen.place = Path(found[1])
    timer.cancel()
    return said


def _of_issues(requests: list[Request]) -> list[Request]:
    """All but the one that only asks for a word."""
    return [request for request in requests if developer.orders(request)]


def _each_message_once(requests: list[Request]) -> None:
    heard: defaultdict[int, list[str]] = defaultdict(list)
    last = {request.session: request for request in _of_issues(requests)}
    for request in last.values():  # in the order of their beginning
        told = developer.orders(request)
        number = re.search(r"issue #(\d)", told[0])
        assert number, told[0]
        heard[int(number[1])] += told
        assert not [text for text in request.texts if "pasted" in text.lower()]
        lines = re.findall(r"^\[sm\] .*", "\n".join(request.texts), re.M)
        ours = [line for line in lines if "its text comes with this prompt" not in line]
        assert len(ours) == len(set(ours)), ours
    for issue, openings in HEARD.items():
        assert len(heard[issue]) == len(openings), (issue, heard[issue])
        for text, opening in zip(heard[issue], openings, strict=True):
            assert text.startswith(opening)
    assert "FAIL: test_result_fits_the_width" in heard[2][1]
    assert "textkit/names.py:6: an empty list ends in a ValueError here" in heard[3][2]
    assert "textkit/count.py" in heard[4][1].partition("git status --short:")[2]
    assert "Round up: a minute begun is a minute." in heard[5][1]


def _protocol_in_every_prompt(requests: list[Request]) -> None:
    for request in _of_issues(requests):
        assert request.system.count("How to signal. When a phase of the work ends") == 1
        issue = re.search(r"issue #(\d)", developer.orders(request)[0])
        assert issue
        assert f"dev-session-textkit-{issue[1]}.phase" in request.system


def _hooks_told(seen: Seen) -> None:
    assert len(seen.events) == 5
    for session, events in seen.events.items():
        assert {State.BUSY, State.IDLE} <= seen.states[session], session
        for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
            assert f" {event} " in events, session
    assert seen.marked == set(seen.events)


def _nothing_left(person: Person, seen: Seen) -> None:
    assert seen.place is not None
    assert not seen.place.exists()
    wait_for(lambda: not _processes_of(str(person.home)), "the end of its processes")
    assert not _processes_of(str(seen.place))
    assert json.loads(person.settings.read_text()) == {"env": QUIET}
    known = json.loads((person.home / ".claude.json").read_text())
    assert not [p for p in known.get("projects", {}).values() if p.get("hasTrustDialogAccepted")]
    assert not (person.home / ".gitconfig").exists()


def _processes_of(text: str) -> list[str]:
    """The command lines of all that has the text in its environment."""
    found = []
    for process in Path("/proc").glob("[1-9]*"):
        try:
            if (
                process.name != str(os.getpid())
                and os.fsencode(text) in (process / "environ").read_bytes()
            ):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def test_an_interrupted_one_leaves_no_client_behind(person: Person) -> None:
    said = ""
    with person.demo("--yes") as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            said += line
            if "#2   started the agent" in line:
                break
        assert _processes_of(str(person.home))
        os.killpg(demo.pid, signal.SIGINT)
        said += demo.stdout.read()

    assert demo.returncode == 130, said
    wait_for(lambda: not _processes_of(str(person.home)), "the end of its processes")
    assert "all is stopped" in said
    assert not list(person.home.parent.glob("sm-demo-*"))


def test_nobody_is_charged_unasked(person: Person) -> None:
    with person.demo() as demo:
        said = demo.communicate(timeout=HANG_S)[0]

    assert demo.returncode == 2
    assert "an estimate" in said.lower()
    assert "say '--yes'" in said
    assert not person.api.seen


def test_a_person_may_say_no(person: Person) -> None:
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(
        [DEMO, "--agent", "claude"],
        env=person.environ,
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.write(ours, b"no\n")
    with demo:
        said = demo.communicate(timeout=HANG_S)[0]
    os.close(ours)
    os.close(theirs)

    assert demo.returncode == 1
    assert said.endswith("Go on? [y/N] nothing was started\n")
    assert not person.api.seen


def test_a_client_without_a_login_is_told_of_at_once(person: Person) -> None:
    person.api.model = lambda _: Failure(401)
    with person.demo("--yes") as demo:
        said = demo.communicate(timeout=HANG_S)[0]

    assert demo.returncode == 1
    assert "does not answer: " in said
    assert "401" in said
    assert "start 'claude' yourself" in said
    assert "making a small project" not in said


def test_a_missing_client_is_named(person: Person) -> None:
    person.client.unlink()
    with person.demo("--yes") as demo:
        said = demo.communicate(timeout=HANG_S)[0]

    assert demo.returncode == 1
    assert "no 'claude' on PATH" in said
