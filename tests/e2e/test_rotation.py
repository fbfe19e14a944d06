"""A context that is replaced, from the wish or the percentage to the agent that goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from sm.context.health_log import RotationOutcome, read_recent
from sm.messages.follow_up import tell_of_turns
from sm.sessions import agent, agent_state
from sm.store import journal
from sm.store.lock import is_held
from sm.views.event_words import describe, name_event
from tests.company import SM, Company, peers_log, transcripts
from tests.e2e.conftest import MakeStage
from tests.helpers import HANG_S, kill_monitor, wait_for

GO_ON = "Read {} and continue from where you left off."
SCHEDULED = "Handoff scheduled — will execute after current turn completes"


@dataclass
class Entry:
    """What an agent has noted: in which context, of what kind."""

    session: str
    context: str
    kind: str
    text: str


def log(company: Company, name: str, *kinds: str) -> list[Entry]:
    """All that the agent of that session has noted of these kinds."""
    entries = [Entry(**one) for one in peers_log(company.folder)]
    ident = company.session(name).name
    return [one for one in entries if one.session == ident and one.kind in kinds]


def notes(company: Company) -> Path:
    """A document for `sm handoff`."""
    path = company.folder / "notes.md"
    path.write_text("# What is to be done next\n")
    return path


def hand_off(company: Company, name: str, *more: str, path: Path | None = None) -> Path:
    """Have the agent call `sm handoff` in a turn with these further orders."""
    path = path or notes(company)
    orders = "\n".join(["Hand off.", f"run: {SM} handoff {path}", *more])
    company.sm("send", name, orders)
    wait_for(lambda: SCHEDULED in str(company.noted(name, "ran")), "the handoff to be scheduled")
    return path


def wait_over(company: Company, name: str, timeout_s: float = 30.0) -> None:
    """Wait until no rotation of that session is under way, or asked for."""
    directory = company.session(name).dir
    files = (directory.hold, directory.handoff, directory.rotation)
    wait_for(lambda: not any(file.exists() for file in files), "the end of it", timeout_s)


def health(company: Company, name: str) -> list[RotationOutcome]:
    """The records of its rotations, oldest first."""
    return list(read_recent(company.root, company.session(name).name))[::-1]


def story(company: Company, name: str) -> str:
    """What the journal has on that session."""
    ident = company.session(name).name
    return "\n".join(
        f"{name_event(e)} {describe(e)}" for e in journal.read(company.root.journal, ident)
    )


def prompts(company: Company, name: str) -> list[str]:
    """The prompts by which its contexts were begun."""
    begins = ("Read handoff from", f"Read {company.folder}")
    return [one.text for one in log(company, name, "message") if one.text.startswith(begins)]


# The agent's own wish


def test_an_agent_goes_on_in_a_new_context_and_is_the_same_session(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    before, context = agent.load(session.dir), agent_state.read(session.dir).context
    path = hand_off(company, "ann")
    assert company.hears("ann", "continue from") == GO_ON.format(path)
    wait_over(company, "ann")
    company.wait("ann")
    assert len(log(company, "ann", "clear")) == 1
    assert agent_state.read(session.dir).context != context
    assert agent.load(company.session("ann").dir) == before
    assert company.session("ann") == session
    fresh = agent_state.read(session.dir).context
    assert session.dir.last_handoff.read_text() == f"{path}\n{fresh}\n"
    assert session.dir.document.read_text() == path.read_text()


def test_what_is_sent_meanwhile_is_heard_in_the_new_context_behind_its_prompt(
    company: Company,
) -> None:
    company.new("ann")
    go = company.folder / "go"
    path = hand_off(company, "ann", f"hold: {go}")
    for number in range(3):
        company.sm("send", "ann", f"<{number}>")
    company.sm("send", "ann", "<urgent>", "--mode", "important")
    go.touch()
    company.hears("ann", "<2>")
    wait_over(company, "ann")
    told = log(company, "ann", "message")
    first = next(number for number, one in enumerate(told) if one.text == GO_ON.format(path))
    assert not [one for one in told[:first] if "<" in one.text]
    heard = "\n".join(one.text for one in told[first + 1 :])
    assert re.findall("<(.+?)>", heard) == ["urgent", "0", "1", "2"]
    assert {one.context for one in told[first:]} == {told[first].context}


def test_the_last_of_several_wishes_counts(company: Company) -> None:
    company.new("ann")
    other = company.folder / "other.md"
    other.write_text("Better.\n")
    hand_off(company, "ann", f"run: {SM} handoff {other}")
    assert company.hears("ann", "continue from") == GO_ON.format(other)
    wait_over(company, "ann")
    assert len(log(company, "ann", "clear")) == 1
    assert len(prompts(company, "ann")) == 1


def test_nobody_else_hears_of_it(company: Company) -> None:
    company.new("ann")
    company.run_in("ann", f"{SM} new --provider peer --name kid")
    company.wait("kid")
    company.run_in("kid", f"{SM} new --provider peer --name grandchild")
    hand_off(company, "kid")
    company.hears("kid", "continue from")
    wait_over(company, "kid")
    company.sm("send", "grandchild", "Are you there?", "--wait", str(HANG_S))
    company.run_in("kid", f"{SM} send grandchild Hello.")
    company.run_in("ann", "true")  # whatever waits for her comes before
    assert not [text for text in company.noted("ann") if "[sm] kid" in text]
    said = company.noted("grandchild")
    assert said[-1] == "[sm] message from kid:\nHello."
    assert not [text for text in said if "kid has" in text]


def test_who_waits_for_the_turn_s_end_hears_once_of_that_in_the_new_context(
    company: Company,
) -> None:
    for name in ("ann", "bob"):
        company.new(name)
    path = notes(company)
    gate = company.folder / "gate"
    order = f"run: {SM} handoff {path}\nlate: {gate}\nsay: Said before."
    assert company.send_from("ann", "bob", order, "--notify-on-stop") == "0\naccepted by bob\n"
    wait_for(lambda: log(company, "bob", "clear"), "the clear")
    bob = company.session("bob")
    tell_of_turns(bob, agent_state.read(bob.dir))  # as whoever passes by meanwhile
    assert list(bob.dir.notify.iterdir())
    gate.touch()
    assert "\ndone\n" in company.hears("ann", "[sm] bob has ended its turn")
    assert prompts(company, "bob") == [GO_ON.format(path)]
    company.sm("send", "bob", "Anything else?", "--wait", str(HANG_S))
    company.run_in("ann", "true")  # whatever waits for her comes before
    assert len([text for text in company.noted("ann") if "[sm] bob" in text]) == 1


LOSSES = ("rm {0}", "ln -sf /etc/hostname {0}", "rm {0}; mkdir {0}")


def test_a_document_that_is_gone_at_the_turn_s_end_leaves_the_context_as_it_is(
    company: Company,
) -> None:
    company.new("ann")
    for number, loss in enumerate(LOSSES):
        path, go = company.folder / f"notes{number}.md", company.folder / f"go{number}"
        path.write_text("# What is to be done next\n")
        ran = len(company.noted("ann", "ran"))
        orders = (f"run: {SM} handoff {path}", f"run: {loss.format(path)}", f"hold: {go}")
        company.sm("send", "ann", "\n".join(orders))
        wait_for(partial(has_run, company, ran + 2), "the handoff to be scheduled, and the loss")
        company.sm("send", "ann", f"What waited {number}.")
        go.touch()
        company.hears("ann", f"What waited {number}.")
        wait_over(company, "ann")
        assert "was not done" in company.hears("ann", f"The handoff to {path}")
    assert not log(company, "ann", "clear")
    assert len({one.context for one in log(company, "ann", "message")}) == 1
    assert story(company, "ann").count("given up") == len(LOSSES)


def has_run(company: Company, commands: int) -> bool:
    return len(company.noted("ann", "ran")) >= commands


def test_a_task_in_the_background_is_waited_for(company: Company) -> None:
    company.new("ann")
    done = company.folder / "done"
    path = hand_off(company, "ann", f"background: {done}")
    wait_for(
        lambda: agent_state.read(company.session("ann").dir).state == "waiting", "the turn's end"
    )
    company.sm("send", "ann", "What waited.")
    assert not log(company, "ann", "clear")
    done.touch()
    company.hears("ann", "What waited.")
    wait_over(company, "ann")
    ends = log(company, "ann", "clear", "message")[-3:]
    assert [one.kind for one in ends] == ["clear", "message", "message"]
    assert [ends[1].text, ends[2].text] == [GO_ON.format(path), "What waited."]


def test_a_clear_is_typed_again_if_it_was_swallowed_and_not_if_it_comes_late(
    company: Company,
) -> None:
    company.new("ann")
    hand_off(company, "ann", "swallow: 1")
    company.hears("ann", "continue from")
    wait_over(company, "ann")
    assert len(log(company, "ann", "clear")) == 2
    assert len(prompts(company, "ann")) == 1
    gate = company.folder / "gate"
    company.sm("send", "ann", f"Hand off.\nrun: {SM} handoff {notes(company)}\nlate: {gate}")
    wait_for(lambda: len(log(company, "ann", "clear")) == 3, "the clear")
    gate.touch()
    wait_for(lambda: len(prompts(company, "ann")) == 2, "the prompt of the next context")
    wait_over(company, "ann")
    assert len(log(company, "ann", "clear")) == 3
    assert len(prompts(company, "ann")) == 2


# Whoever carries it out is killed

EXECUTOR = [
    ("rotate:taken-up", "clear:typed", "submit:after-typing"),
    ("rotate:decided", "rotate:cleared", "rotate:finish"),
    ("rotate:kept", "submit:before-typing"),
]
"""tests/real/test_rotation.py has them all; here the monitor and the Stop hook do it together."""


@pytest.mark.parametrize("points", EXECUTOR, ids=lambda points: points[0])
def test_an_agent_is_resumed_once_although_executors_die_at(
    company: Company, points: tuple[str, ...]
) -> None:
    crashed = begin_mortal(company, *points)
    go = company.folder / "go"
    path = notes(company)
    company.sm("send", "ann", f"run: {SM} handoff {path}\nhold: {go}")
    wait_for(lambda: company.noted("ann", "ran"), "the wish")
    company.sm("send", "ann", "What waited.")
    go.touch()
    company.hears("ann", "What waited.")
    wait_over(company, "ann")
    wait_died(crashed, points)
    assert prompts(company, "ann") == [GO_ON.format(path)]
    assert len(log(company, "ann", "clear")) == 1
    assert [one.text for one in log(company, "ann", "message")][-2:] == [
        GO_ON.format(path),
        "What waited.",
    ]


def begin_mortal(company: Company, *points: str) -> Path:
    """Begin ann; the first of her session's processes to reach a point dies there, and notes it."""
    crashed = company.folder / "crashed"
    env = {"SM_CRASH_AT": ",".join(points), "SM_CRASH_ONCE": str(crashed)}
    pass_env = [f"--pass-env={name}" for name in env]
    company.sm("new", "--provider", "peer", "--name", "ann", *pass_env, env=env)
    company.wait("ann")
    return crashed


