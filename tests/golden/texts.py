"""The texts of the tables, each for facts of every kind: what agents and people are told.

What the states bring about is in `acts`. Here is what they do not, so that no text is left out.
All that is imported of `sm` for it is imported here.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import structs

from sm.adapters.forge.model import NO_CHECK, Comment
from sm.base.act import run
from sm.base.need import NeedKind
from sm.base.phase import Phase, explain_protocol
from sm.context import rotation_texts
from sm.context.rotation import Cause, MessageKey, MessageKind, begin
from sm.issues.rules import supervision
from sm.issues.rules.allowance import Allowance, LimitStage, TurnAtLimit
from sm.issues.rules.leftover import Left
from sm.issues.rules.material import Edited, EditedReview, Material
from sm.issues.rules.matrix import ROWS
from sm.issues.rules.needs import KINDS, Case, describe_need
from sm.issues.rules.notices import (
    NOTICES,
    find_answer,
    tell_need,
    write_notice,
    write_short_notice,
)
from sm.issues.rules.prompts import PROMPTS, write_prompt
from sm.messages import peer_texts
from sm.messages.alerts import word_fault
from sm.plugins.chat.threads import agent_texts
from sm.plugins.notify.letter_text import write_letter
from sm.plugins.notify.model import HeldWord
from sm.sessions.account_fault import AccountFault, Resting
from sm.sessions.failure import FailureCause
from sm.store.events import Event, StepDone
from sm.views.event_words import describe, name_event, tell, tell_shortly
from tests.events import samples
from tests.golden.clock import NOW
from tests.helpers import REPOSITORY
from tests.issues.rules.test_prompts import material

NONCE = "5eedf00d"
OVER = Allowance(
    LimitStage.OVER, "issue", "$9.50 of $5.00 for this issue", None, run("sm budget raise x")
)
RICH: dict[str, Any] = {
    "said": (Comment("bob", NOW, "Why not?"),),
    "discussion": (Comment("bob", NOW, "Why not?"), Comment("rita", NOW, "Because.")),
    "dialog": "Bash\nrm -r build",
    "question": "Which colour?\n1. red\n2. blue",
    "failure": "usage limit (“resets 3pm”)",
    "until": "15:00",
    "attach_command": "sm attach demo 7",
    "remark": "shows no input line",
    "first_until": "12:05",
    "allowance": OVER,
    "turn": TurnAtLimit.IS_STOPPED,
    "limit_until": "00:00",
    "document": "/w/demo-7/.sm/handoffs/one.md",
    "document_form": " Headings: Current Work.",
    "conflicts": ("a.py", "b.py"),
    "channels": ("A person follows this issue in a chat.",),
    "moved": "An attempt on the host 'box' went before.",
    "links": ("https://example.com/pull/4",),
}
POOR: dict[str, Any] = {
    "pull": None,
    "review": None,
    "check": NO_CHECK,
    "git": structs.replace(material().git, diff_stat="", log="", status=""),
    "tail": "",
    "reason": "",
    "phase": Phase.NONE,
    "phase_text": "",
}
OTHERS: dict[str, Any] = {
    "protocol_known": True,
    "earlier": True,
    "answered": True,
    "answered_by": "harb#9",
    "repeated": False,
    "locked_out": True,
    "stuck": True,
    "killed": True,
    "reviewed_at": "https://example.com/pull/4",
    "trouble": "the forge refuses it",
    "row": "blocked",
    "asked_row": "merge-stuck",
}
"""What makes some texts others, one at a time, beside what is `RICH`."""


def read() -> dict[str, str]:
    """Return each file by its name."""
    variants = list(_list_variants())
    return {
        "texts/rows.txt": "".join(_list_rows()),
        "texts/prompts.txt": "".join(_cross(PROMPTS, variants, write_prompt)),
        "texts/notices.txt": "".join(_cross(NOTICES, variants, _tell_people)),
        "texts/needs.txt": "".join(_list_needs()),
        "texts/contexts.txt": "".join(_list_of_contexts()),
        "texts/peers.txt": "".join(_list_of_peers()),
        "texts/events.txt": "".join(_list_events()),
        "texts/letters.txt": "".join(_list_letters()),
        "texts/supervision.txt": "".join(_list_supervision()),
        "texts/marked.txt": "".join(f"{one}\n" for one in sorted(_find_marked())),
    }


def _head(*words: object) -> str:
    return f"== {' · '.join(map(str, words))}\n"


def _list_variants() -> Iterator[tuple[str, Material]]:
    rich = material("some words", **RICH)
    edited = Edited("1", "another title", "other words\nof two lines", ("rita", ""))
    assert rich.review
    before = structs.replace(rich.review, body="old words")
    review = EditedReview("1", before, rich.review, ("rita",))
    yield "rich", structs.replace(rich, edited=edited, edited_review=review)
    yield "poor", material("", **POOR)
    for name, value in OTHERS.items():
        yield name, structs.replace(rich, **{name: value})
    for phase in Phase:
        yield f"phase {phase.name}", structs.replace(rich, phase=phase)


def _cross(
    names: Iterable[str], variants: Iterable[tuple[str, Material]], write: Any
) -> Iterator[str]:
    """Each text for each variant; one that is as an earlier one is named with that."""
    for name in names:
        known: dict[str, list[str]] = {}
        for variant, made in variants:
            known.setdefault(write(name, made), []).append(variant)
        for said, which in known.items():
            yield f"{_head(name, ', '.join(which))}{said}\n\n"


def _tell_people(name: str, made: Material) -> str:
    kind, command = find_answer(name, made)
    return "\n".join(
        (
            write_notice(name, made),
            f"-- shortly: {write_short_notice(name, made)}",
            f"-- why: {tell_need(name, made)}",
            f"-- needs: {kind or 'nobody'}; {command}",
        )
    )


def _list_rows() -> Iterator[str]:
    for row in ROWS:
        steps = ", ".join(f"{step.verb} {step.text}".strip() for step in row.steps)
        yield f"{row.name}: {row.fact}: {steps or 'nothing'} {row.limit} {row.counts}".rstrip()
        yield "\n"


def _list_needs() -> Iterator[str]:
    """Each need, bare and with all details, and what its flags make of it."""
    details: dict[str, Any] = {
        **{name: f"the {name}" for name in ("reason", "trouble", "failure", "step", "waits")},
        **{name: f"the {name}" for name in ("held", "question", "limit")},
        "raises": run("sm budget raise demo 7"),
        "turn": TurnAtLimit.RESTS,
        "pull": 4,
    }
    flags: tuple[dict[str, Any], ...] = (
        {"locked_out": True},
        {"stuck": True},
        {"unasked": True},
        {"reviewed_at": "https://example.com/pull/4"},
        {"first": "harb#9", "first_until": "12:05"},
        {"account": "Claude Code", "resting": 2},
    )
    for row in KINDS:
        known: dict[str, list[str]] = {}
        for more in ({}, details, *(details | flag for flag in flags)):
            need = describe_need(Case(row, "demo#7", **more))
            said = (
                f"{need.cause} | {need.detail}\n{need.tell('#4')}\n"
                f"waits for {need.waits_for}: {need.command} ({need.kind})"
            )
            which = ", ".join(one for one in more if one not in details) or (
                "details" if more else "bare"
            )
            known.setdefault(said, []).append(which)
        for said, words in known.items():
            yield f"{_head(row, ', '.join(words))}{said}\n\n"


def _list_of_contexts() -> Iterator[str]:
    form = rotation_texts.Form(("Current Work", "Next Steps"), ("Created",))
    for cause, kind in itertools.product(Cause, (k for k in MessageKind if k != "stop")):
        record = structs.replace(begin("r-1", cause, NOW, "old"), percent=86.4)
        said = rotation_texts.write_message(
            record,
            MessageKey(kind),
            folder="/w/.sm/handoffs",
            form=form,
            missing=form,
            path="/w/.sm/handoffs/one.md",
            resumed="Resumed:",
        )
        yield f"{_head(cause, kind)}{said}\n\n"
    yield f"{_head('task')}{rotation_texts.ask_for_task('Resumed:')}\n\n"
    where = {"remote": "origin", "branch": "fix/7", "base": "main"}
    yield f"{_head('protocol')}{explain_protocol(phase_file='/tmp/x.phase', **where)}\n"


def _list_of_peers() -> Iterator[str]:
    for name, said in {
        "message": peer_texts.word_message("ann", "One line.", NONCE),
        "message of lines": peer_texts.word_message("ann", "One.\nTwo.", NONCE),
        "turn's end": peer_texts.word_turn_end("ann", "I am done.", NONCE),
        "silent turn's end": peer_texts.word_turn_end("ann", "", NONCE),
        "notice": peer_texts.word_notice("ann", "has ended"),
        "own session": peer_texts.explain_session("ann", "s-1", ""),
        "child": peer_texts.explain_session("s-2", "s-2", "ann"),
        "chat's entry": agent_texts.write_entry("hof_1", 2, "decision", "Blue.", NONCE),
        "chat": agent_texts.write_note(["hof_1"]),
        "chats": agent_texts.write_note(["hof_1", "hof_2"]),
    }.items():
        yield f"{_head(name)}{said}\n\n"
    for fault in (fault for fault in FailureCause if fault.is_of_account):
        resting = {"a": Resting("harb#1", NOW, NOW + 60), "b": Resting("ann", NOW, NOW + 60)}
        known = AccountFault("Claude Code", fault, NOW - 60, NOW, NOW + 3600, resting, notice="No.")
        yield f"{_head('account', fault)}{word_fault(known, NOW)}\n\n"


def _list_events() -> Iterator[str]:
    steps = {(step.verb, step.text) for row in ROWS for step in row.steps}
    made: list[Event] = list(samples("words"))
    for verb, text in sorted(steps):
        made += [
            StepDone(verb=verb, row="row", result=text),
            StepDone(verb=verb, row="row", trouble="refused"),
            StepDone(verb=verb, row="row", need="question", text="Why", command="sm needs"),
        ]
    for event in made:
        yield f"{_head(name_event(event), type(event).__name__)}"
        yield f"{describe(event)}\n{tell(event)}\n{tell_shortly(event)}\n\n"


def _list_letters() -> Iterator[str]:
    def make(number: int, need: NeedKind, **more: Any) -> HeldWord:
        return HeldWord(
            id=str(number),
            at=NOW,
            need=need,
            address=f"demo#{number}",
            sentence=f"needs a person: the words of {number} @all. sm reply demo {number} TEXT",
            command=f"sm reply demo {number} TEXT",
            page=f"https://example.com/#{number}",
            **more,
        )

    for need in NeedKind:
        words = [make(number, need) for number in range(1, 13)]
        for which, chosen, is_one_cause in (
            ("one", words[:1], False),
            ("equal", words[:3], True),
            ("several", words, False),
        ):
            title, text = write_letter(chosen, is_one_cause=is_one_cause)
            yield f"{_head(need, which)}{title}\n{text}\n\n"
    again = write_letter([make(1, NeedKind.CI, name="x.again")], is_one_cause=False)
    yield f"{_head('again')}{again[0]}\n{again[1]}\n"


def _list_supervision() -> Iterator[str]:
    at = supervision.ProjectWords("shop", "/home/ada/the shop", "hub", "backlog", "tmux -L sm")
    for row in supervision.ROWS:
        left = Left(thing=row.thing, name="x", issue=7)
        said = (
            one.format(left=left, at=at) for one in (row.told, row.doing, row.done, row.command)
        )
        yield f"{_head(row.name, row.by, row.fact)}{chr(10).join(said)}\n\n"


def _find_marked() -> Iterator[str]:
    """The templates in the code that begin as what agents are told does, wherever they stand."""
    for path in (REPOSITORY / "sm").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                text = _spell(node)
                if text.startswith("[sm"):
                    yield ascii(text)


def _spell(node: ast.Constant | ast.JoinedStr) -> str:
    """The text, with a mark for each value in it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_spell(one) if isinstance(one, ast.Constant) else "{…}" for one in node.values)
