"""A timer of the real client comes due in a session that is paused: nothing is asked for."""

from __future__ import annotations

from sm.messages import queue, suspension
from sm.messages.follow_up import HELD_FRAME
from sm.messages.queue import MessageFolder
from sm.sessions import agent_state, turn
from sm.sessions.agent_state import State
from sm.sessions.signs import Signs
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.managed import ACCEPTED, Managed
from tests.real.test_states import marker

PROMPT = "Ping from the timer."
TIMER = {"cron": "* * * * *", "prompt": PROMPT, "recurring": True}


def test_an_agent_that_waits_for_its_own_timer_is_not_idle(managed: Managed, api: Api) -> None:
    """Nothing reminds it of anything: the timer begins its next turn."""

    def signs() -> Signs:
        return turn.read(managed.session.dir, agent_state.read(managed.session.dir))

    api.say("Done so far.")
    assert managed.send("Begin.") == ACCEPTED
    wait_for(marker(managed).exists, "the end of its first turn")
    assert signs().ended_at is not None
    daily = TIMER | {"cron": "7 3 1 1 *"}
    api.say(Reply("", tools=(Tool("CronCreate", daily),)), "I go on when it rings.")
    assert managed.send("Wait for it.") == ACCEPTED
    wait_for(lambda: api.appearances("Wait for it."), "the next turn")
    managed.wait_state(State.IDLE)
    wait_for(lambda: signs().sleeps, "the end of its turn")
    assert signs().ended_at is None
    assert not marker(managed).exists()


def test_a_timer_begins_no_turn_in_a_paused_session_and_is_handed_over_later(
    managed: Managed, api: Api
) -> None:
    managed.watch()
    api.say(Reply("", tools=(Tool("CronCreate", TIMER),)))
    assert managed.send("Make a timer.") == ACCEPTED
    managed.wait_state(State.IDLE)
    session, part = managed.session, suspension.name_session(managed.session)
    suspension.begin(managed.root, [part], "ada")
    before = len(api.main)

    def held() -> list[str]:
        return [one.text for one in queue.list_messages(session.dir, MessageFolder.WAITING)]

    wait_for(held, "the timer to come due", HANG_S)
    assert held() == [HELD_FRAME + PROMPT]
    assert len(api.main) == before, "nothing was asked for"
    assert managed.state is State.IDLE
    suspension.end(managed.root, [part], "ada")
    wait_for(lambda: len(api.main) > before, "the agent to get it")
    assert "This was to begin by itself" in "\n".join(api.main[before].said)
