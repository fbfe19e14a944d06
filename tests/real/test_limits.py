"""API trouble, limits and dialogs of the real client, as the whole of sm deals with them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.tmux import Pane
from sm.sessions import account_faults, agent_state, registry
from sm.sessions.agent_state import State
from sm.sessions.failure import Usage, parse_usage
from sm.store import journal
from sm.store.files import write_json
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.e2e.stage import Stage, make_stage
from tests.helpers import wait_for
from tests.real.api import Api, Failure, Reply, Tool
from tests.real.client import environment, seal

SUBSCRIPTION = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "any"}
"""A login in place of a key."""
GIVEN_UP = "the API refused the conversation of the session before you"
REFUSED = Failure(400, message="messages.1.content.0.image: image exceeds 5 MB maximum")
RESUMED = "[sm] Your last turn was cut short"


@dataclass
class AtWork:
    """One issue that the real client works on, with its monitor."""

    stage: Stage
    api: Api
    issue: int = 0

    def begin(self) -> None:
        """Have the issue taken up."""
        self.issue = self.stage.file_issue()
        self.stage.poll()

    @property
    def state(self) -> State:
        """What the client's hooks say."""
        return agent_state.read(self.stage.session(self.issue).dir).state

    def waits_for(self) -> tuple[str, str]:
        """The state, and what it waits for, as `sm status` shows them."""
        row = json.loads(self.stage.sm("status", "--json").stdout)[0]["sessions"][0]
        return row["phase"], row["waits_for"]

    def wait_phase(self, phase: str) -> str:
        """Wait until `sm status` shows it; returns what the session waits for then."""

        def seen() -> tuple[str, str] | None:
            found = self.waits_for()
            return found if found[0] == phase else None

        found = wait_for(seen, f"the session to be {phase}", 30.0, every_s=0.2)
        assert found
        return found[1]

    def wait_dialog(self) -> Pane:
        """Wait until the client asks for a permission; returns the pane that shows the question.

        The hook is called first. A state that `make_older` dates back while nothing is drawn yet
        is that of a dialog that is over.
        """
        wait_for(lambda: self.state is State.DIALOG, "the dialog's hook")
        tmux = self.stage.project.tmux
        pane = tmux.pane(self.stage.session(self.issue).name)
        assert pane
        wait_for(lambda: "Do you want to proceed?" in tmux.capture(pane.id), "the dialog's text")
        return pane

    def make_older(self, seconds: float) -> None:
        """Let the state be as if it had begun so much earlier, and a fault of its account."""
        directory = self.stage.session(self.issue).dir
        words = directory.state.read_text().split()
        words[1] = f"{float(words[1]) - seconds:.6f}"
        directory.state.write_text(" ".join(words).ljust(159) + "\n")
        make_faults_older(self.stage.project.root, seconds)
        registry.poke(directory)

    def comments(self) -> list[str]:
        """What people were told on the issue."""
        return [
            comment.body for comment in self.stage.project.forge.issues.read(self.issue).comments
        ]

    def comments_with(self, words: str) -> list[str]:
        """Those with these words."""
        return [comment for comment in self.comments() if words in comment]

    def times_resumed(self) -> int:
        """How often the model was told to go on."""
        return self.api.appearances(RESUMED)


def make_faults_older(root: Root, seconds: float) -> None:
    """Let the faults of accounts be as if they had begun so much earlier."""
    for ident, known in account_faults.list_faults(root):
        sessions = {
            name: structs.replace(one, at=one.at - seconds, until=one.until - seconds)
            for name, one in known.sessions.items()
        }
        older = structs.replace(
            known,
            since=known.since - seconds,
            at=known.at - seconds,
            until=known.until - seconds,
            asks_at=known.asks_at - seconds,
            sessions=sessions,
        )
        write_json(root.account_faults / ident, older)


