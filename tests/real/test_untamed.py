"""Clients without the switches that other tests set: what they ask, and that nothing is lost."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import list_questions
from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, queue
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Usage
from tests.real.client import Clients
from tests.real.codex import prompt, session_of_sm
from tests.real.managed import ACCEPTED, Managed
from tests.real.untamed import SWITCHES, isolated, log_in, read_npm_calls

SURVEY = "How is Claude doing this session?"
UPDATE = "Update now"
THEIRS = structs.replace(CLAUDE, unattended={})
"""The profile of a person who has the client's own settings decide."""


@pytest.fixture
def untamed(claude: Path, tmux: Tmux, root: Root, api: Api, tmp_path: Path) -> Iterator[Managed]:
    """A session of sm whose agent is such a client, of a subscription; it is not launched yet."""
    with isolated(claude, api, tmp_path / "bin") as program:
        managed = Managed(program, tmux, root, api, tmp_path / "managed", without=SWITCHES)
        assert managed.session  # made, with its HOME
        managed.variables |= log_in(managed.folder / "home")
        yield managed
        managed.end()


def shows(managed: Managed, text: str) -> bool:
    return text in managed.tmux.capture(managed.agent.pane_id)


def ask_at_once(managed: Managed) -> None:
    """Have the client ask how it does as soon as it rests, not after ten minutes in a thousand."""
    managed.variables["CLAUDE_FORCE_DISPLAY_SURVEY"] = "1"


def use_key(managed: Managed) -> None:
    """Take the login of the subscription away; the client has its key again."""
    managed.variables.pop("ANTHROPIC_API_KEY")
    (managed.folder / "home" / ".claude" / ".credentials.json").unlink()


@pytest.mark.parametrize("login", ["subscription", "key"])
@pytest.mark.parametrize("text", ["1", "3 more lines.", "Go on.\n2\n3\n1", "0"])
def test_a_message_is_no_answer_to_the_clients_survey(
    untamed: Managed, api: Api, text: str, login: str
) -> None:
    if login == "key":
        use_key(untamed)
    ask_at_once(untamed)
    untamed.profile = THEIRS
    untamed.start()
    wait_for(lambda: shows(untamed, SURVEY), "the survey")
    assert untamed.send(text) == ACCEPTED
    wait_for(lambda: api.main, "the message")
    assert len(api.main) == 1
    assert not shows(untamed, "Feedback:")


@pytest.mark.parametrize("profile", [CLAUDE, THEIRS], ids=["ours", "theirs"])
def test_a_client_of_sm_asks_for_no_rating(untamed: Managed, profile: Profile) -> None:
    ask_at_once(untamed)
    untamed.profile = profile
    untamed.start()
    asked = is_seen(lambda: shows(untamed, SURVEY), 6.0)  # it comes after two
    assert asked == (profile is THEIRS)


@pytest.mark.parametrize("profile", [CLAUDE, THEIRS], ids=["ours", "theirs"])
def test_a_client_of_sm_does_not_update_itself(untamed: Managed, profile: Profile) -> None:
    untamed.profile = profile
    untamed.start()

    def installs() -> bool:
        return any(call.startswith("install") for call in read_npm_calls(untamed.program))

    assert is_seen(installs, 15.0) == (profile is THEIRS)


@pytest.mark.parametrize("profile", [CLAUDE, THEIRS], ids=["ours", "theirs"])
def test_a_client_of_sm_opens_no_dialog_about_its_cost(
    untamed: Managed, api: Api, profile: Profile
) -> None:
    use_key(untamed)
    state = untamed.folder / "home" / ".claude.json"
    known = json.loads(state.read_text())
    known["oauthAccount"] |= {"organizationRole": "admin", "workspaceRole": "workspace_admin"}
    state.write_text(json.dumps(known))
    untamed.profile = profile
    untamed.start()
    api.say(Reply(usage=Usage(output=2_000_000)))
    assert untamed.send("Begin.") == ACCEPTED
    untamed.wait_state(State.IDLE)
    asked = is_seen(lambda: untamed.screen().prompt == "dialog", 5.0)
    print(untamed.tmux.capture(untamed.agent.pane_id))
    assert asked == (profile is THEIRS)


def is_seen(condition: Callable[[], bool], within_s: float) -> bool:
    try:
        return wait_for(condition, "it", within_s)
    except AssertionError:
        return False


def test_a_state_that_is_cut_off_is_a_question_for_a_person(untamed: Managed) -> None:
    home = untamed.folder / "home"
    state = home / ".claude.json"
    state.write_text(state.read_text()[:-20])
    command, env = shlex.split(untamed.session.record.command), {"HOME": str(home)}
    (foreseen,) = list_questions(CLAUDE, command, (untamed.session.record.cwd,), env)
    assert str(state) in foreseen
    untamed.start(wait=False)
    untamed.wait_screen(lambda screen: screen.prompt == "dialog", "its question")
    assert "isn't valid JSON" in untamed.screen().question


def test_codex_of_sm_begins_without_its_update(
    pinned: Clients, tmux: Tmux, root: Root, api: Api, tmp_path: Path
) -> None:
    with session_of_sm(pinned.codex, tmux, root, api, tmp_path, newer="9.9.9") as session:
        assert prompt(session) == "idle"
        assert delivery.deliver(session, Message(id=queue.make_id(), text="Go on.")) == ACCEPTED
        wait_for(lambda: api.appearances("Go on."), "the message")


def test_a_message_does_not_choose_the_update_of_codex(
    pinned: Clients, tmux: Tmux, root: Root, api: Api, tmp_path: Path
) -> None:
    theirs = structs.replace(CODEX, unattended={})
    with (
        isolated(pinned.codex, api, tmp_path / "bin") as program,
        session_of_sm(program, tmux, root, api, tmp_path, profile=theirs, newer="9.9.9") as session,
    ):
        waits = Outcome(Status.WAITING, Refusal.DIALOG)
        assert delivery.deliver(session, Message(id=queue.make_id(), text="Go on.")) == waits
        known = agents.load(session.dir)
        assert known
        assert UPDATE in tmux.capture(known.pane_id)
        tmux.command("send-keys", "-t", known.pane_id, "Escape")
        wait_for(lambda: prompt(session) == "idle", "its prompt")
        delivery.drain(session)
        wait_for(lambda: api.appearances("Go on."), "the message")
        assert not read_npm_calls(program)
