"""What happens in the world: each deed with how often it is wanted, and what it can be done to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sm.adapters import procfs
from sm.adapters.forge.model import ReviewState
from sm.base.need import NeedKind
from sm.issues import placements
from sm.issues.rules.needs import Case
from sm.issues.runners import NodeRow, Placement
from sm.messages.observe import KEYS_S
from sm.sessions import agent, agent_state, registry
from sm.sessions.activity import Evidence, Proof
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from tests.faces.book import Book, Doing, There
from tests.helpers import git, put_tick, wait_for
from tests.issues import farm
from tests.plugins.cost.lines import add_lines, write_answer
from tests.residents import settle

if TYPE_CHECKING:
    from tests.faces.world import World

HOOKS = Path(__file__).parents[2] / "lib" / "hooks"
ACCESS = "Please run /login · API Error: 401 Invalid authentication credentials"
OVERLOADED = "API Error: 529 Overloaded"
UNKNOWN_MODEL = "model-without-a-price"
THERE = 77
"""The issue that a host works on."""
TOKENS_OF_A_CENT = 400
"""Of claude-opus-4-5's answers."""


class Deed(NamedTuple):
    """A thing that can happen to an issue: how often, when it can, and what is done."""

    weight: int
    fits: Callable[[World, Book], bool]
    do: Callable[[World, Book], str]


class Event(NamedTuple):
    """A thing that can happen to the machine; unless it is `calm`, passes and ticks follow it."""

    weight: int
    fits: Callable[[World], bool]
    do: Callable[[World], str]
    calm: bool = False


# What agents do


def call(world: World, book: Book, name: str, event: str, **payload: object) -> str:
    """Call a hook as the agent's client does; return what it has answered."""
    directory = world.directory(book)
    told = agent_state.read(directory)
    head = {"session_id": told.context, "prompt_id": told.prompt, "hook_event_name": event}
    done = subprocess.run(
        ["bash", "-p", str(HOOKS / name)],
        input=json.dumps(head | payload),
        text=True,
        env=os.environ | {"SM_SESSION_DIR": str(directory.path)},
        check=True,
        capture_output=True,
    )
    return done.stdout.strip()


def _end_turn(world: World, book: Book) -> str:
    return f"ends its turn{_stop(world, book, 'I have done what I could.', Doing.IDLE)}"


def _stop(world: World, book: Book, words: str, doing: Doing) -> str:
    """End its turn, unless the hook has a message for it, with which it goes on."""
    said = {"background_tasks": [], "last_assistant_message": words}
    world.account.answer(book.name)
    if call(world, book, "stop", "Stop", **said):
        return ", and goes on with a message"
    book.doing = doing
    return ""


def _ask(world: World, book: Book) -> str:
    book.question = f"Shall I use blue or red, try {world.count()}?"
    went = _stop(world, book, f"I looked.\n\n{book.question}", Doing.QUESTION)
    return f"ends its turn with a question{went}"


def _open_dialog(world: World, book: Book) -> str:
    world.show_screen(book, "❯ 1. Yes")
    asked = {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}}
    call(world, book, "permission-request", "PermissionRequest", **asked)
    book.doing = Doing.DIALOG
    return "opens a dialog"


def _answer_dialog(world: World, book: Book) -> str:
    world.show_screen(book, "❯\u00a0")
    _use_tool(world, book)
    book.doing = Doing.BUSY
    return "has its dialog answered, in the terminal"


def _use_tool(world: World, book: Book) -> str:
    call(world, book, "post-tool-use", "PostToolUse", tool_name="Bash", tool_input={})
    world.account.answer(book.name)
    world.account.ask(book.name)
    return "uses a tool"


def _be_locked_out(world: World, book: Book) -> str:
    said = {"error": "authentication_failed", "last_assistant_message": ACCESS}
    call(world, book, "stop-failure", "StopFailure", **said)
    book.doing = Doing.LOCKED_OUT
    world.account.fail(book.name, world.list_worked_on() - {book.name}, access=True)
    return "loses its login"