def wait_died(crashed: Path, points: tuple[str, ...]) -> None:
    """Wait until somebody has died at each of them."""

    def is_noted() -> bool:
        return {file.name for file in crashed.glob("*")} == set(points)

    wait_for(is_noted, f"somebody to die at each of {points}")


CYCLE = [("context:cycled", "rotate:tell"), ("rotate:wait", "rotate:queued")]


@pytest.mark.parametrize("points", CYCLE, ids=lambda points: points[0])
def test_a_cycle_is_carried_through_once_although_its_executors_die_at(
    company: Company, points: tuple[str, ...]
) -> None:
    crashed = begin_mortal(company, *points)
    fill(company, "ann", 87, "asked: lacking")
    company.hears("ann", "Read handoff from")
    wait_died(crashed, points)
    wait_over(company, "ann")
    assert [one.text for one in log(company, "ann", "asked")] == ["lacking", "sections"]
    assert len(prompts(company, "ann")) == 1
    assert len(log(company, "ann", "clear")) == 1
    assert [record.status for record in health(company, "ann")] == ["confirmed"]


GIVING_UP = [
    ("rotate:give-up", "outcome:told-agent", "rotate:told"),
    ("outcome:noted", "person:told"),
]


@pytest.mark.parametrize("points", GIVING_UP, ids=lambda points: points[0])
def test_a_cycle_is_given_up_once_although_its_executors_die_at(
    company: Company, points: tuple[str, ...]
) -> None:
    company.configure(handoff_cycle=BRIEF)
    crashed = begin_mortal(company, *points)
    fill(company, "ann", 87, "asked: never", "asked: never")
    company.hears("ann", "Your context was not replaced")
    wait_died(crashed, points)
    wait_over(company, "ann")
    company.run_in("ann", "true")
    assert len([text for text in company.noted("ann") if "was not replaced" in text]) == 1
    assert [record.status for record in health(company, "ann")] == ["failed"]
    assert not log(company, "ann", "clear")


