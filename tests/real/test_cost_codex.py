"""The ledger against the API's own count, request by request, with the real Codex."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, RecordFile
from sm.plugins.cost.ledger.intake import read_on
from sm.plugins.cost.ledger.records.record import Certainty, Tokens, find_reader
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Usage
from tests.real.codex import Codex
from tests.real.counting import Counting, list_counted, list_spent, read, tokens_of, wait_equal
from tests.real.responses import exec_command, spawn_agent


def test_codex_with_a_compaction_a_kill_a_resumed_thread_and_a_fork(
    codex: Codex, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    codex.start()
    api.say(Reply("", tools=(exec_command("echo hi"),), usage=counting.use()))
    codex.paste("begin")
    codex.wait_events("Stop")
    codex.wait_idle()
    codex.paste("/compact")
    codex.wait_events("PostCompact")
    codex.wait_idle()
    compacted = [one for one in api.spent if one.kind is Kind.SIDE][-1]
    hold = threading.Event()
    count = len(api.main)
    api.say(Reply("half of an answer\n" * 6, hold=hold, usage=counting.use()))
    codex.paste("and on")
    wait_for(lambda: len(api.main) == count + 1, "the request")
    done = len(api.spent)
    assert codex.pane
    os.kill(codex.pane.pid, signal.SIGKILL)
    hold.set()
    codex.end()
    wait_for(lambda: len(api.spent) == done + 1, "the end of its answer")
    api.spent.pop()
    thread = codex.events("SessionStart")[0].payload["session_id"]
    for number, word in enumerate(("resume", "fork"), 2):
        codex.name = f"agent{number}"
        codex.start(word, thread)
        codex.paste(f"{word} it")
        codex.wait_events("Stop", number)
        codex.end()
    for _ in range(2):
        read(ledger, "codex", codex.home / ".codex" / "sessions")
        counted = sorted(map(repr, list_counted(ledger).values()))
        spent = [*list_spent(api, Kind.MAIN).values(), tokens_of(compacted)]
        assert counted == sorted(map(repr, map(_as_codex_tells, spent)))
    unknown = {key.partition(":")[0] for key in list_counted(ledger, Certainty.UNKNOWN)}
    assert unknown == {"begun", "title"}


def test_codex_compacts_by_itself(
    codex: Codex, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    config = codex.home / ".codex" / "config.toml"
    config.write_text("model_auto_compact_token_limit = 50000\n" + config.read_text())
    codex.start()
    for count, usage in enumerate((counting.use(), Usage(input=60_000), counting.use()), 1):
        api.say(Reply(usage=usage))
        codex.paste(f"turn {count}")
        codex.wait_events("Stop", count)
        codex.wait_idle()
    codex.wait_events("PostCompact")
    read(ledger, "codex", codex.home / ".codex" / "sessions")
    [compaction] = [one for one in api.spent if one.kind is Kind.SIDE][1:]  # the first is a title
    spent = [*list_spent(api, Kind.MAIN).values(), tokens_of(compaction)]
    counted = sorted(map(repr, list_counted(ledger).values()))
    assert counted == sorted(map(repr, map(_as_codex_tells, spent)))
    agents = dict(ledger.connection.execute("SELECT agent, count(*) FROM requests GROUP BY 1"))
    assert agents == {"main": 3, "compaction": 1, "title": 1}


def test_agents_of_codex_are_their_threads(
    codex: Codex, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    codex.start()
    api.say(Reply("", tools=(spawn_agent("Begin."),), usage=counting.use()))
    codex.paste("begin")
    codex.wait_events("Stop")
    wait_for(lambda: any("x-openai-subagent" in one.headers for one in api.main), "its request")
    start = codex.events("SessionStart")[0].payload
    reader = find_reader("codex")
    assert reader
    owner = EntryOwner(session="s-codex", client="codex")

    def read_all() -> list[str]:
        for path in reader.list_files(Path(start["transcript_path"]), start["session_id"]):
            read_on(ledger, reader, RecordFile(path, "codex", owner, ledger.find_mark(path)))
        return sorted(map(repr, list_counted(ledger).values()))

    def list_all() -> list[str]:
        spent = list_spent(api, Kind.MAIN).values()
        return sorted(map(repr, map(_as_codex_tells, spent)))

    wait_equal(read_all, list_all)
    title = [f"title:{start['session_id']}"]
    # The turns that have begun are at their end a moment later.
    wait_equal(lambda: read_all() and [*list_counted(ledger, Certainty.UNKNOWN)], lambda: title)
    assert read_all() == list_all()
    rows = ledger.connection.execute("SELECT count(*) FROM requests WHERE agent = 'subagent'")
    assert rows.fetchone() != (0,)


def _as_codex_tells(tokens: Tokens) -> Tokens:
    """The scripted API tells it of no cache writes: they are a part of the input."""
    written = tokens.cache_write_5m + tokens.cache_write_1h
    return Tokens(tokens.input + written, tokens.output, tokens.cache_read)


def test_a_try_of_codex_that_breaks_off_is_an_unknown(
    codex: Codex, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    """Its turn goes on, and ends as a whole one."""
    codex.start()
    breaks_off = threading.Event()
    api.say(Reply("a whole block\n", usage=counting.use(), breaks_off=breaks_off))
    codex.paste("begin")
    codex.wait_screen(lambda screen: "a whole block" in screen, "the block")
    breaks_off.set()
    codex.wait_events("Stop")
    codex.wait_idle()
    codex.end()
    read(ledger, "codex", codex.home / ".codex" / "sessions")
    [broken] = [one for one in api.spent if not one.whole]
    assert broken.kind is Kind.MAIN
    counted = [*list_counted(ledger).values()]
    assert counted == [*map(_as_codex_tells, list_spent(api, Kind.MAIN).values())]
    unknown = sorted(key.partition(":")[0] for key in list_counted(ledger, Certainty.UNKNOWN))
    assert unknown == ["broken", "title"]