def _fail_turn(world: World, book: Book) -> str:
    said = {"error": "overloaded", "last_assistant_message": OVERLOADED}
    call(world, book, "stop-failure", "StopFailure", **said)
    book.doing = Doing.FAILED
    world.account.fail(book.name, world.list_worked_on() - {book.name}, access=False)
    return "has its turn fail, as the API is overloaded"


def _die(world: World, book: Book) -> str:
    known = agent.load(world.directory(book))
    assert known
    os.kill(known.pid, signal.SIGKILL)
    wait_for(lambda: not agent.is_alive(world.directory(book)), "the agent's end")
    book.doing = Doing.DEAD
    return "is killed"


def _push(world: World, book: Book) -> str:
    book.commits += 1
    settings = world.project(book.project).settings
    worktree = settings.worktree(book.issue)
    (worktree / f"work-{book.issue}.txt").write_text(f"{book.commits}\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", f"work on {book.issue}, {book.commits}")
    book.head = git(worktree, "rev-parse", "HEAD")
    world.begin_ci(book)
    git(worktree, "push", "-q", "origin", f"HEAD:{settings.branch(book.issue)}")
    book.ci, book.review = "pending", ""
    return f"pushes {book.head[:7]}, and {_write(world, book, 'awaiting_ci')}"


def _write(world: World, book: Book, phase: str, reason: str = "") -> str:
    world.root.phase(book.project, book.issue).write_text(f"PHASE:{phase}\n{reason}")
    book.phase, book.answered = phase, False
    return f"writes PHASE:{phase}"


def _escalate(world: World, book: Book) -> str:
    book.asked = f"Which of the two colours, try {world.count()}?"
    book.news_before = len(book.news)
    return _write(world, book, "escalate", f"Reason: {book.asked}\n")


def _spend(world: World, book: Book) -> str:
    book.requests += 1
    cents = world.dice.choice((1, 10, 125, 400))
    unpriced = world.dice.random() < 0.15
    book.cents += 0 if unpriced else cents
    book.unpriced += unpriced
    model = UNKNOWN_MODEL if unpriced else "claude-opus-4-5"
    ident = f"{book.project}-{book.issue}-{book.requests}"
    line = write_answer(
        ident, output=cents * TOKENS_OF_A_CENT, input_=0, at=world.stamp(), model=model
    )
    line["message"]["usage"]["cache_read_input_tokens"] = 0
    told = agent_state.read(world.directory(book))
    add_lines(world.folder / f"{told.context}.jsonl", [line])
    return f"uses {cents} cents of {model}"


# What people do


def _come(world: World, book: Book) -> str:
    book.viewer = world.attach(book, read_only=False)
    book.person = There.SITS
    return "has a person come to its terminal"


def _look(world: World, book: Book) -> str:
    book.viewer = world.attach(book, read_only=True)
    book.person = There.LOOKS
    return "has a person look at its terminal"


def _type(world: World, book: Book) -> str:
    assert book.viewer
    # The agent puppet reads raw keys: one that is no paste says nothing to it.
    before, viewer = world.read_keyed_at(book), book.viewer

    def is_known() -> bool:
        viewer.type("x")  # tmux takes some for answers of the terminal, which it asks at first
        return world.read_keyed_at(book) >= max(before, 1)

    wait_for(is_known, "the key", every_s=0.3)
    book.person = There.TYPED
    return "has a person type a letter"


def _leave(world: World, book: Book) -> str:
    assert book.viewer
    world.detach(book)
    book.viewer, book.person = None, There.NOBODY
    return "has its person leave"


def _approve(world: World, book: Book) -> str:
    pull = world.find_pull(book)
    assert pull
    world.project(book.project).forge.pulls.review(
        pull.number, ReviewState.APPROVED, author="rita", head=book.head
    )
    book.review = "approved"
    return f"has {pull.name} approved"


def _request_changes(world: World, book: Book) -> str:
    pull = world.find_pull(book)
    assert pull
    world.project(book.project).forge.pulls.review(
        pull.number,
        ReviewState.CHANGES_REQUESTED,
        body="Not like that.",
        author="rita",
        head=book.head,
    )
    book.review = "changes"
    return f"has changes of {pull.name} requested"


