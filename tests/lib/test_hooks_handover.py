"""Messages that hooks hand to the agent: order, size, receipts, and exactly what was sent."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from sm.base.quotation import fence
from sm.messages import queue
from sm.messages.queue import Message, Mode
from sm.store import lock
from sm.store.paths import Root
from tests.chance import dice
from tests.hooks import CONTEXT, OTHER, PROMPT, Hooks, context_of, payload, shown_by
from tests.messages.test_wire import ESCAPED, KEPT

QUOTING = (
    "".join(chr(each) for each in range(1, 128)) + "ä€😀\u2028\ufeff\x7f\\n\\\\u0041 $(x) `y` %s %%"
)


@pytest.fixture
def hooks(root: Root) -> Hooks:
    """An agent at work."""
    hooks = Hooks(root).make()
    hooks.be("busy")
    return hooks


def at_stop(hooks: Hooks, **changes: object) -> str:
    return context_of(hooks.call("Stop", **changes), "Stop")


# At the turn's end


def test_the_turn_goes_on_with_what_is_waiting(hooks: Hooks) -> None:
    ident = hooks.queue("do this next")
    assert at_stop(hooks) == "do this next"
    assert hooks.state == "busy"
    assert not hooks.marker.exists()
    assert (hooks.waiting(), hooks.waiting("cur")) == ([], [ident])
    (name,) = (path.name for path in (hooks.dir.queue / "cur").iterdir())
    line, at = hooks.dir.offered.read_text().removesuffix("\n").rsplit(" ", 1)
    assert line == f"{name} {CONTEXT} {PROMPT}"
    assert abs(float(at) - time.time()) < 10
    assert hooks.accepted() == set()


def test_also_while_something_runs_in_the_background(hooks: Hooks) -> None:
    hooks.queue("meanwhile")
    assert context_of(hooks.call("Stop_bg_shell"), "Stop") == "meanwhile"
    assert hooks.state == "busy"


def test_urgent_goes_before_important_before_the_others_by_age(hooks: Hooks) -> None:
    order = [("sequential", "1"), ("steer", "2"), ("important", "3"), ("sequential", "4")]
    order += [("urgent", "5"), ("important", "6"), ("urgent", "7")]
    for at, (mode, text) in enumerate(order):
        hooks.queue(text, mode, at=1_700_000_000_000_000_000 + at)
    assert at_stop(hooks).split("\n\n") == ["5", "7", "3", "6", "1", "2", "4"]


def test_every_character_arrives_as_it_was_sent(hooks: Hooks) -> None:
    generator = dice(7)
    texts = [QUOTING, "\n", "x" * 3000, "😀" * 1000]
    texts += ["".join(generator.choices(QUOTING, k=900)) for _ in range(2)]
    for at, text in enumerate(texts):
        hooks.queue(text, at=1_700_000_000_000_000_000 + at)
    assert at_stop(hooks) == "\n\n".join(texts)


def test_as_much_as_the_client_shows_whole_and_no_more(hooks: Hooks) -> None:
    ids = [hooks.queue(text) for text in ("a" * 4000, "😀" * 2490, "b" * 100, "c")]
    assert len(at_stop(hooks).encode("utf-16-le")) // 2 == 4000 + 2 + 4980
    assert hooks.waiting() == ids[2:]
    assert at_stop(hooks, stop_hook_active=True) == "b" * 100 + "\n\nc"


@pytest.mark.sweep
def test_blank_lines_between_many_small_messages_count(hooks: Hooks) -> None:
    for at in range(3100):
        hooks.queue("x", at=1_700_000_000_000_000_000 + at)
    assert at_stop(hooks) == "\n\n".join("x" * 3000)
    assert len(hooks.waiting()) == 100


@pytest.mark.parametrize("text", ["x" * 9001, "ü" * 9001, "y" * 200_000, "\\" * 1_000_000])
def test_a_longer_message_waits_and_so_does_what_is_behind_it(hooks: Hooks, text: str) -> None:
    ids = [hooks.queue(each) for each in ("first", text, "last")]
    assert at_stop(hooks) == "first"
    assert hooks.call("Stop_hookactive") == ""
    assert hooks.state == "idle"
    assert hooks.waiting() == ids[1:]


def test_a_message_of_the_very_size_goes(hooks: Hooks) -> None:
    hooks.queue("\u00fc" * 9000)
    assert at_stop(hooks) == "\u00fc" * 9000


def test_the_turn_is_carried_on_seven_times_in_a_row(hooks: Hooks) -> None:
    for number in range(7):
        hooks.queue(f"message {number}")
        assert at_stop(hooks, stop_hook_active=number > 0) == f"message {number}"
    last = hooks.queue("one too many")
    assert hooks.call("Stop_hookactive") == ""
    assert (hooks.state, hooks.waiting()) == ("idle", [last])
    assert at_stop(hooks) == "one too many"  # another turn


def test_nothing_is_handed_over_while_the_context_is_being_replaced(hooks: Hooks) -> None:
    hooks.dir.hold.touch()
    for mode in ("sequential", "steer"):
        hooks.queue("wait", mode)
    assert hooks.call("PostToolUse") == hooks.call("Stop") == ""
    assert hooks.state == "idle"
    hooks.dir.hold.unlink()
    assert at_stop(hooks) == "wait\n\nwait"


def test_whoever_delivers_already_is_left_to_it(hooks: Hooks) -> None:
    ident = hooks.queue("mine")
    with lock.hold(hooks.dir.delivery_lock):
        assert hooks.call("Stop") == ""
    assert (hooks.state, hooks.waiting()) == ("idle", [ident])


def test_two_hooks_at_once_hand_each_message_over_once(hooks: Hooks) -> None:
    ids = [hooks.queue(f"message {at}", at=1_700_000_000_000_000_000 + at) for at in range(40)]
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(hooks.call("Stop"))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = "".join(context_of(answer, "Stop") for answer in answers if answer)
    assert said.split("\n\n") == [f"message {at}" for at in range(40)]
    assert hooks.waiting("cur") == ids


@pytest.mark.parametrize(
    "content", [b"", b"half a mess", b"\n{}\n", b'"cut\n{}\n', b'"\xff"\n{}\n', b'"x" "y"']
)
def test_a_damaged_message_is_left_where_it_is(hooks: Hooks, content: bytes) -> None:
    hooks.queue("whole", "important")
    damaged = hooks.dir.queue / "new" / "1700000000000000000-damaged00.sequential"
    damaged.write_bytes(content)
    assert at_stop(hooks) == "whole"
    assert damaged.read_bytes() == content
    assert hooks.call("Stop_hookactive") == ""


def test_files_that_are_no_messages_are_passed_over(hooks: Hooks, tmp_path: Path) -> None:
    new = hooks.dir.queue / "new"
    (tmp_path / "secret").write_text('"secret"\n{}\n')
    (new / "1700000000000000000-linked000.urgent").symlink_to(tmp_path / "secret")
    for name in ("1700000000000000001-x", "1-a.b.urgent", "1-A.urgent", "x-abcdefgh.urgent"):
        (new / name).write_text('"no"\n{}\n')
    (new / "1700000000000000002-folder00.urgent").mkdir()
    assert hooks.call("Stop") == ""
    hooks.queue("yes")
    assert at_stop(hooks) == "yes"


# Within the turn


def test_a_steer_message_rides_on_the_next_tool_result(hooks: Hooks) -> None:
    later, now = hooks.queue("later"), hooks.queue(QUOTING, "steer")
    assert hooks.call("PostToolUse_insubagent") == ""
    assert context_of(hooks.call("PostToolUse"), "PostToolUse") == QUOTING
    assert (hooks.waiting(), hooks.waiting("cur")) == ([later], [now])
    assert hooks.dir.steer.read_text() == ""
    assert hooks.state == "busy"
    assert hooks.call("PostToolUse") == ""


def test_what_rides_on_a_tool_result_is_shown_to_people(hooks: Hooks) -> None:
    shown = f"[sm] From a person:\n{QUOTING}"
    hooks.queue(QUOTING, "steer", shown=shown)
    hooks.queue("of old, without a view", "steer")
    hooks.queue("last", "steer", shown="last")
    answer = hooks.call("PostToolUse")
    assert context_of(answer, "PostToolUse").endswith("of old, without a view\n\nlast")
    assert shown_by(answer) == f"{shown}\n\nlast"


def test_at_a_turns_end_the_client_shows_the_text_itself(hooks: Hooks) -> None:
    hooks.queue("a steer message that came too late", "steer", shown="shown twice")
    answer = hooks.call("Stop")
    assert context_of(answer, "Stop") == "a steer message that came too late"
    assert shown_by(answer) is None


@pytest.mark.parametrize("view", ['"cut', "no string", '"\xff"', '"', ""])
def test_a_damaged_view_is_not_shown_and_the_message_goes(hooks: Hooks, view: str) -> None:
    ident = hooks.queue("whole", "steer")
    (path,) = (hooks.dir.queue / "new").glob(f"*-{ident}.*")
    with path.open("ab") as file:
        file.write(view.encode("latin-1"))
    answer = hooks.call("PostToolUse")
    assert context_of(answer, "PostToolUse") == "whole"
    assert shown_by(answer) is None


def test_the_largest_message_is_shown_as_far_as_people_are_shown_it(hooks: Hooks) -> None:
    hooks.queue("\u2713" * 9000, "steer", shown="\u2713" * 4200)
    answer = hooks.call("PostToolUse")
    assert context_of(answer, "PostToolUse") == "\u2713" * 9000
    assert shown_by(answer) == "\u2713" * 4200


def test_steer_messages_that_do_not_fit_ride_on_the_next_one(hooks: Hooks) -> None:
    for letter in "abc":
        hooks.queue(letter * 4000, "steer")
    assert context_of(hooks.call("PostToolUse"), "PostToolUse") == "a" * 4000 + "\n\n" + "b" * 4000
    assert context_of(hooks.call("PostToolUse"), "PostToolUse") == "c" * 4000


@pytest.mark.parametrize("part", ESCAPED)
def test_what_the_client_would_change_is_left_to_be_typed(hooks: Hooks, part: str) -> None:
    for sample, mode in (("PostToolUse", "steer"), ("Stop", "sequential")):
        ids = [hooks.queue(text, mode) for text in ("first", f"x\n{part}", "last")]
        assert context_of(hooks.call(sample), sample) == "first"
        assert hooks.waiting()[-2:] == ids[1:]
        for path in (hooks.dir.queue / "new").iterdir():
            path.unlink()
    hooks.env["SM_CLIENT"] = "codex"  # which changes nothing
    hooks.queue(part, "steer")
    assert context_of(hooks.call("PostToolUse_codex"), "PostToolUse") == part


@pytest.mark.parametrize("part", KEPT)
def test_what_is_only_like_it_is_handed_over(hooks: Hooks, part: str) -> None:
    hooks.queue(part)
    assert at_stop(hooks) == part


def test_a_longer_steer_message_is_not_looked_at_with_every_tool(hooks: Hooks) -> None:
    ident = hooks.queue("x" * 9001, "steer")
    assert hooks.call("PostToolUse") == ""
    assert (hooks.dir.steer.read_text(), hooks.waiting()) == ("", [ident])


def test_codex_gets_no_more_at_once_than_it_shows_whole(hooks: Hooks) -> None:
    """It counts 10,000 bytes: what was over that, the model saw in part only."""
    hooks.env["SM_CLIENT"] = "codex"
    ids = [hooks.queue(text, "steer") for text in ("€" * 1800, "😀" * 599, "b")]
    said = context_of(hooks.call("PostToolUse_codex"), "PostToolUse")
    assert said == "€" * 1800 + "\n\n" + "😀" * 599
    assert len(said.encode()) < 10_000
    assert hooks.waiting() == ids[2:]
    assert context_of(hooks.call("PostToolUse_codex"), "PostToolUse") == "b"
    for text in ("€" * 3001, "y" * 3001):
        ident = hooks.queue(text, "steer")
        assert hooks.call("PostToolUse_codex") == ""
        assert hooks.waiting() == [ident]
        (path,) = (hooks.dir.queue / "new").iterdir()
        path.unlink()
    hooks.queue("€" * 3000, "steer")
    assert context_of(hooks.call("PostToolUse_codex"), "PostToolUse") == "€" * 3000


# Receipts


@pytest.mark.parametrize(
    "sample", ["PostToolUse", "Stop", "Stop_hookactive", "StopFailure_unknown"]
)
def test_the_next_event_of_the_turn_is_the_receipt(hooks: Hooks, sample: str) -> None:
    ids = {hooks.queue("one"), hooks.queue("two")}
    at_stop(hooks)
    hooks.call("PostToolUse_insubagent")
    hooks.call("SessionStart_compact")
    assert hooks.accepted() == set()
    hooks.call(sample)
    assert hooks.accepted() == ids
    assert hooks.dir.offered.read_text() == ""


def test_a_compaction_in_between_is_no_receipt_and_is_noted(hooks: Hooks) -> None:
    hooks.queue("one")
    at_stop(hooks)
    (name,) = (path.name for path in (hooks.dir.queue / "cur").iterdir())
    hooks.call("PreCompact_auto")
    assert hooks.call("SessionStart_compact") == ""
    for sample in ("PostToolUse", "Stop_hookactive"):
        hooks.call(sample)
    assert hooks.accepted() == set()
    found, context, mark = hooks.dir.offered.read_text().split()
    assert (found, context) == (name, CONTEXT)
    assert abs(float(mark.removeprefix("compacted:")) - time.time()) < 60
    hooks.queue("two")  # "one" may have to go again, and before it
    assert hooks.call("Stop") == ""


def test_another_turn_is_no_receipt(hooks: Hooks) -> None:
    """The agent was interrupted before it read the answer."""
    first = hooks.queue("first")
    at_stop(hooks)
    hooks.call("UserPromptSubmit", prompt_id="next")
    hooks.call("PostToolUse", prompt_id="next")
    hooks.call("PostToolUse", session_id=OTHER)
    assert hooks.accepted() == set()
    second = hooks.queue("second")
    at_stop(hooks, prompt_id="next")
    hooks.call("PostToolUse", prompt_id="next")
    assert hooks.accepted() == {second}
    assert first in hooks.dir.offered.read_text()
    assert second not in hooks.dir.offered.read_text()


def test_another_turn_that_was_carried_on_is_no_receipt(hooks: Hooks) -> None:
    """An interruption has ended the hook that said the first; the next turn is carried on, too."""
    first = hooks.queue("first")
    at_stop(hooks)
    hooks.call("UserPromptSubmit", prompt_id="next")
    second = hooks.queue("second")
    assert at_stop(hooks, prompt_id="next") == "second"
    hooks.call("Stop_hookactive", prompt_id="next")
    assert hooks.accepted() == {second}
    assert first in hooks.dir.offered.read_text()


def test_the_next_event_of_a_turn_of_codex_is_the_receipt_and_another_turns_is_not(
    hooks: Hooks,
) -> None:
    """Its turns were all taken for one: what an interrupted one was told counted as read."""
    hooks.be("busy", prompt="t1")
    first = hooks.queue("first", "steer")
    assert context_of(hooks.call("PostToolUse_codex", turn_id="t1"), "PostToolUse") == "first"
    hooks.call("UserPromptSubmit_codex", turn_id="t2")
    hooks.call("PostToolUse_codex", turn_id="t2")
    assert hooks.accepted() == set()
    hooks.call("PostToolUse_codex", turn_id="t1")
    assert hooks.accepted() == {first}


def expect(hooks: Hooks, way: str, prompt: str, answer: str = "") -> str:
    """Announce a prompt that is about to be typed."""
    typed = json.dumps(prompt, ensure_ascii=False)[1:-1]
    hooks.dir.expect.write_text(f"0123456789abcdef {way}\n{typed}\n{answer}\n")
    return "0123456789abcdef"


@pytest.mark.parametrize("prompt", ["hello", '"quoted" \\ *?[a] $x `y`', "ä\nb\tc", "x" * 200_000])
def test_the_expected_prompt_is_its_receipt(hooks: Hooks, prompt: str) -> None:
    answer = json.dumps({"hookSpecificOutput": {"additionalContext": "%s \\n more"}})
    for way, sent in (("exact", prompt), ("within", f"my draft {prompt} and more")):
        hooks.be("idle")
        ident = expect(hooks, way, prompt, answer)
        assert hooks.call("UserPromptSubmit", prompt=sent) == answer + "\n"
        assert hooks.accepted() == {ident}
        assert hooks.dir.expect.read_text() == ""
        assert hooks.state == "busy"
        (hooks.dir.accepted / ident).unlink()


@pytest.mark.parametrize(
    ("way", "prompt"),
    [
        ("exact", "hello and more"),
        ("exact", "so hello"),
        ("exact", '{"prompt":"hello"}'),
        ("within", "hell o"),
        ("garbage", "hello"),
        ("whole", "hell o"),
    ],
)
def test_another_prompt_is_not(hooks: Hooks, way: str, prompt: str) -> None:
    expect(hooks, way, "hello", "answer")
    before = hooks.dir.expect.read_bytes()
    assert hooks.call("UserPromptSubmit", prompt=prompt) == ""
    assert hooks.accepted() == set()
    assert hooks.dir.expect.read_bytes() == before


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("my draft, message {id}: some text", ""),
        ("my draft, message {id}: some[201~ text", "damaged"),
        ("my draft, message {id}: some", "damaged"),
    ],
)
def test_of_a_damaged_text_the_agent_is_told(hooks: Hooks, sent: str, told: str) -> None:
    text = "message 0123456789abcdef: some text"
    ident = expect(hooks, "whole", text, "damaged")
    assert hooks.call("UserPromptSubmit", prompt=sent.format(id=ident)).strip() == told
    assert hooks.accepted() == {ident}
    assert hooks.dir.expect.read_text() == ""


def test_a_prompt_of_another_context_is_not(hooks: Hooks) -> None:
    expect(hooks, "exact", "hello")
    hooks.call("UserPromptSubmit", prompt="hello", session_id=OTHER)
    assert hooks.accepted() == set()


def test_a_receipt_wakes_the_monitor(hooks: Hooks) -> None:
    hooks.queue("one")
    at_stop(hooks)
    assert hooks.poked("PostToolUse") == b"\n"


def test_receipts_are_kept_where_their_folder_has_gone(hooks: Hooks) -> None:
    hooks.dir.accepted.rmdir()
    ident = expect(hooks, "exact", "hello")
    hooks.call("UserPromptSubmit", prompt="hello")
    assert hooks.accepted() == {ident}


def test_the_sample_with_a_pasted_wrapper_is_recognised_within(hooks: Hooks) -> None:
    text = json.loads(payload("UserPromptSubmit_pasted"))["prompt"]
    inner = text.split(">\n")[1].split("\n<")[0]
    ident = expect(hooks, "within", inner)
    hooks.call("UserPromptSubmit_pasted")
    assert hooks.accepted() == {ident}


# Words of others


@pytest.mark.parametrize("mode", ["sequential", "steer"])
def test_what_quotes_others_is_left_to_be_typed_and_so_is_what_is_behind_it(
    hooks: Hooks, mode: str
) -> None:
    first = hooks.queue("before it", mode=mode)
    text = f"[sm] So:\n{fence('CI log', 'x', '5eedf00d')}"
    hooks.dir.queue.chmod(0o700)
    for folder in hooks.dir.queue.iterdir():
        folder.chmod(0o700)
    queue.put(hooks.dir, Message(id=(quoting := queue.make_id()), text=text, mode=Mode(mode)))
    last = hooks.queue("behind it", mode=mode)
    event = "Stop" if mode == "sequential" else "PostToolUse"
    assert context_of(hooks.call(event), event) == "before it"
    assert (hooks.waiting(), hooks.waiting("cur")) == ([quoting, last], [first])


def test_what_claims_within_to_quote_is_handed_over(hooks: Hooks) -> None:
    text = 'He said {"quotes":true}, and "quotes":true'
    hooks.queue(text)
    assert at_stop(hooks) == text


# While it is paused


@pytest.mark.parametrize("mark", ["paused", "braked"])
def test_an_agent_that_rests_gets_nothing_at_its_turn_s_end_nor_within_it(
    hooks: Hooks, mark: str
) -> None:
    hooks.queue("later")
    hooks.queue("within the turn", "steer")
    hooks.dir.steer.write_text("more\n")
    (hooks.dir.path / mark).write_text("{}")
    assert hooks.call("PostToolUse") == ""
    assert hooks.call("Stop") == ""
    assert hooks.state == "idle"
    assert len(hooks.waiting()) == 2
    (hooks.dir.path / mark).unlink()
    hooks.be("busy")
    assert at_stop(hooks) == "later\n\nwithin the turn"


def test_what_it_was_told_before_the_pause_is_confirmed_all_the_same(hooks: Hooks) -> None:
    ident = hooks.queue("before")
    assert at_stop(hooks) == "before"
    hooks.dir.paused.write_text("{}")
    hooks.call("PostToolUse")
    assert hooks.accepted() == {ident}