def test_a_clear_without_effect_is_replaced_by_a_new_start_although_whoever_begins_it_dies(
    company: Company,
) -> None:
    crashed = begin_mortal(company, "rotate:relaunching")
    before = agent.load(company.session("ann").dir)
    path = hand_off(company, "ann", "swallow: 99")
    company.sm("send", "ann", "What waited.")
    wait_for(lambda: company.noted("ann")[-1] == "What waited.", "what has waited", 60)
    wait_over(company, "ann")
    assert crashed.exists()
    now = agent.load(company.session("ann").dir)
    assert before
    assert now
    assert before.pid != now.pid
    assert prompts(company, "ann") == [GO_ON.format(path)]
    assert company.noted("ann")[-2:] == [GO_ON.format(path), "What waited."]
    assert len(log(company, "ann", "clear")) == 2


def test_the_next_poll_finishes_what_its_executor_and_its_monitor_have_left(
    company: Company, stage_of: MakeStage
) -> None:
    stage = stage_of()
    crashed = begin_mortal(company, "clear:before-typing")
    session = company.session("ann")
    go = company.folder / "go"
    path = hand_off(company, "ann", f"hold: {go}")
    kill_monitor(session)
    go.touch()
    wait_for(crashed.exists, "the executor's death")
    assert session.dir.hold.exists()
    stage.poll()  # unless a hook of its agent has begun the monitor again before
    assert company.hears("ann", "continue from") == GO_ON.format(path)
    wait_over(company, "ann")
    assert len(log(company, "ann", "clear")) == 1