def _merge(world: World, book: Book) -> str:
    pull = world.find_pull(book)
    assert pull
    world.project(book.project).forge.pulls.merge(pull.number, author="rita")
    book.merged, book.news_before = True, len(book.news)
    book.merged_at_work = world.has_session(book)
    return f"has {pull.name} merged by a person"


def _reply(world: World, book: Book) -> str:
    code, said = world.sm("reply", book.project, str(book.issue), "Green.")
    assert code == 0, said
    book.answered = True
    return "has its question answered"


def _send(world: World, book: Book) -> str:
    # Just after a person's key nothing is typed, and here no monitor tries again.
    rests_at = world.read_keyed_at(book) + KEYS_S + 1
    wait_for(lambda: time.time() - world.clock_s > rests_at, "their last key to be over")
    code, said = world.sm("send", book.name, "Blue.")
    assert code == 0, said
    return "is sent a message"


def _block(world: World, book: Book) -> str:
    world.project(book.project).forge.issues.add_label(book.issue, "blocked")
    return "has its issue labelled blocked"


def _unblock(world: World, book: Book) -> str:
    world.project(book.project).forge.issues.remove_label(book.issue, "blocked")
    world.project(book.project).forge.issues.add_label(book.issue, "backlog")
    world.begin_again(book)
    return "has its issue put into the backlog again"


def _kill(world: World, book: Book) -> str:
    code, said = world.sm("kill", book.name)
    assert code == 0, said
    return "is ended by a person"


def _pass_ci(world: World, book: Book) -> str:
    world.end_ci(book, passes=True)
    return "has its CI pass"


def _fail_ci(world: World, book: Book) -> str:
    world.end_ci(book, passes=False)
    return "has its CI fail"


def _pause_one(world: World, book: Book) -> str:
    code, said = world.sm("pause", book.name)
    assert code == 0, said
    world.paused.add(book.name)
    return "is paused"


def _damage(world: World, book: Book) -> str:
    path = world.directory(book).identity
    book.record = path.read_bytes()
    path.write_text("no JSON\n")
    return "has its record damaged"


def _repair(world: World, book: Book) -> str:
    world.repair(book)
    return "has its record back"


def lives(world: World, book: Book) -> bool:
    """Whether its session is there, whole, with an agent."""
    there = world.directory(book).identity.exists() and not book.record
    return there and book.doing is not Doing.DEAD


def _works(world: World, book: Book) -> bool:
    return lives(world, book) and book.doing is Doing.BUSY


def _may_be_judged(world: World, book: Book) -> bool:
    offered = bool(book.head) and not book.merged
    return offered and (pull := world.find_pull(book)) is not None and pull.head == book.head


def _has_person(world: World, book: Book) -> bool:
    return book.viewer is not None


def _may_have_person(world: World, book: Book) -> bool:
    return lives(world, book) and book.viewer is None


