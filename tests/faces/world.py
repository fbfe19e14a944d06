"""A machine with two projects, on which random things happen, one after another, from a seed.

What is of `sm` is real: its passes and ticks, its files, the embedded forge over git, tmux, and the
hooks that an agent's client calls. The agents are puppets whose keys the world presses. It is also
what monitors, the notifier and CI would be, so that nothing happens between two steps.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sm.__main__ import run
from sm.adapters.forge.local import forge as local
from sm.adapters.forge.local.check_folder import CheckFolder, Verdict
from sm.adapters.forge.model import CheckState, IssueState, PullRequest, PullState
from sm.base.errors import SmError
from sm.config.load import load_any
from sm.config.schema import Config
from sm.issues.act.reactor import react
from sm.issues.look.snapshot import look
from sm.issues.poll import tick
from sm.messages import suspension
from sm.plugins.cost import follower
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.progress import has_grown
from sm.plugins.cost.settings import find_folder, find_ledger
from sm.plugins.notify.model import HeldWord
from sm.plugins.notify.outbox import Post
from sm.sessions import agent_state, registry
from sm.sessions.agent_state import State
from sm.sessions.machine import Machine, load_here
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import Root, SessionDir
from sm.views.news import Followed, read_news
from tests.chance import dice
from tests.e2e.stage import PUPPET
from tests.faces.book import Account, Book, Doing
from tests.faces.deeds import DEEDS, EVENTS, HOOKS, WITH_A_BROKEN_CONFIGURATION, Deed
from tests.helpers import make_repository, wait_for
from tests.teardown import end_sessions
from tests.viewer import Viewer

NAMES = ("harb", "shop")
NEWS = re.compile(r"[\d:]{8} (\S+): #(\d+) (.*)")
NEAR = 0.7
"""How often only the session has a pass that something has happened to."""
MOST = 2
"""Issues of a project that are open at the same time."""


def _leave() -> None:
    """Nothing ends with the step."""


class World:
    """All of it. `books` is the truth, `lines` what `dev-poll` has printed at its ticks."""

    def __init__(self, folder: Path, root: Root, seed: int) -> None:
        """Begin with an issue in each project."""
        self.folder, self.root, self.seed = folder, root, seed
        self.dice = dice(seed)
        self.story: list[str] = []
        self.books: dict[tuple[str, int], Book] = {}
        self.lines: list[str] = []
        self.paused: set[str] = set()
        self.left_out: dict[str, dict[str, Any]] = {}
        self.is_config_broken = False
        self.own: dict[str, Doing] = {}
        """Sessions of `sm new`, and what their agents are at."""
        self.clock_s = 0.0
        """How far the clock was set forward since the beginning."""
        self.was_behind = False
        """Whether it was set back behind that of hooks, which nobody sets."""
        self.account = Account()
        self.is_calm = False
        """Whether nothing has followed yet from what has happened last."""
        self.there: dict[str, bool] = {}
        """Sessions that a host shows, and whether they need a person."""
        self.to_clear: Callable[[], None] = _leave
        """What ends with the step."""
        self._loaded: tuple[str, Config] | None = None
        self._counted = 0
        self._read = 0
        self._stack = contextlib.ExitStack()
        self._checks: dict[tuple[str, str], contextlib.ExitStack] = {}
        self.repositories = {name: make_repository(folder / name) for name in NAMES}
        for name, repository in self.repositories.items():
            local.create(folder / name / "forge", repository.bare)
        self.config = folder / "sm.yaml"
        self.settings = self._make_settings()
        self.write_config()
        os.environ["SM_CONFIG"] = str(self.config)
        self.machine: Machine = load_here(self.config)
        self._be_notifier()

    def _make_settings(self) -> dict[str, Any]:
        command = shlex.join([sys.executable, "-S", "-E", str(PUPPET)])
        env = {
            "PUPPET_LOG": str(self.folder / "puppet.jsonl"),
            "PUPPET_AUTO": "0",
            "PUPPET_HOOKS": str(HOOKS),
            "PUPPET_TRANSCRIPTS": str(self.folder),
        }
        for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            env[name] = os.environ[name]
        profile = {"hooks": "claude", "busy": ["^thinking"], "spending": "claude"}
        projects = [
            {
                "name": name,
                "repo": str(self.repositories[name].clone),
                "forge": {"kind": "local", "path": str(self.folder / name / "forge")},
                "agent": {"command": command, "env": env, "profile": "puppet"},
                "ci": {"command": "true", "poll": "1s"},
                "recovery": {"pause": "1s"},
                "trusted": ["ada", "rita"],
                "max_sessions": 8,
            }
            for name in NAMES
        ]
        return {
            "profiles": {"puppet": profile},
            "notify": {"channels": {"phone": {"url": "json://127.0.0.1:9/"}}},
            "projects": projects,
        }

    def _be_notifier(self) -> None:
        """Have `sm` find a notifier at work, which never sends: what is to be told stays there."""
        post = Post(self.root)
        for folder in (self.root.private, self.root.plugins, post.path, find_folder(self.root)):
            ensure_private_dir(folder)
        os.mkfifo(post.wake, 0o600)
        fd = os.open(post.wake, os.O_RDWR | os.O_NONBLOCK)
        self._stack.callback(os.close, fd)

    def write_config(self) -> None:
        """Write the configuration as it is meant to be."""
        self.config.write_text(yaml.safe_dump(self.settings))

    # What there is

    @property
    def projects(self) -> list[Project]:
        """The projects of the configuration as it is meant to be, opened anew."""
        if self.is_config_broken:
            return []
        text = self.config.read_text()
        if self._loaded is None or self._loaded[0] != text:
            self._loaded = text, load_any(self.config, os.environ, self.folder)
        found = self._loaded[1]
        return [Project(found, one) for one in found.projects]

    def project(self, name: str) -> Project:
        """One of them."""
        return next(one for one in self.projects if one.name == name)

    def list_names(self) -> list[str]:
        """The names of the projects that are in the configuration."""
        return [one["name"] for one in self.settings["projects"]]

    def list_with_room(self) -> list[str]:
        """The projects that may have one more issue."""
        open_ones = [book.project for book in self.books.values() if self.is_open(book)]
        return [one for one in self.list_names() if open_ones.count(one) < MOST]

    def is_open(self, book: Book) -> bool:
        """Whether its issue is open on the forge."""
        if book.project not in self.list_names():
            return False
        issue = self.project(book.project).forge.issues.read(book.issue)
        return issue.state is IssueState.OPEN

    def is_blocked(self, book: Book) -> bool:
        """Whether the forge has the label on its issue."""
        if book.project not in self.list_names():
            return False
        issue = self.project(book.project).forge.issues.read(book.issue)
        return issue.state is IssueState.OPEN and "blocked" in issue.labels

    def find_pull(self, book: Book) -> PullRequest | None:
        """Its pull request, if that is open."""
        if book.project not in self.list_names():
            return None
        project = self.project(book.project)
        pull = project.forge.pulls.find_newest(project.settings.branch(book.issue))
        return pull if pull and pull.state is PullState.OPEN else None

    def directory(self, book: Book) -> SessionDir:
        """Its session's files."""
        return self.root.session(book.session)

    def has_session(self, book: Book) -> bool:
        """Whether it is worked on."""
        return self.directory(book).identity.exists()

    def list_worked_on(self) -> set[str]:
        """The names of all issues that are worked on."""
        return {one.name for one in self.books.values() if self.has_session(one)}

    def has_budget(self, book: Book) -> bool:
        """Whether its project has set a limit."""
        return any(
            "budget" in one for one in self.settings["projects"] if one["name"] == book.project
        )

    def count(self) -> int:
        """Return the next number."""
        self._counted += 1
        return self._counted

    def stamp(self) -> str:
        """Now, as a client writes it into its transcript."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))

    # What deeds need

    def start_stand_in(self) -> int:
        """Start a process that does nothing until the world ends; return its id."""
        process = subprocess.Popen(["sleep", "infinity"])
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process.pid

    def sm(self, *args: str) -> tuple[int, str]:
        """Call `sm` as a person does; return the exit code, and what it said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run(list(args))
        return code, said.getvalue()

    def show_screen(self, book: Book, text: str) -> None:
        """Have the agent's screen show this, and nothing else."""
        tmux = self.machine.tmux
        pane = tmux.pane(book.session)
        assert pane is not None
        tty = tmux.command("display-message", "-p", "-t", pane.id, "#{pane_tty}").strip()
        Path(tty).write_text(f"\x1b[2J\x1b[H{text}")
        wait_for(lambda: text.strip() in tmux.capture(pane.id), "the screen")

    def attach(self, book: Book, *, read_only: bool) -> Viewer:
        """Have a person come to its terminal."""
        argv = ["tmux", "-L", os.environ["SM_TMUX_SOCKET"], "attach", "-t", f"={book.session}"]
        viewer = Viewer([*argv, *(["-r"] if read_only else [])])
        tmux = self.machine.tmux
        wait_for(
            lambda: book.session in tmux.command("list-client", "-F", "#{session_name}").split(),
            "the person",
        )
        return viewer

    def detach(self, book: Book) -> None:
        """Have the person leave."""
        assert book.viewer
        book.viewer.close()
        tmux = self.machine.tmux
        wait_for(
            lambda: book.session not in tmux.command("list-client", "-F", "#{session_name}"),
            "the person to have left",
        )

    def read_keyed_at(self, book: Book) -> float:
        """When a key was pressed in its terminal last."""
        pane = self.machine.tmux.pane(book.session)
        return pane.keyed_at if pane else 0.0

    def begin_ci(self, book: Book) -> None:
        """Have CI be at work on what is about to be pushed."""
        held = self._checks[book.project, book.head] = contextlib.ExitStack()
        folder = self._check(book)
        folder.path.mkdir(parents=True, exist_ok=True)
        held.enter_context(lock.hold(folder.lock))

    def end_ci(self, book: Book, *, passes: bool) -> None:
        """Have CI come to its result."""
        folder, state = self._check(book), CheckState.SUCCESS if passes else CheckState.FAILURE
        folder.log.write_text("ran\n")
        write_json(folder.result, Verdict(state, "" if passes else "test", 1 - passes, time.time()))
        self._checks.pop((book.project, book.head)).close()
        book.ci = str(state)

    def _check(self, book: Book) -> CheckFolder:
        return CheckFolder(self.folder / book.project / "forge" / "checks" / book.head)

    def begin_again(self, book: Book) -> None:
        """Have an issue be taken up by another agent."""
        book.phase, book.answered, book.doing = "", False, Doing.BUSY

    def repair(self, book: Book) -> None:
        """Put the record of its session back."""
        if book.record and (path := self.directory(book).identity).exists():
            path.write_bytes(book.record)
        book.record = b""

    # A step

    def step(self, wanted: str = "") -> str:
        """Let one thing happen, and then what follows from it; return it in words.

        It is the `wanted` one, to whatever it can happen to, or else any.
        """
        self.to_clear()
        self.to_clear, self.there = _leave, {}
        chances = [one for one in self._list_chances() if wanted in ("", one[1])]
        assert chances, f"'{wanted}' can happen to nothing: {self.story} {[*self.books.values()]}"
        [(_, name, deed, book)] = self.dice.choices(chances, [one[0] for one in chances])
        words = f"{book.name} {deed(self, book)}" if book else deed(self)
        self.story.append(words)
        self.is_calm = not book and {**EVENTS, **WITH_A_BROKEN_CONFIGURATION}[name].calm
        if not self.is_calm:
            self.settle(book if self.dice.random() < NEAR else None)
        return words

    def _list_chances(self) -> Any:
        events = WITH_A_BROKEN_CONFIGURATION if self.is_config_broken else EVENTS
        for name, event in events.items():
            if event.fits(self):
                yield event.weight, name, event.do, None
        for name, deed in DEEDS.items():
            for book in self.books.values():
                if self._can(deed, book):
                    yield deed.weight, name, deed.do, book

    def _can(self, deed: Deed, book: Book) -> bool:
        return book.project in self.list_names() and (
            not self.is_config_broken and deed.fits(self, book)
        )

    def settle(self, book: Book | None = None) -> None:
        """Have dev-poll tick, and each session have its pass; with a `book` those of that alone."""
        projects = [one for one in self.projects if not book or one.name == book.project]
        if projects:
            suspension.align(self.root)
        for project in projects:
            with contextlib.suppress(SmError):
                look(project)
                self.lines += [f"{project.name}: {line}" for line in tick(project)]
        living = {one.name: registry.list_for(one, lambda _: None) for one in projects}
        for project in projects:
            for session in living[project.name]:
                if book and session.issue != book.issue:
                    continue
                self._await_agent(session.name)
                with contextlib.suppress(SmError):
                    react(Project(project.config, project.settings), session.name)
                self._await_agent(session.name)
                if session.dir.identity.exists():
                    self._follow_costs(session)
            if any(not one.dir.identity.exists() for one in living[project.name]):
                # As dev-poll --loop does once a session has ended.
                self.lines += [f"{project.name}: {line}" for line in tick(project)]
        self.take_in()
        self._hear_news()

    def _hear_news(self) -> None:
        """What dev-poll --loop prints of the journal."""
        followed = [Followed(name) for name in NAMES]
        lines, self._read = read_news(self.root.journal, self._read, followed)
        for line in lines:
            found = NEWS.match(line)
            if found and (book := self.books.get((found[1], int(found[2])))):
                book.news.append(found[3])

    def list_words(self) -> list[HeldWord]:
        """What is to be told by the services of `notify.channels`."""
        return [word for box in Post(self.root).list_all() for word in box.list_waiting()]

    def _follow_costs(self, session: IssueSession) -> None:
        """What a pass has done beside it, and what nobody waits for."""
        if has_grown(session):
            follower.follow(session)
            with open_ledger(find_ledger(session.machine.settings)) as ledger:
                price_pending(ledger)

    def _await_agent(self, name: str) -> None:
        """Wait until an agent that was started has called its hooks."""
        directory = self.root.session(name)

        def is_ready() -> bool:
            return agent_state.read(directory).state is not State.STARTING

        if directory.identity.exists():
            wait_for(is_ready, f"the agent of {name}")

    def take_in(self) -> None:
        """Learn from the puppets' log what agents were told: with it a turn begins."""
        log = self.folder / "puppet.jsonl"
        told: dict[tuple[str, int], int] = {}
        for line in log.read_text().splitlines() if log.exists() else ():
            entry = json.loads(line)
            if entry["kind"] == "message":
                project, _, number = entry["session"].removeprefix("dev-").rpartition("-")
                key = project, int(number)
                told[key] = told.get(key, 0) + 1
        for key, number in told.items():
            book = self.books[key]
            if number > book.prompts:
                book.prompts, book.doing = number, Doing.BUSY
                self.account.ask(book.name)

    def end(self) -> None:
        """End all that was started."""
        for book in self.books.values():
            if book.viewer:
                book.viewer.close()
            self.repair(book)
        self.is_config_broken = False
        self.settings["projects"] += self.left_out.values()
        self.write_config()
        end_sessions(self.root)
        for held in self._checks.values():
            held.close()
        self._stack.close()
