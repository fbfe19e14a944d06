"""The states that the golden files show: a machine with two projects, and what is on it.

All that makes them by functions of `sm` is imported here, so that a module that is renamed is
changed in one place. Nothing runs but processes that stand in for the agents.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import httpx2
import yaml
from msgspec import structs, to_builtins
from msgspec.json import encode as encode_json
from msgspec.json import format as format_json
from rich.console import Console

import sm.__main__ as main
from sm.adapters import procfs
from sm.adapters.forge.local import forge as local
from sm.adapters.forge.local.check_folder import CheckFolder, Verdict
from sm.adapters.forge.model import CheckState, InlineComment, ReviewState
from sm.adapters.tmux_start import start_session
from sm.base import plugin
from sm.base.need import NeedKind
from sm.cli.invocation import Invocation
from sm.cli.status import open_watched
from sm.config.load import load
from sm.context import health_log
from sm.context.rotation import Cause, begin
from sm.issues import placements
from sm.issues.look import phase_file
from sm.issues.look.snapshot import snapshot
from sm.issues.look.tick_record import Clock, Polled
from sm.issues.rules.needs import Case
from sm.issues.runners import KnownState, NodeRow, Placement, Standing
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.plugins import OURS
from sm.plugins.chat import operations
from sm.plugins.cost.settings import find_ledger
from sm.plugins.notify.outbox import Post
from sm.plugins.top.feed import Feed
from sm.plugins.top.lines import UNICODE, Look
from sm.plugins.top.splash import draw
from sm.sessions import account_faults, agent_state, plan, registry
from sm.sessions.activity import Evidence, Proof
from sm.sessions.agent import Agent
from sm.sessions.history import Count, Receipt, StepVerb
from sm.sessions.machine import Machine, load_here
from sm.sessions.project import Project
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, AnySession, IssueSession
from sm.store import journal, lock
from sm.store.files import ensure_private_dir, write_atomic, write_json
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from sm.views.projects import ProjectsReader
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from tests.conftest import end_tmux
from tests.events import samples
from tests.golden.clock import CLOCK, NOW, date_files
from tests.helpers import git, make_repository, put_session
from tests.issues import farm
from tests.plugins.page.client import PLEDGE, Browser, make_server
from tests.plugins.page.past import spend, tell_weeks, use

TITLES = {
    1: "Parse durations like 1h30m",
    2: "Say which version it is",
    3: "Read the configuration again on SIGHUP",
    4: "Remove the old cache",
    5: "Time out after a minute",
    6: "Rotate the logs",
    7: "Name the colours of the theme",
    8: "Import addresses from a spreadsheet",
    9: "Mend the search for words with an umlaut, which finds nothing at all in long texts",
    10: "Draw the chart again",
    11: "Store the session in a cookie",
    12: "Write a test for the parser",
    13: "Split the settings into pages",
    14: "Send the invoice twice a month",
    15: "Put the words of the page into a table",
    16: "Give the API a version",
    17: "Show the total",
    18: "Answer requests for a favicon",
    19: "Begin with a calm page",
}
"""Of the issues of `harb`. What has come of each say `_fill_forge` and `_make_sessions`."""
CRASHED = 12
"""The issue whose agent has died."""
THERE = 16
"""The issue of which another host has the session."""
ANN, BEN = "s-000000a1", "s-000000b2"
"""Sessions of a person's own; the first has begun the second."""
DEAF = "stty -echo; printf 'at work'; exec tail -f /dev/null"
"""An agent that hears nothing, and shows no input line, so that nothing is typed to it."""
LOST_LOGIN: dict[str, Any] = {
    "error": "authentication_failed",
    "last_assistant_message": "Please run /login",
}
SPENT: dict[str, Any] = {
    "error": "rate_limit",
    "last_assistant_message": "You've hit your limit · resets 3pm (UTC)",
}


@dataclass
class World:
    """The machine, with what its arguments are called."""

    folder: Path
    root: Root
    machine: Machine
    harb: Project
    shop: Project
    thread: str = ""
    words: dict[str, str] = field(default_factory=dict)
    """What is another one in each run, and the word that stands for it."""

    def session(self, issue: int) -> IssueSession:
        """The session of an issue of `harb`."""
        return registry.load_for(self.harb, issue)