# An agent without hooks


def test_an_agent_without_hooks_is_cleared_when_its_screen_rests(company: Company) -> None:
    company.new("ann", provider="mute")
    go = company.folder / "go"
    path = hand_off(company, "ann", f"hold: {go}")
    company.sm("send", "ann", "What waited.")
    go.touch()
    company.hears("ann", "What waited.")
    wait_over(company, "ann")
    kinds = [one.kind for one in log(company, "ann", "clear", "message")]
    assert kinds == ["message", "clear", "message", "message"]
    assert company.noted("ann")[1:] == [GO_ON.format(path), "What waited."]


# The cycle


BRIEF = {"timeout": "6s"}
"""The time for a document, of an agent that ends its turn without one at once."""


def fill(company: Company, name: str, percent: int, *orders: str) -> None:
    """Have the agent's status line tell how full its context is."""
    company.sm("send", name, "\n".join([*orders, f"gauge: {percent}"]))


@pytest.mark.parametrize(
    ("reactions", "asked"),
    [
        (["never", "write"], ["never", "write"]),
        (["lacking"], ["lacking", "sections"]),
        (["stubborn"], ["stubborn", "sections"]),
    ],
)
def test_a_full_context_is_replaced_however_the_document_comes(
    company: Company, reactions: list[str], asked: list[str]
) -> None:
    company.configure(handoff_cycle=BRIEF)
    company.new("ann")
    fill(company, "ann", 87, *(f"asked: {one}" for one in reactions))
    prompt = company.hears("ann", "Read handoff from")
    wait_over(company, "ann")
    first, last = prompt.split("\n")
    assert re.fullmatch(r"Read handoff from \S+/handoff-[-0-9]{16}\.md and resume work", first)
    assert last.startswith("Before anything else, say in one line that begins with `Resumed:`")
    assert [one.text for one in log(company, "ann", "asked")] == asked
    assert company.hears("ann", "Create handoff").startswith(
        "Create handoff document now - context at 87%\n"
    )
    assert len(log(company, "ann", "clear")) == 1
    wait_for(lambda: health(company, "ann"), "the record")
    (record,) = health(company, "ann")
    assert (record.status, record.details.context_at_trigger) == ("confirmed", 87)


