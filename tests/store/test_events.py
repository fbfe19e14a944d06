"""Kinds of events: what is read is what was written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from sm.store import events, journal
from sm.store.events import KINDS, Event, EventKind, Rotation, RotationStep, kind_of
from sm.views.event_words import describe, name_event, tell, tell_shortly
from tests.events import samples

EVENTS = {
    "claimed: won": events.Claimed(how="won"),
    "started: Mend it": events.Started(title="Mend it"),
    "monitor: started": events.Monitor(state="started"),
    "decided: ci-failed (PHASE:awaiting_ci)": events.Decided(
        row="ci-failed", phase="PHASE:awaiting_ci"
    ),
    "decided: blocked (no phase)": events.Decided(row="blocked"),
    "inject: ci-failed": events.StepDone(verb="inject", result="ci-failed"),
    "open the pull request: #12": events.StepDone(verb="open the pull request", result="#12"),
    "recover: failed: no such program": events.StepDone(
        verb="recover", result="failed: no such program"
    ),
    "park: until 17:40: usage limit": events.StepDone(
        verb="park", result="until 17:40: usage limit"
    ),
    "remove files: ": events.StepDone(verb="remove files"),
    "dropped: approved: there is no agent to tell": events.Dropped(
        row="approved", reason="there is no agent to tell"
    ),
    "waiting: not delivered yet: it asks": events.Waiting(reason="not delivered yet: it asks"),
    "reply: ada: take: the\nsecond": events.Reply(author="ada", text="take: the\nsecond"),
    "bridge: task (entry 12 of hof_V1)": events.FromChat(type="task", entry=12, handoff="hof_V1"),
    "recover: asked for by a person": events.RecoverAsked(),
    "kill: asked for by a person": events.Kill(),
    "kill: ended and removed": events.Kill(done=True),
    "paused: by ana@box: a release": events.Paused(by="ana@box", reason="a release"),
    "resumed: by ana@box": events.Resumed(what="shop", by="ana@box"),
    "let go: it was settled while its state was lost": events.LetGo(),
    "over: has died": events.Over(how="has died"),
    "ended: left by its agent: sleep (12), cat (13)": events.StraysEnded(
        processes="sleep (12), cat (13)"
    ),
    "renamed: ann": events.Renamed(name="ann"),
    "adopted: by s-000000aa": events.Adopted(parent="s-000000aa"),
    "adopted: by nobody": events.Adopted(),
    "message: 0123 steer from ann: waiting": events.MessageSent(
        id="0123", mode="steer", sender="ann", status="waiting"
    ),
    "message: 0123 steer from a person: typed": events.MessageSent(
        id="0123", mode="steer", status="typed"
    ),
    "message: 0123 the agent has it": events.MessageOutcome(
        id="0123", outcome=events.MessageEnd.ACCEPTED
    ),
    "message: 0123 given back by the agent: it waits again": events.MessageOutcome(
        id="0123", outcome=events.MessageEnd.GIVEN_BACK
    ),
    "message: 0123 taken back": events.Cancelled(id="0123"),
    "message: 0123 taken out of what is under way": events.Cancelled(id="0123", handed=True),
    "told: [sm] ann has ended": events.Told(text="[sm] ann has ended"),
    "context: [sm context] 56%": events.ContextNotice(text="[sm context] 56%"),
    "compaction: Compaction triggered (auto): handoff was too late": events.Compacted(
        trigger="auto"
    ),
    "compaction: Compaction triggered (manual)": events.Compacted(trigger="manual"),
    "rotation: cycle begins at 87% (cycle)": Rotation(
        step=RotationStep.BEGUN, percent=87, cause="cycle"
    ),
    "rotation: cycle begins (command)": Rotation(step=RotationStep.BEGUN, cause="command"),
    "rotation: handoff with /x/h.md": Rotation(step=RotationStep.HANDOFF, document="/x/h.md"),
    "rotation: its document is /x/h.md": Rotation(step=RotationStep.DOCUMENT, document="/x/h.md"),
    "rotation: ask1: Create: it": Rotation(
        step=RotationStep.ASKED, message="ask1", text="Create: it"
    ),
    "rotation: confirm12: Do you?": Rotation(
        step=RotationStep.ASKED, message="confirm12", text="Do you?"
    ),
    "rotation: turn interrupted": Rotation(step=RotationStep.INTERRUPTED),
    "rotation: clear 2: unconfirmed": Rotation(
        step=RotationStep.CLEARED, attempt=2, result="unconfirmed"
    ),
    "rotation: not cleared yet: it is at work: later": Rotation(
        step=RotationStep.BLOCKED, reason="it is at work: later"
    ),
    "rotation: its agent is started anew: the clear had no effect": Rotation(
        step=RotationStep.RELAUNCHED
    ),
    "rotation: finished, after 70.0 s with '/x/it's.md'": Rotation(
        step=RotationStep.FINISHED, took_s=70, document="/x/it's.md"
    ),
    "rotation: finished, after 7.5 s with 'h': it goes on with #3: mend": Rotation(
        step=RotationStep.FINISHED, took_s=7.5, document="h", task="#3: mend"
    ),
    "rotation: finished, after 7.5 s with 'h': it has not named its task": Rotation(
        step=RotationStep.FINISHED, took_s=7.5, document="h", task=""
    ),
    "rotation: given up: asked twice: in vain": Rotation(
        step=RotationStep.GIVEN_UP, reason="asked twice: in vain"
    ),
    "person: is stuck": events.PersonTold(text="is stuck"),
    "lock: /x/index.lock": events.LockRemoved(path="/x/index.lock"),
    "problem: it is: broken": events.Problem(text="it is: broken"),
}
"""What `sm trace --json` says of events, as `event: detail`, and the events."""


@pytest.mark.parametrize("said", EVENTS)
def test_json_calls_an_event_as_it_always_did(said: str) -> None:
    event, _, detail = said.partition(": ")
    assert (name_event(EVENTS[said]), describe(EVENTS[said])) == (event, detail)


def test_each_kind_and_each_step_of_a_rotation_has_its_example() -> None:
    told = {type(event) for event in EVENTS.values()}
    newer: set[type[Event]] = {
        events.TextTaken,
        events.PassedOver,
        events.Placed,
        events.FromPlugin,
    }
    assert told == set(KINDS) - newer
    steps = {event.step for event in EVENTS.values() if isinstance(event, Rotation)}
    assert steps == set(RotationStep)


@pytest.mark.parametrize("event", list(samples("words")), ids=lambda event: str(kind_of(event)))
def test_what_is_written_is_read_and_can_be_told(event: Event, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, event)
    [read] = journal.read(path)
    assert read == structs.replace(event, at=read.at)
    assert tell(read)
    assert tell_shortly(read)
    assert msgspec.json.decode(path.read_bytes())["kind"] == kind_of(event)


def test_every_kind_has_its_events() -> None:
    assert sorted(kind_of(kind) for kind in KINDS) == sorted(EventKind)
