"""The real Claude Code is told of its filling context; the scripted API was sent the proof."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sm.adapters.agent.codex import CODEX
from sm.base.refusal import Status
from sm.context import rotation_files, usage
from sm.context.flags import read_flags, read_wake_threshold
from sm.context.monitor import tend_context
from sm.messages import delivery
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.sessions.settings import OwnSettings, Settings, save_own
from sm.store import journal
from sm.views.event_words import describe, name_event
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool
from tests.real.managed import ACCEPTED, Managed

WINDOW = 1_000_000
"""Tokens; what 2.1.329 takes for its default model's context."""
SAID = "[sm context]"
FULL = 99
"""At this percentage the client sums its context up before the next request."""


class Filling:
    """A model whose context is as full as the test says; `turns` of tools go before an answer."""

    def __init__(self) -> None:
        self.percent = 10.0
        self.rising: list[float] = []

    def __call__(self, _request: Request) -> Reply:
        if self.rising:
            self.percent = self.rising.pop(0)
            return self._reply("", Tool.bash("true"))
        return self._reply("Fine.")

    def _reply(self, text: str, *tools: Tool) -> Reply:
        return Reply(text, tools, tokens=int(WINDOW * self.percent / 100))


@pytest.fixture
def managed(unstarted: Managed) -> Managed:
    """A session whose agent was told where its phase goes."""
    phase = unstarted.folder / "phase"
    unstarted.variables = {"PHASE_FILE": str(phase)}
    unstarted.start(protocol="How to signal, in a word.")
    phase.write_text("PHASE:awaiting_ci\n")
    return unstarted


@pytest.fixture
def model(managed: Managed, api: Api) -> Iterator[Filling]:
    """A session under a monitor, which is not given a new context."""
    model = api.model = Filling()
    save_own(managed.session.dir, OwnSettings(cycle=False))
    managed.watch()
    yield model
    for event in journal.read(managed.root.journal):  # shown where the test has failed
        print(f"{event.at:.3f} {name_event(event)} {describe(event)}")
    print(managed.session.dir.usage.read_text(), managed.session.dir.context_flags.read_text())
    print(managed.session.dir.events.read_text()[-3000:])
    print(managed.session.dir.monitor_log.read_text()[-3000:])


def work(managed: Managed, model: Filling, percent: float, text: str) -> None:
    """A turn after which the context is so full, and that the status line has said so."""
    model.percent = percent
    assert managed.send(f"<{text}>").status is not Status.REFUSED
    wait_for(lambda: managed.api.appearances(f"<{text}>"), text)
    wait_seen(managed, percent)
    managed.wait_state(State.IDLE)


def wait_seen(managed: Managed, percent: float) -> None:
    def seen() -> bool:
        found = usage.read(managed.session.dir)
        return found is not None and found.percent == percent

    wait_for(seen, f"a reading of {percent}%")


def wait_told(api: Api, text: str) -> None:
    wait_for(lambda: api.appearances(text), f"'{text}'")


def test_a_filling_context_is_told_once_at_each_threshold(
    managed: Managed, api: Api, model: Filling
) -> None:
    work(managed, model, 48, "one")
    work(managed, model, 52, "two")
    wait_told(api, f"{SAID} Context at 52% (520,000 tokens). Consider writing a handoff doc")
    wait_for(lambda: "ctx 52%" in managed.tmux.capture(managed.agent.pane_id), "the status line")
    work(managed, model, 53, "three")
    work(managed, model, 66, "four")
    wait_told(api, f"{SAID} Context at 66% — critically high. Write your handoff doc NOW")
    work(managed, model, 67, "five")
    work(managed, model, 40, "six")
    work(managed, model, 68, "seven")
    assert api.appearances(SAID) == 2
    assert read_wake_threshold(managed.session.dir) is None


def test_within_a_turn_the_warning_waits_for_its_end(
    managed: Managed, api: Api, model: Filling
) -> None:
    model.rising = [45, 52, 53, 54, 55]
    managed.send("work")
    wait_told(api, f"{SAID} Context at 5")
    managed.wait_state(State.IDLE)
    assert api.appearances(SAID) == 1
    told = next(at for at, text in enumerate(api.main[-1].texts) if SAID in text)
    assert any("Fine." in text for text in api.main[-1].texts[:told])  # the turn's last answer


def test_a_compaction_re_arms_and_tells_phase_and_last_handoff_again(
    managed: Managed, api: Api, model: Filling
) -> None:
    document = managed.folder / "doc.md"
    text = '## Current Work\n\nthe "cart": c:\\temp – süß 😀\n' + "so it goes on\n" * 300
    document.write_text(text)
    rotation_files.keep(managed.session.dir, document)
    rotation_files.note_begun(managed.session.dir, document, "")
    work(managed, model, 66, "one")
    wait_told(api, f"{SAID} Context at 66%")
    work(managed, model, FULL, "two")
    # The first request after the summary tells how full the context is then.
    model.percent = 55
    managed.send("three")
    wait_for(lambda: [r for r in api.seen if r.kind is Kind.COMPACTION], "the compaction")
    wait_told(api, text.rstrip("\n"))
    assert api.appearances('the "cart"') == 1
    assert api.appearances("PHASE:awaiting_ci\n\nHow to signal, in a word.") == 1
    assert api.appearances(f"{SAID} Context at 66%") == 0
    wait_told(api, f"{SAID} Context at 55%")
    managed.wait_state(State.IDLE)
    work(managed, model, 56, "four")
    assert api.appearances(f"{SAID} Context at") == 1
    events = journal.read(managed.root.journal, managed.session.name)
    found = [describe(event) for event in events if name_event(event) == "compaction"]
    assert found == ["Compaction triggered (auto): handoff was too late"]


def test_after_a_persons_clear_it_is_told_again(managed: Managed, api: Api, model: Filling) -> None:
    work(managed, model, 52, "one")
    wait_told(api, f"{SAID} Context at 52%")
    managed.wait_state(State.IDLE)
    model.percent = 10
    managed.paste("/clear")
    managed.keys("Enter")
    wait_for(lambda: read_flags(managed.session.dir).warned is False, "the flags' reset")
    work(managed, model, 51, "two")
    wait_told(api, f"{SAID} Context at 51%")
    assert api.appearances(SAID) == 1


# Codex


def test_codex_is_told_by_what_its_footer_shows(target: Session, api: Api) -> None:
    api.say(Reply("Fine.", tokens=160_000))
    assert delivery.deliver(target, Message(id="message01", text="hello")) == ACCEPTED

    def shown() -> float:
        known = agents.load(target.dir)
        screen = target.tmux.look(known.pane_id, escapes=True)[1] if known else ""
        return usage.find_percent(CODEX, screen) or 0.0

    percent = wait_for(shown, "its footer")
    assert 50 < percent < 65
    tend_context(target.provide(settings=Settings()))
    wait_for(lambda: delivery.drain(target) is None, "the delivery")
    wait_told(api, f"{SAID} Context at {percent:g}%. Consider writing a handoff doc")
    assert api.appearances(SAID) == 1