def test_lines_of_the_header_that_are_required_and_missing_are_asked_for_once(
    company: Company,
) -> None:
    company.configure(handoff_cycle={"require_header": True})
    company.new("ann")
    fill(company, "ann", 87)
    company.hears("ann", "Read handoff from")
    wait_over(company, "ann")
    assert [one.text for one in log(company, "ann", "asked")] == ["write", "sections"]
    request = company.hears("ann", "what it lacks")
    wanted = "Created, Context Usage, Project, Active Epic, Progress"
    assert f"what it lacks. Lines `**NAME**: value` for: {wanted}.\n" in request
    assert "Headings" not in request


# Whether the new context goes on


def resumed_with(company: Company, *orders: str, provider: str = "peer") -> RotationOutcome:
    """Replace ann's context by a cycle; what has come of it."""
    company.new("ann", provider=provider)
    company.sm("send", "ann", "\n".join(orders))
    company.wait("ann")
    company.sm("cycle", "ann")
    company.sm("send", "ann", "What waited.")
    company.hears("ann", "What waited.")
    wait_over(company, "ann", 60)
    (record,) = health(company, "ann")
    return record


def contexts_of(company: Company, part: str) -> list[str]:
    """In which contexts ann was told a message that holds `part`."""
    return [one.context for one in log(company, "ann", "message") if part in one.text]


def test_a_new_context_that_names_its_task_is_confirmed(company: Company) -> None:
    transcripts(company.folder).mkdir()
    record = resumed_with(company, "Begin.")
    assert (record.status, record.details.task) == ("confirmed", "what was left")
    assert len(log(company, "ann", "clear")) == 1
    assert contexts_of(company, "Confirm you have resumed") == []


def test_a_new_context_that_names_no_task_is_cleared_and_resumed_once_more(
    company: Company,
) -> None:
    transcripts(company.folder).mkdir()
    record = resumed_with(company, "mum: 2")
    assert (record.status, record.details.task) == ("confirmed", "what was left")
    assert len(log(company, "ann", "clear")) == 2
    first, second = contexts_of(company, "Read handoff from")
    assert first != second
    assert contexts_of(company, "Confirm you have resumed") == [first]
    assert contexts_of(company, "What waited.") == [second]


def test_a_context_that_never_names_its_task_is_replaced_twice_and_a_person_is_told(
    company: Company,
) -> None:
    transcripts(company.folder).mkdir()
    record = resumed_with(company, "mum: 99")
    why = "it has not named the task that it goes on with"
    assert (record.status, record.details.error) == ("unconfirmed", why)
    assert len(log(company, "ann", "clear")) == 2
    assert f"person is not known to go on in its new context: {why}" in story(company, "ann")
    assert len(contexts_of(company, "What waited.")) == 1
    assert why in company.sm("health", "--check", code=1).stdout


@pytest.mark.parametrize("provider", ["peer", "mute"])
def test_a_context_whose_transcript_is_not_known_is_not_cleared_again(
    company: Company, provider: str
) -> None:
    record = resumed_with(company, "mum: 99", provider=provider)
    assert (record.status, record.details.error) == ("unconfirmed", "")
    assert len(log(company, "ann", "clear")) == 1
    assert len(contexts_of(company, "Confirm you have resumed")) == 1


@pytest.mark.parametrize("provider", ["peer", "mute"])
def test_without_a_transcript_its_last_words_or_its_terminal_name_the_task(
    company: Company, provider: str
) -> None:
    record = resumed_with(company, "Begin.", provider=provider)
    assert (record.status, record.details.task) == ("confirmed", "what was left")
    after = story(company, "ann").partition("\nrotation resume1")[2].splitlines()[1:]
    told = [line for line in after if not line.endswith(": waiting")]
    assert told[0].startswith("rotation finished"), "another message came before its task"
    assert all(line.startswith("message ") for line in told[1:])


def test_an_agent_that_writes_no_document_keeps_its_context_and_a_person_is_told(
    company: Company,
) -> None:
    company.configure(handoff_cycle=BRIEF)
    company.new("ann")
    fill(company, "ann", 87, "asked: never", "asked: never", "asked: never")
    company.hears("ann", "Your context was not replaced")
    wait_over(company, "ann")
    assert [one.text for one in log(company, "ann", "asked")] == ["never", "never"]
    assert not log(company, "ann", "clear")
    (record,) = health(company, "ann")
    assert record.status == "failed"
    assert "person could not be given a new context: it has written no document" in story(
        company, "ann"
    )