@contextmanager
def made(folder: Path) -> Iterator[World]:
    """Make the machine, and end what stands in for its agents."""
    with ExitStack() as stack:
        ensure_private_dir(folder / "farm")
        stack.enter_context(patch.dict(os.environ, {"SM_TEST_FARM": str(folder / "farm")}))
        found = [*OURS.items(), ("farm", f"{farm.__name__}:PLUGIN")]
        stack.enter_context(patch.object(main, "find_plugins", lambda: found))
        plugin.use(lambda: found)
        stack.callback(plugin.use, OURS.items)
        config = _configure(folder)
        stack.enter_context(patch.dict(os.environ, {"SM_CONFIG": str(config)}))
        loaded = load(config, os.environ, folder)
        harb, shop = (Project(loaded, one) for one in loaded.projects)
        machine = load_here(config)
        world = World(folder, machine.root, machine, harb, shop)
        stack.callback(end_tmux, os.environ["SM_TMUX_SOCKET"])
        _fill(world, stack)
        yield world


def _configure(folder: Path) -> Path:
    projects: list[dict[str, Any]] = []
    for name in ("harb", "shop"):
        repository = make_repository(folder / name)
        local.create(folder / name / "forge", repository.bare)
        projects.append(
            {
                "name": name,
                "repo": str(repository.clone),
                "forge": {"kind": "local", "path": str(folder / name / "forge")},
                "agent": {"command": "agent-of-no-one", "profile": "claude"},
                "ci": {"command": "make test"},
                "trusted": ["ada", "rita"],
                "max_sessions": 20,
            }
        )
    projects[0] |= {"budget": {"issue": "$5", "session": "2M tokens"}}
    config = folder / "sm.yaml"
    said = {
        "state_root": str(folder / "state"),
        "budget": {"day": "$500"},
        "keep_free": {"disk": 0, "memory": 0},  # else a full machine would be told of
        "notify": {"channels": {"phone": {"url": "json://127.0.0.1:9/"}}},
        "bridge_database": str(folder / "core.db"),
        "projects": projects,
    }
    config.write_text(yaml.safe_dump(said))
    return config


def _fill(world: World, stack: ExitStack) -> None:
    _be_notifier(world, stack)
    _tell_past(world)
    with CLOCK.ago(7200):
        _fill_forge(world, stack)
    _make_sessions(world, stack)
    _make_own(world, stack)
    _place_there(world)
    _spend(world)
    _fill_journal(world)
    with CLOCK.ago(30):
        for project in (world.harb, world.shop):
            snapshot(project, newer_than=CLOCK.at)
    ticked = Clock(NOW - 20.0, boot="of another start of the machine")
    write_json(world.harb.directory.polled, Polled(ticked))
    stopped = Clock(NOW - 900.0, boot="of another start of the machine")
    write_json(world.shop.directory.polled, Polled(stopped))
    date_files(world.folder, 60)


def _be_notifier(world: World, stack: ExitStack) -> None:
    """Have `sm` find a notifier at work, which never sends: what is to be told stays there."""
    post = Post(world.root)
    for folder in (world.root.private, world.root.plugins, post.path):
        ensure_private_dir(folder)
    os.mkfifo(post.wake, 0o600)
    stack.callback(os.close, os.open(post.wake, os.O_RDWR | os.O_NONBLOCK))


def _tell_past(world: World) -> None:
    """Weeks of work that are over, in the journal and the ledger."""
    ledger = find_ledger(world.machine.settings)
    tell_weeks(world.root, ledger, days=21, projects=("shop",))


# The forge


def _fill_forge(world: World, stack: ExitStack) -> None:
    issues = world.harb.forge.issues
    for number, title in TITLES.items():
        labels = ("backlog",) if number > 16 else ("in-progress",)
        issues.add(title, f"{title}, please.\n", labels=labels, author="ada")
    issues.edit(18, body="It depends on the other.\n\nDepends on #17\n")
    issues.add_label(19, "blocked")
    issues.comment(3, "Which signal is it?", author="rita")
    world.shop.forge.issues.add("Add a checkout", "With two steps.", labels=(), author="rita")
    world.shop.forge.issues.add("Take cards", "", labels=("backlog",), author="ada")
    for number, verdict in (
        (2, CheckState.SUCCESS),
        (5, CheckState.FAILURE),
        (9, CheckState.SUCCESS),
        (10, CheckState.SUCCESS),
        (15, CheckState.PENDING),
    ):
        stack.enter_context(_offer(world.harb, number, verdict))
    pulls = world.harb.forge.pulls
    changes = pulls.find_newest(world.harb.settings.branch(10))
    merged = pulls.find_newest(world.harb.settings.branch(9))
    assert changes
    assert merged
    pulls.review(
        changes.number,
        ReviewState.CHANGES_REQUESTED,
        body="The axis is wrong.",
        comments=(InlineComment("work-10.txt", 1, "Begin at 0."),),
        author="rita",
        head=changes.head,
    )
    pulls.review(merged.number, ReviewState.APPROVED, author="rita", head=merged.head)
    pulls.merge(merged.number, author="rita")
    for pull in (pulls.read(merged.number), pulls.read(changes.number)):
        for review in pull.reviews:
            world.words[review.id] = f"{{review of {pull.number}}}"


