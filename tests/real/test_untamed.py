"""Clients without the switches that other tests set: what they ask, and that nothing is lost."""

from __future__ import annotations

import json
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import list_questions
from sm.adapters.tmux import Tmux
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, queue, suspension
from sm.messages.queue import Message, MessageFolder
from sm.sessions import agent as agents
from sm.sessions import agent_state, turn
from sm.sessions.agent_state import State
from sm.sessions.signs import Signs
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api, Failure, Reply, Request, Tool, Turn, Usage
from tests.real.client import Clients
from tests.real.codex import prompt, session_of_sm
from tests.real.managed import ACCEPTED, Managed
from tests.real.untamed import DAY_S, SWITCHES, isolated, limit, log_in, read_npm_calls
from tests.viewer import Viewer, attached

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


def change_state(managed: Managed, **more: dict[str, Any]) -> None:
    """Add to what the client knows from earlier."""
    path = managed.folder / "home" / ".claude.json"
    known = json.loads(path.read_text())
    for name, values in more.items():
        known[name] = known.get(name, {}) | values
    path.write_text(json.dumps(known))


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("1", "subscription"),
        ("0", "key"),
        ("3 more lines.", "key"),
        ("Go on.\n2\n3\n1", "subscription"),
    ],
)
def test_a_message_is_no_answer_to_the_clients_survey(
    untamed: Managed, api: Api, text: str, login: str
) -> None:
    """Without what sm tells its clients: then it asks. How it has logged in changes nothing."""
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


def spend_much(managed: Managed, api: Api) -> None:
    """Have a turn after which the client of an administrator would ask about its cost."""
    api.say(Reply(usage=Usage(output=2_000_000)))
    assert managed.send("Begin.") == ACCEPTED
    managed.wait_state(State.IDLE)


def has_paid(managed: Managed) -> None:
    """Have the client be that of an administrator, who pays for what is used."""
    use_key(managed)
    role = {"organizationRole": "admin", "workspaceRole": "workspace_admin"}
    change_state(managed, oauthAccount=role)


def installs(managed: Managed) -> bool:
    return any(call.startswith("install") for call in read_npm_calls(managed.program))


def test_a_client_of_sm_updates_nothing_and_asks_for_no_rating_and_not_about_its_cost(
    untamed: Managed, api: Api
) -> None:
    """It has all occasions to: those by which the client of the next tests does."""
    ask_at_once(untamed)
    has_paid(untamed)
    untamed.start()

    def disturbs() -> bool:
        asks = shows(untamed, SURVEY) or untamed.screen().prompt == "dialog"
        return asks or installs(untamed)

    assert not is_seen(disturbs, 6.0)  # it asks for a rating after two
    spend_much(untamed, api)
    assert not is_seen(disturbs, 9.0)  # about its cost within five; it updates itself within ten


def test_a_client_of_somebody_else_updates_itself(untamed: Managed) -> None:
    untamed.profile = THEIRS
    untamed.start()
    assert is_seen(lambda: installs(untamed), 15.0)


def test_a_client_of_somebody_else_opens_a_dialog_about_its_cost(
    untamed: Managed, api: Api
) -> None:
    has_paid(untamed)
    untamed.profile = THEIRS
    untamed.start()
    spend_much(untamed, api)
    assert is_seen(lambda: untamed.screen().prompt == "dialog", 5.0)


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


ASKS_NOTHING = "bypass permissions on"
PLAN = (
    Reply("", tools=(Tool("EnterPlanMode", {}),)),
    Reply("", tools=(Tool("ExitPlanMode", {}),)),
    Reply("", tools=(Tool.bash("touch made"),)),
)


def test_an_agent_makes_no_plan_that_a_person_has_to_approve(untamed: Managed, api: Api) -> None:
    """By the approval, a session that was started to ask nothing would ask for each tool."""
    untamed.start()
    api.say(*PLAN)
    assert untamed.send("Begin.") == ACCEPTED
    wait_for((untamed.folder / "work" / "made").exists, "the work")
    untamed.wait_state(State.IDLE)
    assert shows(untamed, ASKS_NOTHING)


def test_the_approval_of_a_plan_is_a_persons_and_that_it_asks_from_now_on_is_said(
    untamed: Managed, api: Api
) -> None:
    untamed.profile = structs.replace(CLAUDE, withheld_tools=())
    untamed.start()
    api.say(*PLAN)
    assert untamed.send("Begin.") == ACCEPTED
    untamed.wait_state(State.DIALOG)
    untamed.wait_screen(lambda screen: screen.prompt == "dialog", "its question")
    assert shows(untamed, "Exit plan mode?")
    assert untamed.send("Go on.") == Outcome(Status.WAITING, Refusal.DIALOG)
    assert "mode is 'plan'" in turn.read_question(untamed.session.dir)

    def approve() -> bool:  # the client takes no key while a dialog is quite new
        untamed.keys("Enter")
        return is_seen(lambda: not shows(untamed, "Exit plan mode?"), 2.0)

    wait_for(approve, "the approval")
    wait_for(lambda: shows(untamed, "Do you want to proceed?"), "its next question")
    assert "Bash" in turn.read_question(untamed.session.dir)
    assert "its mode is 'default' now" in turn.read_question(untamed.session.dir)
    assert not api.appearances("Go on.")


MENU = "What do you want to do?"
HURRIED = {"tengu_marble_heron": {"jitterMinMs": 0, "jitterMaxMs": 0}}
"""What its vendor may tell the client: to wait no further minute behind the reset (2.1.332)."""
WAITED_OUT = "Your claude.ai usage limit has reset."
"""The prompt with which the client goes on by itself, a minute or two after the reset."""