def test_an_agent_that_hands_off_while_it_is_asked_for_a_document_is_cleared_once(
    company: Company,
) -> None:
    company.new("ann")
    fill(company, "ann", 87, "asked: handoff")
    company.hears("ann", "Read ")
    wait_over(company, "ann")
    company.run_in("ann", "true")
    assert len(log(company, "ann", "clear")) == 1
    assert len([text for text in company.noted("ann") if text.startswith("Read ")]) == 1
    assert "notes.md" in company.session("ann").dir.last_handoff.read_text()


def test_a_document_that_is_written_twice_is_taken_as_it_is_at_the_end(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    fill(company, "ann", 87, f"asked: twice {go}")
    wait_for(lambda: log(company, "ann", "asked"), "the request")
    go.touch()
    company.hears("ann", "Read handoff from")
    wait_over(company, "ann")
    assert len(prompts(company, "ann")) == 1
    assert len(log(company, "ann", "clear")) == 1


def test_several_sessions_are_cycled_at_the_same_time(company: Company) -> None:
    names = ["ann", "bob"]
    for name in names:
        company.new(name)
    for name in names:
        fill(company, name, 91)
    for name in names:
        company.hears(name, "Read handoff from")
        wait_over(company, name)
        assert company.session(name).name in prompts(company, name)[0]
        assert len(log(company, name, "clear")) == 1
    for name in names:
        assert [record.status for record in health(company, name)] == ["confirmed"]


def test_a_compaction_before_the_document_ends_the_cycle(company: Company) -> None:
    company.new("ann")
    fill(company, "ann", 87, "asked: compacting")
    company.hears("ann", "was summed up before it had written a document")
    wait_over(company, "ann")
    assert not log(company, "ann", "clear")


def test_a_session_that_is_ended_while_its_context_is_replaced_leaves_nothing(
    company: Company,
) -> None:
    company.new("ann")
    session = company.session("ann")
    hand_off(company, "ann", f"late: {company.folder / 'never'}")
    wait_for(lambda: log(company, "ann", "clear"), "the clear")
    company.sm("kill", "ann")
    wait_for(lambda: not session.dir.path.exists(), "its end")
    wait_for(lambda: not is_held(session.dir.monitor_lock), "its monitor's end")


def test_an_agent_that_dies_as_it_is_cleared_is_told_of_and_its_session_is_over(
    company: Company,
) -> None:
    company.new("ann")
    session = company.session("ann")
    hand_off(company, "ann", "mortal:")
    wait_for(session.dir.over.exists, "its end to be noted")
    wait_for(lambda: not is_held(session.dir.monitor_lock), "its monitor's end")
    assert "'ann' has died" in company.sm("send", "ann", "Hello?", code=1).stderr


def test_what_a_context_began_with_is_told_again_after_a_compaction(company: Company) -> None:
    company.new("ann")
    path = hand_off(company, "ann")
    company.hears("ann", "continue from")
    wait_over(company, "ann")
    company.sm("send", "ann", "compact:", "--wait", str(HANG_S))
    (added,) = wait_for(lambda: company.noted("ann", "added"), "what the hook adds")
    assert path.read_text().strip() in added


# Readings


def test_readings_that_say_nothing_of_the_context_change_nothing(company: Company) -> None:
    company.new("ann")
    old = agent_state.read(company.session("ann").dir).context
    fill(company, "ann", 30)
    path = hand_off(company, "ann")
    assert company.hears("ann", "continue from") == GO_ON.format(path)
    wait_over(company, "ann")
    company.sm("send", "ann", f"gauge: 97 {old}\ngauge: null\ngauge: 3")
    company.wait("ann")
    company.run_in("ann", "true")
    assert not [text for text in company.noted("ann") if "[sm context]" in text]
    assert not [text for text in company.noted("ann") if "Create handoff" in text]
    fill(company, "ann", 130)  # above what there can be: full
    assert "context at 100%" in company.hears("ann", "Create handoff")