def _add_worktree(project: Project, issue: int) -> Path:
    settings = project.settings
    worktree = settings.worktree(issue)
    if not worktree.exists():
        git(settings.repo, "worktree", "add", "-q", "-b", settings.branch(issue), str(worktree))
    return worktree


@contextmanager
def _offer(project: Project, issue: int, state: CheckState) -> Iterator[None]:
    """Push a commit for the issue, open its pull request, and have CI say this of it.

    CI that is still at work is for as long as this lasts.
    """
    worktree, branch = _add_worktree(project, issue), project.settings.branch(issue)
    (worktree / f"work-{issue}.txt").write_text(f"work on {issue}\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", f"work on {issue}")
    git(worktree, "push", "-q", "origin", "HEAD")
    pull = project.forge.pulls.open(branch, "main", TITLES[issue], f"Closes #{issue}", author="sm")
    checks = CheckFolder(ensure_private_dir(_find_checks(project) / pull.head))
    checks.log.write_text("compiling\nrunning 12 tests\ntest_timeout: expected 60, got 0\n")
    step = "make test" if state is CheckState.FAILURE else ""
    code = 1 if state is CheckState.FAILURE else 0
    if state is not CheckState.PENDING:
        write_json(checks.result, Verdict(state, step, code, NOW - 7000, 12.5))
        yield
        return
    with lock.hold(checks.lock):
        yield


def _find_checks(project: Project) -> Path:
    return project.settings.repo.parent / "forge" / "checks"


# Sessions of issues


def _make_sessions(world: World, stack: ExitStack) -> None:
    project = world.harb
    phases = {
        2: "PHASE:awaiting_review\n",
        3: "PHASE:escalate\nReason: Which signal?\n- SIGHUP\n- SIGUSR1\n",
        5: "PHASE:awaiting_ci\n",
        9: "PHASE:done\n",
        10: "PHASE:awaiting_review\n",
        13: "PHASE:perhaps\n",
        15: "PHASE:awaiting_ci\n",
    }
    for issue in range(1, 16):
        age_s = 3600.0 + 100 * issue
        with CLOCK.ago(age_s):
            session = put_session(
                project, issue, TITLES[issue], age_s=0, alive=False, phase=phases.get(issue, "")
            )
        _be_of_claude(session)
        _add_worktree(project, issue)
        phase = world.root.phase(project.name, issue)
        os.utime(phase, (NOW - 1800,) * 2)
        written = phase_file.read(world.root, project.name, issue)
        if written and written.id:
            world.words[written.id] = f"{{write of {issue}}}"
        if issue != CRASHED:
            _be_alive(world, session, stack)
    _tell_agents(world)
    _note_receipts(world)
    _write_files(world)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main.run(["pause", "harb#7", "--reason", "until tomorrow"]) == 0


def _be_of_claude(session: IssueSession) -> None:
    """Have it on record that the agent is Claude Code, which has hooks."""
    write_json(session.dir.identity, structs.replace(session.record, provider="claude"))


def _be_alive(world: World, session: AnySession, stack: ExitStack) -> None:
    """Have a program in its terminal stand in for its agent, and lock what its monitor would."""
    pane = start_session(world.machine.tmux, session.name, session.record.cwd, ["sh", "-c", DEAF])
    known = procfs.find(pane.pid)
    assert known
    agent = Agent(session.name, known.pid, known.started, pane.id, session.record.created_at, 1)
    write_json(session.dir.agent, agent)
    write_atomic(session.dir.agent_pid, f"{known.pid} {known.started}\n")
    stack.enter_context(lock.hold(session.dir.monitor_lock))


def _say(
    session: AnySession, state: str, payload: str = "", ago_s: float = 300, **said: Any
) -> None:
    """What hooks leave of an agent that is at `state`."""
    write_atomic(session.dir.state, f"{state} {NOW - ago_s:.6f} context prompt\n")
    if payload:
        file = getattr(session.dir, payload)
        write_atomic(file, json.dumps({"session_id": "context", "prompt_id": "prompt", **said}))
        os.utime(file, (NOW - ago_s,) * 2)
    os.utime(session.dir.state, (NOW - ago_s,) * 2)


