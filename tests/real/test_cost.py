"""The ledger against the API's own count, request by request, with the real Claude Code."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec import structs

from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, RecordFile, open_ledger
from sm.plugins.cost.ledger.intake import catch_up
from sm.plugins.cost.ledger.prices import find_price
from sm.plugins.cost.ledger.records.record import Certainty, Tokens, find_reader
from sm.sessions import agent_state
from tests.helpers import wait_for
from tests.real.api import Api, Failure, Kind, Reply, Request, Tool, Usage
from tests.real.counting import (
    FIRST,
    SECOND,
    Counting,
    list_counted,
    list_spent,
    read,
    tokens_of,
    wait_equal,
)
from tests.real.handoffs import Writer, contexts, resumes
from tests.real.managed import Managed
from tests.real.terminal import Terminal


def test_passes_enter_turns_subagents_and_new_contexts(
    managed: Managed, api: Api, counting: Counting, sealed: Path
) -> None:
    """Two levels of subagents, retries, `/clear`; the monitor's passes do the rest."""
    managed.watch()
    managed.send("<one>")
    api.say(Failure(529))
    managed.send("<spawn>")
    wait_for(lambda: {FIRST, SECOND} <= counting.spawned, "both subagents")
    managed.wait_state(agent_state.State.IDLE)
    before = agent_state.read(managed.session.dir).context
    managed.type("/clear")
    managed.wait_screen(lambda screen: screen.draft == "/clear", "the command")
    managed.keys("Enter")
    wait_for(lambda: agent_state.read(managed.session.dir).context != before, "a new context")
    managed.send("<two>")
    wait_for(lambda: api.appearances("<two>"), "its request")
    managed.wait_state(agent_state.State.IDLE)
    path = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(path.exists, "the ledger", 30.0)
    with open_ledger(path) as ledger:
        spent = list_spent(api, Kind.MAIN, Kind.AGENT)
        wait_equal(lambda: list_counted(ledger), lambda: spent)
        # At /clear the client has told that the failed try has cost nothing.
        wait_equal(lambda: list_counted(ledger, Certainty.UNKNOWN), dict)
        agents = dict(ledger.connection.execute("SELECT agent, count(*) FROM requests GROUP BY 1"))
        assert agents["subagent"] >= 4
        owners = ledger.connection.execute("SELECT DISTINCT session, client, attempt FROM requests")
        assert owners.fetchall() == [("s-real", "claude", 1)]


@pytest.mark.parametrize(
    ("clear", "attempts"), [("/clear", {1}), ("/there-is-no-such-command", {1, 2})]
)
def test_a_rotated_context_is_still_the_sessions(
    unstarted: Managed, api: Api, sealed: Path, clear: str, attempts: set[int]
) -> None:
    """By the same client, and by one that is started anew."""
    managed = unstarted
    managed.folder.mkdir()
    managed.provider, managed.config = "own", managed.folder / "machine.yaml"
    profile = {"like": "claude", "clear": clear}
    managed.config.write_text(json.dumps({"profiles": {managed.provider: profile}}))
    writer = api.model = Writer(managed.folder / "notes.md")
    managed.start()
    managed.watch()
    managed.send("Hand off.")
    wait_for(lambda: len(contexts(api)) == 2, "another context", 60.0)
    wait_for(lambda: resumes(list(contexts(api).values())[1]), f"it to read {writer.notes}", 60.0)
    managed.wait_state(agent_state.State.IDLE)
    path = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(path.exists, "the ledger", 30.0)
    with open_ledger(path) as ledger:
        wait_equal(lambda: list_counted(ledger), lambda: list_spent(api, Kind.MAIN))
        rows = ledger.connection.execute(
            "SELECT session, attempt, context FROM requests"
        ).fetchall()
    assert {session for session, _, _ in rows} == {"s-real"}
    assert {attempt for _, attempt, _ in rows} == attempts
    assert {context for _, _, context in rows} == set(contexts(api))


