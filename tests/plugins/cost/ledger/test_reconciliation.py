"""What a client has counted itself is joined to the entries of its records, and never twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sm.plugins.cost.ledger.entries import CostLedger, open_ledger
from sm.plugins.cost.ledger.intake import read_all
from sm.plugins.cost.ledger.sums import Sum, SumGroup, add_up, read_sums
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer

MODEL = "claude-opus-4-5"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CostLedger]:
    with open_ledger(tmp_path / "sm" / "ledger.db") as ledger:
        yield ledger


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "projects" / "-work" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    return path


def at(minute: int) -> str:
    return f"2026-11-28T12:{minute:02}:00.000Z"


NOON = 1795867200.0


def answer(ident: str, minute: int, **more: Any) -> dict[str, Any]:
    """An answer of 10 tokens in, 20 out, 30 from the cache."""
    return write_answer(ident, at=at(minute), **more)


def compaction(minute: int) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": f"u{minute}",
        "timestamp": at(minute),
        "sessionId": "s1",
    }


def account(input_: int, output: int, cached: int, model: str = MODEL) -> dict[str, Any]:
    """What the client says at the end of a process."""
    counted = {
        "inputTokens": input_,
        "outputTokens": output,
        "cacheReadInputTokens": cached,
        "cacheCreationInputTokens": 0,
        "costUSD": input_ / 1000,
    }
    return {
        "type": "cost-state",
        "sessionId": "s1",
        "startTime": NOON * 1000,
        "modelUsage": {model: counted},
    }


def total(ledger: CostLedger) -> Sum:
    return add_up(read_sums(ledger, SumGroup.AGENT))


def counts(ledger: CostLedger) -> tuple[int, int, int, int]:
    """Input, output, cache reads, and how many requests are known no more than to have been."""
    found = total(ledger)
    return found.tokens.input, found.tokens.output, found.tokens.cache_read, found.unknown


def start(ledger: CostLedger, minute: int, how: str = "startup") -> None:
    ledger.note_starts([("s1", NOON + minute * 60 - 1, how)])


def test_a_compaction_is_known_once_the_process_has_ended(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    enter(ledger, add_lines(transcript, [answer("r1", 1), compaction(2), answer("r2", 3)]))
    assert counts(ledger) == (20, 40, 60, 1)
    enter(ledger, add_lines(transcript, [account(120, 47, 960)] * 2))
    assert counts(ledger) == (120, 47, 960, 0)
    by_agent = {one.name: one.tokens.input for one in read_sums(ledger, SumGroup.AGENT)}
    assert by_agent == {"compaction": 100, "main": 20}
    assert total(ledger).requests == 3
    ledger.connection.execute("DELETE FROM files")  # as if nothing had been noted
    enter(ledger, transcript)
    assert counts(ledger) == (120, 47, 960, 0)


def test_a_resumed_conversation_adds_only_what_is_new(ledger: CostLedger, transcript: Path) -> None:
    start(ledger, 0)
    enter(ledger, add_lines(transcript, [answer("r1", 1), compaction(2), account(110, 27, 930)]))
    start(ledger, 3, "resume")
    more = [answer("r2", 4), compaction(5), compaction(6), account(145, 58, 1000)]
    enter(ledger, add_lines(transcript, more))
    assert counts(ledger) == (145, 58, 1000, 0)
    rows = ledger.connection.execute(
        "SELECT key, input FROM requests WHERE agent = 'compaction' ORDER BY at"
    ).fetchall()
    assert rows == [("compaction:u2", 100), ("compaction:u5", 0), ("compaction:u6", 25)]


def test_what_a_killed_process_asked_for_is_in_no_account(
    ledger: CostLedger, transcript: Path
) -> None:
    """Not even its compaction, which stays unknown."""
    start(ledger, 0)
    enter(ledger, add_lines(transcript, [answer("r1", 1), account(10, 20, 30)]))
    start(ledger, 2, "resume")
    enter(ledger, add_lines(transcript, [answer("killed", 3), compaction(4)]))
    start(ledger, 5, "resume")
    lines = [answer("r2", 6), compaction(7), account(120, 45, 65)]
    enter(ledger, add_lines(transcript, lines))
    assert counts(ledger) == (130, 65, 95, 1)


def test_a_subagent_that_is_read_later_is_no_compaction(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    enter(ledger, add_lines(transcript, [answer("r1", 1), compaction(2), account(120, 45, 65)]))
    assert total(ledger).tokens.input == 120
    side = add_lines(transcript.with_name("agent-1.jsonl"), [answer("a1", 1, isSidechain=True)])
    enter(ledger, side)
    assert counts(ledger) == (120, 45, 65, 0)


@pytest.mark.parametrize("how", [None, "resume", "fork"])
def test_a_context_of_which_the_beginning_is_unknown_stays_as_it_is(
    ledger: CostLedger, transcript: Path, how: str | None
) -> None:
    if how:
        start(ledger, 0, how)
    enter(ledger, add_lines(transcript, [answer("r1", 1), compaction(2), account(990, 990, 990)]))
    assert counts(ledger) == (10, 20, 30, 1)
    start(ledger, -9)  # it is heard of late
    assert counts(ledger) == (990, 990, 990, 0)


def test_an_account_that_has_less_than_the_entries_is_not_believed(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    enter(ledger, add_lines(transcript, [answer("r1", 1), compaction(2), account(500, 5, 500)]))
    assert counts(ledger) == (10, 20, 30, 1)


def test_a_try_that_failed_has_used_what_the_client_says(
    ledger: CostLedger, transcript: Path
) -> None:
    """Nothing, mostly. A request that was never tried again stays unknown."""

    def begin(ident: str, digest: str, minute: int) -> dict[str, Any]:
        line = {"type": "api-request", "id": ident, "requestDigest": digest, "sessionId": "s1"}
        return line | {"timestamp": at(minute), "params": {"model": MODEL}}

    start(ledger, 0)
    tries = [begin("b1", "d1", 1), begin("b2", "d1", 2), answer("r1", 2, requestRef="b2")]
    lines = [*tries, begin("b3", "d1", 3), begin("b4", "d2", 4), answer("r2", 4, requestRef="b4")]
    enter(ledger, add_lines(transcript, lines))
    assert counts(ledger) == (20, 40, 60, 2)
    enter(ledger, add_lines(transcript, [account(20, 40, 60)]))
    assert counts(ledger) == (20, 40, 60, 1)
    assert total(ledger).requests == 2
    ledger.connection.execute("DELETE FROM files")
    enter(ledger, transcript)
    assert counts(ledger) == (20, 40, 60, 1)
    # In this one the answer broke off: its output is what the client guesses.
    ledger.connection.execute("DELETE FROM files")
    enter(ledger, add_lines(transcript, [account(31, 47, 95)]))
    assert counts(ledger) == (31, 40, 95, 1)
    assert (total(ledger).requests, total(ledger).at_least) == (3, 1)


def test_what_the_client_guesses_of_a_cut_off_answer_is_no_request(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    lines = [answer("r1", 1), answer("r2", 2, stop=None, output=1), account(20, 26, 60)]
    enter(ledger, add_lines(transcript, lines))
    assert counts(ledger) == (20, 21, 60, 0)
    assert (total(ledger).requests, total(ledger).at_least) == (2, 1)


def test_small_requests_of_the_clients_own_are_counted_by_their_model(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    both = account(10, 20, 30, f"{MODEL}-20251101[1m]")
    both["modelUsage"] |= account(7, 8, 0, "claude-haiku-4-5")["modelUsage"]
    enter(ledger, add_lines(transcript, [answer("r1", 1), both]))
    assert counts(ledger) == (17, 28, 30, 0)
    by_model = {one.name: one.tokens.input for one in read_sums(ledger, SumGroup.MODEL)}
    assert by_model == {MODEL: 10, "claude-haiku-4-5": 7}
    assert {one.name for one in read_sums(ledger, SumGroup.AGENT)} == {"main", "other"}


def test_what_was_searched_is_unknown_until_the_client_has_ended(
    ledger: CostLedger, transcript: Path
) -> None:
    """A search with the main model, a question beside it, and a title with a small one."""
    start(ledger, 0)
    call = answer("r1", 1)
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "WebSearch"}]
    title = {"type": "ai-title", "sessionId": "s1"}
    begun = {"type": "api-request", "id": "b1", "sessionId": "s1", "timestamp": at(1)}
    enter(ledger, add_lines(transcript, [title, begun, call | {"requestRef": "b1"}]))
    typed = {"display": "/btw why?", "timestamp": (NOON + 90) * 1000, "sessionId": "s1"}
    history = transcript.parents[2] / "history.jsonl"
    add_lines(history, [typed, typed | {"sessionId": "s2"}])
    read_all(ledger, ledger.list_lately_read(0.0))
    assert counts(ledger) == (10, 20, 30, 3)
    both = account(310, 80, 90)
    both["modelUsage"][MODEL]["webSearchRequests"] = 2
    both["modelUsage"] |= account(7, 8, 0, "claude-haiku-4-5")["modelUsage"]
    enter(ledger, add_lines(transcript, [both]))
    for _ in range(2):
        assert counts(ledger) == (317, 88, 90, 0)
        assert (total(ledger).requests, total(ledger).tokens.searches) == (4, 2)
        ledger.connection.execute("DELETE FROM files")  # as if nothing had been noted
        enter(ledger, transcript)
        read_all(ledger, ledger.list_lately_read(0.0))


def test_what_a_killed_client_had_searched_stays_unknown(
    ledger: CostLedger, transcript: Path
) -> None:
    start(ledger, 0)
    call = answer("r1", 1)
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "WebSearch"}]
    enter(ledger, add_lines(transcript, [call]))
    start(ledger, 3, "resume")
    enter(ledger, add_lines(transcript, [answer("r2", 4), account(10, 20, 30)]))
    assert counts(ledger) == (20, 40, 60, 1)


def test_an_answer_that_broke_off_stays_a_lower_bound(ledger: CostLedger, transcript: Path) -> None:
    """Also once the client has ended: what it has of the output is a guess."""
    start(ledger, 0)
    said: dict[str, Any] = {"id": "x", "model": "<synthetic>", "usage": {}}
    line: dict[str, Any] = {
        "type": "assistant",
        "timestamp": at(1),
        "sessionId": "s1",
        "message": said,
    }
    line |= {"isApiErrorMessage": True, "streamCutCause": "stale_connection"}
    enter(ledger, add_lines(transcript, [answer("r1", 1, output=1), line]))
    enter(ledger, add_lines(transcript, [answer("r2", 2), account(20, 113, 60)]))
    for _ in range(2):
        assert (total(ledger).at_least, total(ledger).requests) == (1, 2)
        assert not total(ledger).is_complete
        assert total(ledger).tokens.output == 21
        ledger.connection.execute("DELETE FROM files")
        enter(ledger, transcript)


def test_the_clients_own_figures_are_kept(ledger: CostLedger, transcript: Path) -> None:
    lines = [answer("r1", 1), account(10, 20, 30), answer("r2", 2), account(20, 40, 60)]
    enter(ledger, add_lines(transcript, lines))
    [own] = ledger.list_own()
    assert (own.owner, own.context, own.begun, own.at) == (OWNER, "s1", NOON, NOON + 120)
    assert (own.models[MODEL].tokens.output, own.models[MODEL].price) == (40, 0.02)
    assert ledger.list_own(since=NOON + 121) == []