def _tell_agents(world: World) -> None:
    """What the agents are at."""
    of = world.session
    _say(of(1), "busy", "stop_payload", last_assistant_message="I parse hours now, minutes next.")
    write_atomic(of(1).dir.usage, f"{NOW - 10:.6f} context 41.5 200000 - - - - 83000\n")
    _say(of(2), "idle", "stop_payload", last_assistant_message="It is pushed.")
    _say(of(3), "idle", "stop_payload", last_assistant_message="I stopped before the signals.")
    asked: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}}
    _say(of(4), "dialog", "dialog", **asked)
    _say(of(5), "busy")
    _say(of(6), "limited", "failure", **SPENT)
    _say(of(7), "busy")
    _say(of(8), "busy")
    _say(of(10), "busy")
    question = "I looked at both.\n\nWhere shall it be kept?\n\n1. In a cookie\n2. On the server"
    _say(of(11), "idle", "stop_payload", last_assistant_message=question)
    _say(of(13), "busy")
    _say(of(14), "limited", "failure", ago_s=1200, **LOST_LOGIN)
    _say(of(15), "idle")
    for issue in (6, 14):
        session = of(issue)
        write_atomic(session.dir.launch_env, f"HOME={world.folder}/{issue}\0")
        account_faults.update(session, agent_state.read(session.dir))


def _note_receipts(world: World) -> None:
    """Steps that were taken: a question was asked, and CI has failed before."""
    for issue, verb, row, counts in (
        (3, StepVerb.NOTIFY, "escalate", Count.NONE),
        (5, StepVerb.INJECT, "ci-failed", Count.FIX),
        (5, StepVerb.INJECT, "ci-failed", Count.FIX),
        (10, StepVerb.INJECT, "review-changes", Count.ROUND),
        (10, StepVerb.RECOVER, "recover", Count.NONE),
    ):
        written = phase_file.read(world.root, world.harb.name, issue)
        assert written
        write = written.id if verb is StepVerb.NOTIFY else "of before"
        receipt = Receipt(NOW - 200, row, row, write=write, verb=verb, counts=counts)
        plan.add_receipt(world.session(issue).dir, receipt)


def _write_files(world: World) -> None:
    """Messages, logs, problems, a context, and what is damaged."""
    world.session(12 + 1).dir.problem.write_text("unknown-sentinel: not typed yet: no input line\n")
    session = world.session(1)
    for path in (world.root.terminal_log("harb", 1), session.dir.monitor_log):
        path.write_text("".join(f"line {number}\n" for number in range(1, 4)))
        path.chmod(0o600)
    with CLOCK.ago(250):
        person = queue.PERSON
        waiting = Message(id="a" * 16, text="Also take days.\n\nAnd weeks.", source=person)
        handed = Message(id="b" * 16, text="Use the parser of the shop.", sender=ANN, source="ann")
        done = Message(id="c" * 16, text="Begin.", source=person, mode=Mode.IMPORTANT)
        for message in (waiting, handed, done):
            queue.put(session.dir, message)
        queue.move(session.dir, handed, MessageFolder.WAITING, MessageFolder.HANDED)
        queue.move(session.dir, done, MessageFolder.WAITING, MessageFolder.DONE)
    with CLOCK.ago(400):
        for number, error in enumerate(("", "the agent wrote no document")):
            begun = begin(f"r-{number}", Cause.CYCLE, NOW - 500, "old")
            entry = health_log.make_entry(
                begun, NOW - 400, project="harb", session=session.name, error=error
            )
            assert health_log.append(world.root, entry)
    gone = registry.load_for(world.harb, 15).dir
    gone.receipts.unlink()
    gone.receipts.mkdir()
    made = operations.create(world.machine, "Sign in", "How do people sign in?", client="chat")
    world.thread = made.handoff.id
    world.words[world.thread] = "{thread}"


# What is not of an issue here


def _make_own(world: World, stack: ExitStack) -> None:
    for name, alias, parent, age_s in ((ANN, "ann", "", 5000.0), (BEN, "", ANN, 900.0)):
        place = ensure_private_dir(world.folder / "place")
        record = AdHocRecord(
            name=name,
            provider="claude",
            cwd=place,
            config=world.folder / "sm.yaml",
            state_root=world.root.path,
            created_at=NOW - age_s,
            command="claude",
            alias=alias,
            parent=parent,
        )
        session = registry.create(world.root, AdHocSession(record))
        _be_alive(world, session, stack)
    ann, ben = registry.load(world.root, ANN), registry.load(world.root, BEN)
    _say(ann, "idle", "stop_payload", last_assistant_message="Shall I begin with the docs?")
    _say(ben, "busy")