DEEDS: dict[str, Deed] = {
    "end turn": Deed(4, _works, _end_turn),
    "ask": Deed(4, _works, _ask),
    "open dialog": Deed(3, _works, _open_dialog),
    "answer dialog": Deed(6, lambda w, b: lives(w, b) and b.doing is Doing.DIALOG, _answer_dialog),
    "use tool": Deed(4, _works, _use_tool),
    "lock out": Deed(1, _works, _be_locked_out),
    "fail turn": Deed(1, _works, _fail_turn),
    "die": Deed(1, lives, _die),
    "push": Deed(8, lambda w, b: _works(w, b) and not b.merged, _push),
    "await review": Deed(
        10,
        lambda w, b: _works(w, b) and b.ci == "success",
        lambda w, b: _write(w, b, "awaiting_review"),
    ),
    "escalate": Deed(3, _works, _escalate),
    "give up": Deed(1, _works, lambda w, b: _write(w, b, "failed", "Reason: I cannot.\n")),
    "done": Deed(8, lambda w, b: _works(w, b) and b.merged, lambda w, b: _write(w, b, "done")),
    "no phase": Deed(1, _works, lambda w, b: _write(w, b, "perhaps")),
    "spend": Deed(6, lives, _spend),
    "come": Deed(4, _may_have_person, _come),
    "look": Deed(3, _may_have_person, _look),
    "type": Deed(5, lambda w, b: b.person in (There.SITS, There.TYPED), _type),
    "leave": Deed(4, _has_person, _leave),
    "approve": Deed(6, lambda w, b: _may_be_judged(w, b) and b.ci == "success", _approve),
    "request changes": Deed(2, _may_be_judged, _request_changes),
    "merge": Deed(3, lambda w, b: _may_be_judged(w, b) and b.review == "approved", _merge),
    "reply": Deed(
        6,
        lambda w, b: lives(w, b) and b.phase == "escalate" and not b.answered,
        _reply,
    ),
    "send": Deed(2, lives, _send),
    "block": Deed(1, lives, _block),
    "unblock": Deed(3, lambda w, b: w.is_blocked(b) and not w.has_session(b), _unblock),
    "kill": Deed(1, lives, _kill),
    "pass CI": Deed(10, lambda w, b: b.ci == "pending", _pass_ci),
    "fail CI": Deed(3, lambda w, b: b.ci == "pending", _fail_ci),
    "pause one": Deed(1, lambda w, b: lives(w, b) and b.name not in w.paused, _pause_one),
    "damage record": Deed(1, lives, _damage),
    "repair record": Deed(8, lambda w, b: bool(b.record), _repair),
}


# What happens to the machine


def _file(world: World) -> str:
    name = world.dice.choice(sorted(world.list_with_room()))
    issue = world.project(name).forge.issues.add(
        f"Mend part {world.count()}", "Please.", labels=("backlog",), author="ada"
    )
    world.books[name, issue.number] = Book(name, issue.number)
    return f"{name}#{issue.number} is filed"


def _resume(world: World) -> str:
    code, said = world.sm("resume")
    assert code == 0, said
    world.paused.clear()
    return "all that is paused goes on"


def _pause_all(world: World) -> str:
    code, said = world.sm("pause")
    assert code == 0, said
    world.paused.add("")
    return "all is paused"


def _break_config(world: World) -> str:
    world.config.write_text("projects: [\n")
    world.is_config_broken = True
    return "the configuration is broken"


def _mend_config(world: World) -> str:
    world.write_config()
    world.is_config_broken = False
    return "the configuration is mended"


def _leave_project_out(world: World) -> str:
    name = world.dice.choice(sorted(world.list_names()))
    world.left_out[name] = next(one for one in world.settings["projects"] if one["name"] == name)
    world.settings["projects"].remove(world.left_out[name])
    world.write_config()
    return f"project '{name}' is taken out of the configuration"


def _put_project_back(world: World) -> str:
    name = sorted(world.left_out)[0]
    world.settings["projects"].append(world.left_out.pop(name))
    world.write_config()
    return f"project '{name}' is put into the configuration again"


def _set_budget(world: World) -> str:
    dollars = world.dice.choice((1, 2, 20))
    name = world.dice.choice(sorted(world.list_names()))
    settings = next(one for one in world.settings["projects"] if one["name"] == name)
    settings["budget"] = {"issue": f"${dollars}"}
    world.write_config()
    return f"project '{name}' gets a budget of ${dollars} for an issue"


def _set_clock(world: World) -> str:
    seconds = world.dice.choice((-400, -70, 70, 400))
    world.clock_s += seconds
    world.was_behind |= world.clock_s < 0
    return f"the clock is set {'forward' if seconds > 0 else 'back'} by {abs(seconds)} s"


def _stop_poll(world: World) -> str:
    """Let the last tick be of long ago; the next step has one again."""
    for project in world.projects:
        put_tick(project, ago_s=3600.0)
    return "dev-poll has not run for an hour"


def _lose_look(world: World) -> str:
    name = world.dice.choice(sorted(world.list_names()))
    path = world.project(name).directory.snapshot
    path.write_text("no JSON\n")
    return f"the last look at the forge of '{name}' is damaged"


