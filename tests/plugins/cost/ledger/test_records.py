"""What the records of each client say of its requests, in the forms that they have had."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.agent.profiles import BUILTIN
from sm.base.foreign import read_time
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    Before,
    Certainty,
    ClientAccount,
    ClientFigure,
    Cut,
    Found,
    LedgerEntry,
    Settled,
    Tokens,
    find_reader,
)

AT = "2026-11-28T11:54:12.644Z"


def entries(reader: str, lines: Iterable[dict[str, Any] | bytes]) -> list[LedgerEntry]:
    """What is left of what the lines say, as the ledger keeps it: by key, the settled ones gone."""
    kept: dict[str, LedgerEntry] = {}
    for one in said(reader, lines):
        if isinstance(one, Settled):
            kept.pop(one.key, None)
        elif isinstance(one, Cut):
            kept[one.key] = structs.replace(kept[one.key], certainty=Certainty.AT_LEAST)
        elif isinstance(one, LedgerEntry):
            kept.pop(one.settles, None)
            kept[one.key] = one
    return list(kept.values())


def said(reader: str, lines: Iterable[dict[str, Any] | bytes]) -> Found:
    found = find_reader(reader)
    assert found
    before = Before()
    everything: Found = ()
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        before, more = found.read(before, data)
        everything += more
    return everything


# Claude Code

COST_STATE = b"""{"type":"cost-state","sessionId":"s1","totalCostUSD":0.150598,
"totalAPIDuration":487,"totalDuration":5107,"startTime":1795878234733,"modelUsage":
{"claude-opus-5-5":{"inputTokens":207,"outputTokens":351,"thinkingTokens":0,
"cacheReadInputTokens":203360,"cacheCreationInputTokens":15012,
"cacheCreationEphemeral5mInputTokens":6006,"cacheCreationEphemeral1hInputTokens":9006,
"webSearchRequests":0,"costUSD":0.150598}},"hasUnknownModelCost":false}""".replace(b"\n", b"")
"""As 2.1.332 writes it."""


def test_what_the_client_has_counted_itself_is_an_account() -> None:
    line = answer()
    [_, account] = said("claude", [line, COST_STATE])
    assert isinstance(account, ClientAccount)
    assert (account.context, account.begun) == ("s1", 1795878234.733)
    assert account.at == read_time(AT)
    tokens = Tokens(207, 351, 203360, 6006, 9006)
    assert account.models == {"claude-opus-5-5": ClientFigure(tokens, 0.150598)}
    unknown = COST_STATE.replace(b"false", b"true")
    [_, account] = said("claude", [line, unknown])
    assert isinstance(account, ClientAccount)
    assert account.models["claude-opus-5-5"].price is None
    assert said("claude", [COST_STATE, line, COST_STATE[:-9], b'{"type":"cost-state"}'])[1:] == ()


def answer(
    message: str = "msg_1",
    *,
    usage: dict[str, Any] | None = None,
    stop: str | None = "end_turn",
    model: str = "claude-opus-5-5",
    **more: Any,
) -> dict[str, Any]:
    counts = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 30}
    said = {"id": message, "model": model, "stop_reason": stop, "usage": counts | (usage or {})}
    line = {"type": "assistant", "timestamp": AT, "sessionId": "s1", "message": said}
    return line | {"requestId": "req_1", "isSidechain": False} | more


def begun(ident: str, **more: Any) -> dict[str, Any]:
    params = {"model": "claude-opus-5-5"}
    line = {"type": "api-request", "timestamp": AT, "sessionId": "s1", "params": params}
    return line | {"id": ident, "querySource": "repl_main_thread"} | more


def test_an_answer_of_many_lines_is_one_entry() -> None:
    (one,) = entries("claude", [answer(), answer(), answer()])
    assert (one.key, one.context, one.agent) == ("req_1", "s1", AgentKind.MAIN)
    assert one.tokens == Tokens(input=10, output=20, cache_read=30)
    assert one.certainty is Certainty.WHOLE


def test_a_request_is_known_as_it_begins_and_settled_by_its_answer() -> None:
    (running,) = entries("claude", [begun("a")])
    assert (running.certainty, running.model) == (Certainty.UNKNOWN, "claude-opus-5-5")
    (one,) = entries("claude", [begun("a"), answer(requestRef="a")])
    assert one.certainty is Certainty.WHOLE


def test_an_answer_that_was_cut_off_has_used_no_less() -> None:
    (one,) = entries("claude", [answer(stop=None)])
    assert one.certainty is Certainty.AT_LEAST


def cut(**more: Any) -> dict[str, Any]:
    """What 2.1.332 writes behind an answer that broke off behind a whole block."""
    said = {"id": "x", "model": "<synthetic>", "stop_reason": "stop_sequence", "usage": {}}
    line = {"type": "assistant", "timestamp": AT, "sessionId": "s1", "message": said}
    return line | {"isApiErrorMessage": True, "streamCutCause": "stale_connection"} | more


@pytest.mark.parametrize("more", [{}, {"truncatedAfterOutput": True}])
def test_an_answer_cut_off_behind_a_whole_block_is_not_complete(more: dict[str, Any]) -> None:
    """The client makes up why it ended (`end_turn`, `tool_use`), and that its output was 1."""
    lines = [answer(usage={"output_tokens": 1}), cut(**more)]
    (one,) = entries("claude", lines)
    assert (one.key, one.certainty) == ("req_1", Certainty.AT_LEAST)
    (whole,) = entries("claude", [lines[0], cut(streamCutCause=None)])
    assert whole.certainty is Certainty.WHOLE
    assert entries("claude", [cut()]) == []


def calling(tool: str, ident: str = "toolu_1") -> dict[str, Any]:
    line = answer(stop="tool_use")
    line["message"]["content"] = [
        {"type": "text", "text": '"WebSearch"'},
        {"type": "tool_use", "id": ident, "name": tool, "input": {"query": "q"}},
    ]
    return line


@pytest.mark.parametrize(
    ("tool", "agents"),
    [("WebSearch", [AgentKind.SEARCH]), ("WebFetch", [AgentKind.FETCH]), ("Bash", [])],
)
def test_a_tool_that_asks_a_model_by_itself_is_an_unknown(
    tool: str, agents: list[AgentKind]
) -> None:
    (main, *own) = entries("claude", [calling(tool), calling(tool)])
    assert main.certainty is Certainty.WHOLE
    assert [(one.agent, one.certainty) for one in own] == [
        (agent, Certainty.UNKNOWN) for agent in agents
    ]


def test_the_searches_of_a_call_are_counted_though_its_tokens_are_not() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    line = {"type": "user", "timestamp": AT, "sessionId": "s1", "message": {"content": [result]}}
    line |= {"toolUseResult": {"query": "q", "results": [], "searchCount": 2}}
    *_, search = entries("claude", [calling("WebSearch"), line])
    assert (search.key, search.tokens) == ("search:toolu_1", Tokens(searches=2))
    assert search.certainty is Certainty.UNKNOWN
    other = line | {"toolUseResult": {"searchCount": "many"}}
    said_by_a_tool = line | {"toolUseResult": '{"searchCount": 2}'}
    assert said("claude", [other, said_by_a_tool]) == ()


def test_a_title_is_an_unknown_of_the_first_request() -> None:
    title = {"type": "ai-title", "aiTitle": "A test", "sessionId": "s1"}
    found = entries("claude", [title, title, begun("a"), title, answer(requestRef="a"), title])
    assert [(one.key, one.at) for one in found] == [
        ("title:s1", read_time(AT)),
        ("req_1", read_time(AT)),
    ]


def test_a_question_beside_the_conversation_is_known_by_what_was_typed() -> None:
    reader = find_reader("claude")
    assert reader
    typed = {"display": "/btw what is it?", "timestamp": 1795960238316, "sessionId": "s1"}

    def ask(line: object) -> LedgerEntry | None:
        return reader.read_history(line if isinstance(line, bytes) else json.dumps(line).encode())

    found = ask(typed)
    assert found
    assert (found.key, found.at, found.context) == ("aside:s1:1795960238316", 1795960238.316, "s1")
    assert (found.agent, found.certainty) == (AgentKind.ASIDE, Certainty.UNKNOWN)
    others = ({"display": "see /btw x"}, {"timestamp": -1}, {"timestamp": "x"}, {"sessionId": ""})
    assert [ask(typed | one) for one in others] == [None] * 4
    assert ask(b'{"display":"/btw ') is None
    path = reader.find_history(Path("/h/.claude/projects/-w/s1.jsonl"))
    assert path == Path("/h/.claude/history.jsonl")


def test_a_summary_for_who_was_away_is_a_request() -> None:
    line = {"type": "system", "subtype": "away_summary", "timestamp": AT, "uuid": "u1"}
    (one,) = entries("claude", [line])
    assert (one.key, one.agent, one.certainty) == ("aside:u1", AgentKind.ASIDE, Certainty.UNKNOWN)


def test_one_message_id_of_a_gateway_with_several_requests_is_several() -> None:
    """It tells no ids of requests; the client has its own for each."""
    lines = [answer(requestId=None, requestRef=ref) for ref in ("a", "a", "b")]
    assert [one.key for one in entries("claude", lines)] == ["s1/a", "s1/b"]


def test_computed_in_the_united_states_is_another_price() -> None:
    (one,) = entries("claude", [answer(usage={"inference_geo": "us"})])
    assert one.model == "claude-opus-5-5 [us]"
    (one,) = entries("claude", [answer(usage={"inference_geo": "us", "speed": "fast"})])
    assert one.model == "claude-opus-5-5 [fast] [us]"
    (one,) = entries("claude", [answer(usage={"inference_geo": "global"})])
    assert one.model == "claude-opus-5-5"


HOSTILE: list[Any] = [-1, 10**16, 2**63, 1e308, "many", [[]]]
"""Counts that an agent might write."""


@pytest.mark.parametrize("value", HOSTILE, ids=map(str, HOSTILE))
@pytest.mark.parametrize("reader", ["claude", "codex"])
def test_a_count_that_is_none_is_an_unknown(reader: str, value: Any) -> None:
    lines = {
        "claude": answer(usage={"input_tokens": value}),
        "codex": item("token_usage_record", response_id="r1", usage={"input_tokens": value}),
    }
    (one,) = entries(reader, [lines[reader]])
    assert (one.certainty, one.tokens) == (Certainty.UNKNOWN, Tokens())


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant","message":{"id":"\\ud800","usage":{}},"timestamp":"x"}',
        b'{"type": "assistant", "usage": ' + b"[" * 100_000,
        b'{"type":"assistant","message":{"usage":{"input_tokens":1}},"a":"\xff"}',
        b'{"payload":{"usage":{}},"type":"token_usage_record","a":"\xff","timestamp":"x"}',
    ],
    ids=range(4),
)
def test_an_answer_that_cannot_be_read_is_an_unknown(line: bytes) -> None:
    reader = "codex" if b"token_usage" in line else "claude"
    (one,) = entries(reader, [line])
    assert one.certainty is Certainty.UNKNOWN


@pytest.mark.parametrize(
    ("usage", "minutes", "hour"),
    [
        ({"cache_creation_input_tokens": 50}, 50, 0),
        (
            {
                "cache_creation_input_tokens": 50,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 30,
                },
            },
            *(20, 30),
        ),
        ({"cache_creation_input_tokens": None, "cache_creation": None}, 0, 0),
    ],
)
def test_both_kinds_of_cache_writes_are_told_apart(
    usage: dict[str, Any], minutes: int, hour: int
) -> None:
    (one,) = entries("claude", [answer(usage=usage)])
    assert (one.tokens.cache_write_5m, one.tokens.cache_write_1h) == (minutes, hour)


def test_subagents_and_compactions_are_told_apart() -> None:
    lines = [
        answer(requestId="req_2", isSidechain=True, agentId="a1"),
        {"type": "system", "subtype": "compact_boundary", "timestamp": AT, "uuid": "u1"},
    ]
    found = [(one.agent, one.certainty) for one in entries("claude", lines)]
    assert found == [
        (AgentKind.SUBAGENT, Certainty.WHOLE),
        (AgentKind.COMPACTION, Certainty.UNKNOWN),
    ]


def test_without_a_request_id_the_message_of_a_conversation_counts() -> None:
    lines = [answer(requestId=None), answer(requestId=None, sessionId="s2")]
    assert [one.key for one in entries("claude", lines)] == ["s1/msg_1", "s2/msg_1"]


def test_fast_mode_is_another_model_and_the_clients_own_words_are_none() -> None:
    lines = [answer(usage={"speed": "fast"}), answer(requestId="req_2", model="<synthetic>")]
    assert [one.model for one in entries("claude", lines)] == ["claude-opus-5-5 [fast]"]


def test_what_cannot_be_read_of_an_answer_is_unknown() -> None:
    (one,) = entries("claude", [answer(usage={"input_tokens": "many"})])
    assert one.certainty is Certainty.UNKNOWN


JUNK = [
    b"",
    b"\n",
    b'{"usage":',
    b'"usage"',
    b"[" * 100_000 + b'"usage"',
    b'"type": "assistant", "usage": ' + b"[" * 100_000,
    b'{"type": 7, "usage": 1}',
    b'{"type": "event_msg", "payload": "token_count"}',
    b'{"type": "session_meta"}',
    b'{"type": "turn_context", "timestamp": "never", "payload": {}}',
    b'\xff\xfe"usage" "token_count"',
]


@pytest.mark.parametrize("reader", ["claude", "codex"])
@pytest.mark.parametrize("line", JUNK, ids=range(len(JUNK)))
def test_junk_is_passed_over(reader: str, line: bytes) -> None:
    assert said(reader, [line]) == ()


def test_the_files_of_a_conversation_are_those_of_its_subagents_too(tmp_path: Path) -> None:
    reader = find_reader("claude")
    assert reader
    names = ("s1.jsonl", "s1/subagents/agent-a.jsonl", "s1/subagents/x/y/agent-b.jsonl")
    others = ("s2.jsonl", "s2/subagents/agent-c.jsonl", "s1/subagents/agent-a.meta.json")
    for name in (*names, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    # Earlier clients kept them beside the transcript.
    (tmp_path / "agent-d.jsonl").write_text('{"sessionId":"s1"}\n')
    (tmp_path / "agent-e.jsonl").write_text('{"sessionId":"s2"}\n')
    found = {
        str(one.relative_to(tmp_path)) for one in reader.list_files(tmp_path / "s1.jsonl", "s1")
    }
    assert found == {*names, "agent-d.jsonl"}


# Codex


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "timestamp": AT, "payload": {"type": kind, **payload}}


def item(kind: str, at: str = AT, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": at, "payload": payload}


def usage(input_: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output}


def counted(total: dict[str, int], last: dict[str, int], at: str = AT) -> dict[str, Any]:
    info = {"total_token_usage": total, "last_token_usage": last}
    return event("token_count", info=info) | {"timestamp": at}


BEGUN = (item("session_meta", id="t1"), item("turn_context", model="gpt-5-codex"))


def test_records_of_responses_count_and_repeated_totals_do_not() -> None:
    record = item("token_usage_record", response_id="resp_1", usage=usage(110, 100, 30))
    total = counted(usage(110, 100, 30), usage(110, 100, 30))
    (one,) = entries("codex", [*BEGUN, record, total, total, record])
    assert (one.key, one.model, one.context) == ("resp_1", "gpt-5-codex", "t1")
    assert one.tokens == Tokens(input=10, output=30, cache_read=100)


def test_totals_of_earlier_versions_count_by_their_differences() -> None:
    lines = [
        *BEGUN,
        event("token_count", info=None),
        counted(usage(110, 100, 30), usage(110, 100, 30)),
        counted(usage(110, 100, 30), usage(110, 100, 30)),
        counted(usage(222, 201, 61), usage(112, 101, 31)),
    ]
    found = [one.tokens for one in entries("codex", lines)]
    assert found == [
        Tokens(input=10, output=30, cache_read=100),
        Tokens(input=11, output=31, cache_read=101),
    ]


def test_a_fork_that_repeats_its_parent_adds_only_its_own() -> None:
    replayed = "2026-11-28T12:00:00.500Z"
    parent = [*BEGUN, counted(usage(110, 100, 30), usage(110, 100, 30))]
    fork = [
        item("session_meta", "2026-11-28T12:00:00Z", id="t2", forked_from_id="t1"),
        item("session_meta", replayed, id="t1"),
        counted(usage(110, 100, 30), usage(110, 100, 30), replayed),
        counted(usage(222, 201, 61), usage(112, 101, 31), "2026-11-28T12:03:00Z"),
    ]
    of_parent = {one.key for one in entries("codex", parent)}
    found = {one.key: one.tokens for one in entries("codex", fork)}
    own = [tokens for key, tokens in found.items() if key not in of_parent]
    assert of_parent < set(found)
    assert own == [Tokens(input=11, output=31, cache_read=101)]


def test_a_fork_that_only_goes_on_with_the_totals_adds_only_its_own() -> None:
    lines = [
        item("session_meta", id="t2", forked_from_id="t1"),
        counted(usage(9222, 9201, 961), usage(112, 101, 31), "2026-11-28T12:03:00Z"),
    ]
    (one,) = entries("codex", lines)
    assert one.tokens == Tokens(input=11, output=31, cache_read=101)


def test_totals_that_begin_anew_count_from_there() -> None:
    lines = [
        *BEGUN,
        counted(usage(1000, 0, 100), usage(1000, 0, 100)),
        counted(usage(50, 0, 5), usage(50, 0, 5)),
    ]
    assert [one.tokens.input for one in entries("codex", lines)] == [1000, 50]


def test_a_turn_without_an_end_has_had_a_request_that_nobody_counted() -> None:
    lines = [*BEGUN, event("task_started", turn_id="u1")]
    (one,) = entries("codex", lines)
    assert one.certainty is Certainty.UNKNOWN
    assert entries("codex", [*lines, event("task_complete", turn_id="u1")]) == []


def test_a_try_of_codex_that_broke_off_is_not_settled_by_its_turn() -> None:
    """As 0.171.0 writes it: the totals follow each try, the record only an answer."""
    none = event("token_count", info=None)
    total = counted(usage(110, 100, 30), usage(110, 100, 30))
    record = item("token_usage_record", response_id="resp_1", usage=usage(110, 100, 30))
    meta = item("session_meta", id="t1", cli_version="0.171.0", originator="codex_exec")
    turn = [event("task_started", turn_id="u1"), none, record, total, record, total]
    lines = [meta, none, *turn, event("task_complete", turn_id="u1"), total]
    found = [(one.key, one.certainty) for one in entries("codex", lines)]
    assert found == [
        (f"broken:t1:{read_time(AT):.3f}", Certainty.UNKNOWN),
        ("resp_1", Certainty.WHOLE),
    ]
    compacted = [event("task_started", turn_id="u1"), total, record, total]
    compacted += [item("compacted", message="x"), total, event("task_complete", turn_id="u1")]
    assert [one.agent for one in entries("codex", [meta, *compacted])] == [AgentKind.COMPACTION]
    whole = [meta, event("task_started", turn_id="u1"), record, total]
    assert len(entries("codex", [*whole, event("task_complete", turn_id="u1")])) == 1


def test_compactions_are_counted_where_they_are_recorded_and_known_where_not() -> None:
    record = item("token_usage_record", response_id="resp_1", usage=usage(110, 100, 30))
    (one,) = entries("codex", [*BEGUN, record, item("compacted", message="x")])
    assert (one.agent, one.tokens.output) == (AgentKind.COMPACTION, 30)
    (other,) = entries("codex", [*BEGUN, item("compacted", message="x")])
    assert (other.agent, other.certainty) == (AgentKind.COMPACTION, Certainty.UNKNOWN)


@pytest.mark.parametrize(("version", "titles"), [("0.171.0", 1), ("0.98.0", 0), ("", 0)])
def test_the_request_for_a_title_is_known_though_no_rollout_has_it(
    version: str, titles: int
) -> None:
    lines = [item("session_meta", id="t1", originator="codex-tui", cli_version=version)]
    assert [one.agent for one in entries("codex", lines)] == [AgentKind.TITLE] * titles


def test_each_profile_names_a_reader_that_is_there() -> None:
    named = {name: profile.spending for name, profile in BUILTIN.items() if profile.spending}
    assert named == {"claude": "claude", "codex": "codex"}
    assert all(map(find_reader, named.values()))


def write_rollout(folder: Path, ident: str, root: str = "", agent: bool = True) -> Path:
    """The first line of a rollout, of a thread itself or of an agent that works for it."""
    path = folder / f"rollout-2026-11-28T10-00-00-{ident}.jsonl"
    payload: dict[str, Any] = {"id": ident, "session_id": root or ident, "originator": "codex-tui"}
    payload |= {"source": {"subagent": {"thread_spawn": {}}} if root and agent else "cli"}
    line = {"type": "session_meta", "timestamp": AT, "payload": payload}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(line) + "\n")
    return path


def test_agents_of_codex_are_found_in_the_folders_of_their_days(tmp_path: Path) -> None:
    before, day, next_year = (tmp_path / one for one in ("2026/11/30", "2026/12/31", "2027/01/01"))
    write_rollout(before, "0300", "0200")
    thread = write_rollout(day, "0200")
    found = [write_rollout(day, "0201", "0200"), write_rollout(next_year, "0300", "0200")]
    write_rollout(day, "0202", "0199")
    write_rollout(day, "0203", "0200", agent=False)
    write_rollout(day, "0204").write_text("half a li")
    (day / "rollout-0205.jsonl").mkdir()
    reader = find_reader("codex")
    assert reader
    assert list(reader.list_files(thread, "0200")) == [thread, *found]
    half = write_rollout(day, "0204", "0200")  # it is whole now
    assert list(reader.list_files(thread, "0200")) == [thread, found[0], half, found[1]]
    elsewhere = write_rollout(tmp_path / "archived", "0200")
    assert list(reader.list_files(elsewhere, "0200")) == [elsewhere]


def test_an_agent_of_codex_is_unknown_only_until_its_own_requests() -> None:
    call = {"type": "function_call", "name": "spawn_agent", "call_id": "c1"}
    output = {"type": "function_call_output", "call_id": "c1"}
    thread = [
        {"type": "session_meta", "timestamp": AT, "payload": {"id": "0200"}},
        {"type": "response_item", "timestamp": AT, "payload": call},
    ]
    known = {"timestamp": AT, "type": "response_item"} | {
        "payload": output | {"output": '{"agent_id": "0201", "nickname": "Galileo"}'}
    }
    refused = known | {"payload": output | {"output": "unsupported call"}}
    meta = {"id": "0201", "source": {"subagent": {}}, "originator": "codex-tui"}
    meta |= {"cli_version": "0.171.0"}
    record = {"response_id": "resp_1", "usage": {"input_tokens": 7}}
    agent = [
        {"type": "session_meta", "timestamp": AT, "payload": meta},
        {"type": "token_usage_record", "timestamp": AT, "payload": record},
    ]
    [spawned] = entries("codex", thread)
    assert (spawned.key, spawned.certainty) == ("agent:0200:c1", Certainty.UNKNOWN)
    assert entries("codex", [*thread, refused]) == []
    [named] = entries("codex", [*thread, known])
    assert (named.key, named.agent) == ("agent:0201", AgentKind.SUBAGENT)
    [own] = entries("codex", agent)
    assert (own.key, own.agent, own.settles) == ("resp_1", AgentKind.SUBAGENT, named.key)