def test_a_killed_client_a_resumed_conversation_and_its_fork(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    client.paste("begin")
    client.wait_events("Stop")
    client.wait_idle()
    hold = threading.Event()
    api.say(Reply("half of an answer\n" * 6, hold=hold, usage=counting.use()))
    client.paste("and on")
    wait_for(lambda: len(api.main) == 2, "the request")
    start = client.events("SessionStart")[0].payload
    transcript = Path(start["transcript_path"])
    # It is written about 0.1 s late; killed before, the client leaves no trace of its request.
    wait_for(lambda: transcript.read_text().count('"api-request"') == 2, "its line")
    assert client.pane
    os.kill(client.pane.pid, signal.SIGKILL)
    hold.set()
    client.end()
    wait_for(lambda: len(api.spent) == 2, "the end of its answer")
    killed = api.spent.pop()
    for number, arguments in enumerate(((), ("--fork-session",)), 2):
        client.name = f"agent{number}"
        client.start("--resume", start["session_id"], *arguments)
        client.paste(f"resumed {number}")
        client.wait_events("Stop", number)
        client.end()
    home = client.home / ".claude" / "projects"
    for _ in range(2):
        read(ledger, "claude", home)
        assert list_counted(ledger) == list_spent(api, Kind.MAIN)
    [(key, _)] = list_counted(ledger, Certainty.UNKNOWN).items()
    assert key.startswith("begun:")
    assert killed.request not in list_counted(ledger)


def test_an_interrupted_answer_is_bounded_and_a_compaction_unknown_after_a_kill(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    hold = threading.Event()
    api.say(Reply("half of an answer\n" * 6, hold=hold, usage=counting.use()))
    client.paste("begin")
    wait_for(lambda: len(api.main) == 1, "the request")
    client.wait_busy()
    client.keys("Escape")
    client.wait_idle()
    hold.set()
    client.paste("and on")
    client.wait_events("Stop")
    client.wait_idle()
    client.paste("/compact")
    client.wait_events("PostCompact")
    client.wait_idle()
    client.paste("at last")
    client.wait_events("Stop", 2)
    # Killed before it is written, the last answer leaves no trace.
    last = [*list_spent(api, Kind.MAIN)][-1]
    wait_for(lambda: last in _read_transcript(client), "its line")
    assert client.pane
    os.kill(client.pane.pid, signal.SIGKILL)
    client.end()
    enter_client(ledger, client)
    cut = next(one for one in api.spent if one.usage.input == 1)
    rest = [one for one in api.spent if one is not cut and one.kind is Kind.MAIN]
    wait_equal(lambda: list_counted(ledger), lambda: {one.request: tokens_of(one) for one in rest})
    [(key, least)] = list_counted(ledger, Certainty.AT_LEAST).items()
    most = tokens_of(cut)
    assert key == cut.request
    assert (least.input, least.cache_read) == (most.input, most.cache_read)
    assert least.output <= most.output
    [(key, _)] = list_counted(ledger, Certainty.UNKNOWN).items()
    assert key.startswith("compaction:")


def _read_transcript(client: Terminal) -> str:
    return Path(client.events("SessionStart")[0].payload["transcript_path"]).read_text()


def enter_client(ledger: CostLedger, client: Terminal) -> None:
    """Enter all that a client has written, and when its processes began."""
    begun = client.events("SessionStart")
    ledger.note_starts(
        (one.payload["session_id"], one.at, one.payload["source"])
        for one in begun
        if one.payload["source"] != "compact"
    )
    read(ledger, "claude", client.home / ".claude" / "projects")


AUTOMATIC = {
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50",
}
"""So little that a context is compacted by itself after a large answer."""


def test_compactions_are_known_once_the_client_has_ended(
    terminal: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    """By hand and by itself, over an end of every kind but KILL, `/clear` and `--resume`."""
    client, api.side_tokens = terminal, 777
    client.variables = AUTOMATIC
    stops = itertools.count(1)

    def take_turn(text: str) -> None:
        client.paste(text)
        client.wait_events("Stop", next(stops))
        client.wait_idle()

    compactions = itertools.count(1)

    def compact() -> None:
        client.paste("/compact")
        client.wait_events("PostCompact", next(compactions))
        client.wait_idle()

    client.start()
    take_turn("begin")
    take_turn("and on")
    api.say(Reply("Much.", usage=Usage(input=1, output=5, cache_read=199_000)))
    take_turn("a long one")
    take_turn("compacted by itself")
    client.wait_events("PostCompact", next(compactions))
    compact()
    triggers = [one.payload["trigger"] for one in client.events("PreCompact")]
    assert triggers == ["auto", "manual"]
    start = client.events("SessionStart")[0].payload
    client.end()  # TERM
    client.name = "resumed"
    client.start("--resume", start["session_id"])
    take_turn("resumed")
    compact()
    begun = len(client.events("SessionStart"))
    client.paste("/clear")
    client.wait_events("SessionStart", begun + 1)
    client.wait_idle()
    take_turn("a new context")
    compact()
    client.tmux.command("kill-pane", "-t", client.pane_id)
    spent = [tokens_of(one) for one in api.spent if one.kind is not Kind.SIDE]
    assert sum(one.kind is Kind.COMPACTION for one in api.spent) == 4

    def add_up(all_tokens: Iterable[Tokens]) -> list[int]:
        return [sum(getattr(one, name) for one in all_tokens) for name in Tokens.__struct_fields__]

    def enter_again() -> list[int]:
        enter_client(ledger, client)
        return add_up(list_counted(ledger).values())

    for _ in range(2):
        wait_equal(enter_again, lambda: add_up(spent))
        assert len(list_counted(ledger)) == len(spent)
        assert not list_counted(ledger, Certainty.UNKNOWN)
    for own in ledger.list_own():
        for name, figure in own.models.items():
            counts = {one: getattr(figure.tokens, one) for one in Tokens.__struct_fields__}
            listed = find_price(name, own.at, counts)
            assert listed
            assert figure.price == pytest.approx(listed / 10**9, rel=1e-6)


def test_an_answer_that_breaks_off_and_its_second_try(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    """The client asks again by itself. What it has seen of the first try is in its account."""
    hold = threading.Event()
    api.say(Reply("half of an answer\n" * 6, hold=hold, usage=counting.use()))
    client.paste("begin")
    wait_for(lambda: len(api.main) == 1, "the request")
    client.wait_screen(lambda screen: "half of an answer" in screen, "half of the answer")
    api.break_off()
    hold.set()
    client.wait_events("Stop")
    client.end()
    enter_client(ledger, client)
    [broken] = [one for one in api.spent if not one.whole]
    wait_equal(lambda: list_counted(ledger), lambda: list_spent(api, Kind.MAIN))
    [(key, least)] = list_counted(ledger, Certainty.AT_LEAST).items()
    assert key.startswith("failed:")
    assert least == structs.replace(tokens_of(broken), output=0)
    assert not list_counted(ledger, Certainty.UNKNOWN)


class Neighbour(Terminal):
    """Another client of the same user in the same directory."""

    @property
    def home(self) -> Path:
        return self.folder.parent / "client" / "home"

    @property
    def cwd(self) -> Path:
        return self.folder.parent / "client" / "work"

    def __post_init__(self) -> None:
        for name in ("events", "answers"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "hook").write_text((self.folder.parent / "client" / "hook").read_text())


def test_two_sessions_in_one_directory_keep_apart(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    other = Neighbour(client.program, client.tmux, api, client.folder.parent / "other", "other")
    other.start()
    try:
        for one in (client, other, client):
            count = len(one.events("Stop"))
            one.paste("begin")
            one.wait_events("Stop", count + 1)
            one.wait_idle()
    finally:
        other.end()
    found = find_reader("claude")
    assert found
    for one, name in ((client, "s-one"), (other, "s-other")):
        start = one.events("SessionStart")[0].payload
        path = Path(start["transcript_path"])
        for file in found.list_files(path, start["session_id"]):
            owner = EntryOwner(session=name, client="claude")
            ledger.enter(
                RecordFile(file, "claude", owner, ledger.find_mark(file)),
                ledger.find_mark(file),
                (),
            )
    catch_up(ledger, 0.0)
    wait_equal(lambda: list_counted(ledger), lambda: list_spent(api, Kind.MAIN))
    rows = ledger.connection.execute("SELECT session, count(*) FROM requests GROUP BY session")
    assert dict(rows.fetchall()) == {"s-one": 2, "s-other": 1}


SEARCH = Tool("WebSearch", {"query": "what is new"})


def test_searches_and_asides_are_unknown_until_the_client_has_ended(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger
) -> None:
    """A search of the web and a question beside the conversation: no line counts what they use."""
    api.searches = 2
    api.say(Reply("I look.", (SEARCH,), usage=counting.use()))
    client.paste("begin")
    client.wait_events("Stop")
    client.wait_idle()
    client.type("/btw what is this about?")
    client.wait_screen(lambda screen: "/btw what is this about?" in screen, "the question")
    client.keys("Enter")
    wait_for(lambda: api.appearances("what is this about?"), "its request")
    client.wait_screen(lambda screen: "Esc to close" in screen, "its answer")
    client.keys("Escape")

    def list_unknown() -> list[str]:
        enter_client(ledger, client)
        return sorted(key.partition(":")[0] for key in list_counted(ledger, Certainty.UNKNOWN))

    wait_equal(list_unknown, lambda: ["aside", "search"])
    [searches] = ledger.connection.execute("SELECT sum(searches) FROM requests").fetchone()
    assert searches == 2
    client.end()
    spent = [tokens_of(one) for one in api.spent]
    assert [one.kind for one in api.spent].count(Kind.SIDE) == 1

    def add_up(all_tokens: Iterable[Tokens]) -> list[int]:
        return [sum(getattr(one, name) for one in all_tokens) for name in COUNTED]

    def enter_again() -> list[int]:
        assert list_unknown() in ([], ["aside", "search"])
        return add_up(list_counted(ledger).values())

    wait_equal(enter_again, lambda: add_up(spent))
    assert len(list_counted(ledger)) == len(spent)
    assert not list_counted(ledger, Certainty.UNKNOWN)
    [searches] = ledger.connection.execute("SELECT sum(searches) FROM requests").fetchone()
    assert searches == 2


COUNTED = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


@pytest.mark.parametrize("tools", [(), (Tool.bash("echo x"),)], ids=["text", "tool"])
def test_an_answer_cut_off_behind_a_whole_block_stays_a_lower_bound(
    client: Terminal, api: Api, counting: Counting, ledger: CostLedger, tools: tuple[Tool, ...]
) -> None:
    """The client makes up how it ended, and that its output was one token."""
    breaks_off = threading.Event()
    api.say(Reply("a whole block\n", tools, usage=counting.use(), breaks_off=breaks_off))
    client.paste("begin")
    client.wait_screen(lambda screen: "a whole block" in screen, "the block")
    if tools:
        client.wait_events("PreToolUse")  # it is whole as well
    breaks_off.set()
    client.wait_screen(lambda screen: "Connection lost mid-response" in screen, "that it broke off")
    client.wait_idle()
    [broken] = [one for one in api.spent if not one.whole]
    for is_over in (False, True):
        if is_over:
            client.end()

        def list_cut() -> dict[str, int]:
            enter_client(ledger, client)
            found = list_counted(ledger, Certainty.AT_LEAST)
            return {key: tokens.input for key, tokens in found.items()}

        wait_equal(list_cut, lambda: {broken.request: broken.usage.input})
        assert list_counted(ledger) == list_spent(api, Kind.MAIN)
        [least] = list_counted(ledger, Certainty.AT_LEAST).values()
        assert least.output < broken.usage.output


def test_a_client_that_is_killed_at_work_leaves_an_unknown(
    managed: Managed, api: Api, counting: Counting, sealed: Path
) -> None:
    """So soon behind its request that no record tells of it."""
    managed.watch()
    managed.send("<one>")
    managed.wait_state(agent_state.State.IDLE)
    path = sealed / ".local" / "share" / "sm" / "ledger.db"
    wait_for(path.exists, "the ledger", 30.0)
    asked = threading.Event()
    pid = managed.agent.pid

    def kill(request: Request) -> Reply:
        os.kill(pid, signal.SIGKILL)
        asked.set()
        return Reply(usage=counting.use())

    api.model = kill
    managed.paste("<two>")
    managed.keys("Enter")
    assert asked.wait(30.0)
    with open_ledger(path) as ledger:

        def list_unknown() -> int:
            return len(list_counted(ledger, Certainty.UNKNOWN))

        wait_equal(list_unknown, lambda: 1)
        first = next(one for one in api.spent if one.kind is Kind.MAIN)
        wait_equal(lambda: list_counted(ledger), lambda: {first.request: tokens_of(first)})
