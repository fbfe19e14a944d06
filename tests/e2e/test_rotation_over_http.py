"""Contexts of an agent without hooks of sm, whose own hooks report some events over HTTP."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.context import health_log
from sm.sessions import agent_state
from sm.store import journal
from sm.views.event_words import describe, name_event
from tests.company import SM, Company, peers_log, profiles
from tests.helpers import wait_for
from tests.serving import Served, serving

REPORTER = """
import http.client, json, os, sys
payload = json.load(sys.stdin) | {"session_manager_id": os.environ["CLAUDE_SESSION_MANAGER_ID"]}
client = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
client.request("POST", "/hooks/claude", json.dumps(payload), {"Content-Type": "application/json"})
client.getresponse().read()
"""
Report = Callable[..., Path]


@pytest.fixture
def served(company: Company) -> Iterator[Served]:
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as found:
        yield found


@pytest.fixture
def report(company: Company, served: Served) -> Report:
    """Makes a kind of agent whose hooks report these events; returns the folder of its hooks."""

    def make(*hooks: str) -> Path:
        folder = company.folder / "own-hooks"
        folder.mkdir()
        reporter = folder / "report.py"
        reporter.write_text(REPORTER.replace("PORT", str(served.port)))
        for name in hooks:
            (folder / name).write_text(
                f"exec {shlex.join([sys.executable, '-I', str(reporter)])}\n"
            )
        kinds = profiles(company.folder)
        kinds["telling"] = kinds["mute"] | {
            "command": f"env PEER_HOOKS={shlex.quote(str(folder))} {kinds['mute']['command']}"
        }
        company.config.write_text(yaml.safe_dump({"profiles": kinds}))
        return folder

    return make


def told_in(company: Company, name: str) -> list[tuple[str, str]]:
    """What the agent noted that is a clear or a message, each with its context, in order."""
    ident = company.session(name).name
    mine = [one for one in peers_log(company.folder) if one["session"] == ident]
    return [(one["kind"], one["context"]) for one in mine if one["kind"] in ("clear", "message")]


def wait_over(company: Company, name: str) -> None:
    directory = company.session(name).dir
    files = (directory.hold, directory.handoff, directory.rotation)
    wait_for(lambda: not any(file.exists() for file in files), "the end of it", 90)


def shown(company: Company) -> str:
    return "\n".join(f"{name_event(e)} {describe(e)}" for e in journal.read(company.root.journal))


ALL_HOOKS = ("session-start", "user-prompt-submit", "post-tool-use", "stop", "session-end")


@pytest.mark.parametrize(
    "hooks", [("stop",), ("user-prompt-submit", "stop"), ("session-start", "stop"), ALL_HOOKS]
)
@pytest.mark.parametrize("compaction", [False, True])
def test_a_handoff_clears_the_context_once_whatever_the_agent_reports(
    company: Company, served: Served, report: Report, hooks: tuple[str, ...], compaction: bool
) -> None:
    report(*hooks)
    ann = company.new("ann", provider="telling")
    document = company.folder / "notes.md"
    document.write_text("# What is to be done next\n")
    go = company.folder / "go"
    company.sm("send", "ann", "Work.")
    company.hears("ann", "Work.")
    company.sm("send", "ann", f"Hand off.\nrun: {SM} handoff {document}\nhold: {go}")
    wait_for(lambda: company.noted("ann", "ran"), "the wish")
    if compaction:
        body = {"session_id": ann, "event": "compaction", "trigger": "auto"}
        assert served.post("/hooks/context-usage", body).status == 200
    go.touch()
    company.hears("ann", "continue from")
    if compaction:
        served.post("/hooks/context-usage", body)
    wait_over(company, "ann")
    company.sm("send", "ann", "And then?")
    company.hears("ann", "And then?")
    said = told_in(company, "ann")
    assert [kind for kind, _ in said] == ["message", "message", "clear", "message", "message"], (
        shown(company)
    )
    old, new = said[0][1], said[-1][1]
    assert [context for _, context in said] == [old, old, old, new, new]
    assert [one.status for one in health_log.read_recent(company.root, ann)] == ["unconfirmed"]
    directory = company.session("ann").dir
    wait_for(lambda: agent_state.read(directory).state == "idle", "its turn's end to be noted")


def test_a_clear_whose_report_is_lost_is_not_repeated(
    company: Company, served: Served, report: Report
) -> None:
    """The agent's SessionStart gets lost, so its old context stays the one that is known."""
    folder = report("session-start", "stop")
    company.new("ann", provider="telling")
    document = company.folder / "notes.md"
    document.write_text("# What is to be done next\n")
    company.sm("send", "ann", "Work.")
    company.hears("ann", "Work.")
    (folder / "session-start").unlink()
    company.sm("send", "ann", f"Hand off.\nrun: {SM} handoff {document}")
    company.hears("ann", "continue from")
    wait_over(company, "ann")
    company.wait("ann")
    assert [kind for kind, _ in told_in(company, "ann")].count("clear") == 1
    directory = company.session("ann").dir
    company.sm("send", "ann", "And then?")
    company.hears("ann", "And then?")
    wait_for(lambda: agent_state.read(directory).prompt == "prompt-2-4", "the end of the new turn")
    assert agent_state.read(directory).context == ""


def test_a_cycle_ends_in_one_new_context_of_an_agent_that_reports_its_turns_alone(
    company: Company, served: Served, report: Report
) -> None:
    report("stop")
    ann = company.new("ann", provider="telling")
    company.sm("send", "ann", "Work.")
    company.hears("ann", "Work.")
    company.sm("cycle", "ann")
    wait_over(company, "ann")
    kinds = [kind for kind, _ in told_in(company, "ann")]
    assert kinds.count("clear") == 1, shown(company)
    assert [one.status for one in health_log.read_recent(company.root, ann)] == ["confirmed"]
    assert kinds[-1] == "message"