def test_the_menu_at_a_limit_takes_no_message_and_is_closed_for_the_next_turn(
    untamed: Managed, api: Api
) -> None:
    """It is open from the limit to its reset, and longer, if that is more than a day away."""
    untamed.start()
    api.say(limit(time.time() + 3 * DAY_S, "seven_day"))
    assert untamed.send("Begin.") == ACCEPTED
    wait_for(lambda: shows(untamed, MENU), "the menu")
    untamed.wait_screen(lambda screen: screen.menu, "the menu, as sm knows it")
    assert untamed.state is State.LIMITED
    choice = "1"
    assert untamed.send(choice) == ACCEPTED
    wait_for(lambda: len(api.main) == 2, "the next turn")
    assert api.main[1].appearances(choice) >= 1
    assert not shows(untamed, MENU)
    assert not shows(untamed, "continue automatically")


def test_a_menu_that_a_person_is_at_is_left_to_them(untamed: Managed, api: Api) -> None:
    untamed.start()
    api.say(limit(time.time() + 3 * DAY_S, "seven_day"))
    assert untamed.send("Begin.") == ACCEPTED
    untamed.wait_screen(lambda screen: screen.menu, "the menu")
    person = Viewer(untamed.tmux.attach_argv(untamed.name), (120, 40))
    try:
        wait_for(lambda: attached(untamed.tmux, person, untamed.name), "a person")
        person.type("\x1b[B")  # the second choice: to wait here
        wait_for(lambda: shows(untamed, "❯ 2. Wait here"), "the choice")
        refused = untamed.send("Go on.")
        assert refused.status is Status.WAITING
        assert shows(untamed, "❯ 2. Wait here")
    finally:
        person.close()


def test_a_paused_session_is_not_woken_by_its_client_at_the_reset(
    untamed: Managed, api: Api
) -> None:
    change_state(untamed, cachedGrowthBookFeatures=HURRIED)
    untamed.start()
    untamed.watch()
    api.say(limit(time.time() + 5))
    assert untamed.send("Begin.") == ACCEPTED
    untamed.wait_state(State.LIMITED)
    wait_for(lambda: shows(untamed, "Continuing automatically"), "what the client means to do")
    session, part = untamed.session, suspension.name_session(untamed.session)
    suspension.begin(untamed.root, [part], "ada")

    def held() -> list[str]:
        return [one.text for one in queue.list_messages(session.dir, MessageFolder.WAITING)]

    wait_for(lambda: any(WAITED_OUT in text for text in held()), "its attempt", HANG_S)
    assert len(api.main) == 1, "nothing was asked for"
    suspension.end(untamed.root, [part], "ada")
    wait_for(lambda: len(api.main) > 1, "the agent to go on")


ORDER = "You help the agent of this test."
HELPER = {"description": "help", "prompt": ORDER, "subagent_type": "general-purpose"}


def answer_helper(api: Api, answer: Turn) -> None:
    """Have the agent begin a subagent in the background, and that one be answered so."""

    def model(request: Request) -> Turn:
        if any(ORDER in text for text in request.said):
            return answer
        return begin.pop() if begin else Reply("I wait.")

    begin = [Reply("", tools=(Tool("Agent", HELPER | {"run_in_background": True}),))]
    api.model = model


def read_signs(managed: Managed) -> Signs:
    return turn.read(managed.session.dir, agent_state.read(managed.session.dir))


def test_an_agent_whose_subagent_works_in_the_background_is_not_idle_nor_limited_if_that_fails(
    untamed: Managed, api: Api
) -> None:
    hold = threading.Event()
    answer_helper(api, Reply("Half of it", hold=hold))
    untamed.start()
    assert untamed.send("Begin.") == ACCEPTED
    untamed.wait_state(State.WAITING)
    assert read_signs(untamed).ended_at is None
    hold.set()
    untamed.wait_state(State.IDLE)
    assert read_signs(untamed).ended_at is not None
    for count, refused in enumerate((Failure(400, message="bad"), limit(time.time() + 3600)), 2):
        untamed.drain_until_empty()
        helped = len(list_helped(api))
        answer_helper(api, refused)
        untamed.send("Again.")
        untamed.drain_until_empty()
        wait_for(partial(is_told, api, count), "what has become of it")
        untamed.wait_state(State.IDLE)
        assert len(list_helped(api)) > helped
        assert read_signs(untamed).failure is None


def list_helped(api: Api) -> list[Request]:
    """The requests of subagents."""
    return [one for one in api.main if any(ORDER in text for text in one.said)]


def is_told(api: Api, times: int) -> bool:
    """Whether the agent was told so often what has become of a subagent."""
    mine = [one for one in api.main if one not in list_helped(api)]
    return mine[-1].appearances("<task-notification>") >= times


def test_a_client_goes_on_whose_program_is_removed(
    claude: Path, tmux: Tmux, root: Root, api: Api, tmp_path: Path
) -> None:
    """As npm removes it while it installs another version."""
    program = tmp_path / "claude"
    shutil.copy(claude, program)
    managed = Managed(program, tmux, root, api, tmp_path / "managed", without=SWITCHES)
    try:
        managed.start()
        program.unlink()
        api.say(Reply("", tools=(Tool.bash("touch made"),)))
        assert managed.send("Begin.") == ACCEPTED
        wait_for((managed.folder / "work" / "made").exists, "its tool")
        managed.wait_state(State.IDLE)
        assert managed.send("Go on.") == ACCEPTED
    finally:
        managed.end()


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