@pytest.fixture
def at_work(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    yield from _at_work(claude, api, tmp_path, "--dangerously-skip-permissions")


@pytest.fixture
def asking(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    """One that asks before it does anything."""
    yield from _at_work(claude, api, tmp_path, "--permission-mode", "manual")


@pytest.fixture
def subscribed(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    """One whose account is a subscription."""
    yield from _at_work(claude, api, tmp_path, "--dangerously-skip-permissions", **SUBSCRIPTION)


def _at_work(claude: Path, api: Api, folder: Path, *options: str, **more: str) -> Iterator[AtWork]:
    yield from run_issues(claude, api, folder, options, more)


def run_issues(
    claude: Path,
    api: Api,
    folder: Path,
    options: Sequence[str],
    more: Mapping[str, str],
    settings: Mapping[str, Any] = {},
) -> Iterator[AtWork]:
    """An installation whose issues the real client works on."""
    home = folder / "client-home"
    variables = {k: v for k, v in (environment(home, api.url) | dict(more)).items() if v}
    for name in ("PATH", "TERM"):
        variables.pop(name)
    command = " ".join([str(claude), *options])
    agent = {"agent": {"command": command, "env": variables}}
    stage = make_stage(folder, auto=False, settings=agent | dict(settings))
    seal(home, *(stage.project.settings.worktree(number) for number in (1, 2)))
    yield AtWork(stage, api)
    for event in journal.read(stage.project.root.journal):
        print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
    for session in stage.sessions():
        if pane := stage.project.tmux.pane(session.name):
            print(stage.project.tmux.capture(pane.id))
    stage.end()


def test_an_api_that_is_down_for_a_while_is_waited_for(at_work: AtWork) -> None:
    at_work.api.down()
    at_work.begin()
    assert "API trouble" in at_work.wait_phase("parked")
    at_work.api.up()
    assert at_work.times_resumed() == 0
    at_work.make_older(61)
    wait_for(lambda: at_work.times_resumed() == 1, "the agent to go on")
    at_work.wait_phase("working")
    assert not at_work.comments()
    assert "You work on issue #1" in "\n".join(at_work.api.main[-1].texts)


def test_a_limit_whose_pause_the_client_keeps_to_itself_is_tried_again_after_a_minute(
    at_work: AtWork,
) -> None:
    """The client tells no hook how long `retry-after` was (2.1.329), so it cannot be waited for.

    Were it to tell, this test would fail, and sm should wait for as long.
    """
    at_work.api.say(Failure(429, {"retry-after": "7200"}, "too much"))
    at_work.begin()
    assert "usage limit" in at_work.wait_phase("parked")
    directory = at_work.stage.session(at_work.issue).dir
    told = json.loads(directory.failure.read_text())
    assert told.keys() - {"effort"} == {
        *("session_id", "transcript_path", "cwd", "prompt_id"),
        *("hook_event_name", "error", "last_assistant_message"),
    }
    assert told["last_assistant_message"].endswith("(429) · too much")
    assert parse_usage(directory.usage.read_text()) == Usage()
    assert at_work.times_resumed() == 0
    at_work.make_older(61)
    wait_for(lambda: at_work.times_resumed() == 1, "the agent to go on")


def test_the_limit_of_a_subscription_is_waited_for_until_its_reset(subscribed: AtWork) -> None:
    reset = int(time.time()) + 3 * 3600
    limit = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(reset),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-5h-utilization": "1.0",
        "anthropic-ratelimit-unified-5h-reset": str(reset),
    }
    subscribed.api.say(Failure(429, limit, "limit"))
    subscribed.begin()
    waits_for = subscribed.wait_phase("parked")
    # The notice names the minute, the status line the second; the slack may lead into the next.
    clocks = {time.strftime("%H:%M", time.localtime(reset + s)) for s in (-60, 0, 20)}
    found = re.fullmatch(r"parked until (?:\S+ )?(\S+): usage limit", waits_for)
    assert found, waits_for
    assert found[1] in clocks
    wait_for(subscribed.comments, "the long pause to be told")
    assert len(subscribed.api.main) == 1


def test_a_conversation_that_the_api_refuses_is_given_up_for_another_one(at_work: AtWork) -> None:
    """As with an image that is too large: it goes with every request of that conversation.

    The client tries a compaction first, by itself (2.1.332), which the API is let do here.
    """
    at_work.api.model = lambda turn: Reply() if GIVEN_UP in "".join(turn.texts) else REFUSED
    at_work.begin()
    assert "the API refuses the conversation" in at_work.wait_phase("parked")
    assert not at_work.comments_with("is given up"), "it is tried once more before"
    at_work.make_older(61)
    wait_for(lambda: at_work.api.appearances(GIVEN_UP) == 1, "the next conversation")
    [comment] = wait_for(lambda: at_work.comments_with("is given up"), "one line about it")
    assert "`the API refuses the conversation (“Image was too large." in comment
    at_work.wait_phase("working")
    first = "".join(at_work.api.main[-1].texts)
    assert "You take over issue #1" in first
    assert RESUMED not in first, "nothing of the old one is in it"


def test_a_person_is_asked_if_the_next_one_is_refused_as_well(at_work: AtWork) -> None:
    at_work.api.model = lambda _: REFUSED
    at_work.begin()
    at_work.wait_phase("parked")
    at_work.make_older(61)
    wait_for(lambda: at_work.api.appearances(GIVEN_UP), "the next conversation")
    wait_for(lambda: at_work.state is State.IDLE, "its refusal")
    at_work.wait_phase("parked")
    at_work.make_older(61)
    at_work.wait_phase("escalated")
    asked = wait_for(lambda: at_work.comments_with("The agent cannot go on"), "the question")
    assert "the API refuses the conversation" in asked[0]
    assert len(at_work.comments_with("is given up")) == 1


def test_a_refused_login_is_told_to_a_person_who_may_as_well_say_a_word(at_work: AtWork) -> None:
    at_work.api.model = lambda _: Failure(401)
    at_work.begin()
    waits_for = at_work.wait_phase("parked")
    assert waits_for.startswith("parked for the login of Claude Code")
    comment = wait_for(at_work.comments, "the message on the forge")[0]
    assert "no access to the API" in comment
    assert at_work.stage.sm("reply", "harb", "1", "mended", check=False).returncode != 0
    at_work.api.model = lambda _: Reply()
    at_work.stage.sm("send", "harb#1", "the key is mended")
    wait_for(lambda: at_work.api.appearances("the key is mended") == 1, "the word")
    root = at_work.stage.project.root
    wait_for(lambda: not account_faults.list_faults(root), "the end of the fault")
    assert len(at_work.comments()) == 1


def test_an_agent_whose_question_a_person_dismisses_is_reminded_of_its_issue(
    asking: AtWork,
) -> None:
    asking.api.say(Reply("", tools=(Tool.bash("touch allowed"),)), "That was it.")
    asking.begin()
    pane = asking.wait_dialog()
    session = asking.stage.session(1)
    asking.make_older(61)
    wait_for(asking.comments, "the question on the forge")

    def dismiss() -> bool:  # the client takes none while a dialog is quite new
        asking.stage.project.tmux.command("send-keys", "-t", pane.id, "Escape")
        return asking.state is State.IDLE

    wait_for(dismiss, "the look at the screen", every_s=5.0)
    assert asking.waits_for() == ("working", "a new phase: its turn has ended")
    *words, at = session.dir.shown.read_text().split()
    session.dir.shown.write_text(" ".join([*words, f"{float(at) - 61:.6f}\n"]))
    registry.poke(session.dir)
    reminder = "[sm] Your turn has ended without a new phase"
    wait_for(lambda: asking.api.appearances(reminder), "the reminder")


def test_a_dialog_is_told_to_a_person_who_answers_it(asking: AtWork) -> None:
    asking.api.say(Reply("", tools=(Tool.bash("touch allowed"),)), "That was it.")
    asking.begin()
    pane = asking.wait_dialog()
    assert asking.waits_for() == ("working", "an answer in its terminal")
    asking.make_older(61)
    comment = wait_for(asking.comments, "the question on the forge")[0]
    assert "touch allowed" in comment
    assert "sm attach harb 1" in comment
    session = asking.stage.session(1)
    assert not (session.worktree / "allowed").exists()
    allowed = (session.worktree / "allowed").exists

    def answer() -> bool:  # the client takes none while a dialog is quite new
        asking.stage.project.tmux.command("send-keys", "-t", pane.id, "Enter")
        return allowed()

    wait_for(answer, "what the person has allowed", every_s=0.5)
    asking.wait_phase("working")