def _place_there(world: World) -> None:
    """Have a host work on an issue, and ask a person."""
    session = f"dev-harb-{THERE}"
    placed = Placement("harb", THERE, session, "farm", "box", 1, "c" * 40, "x", NOW - 3000)
    placements.keep(world.harb.directory, placed)
    placements.keep_seen(
        world.harb.directory, {session: KnownState(Standing.RUNNING, "box", NOW - 25)}
    )
    need = OpenNeed(
        key=f"{session}:question",
        kind=NeedKind.QUESTION,
        project="harb",
        issue=THERE,
        session=session,
        name=f"harb#{THERE}",
        since=NOW - 700,
        text="",
        command="",
        case=Case("escalate", f"harb#{THERE}", reason="In the path or in a header?"),
    )
    row = SessionRow(
        id=session,
        name=f"harb#{THERE}",
        project="harb",
        issue=THERE,
        title=TITLES[THERE],
        state=ShownState.ESCALATED,
        begun_at=NOW - 2915,
        cwd="/there/harb-16",
        proof=Proof(Evidence.PROCESS, NOW - 5, "7"),
        need=need,
    )
    farm.RUNNER.shown = {session: NodeRow(to_builtins(tell_status(row, NOW - 15)), NOW - 15)}


def _spend(world: World) -> None:
    """Requests of the sessions that live; that of issue 8 is over its budget."""
    used = [
        use(1, NOW - 900, project="harb", model="claude-opus-5-5"),
        use(8, NOW - 800, project="harb", model="claude-opus-5-5"),
    ]
    owner, entry, _ = used[1]
    used[1] = owner, structs.replace(entry, key="over"), 9.5
    owner, entry, _ = used[0]
    used[0] = owner, structs.replace(entry, key="within"), 0.75
    spend(find_ledger(world.machine.settings), used)


def _fill_journal(world: World) -> None:
    """An event of each kind."""
    with CLOCK.ago(2000):
        for event in samples("some words"):
            journal.record(world.root.journal, structs.replace(event, session="dev-harb-1"))


# What reads the views that go on


def draw_watched(context: click.Context, columns: int) -> str:
    """What `sm status --watch` shows on a terminal of that width."""
    context.obj = Invocation()
    out = io.StringIO()
    terminal = Console(file=out, width=columns, color_system=None)
    terminal.print(open_watched(context, ()).draw(columns, 60))
    return out.getvalue()


def draw_top(world: World, columns: int) -> str:
    """What `sm top` shows at first on a terminal of that width."""
    seen = Feed(world.machine, ProjectsReader(world.machine, [world.harb, world.shop])).read()
    drawn = draw(seen, columns, 40, Look(NOW, UNICODE))
    return "".join("".join(words for words, _ in line).rstrip() + "\n" for line in drawn)


def make_browser(world: World) -> Browser:
    """Return a browser that has logged in at the page of the server."""
    browser = Browser(make_server(world.machine))
    assert browser.log_in().status_code < 400
    return browser


def post_form(browser: Browser, path: str, fields: dict[str, str]) -> httpx2.Response:
    """Send a form of the page as the page does; the answer is a part of it."""
    found = PLEDGE.search(browser.get("/").text)
    assert found
    return browser.post(path, {"csrf": found[1]} | fields, hx_request="true")


def send_json(browser: Browser, method: str, path: str, body: Any) -> httpx2.Response:
    """Send what a program would."""

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=browser.server)
        async with httpx2.AsyncClient(transport=transport, base_url=browser.origin) as client:
            return await client.request(method, path, json=body)

    return asyncio.run(ask())


def find_head(world: World, pull: int) -> str:
    """Return the head of a pull request of `harb`."""
    return world.harb.forge.pulls.read(pull).head


# What has been told


def list_told(world: World) -> Iterator[tuple[str, str]]:
    """What waits for agents, on the forge and in the outbox: whose it is, and its text."""
    for name in registry.list_session_names(world.root):
        for place in (MessageFolder.WAITING, MessageFolder.HANDED, MessageFolder.DONE):
            for message in queue.list_messages(world.root.session(name), place):
                yield f"message for {name} ({place}, {message.mode})", message.text
        if found := plan.read_pending(world.root.session(name)):
            for step in found.steps:
                yield f"plan {found.row} of {name} ({step.verb})", step.text
    for issue in sorted(world.harb.forge.issues.find()[0], key=lambda one: one.number):
        for comment in issue.comments:
            yield f"comment on #{issue.number} by {comment.author}", comment.body
    for box in Post(world.root).list_all():
        for word in box.list_waiting():
            yield (
                f"notification about {word.session} ({word.need})",
                format_json(encode_json(word), indent=1).decode(),
            )