def _show_there(world: World) -> str:
    """Have a host show a session that it works on, until the next step."""
    name, need = world.dice.choice(sorted(world.list_names())), world.dice.random() < 0.7
    placed = Placement(name, THERE, f"dev-{name}-{THERE}", "farm", "one", 1, "c" * 40, "x")
    directory = world.project(name).directory
    placements.keep(directory, placed)
    row = SessionRow(
        id=placed.session,
        name=f"{name}#{THERE}",
        project=name,
        issue=THERE,
        title="There",
        state=ShownState.ESCALATED if need else ShownState.WORKING,
        begun_at=time.time() - 60,
        cwd="/there",
        proof=Proof(Evidence.PROCESS, time.time() - 5, "7"),
        need=_make_need_there(placed) if need else None,
    )
    shown = {
        placed.session: NodeRow(msgspec.to_builtins(tell_status(row, time.time())), time.time() - 1)
    }
    farm.RUNNER.shown = shown

    def clear() -> None:
        farm.RUNNER.shown = {}
        placements.forget(directory, THERE)

    world.to_clear = clear
    world.there = {placed.session: need}
    return f"a host shows {name}#{THERE}, which {'asks' if need else 'is at work'}"


def _make_need_there(placed: Placement) -> OpenNeed:
    return OpenNeed(
        key=f"{placed.session}:question",
        kind=NeedKind.QUESTION,
        project=placed.project,
        issue=THERE,
        session=placed.session,
        name=f"{placed.project}#{THERE}",
        since=time.time() - 30,
        text="",
        case=Case("escalate", f"{placed.project}#{THERE}", reason="which host?"),
    )


def _begin_own(world: World) -> str:
    name = f"s-{world.count():08x}"
    world.own[name] = Doing.BUSY
    session = settle(world.root, world.folder, name)
    # Its agent is another process than this, which calls sm as a person does.
    found = procfs.find(world.start_stand_in())
    assert found
    session.dir.agent_pid.write_text(f"{found.pid} {found.started}\n")
    _tell_own(world, name, "busy")
    return f"session {name} is begun"


def _go_on(world: World) -> str:
    name = world.dice.choice(sorted(world.own))
    world.own[name] = world.dice.choice((Doing.BUSY, Doing.IDLE, Doing.DIALOG))
    _tell_own(world, name, str(world.own[name]))
    return f"session {name} is at: {world.own[name]}"


def _end_own(world: World) -> str:
    name = world.dice.choice(sorted(world.own))
    del world.own[name]
    registry.forget(world.root, registry.load(world.root, name))
    return f"session {name} has gone"


def _tell_own(world: World, name: str, state: str) -> None:
    path = world.root.session(name).state
    path.write_text(f"{state} {time.time():.6f} context prompt\n")
    path.chmod(0o600)


EVENTS: dict[str, Event] = {
    "file": Event(12, lambda w: bool(w.list_with_room()), _file),
    "resume": Event(20, lambda w: bool(w.paused), _resume),
    "pause all": Event(1, lambda w: not w.paused, _pause_all),
    "break configuration": Event(1, lambda w: True, _break_config),
    "leave project out": Event(1, lambda w: len(w.list_names()) > 1, _leave_project_out),
    "put project back": Event(8, lambda w: bool(w.left_out), _put_project_back),
    "set budget": Event(2, lambda w: True, _set_budget),
    "set clock": Event(2, lambda w: True, _set_clock),
    "stop dev-poll": Event(2, lambda w: True, _stop_poll, calm=True),
    "lose look": Event(1, lambda w: True, _lose_look, calm=True),
    "show there": Event(3, lambda w: True, _show_there, calm=True),
    "begin own": Event(2, lambda w: len(w.own) < 2, _begin_own),
    "go on": Event(4, lambda w: bool(w.own), _go_on),
    "end own": Event(1, lambda w: bool(w.own), _end_own),
}
WITH_A_BROKEN_CONFIGURATION: dict[str, Event] = {
    "mend configuration": Event(1, lambda w: True, _mend_config),
}
