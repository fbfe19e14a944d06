"""`sm cycle` as a person and an agent meet it: what it says, what it refuses, what comes of it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from sm.context import rotation_files as handoff
from sm.context.rotation_texts import ask_for_task
from sm.store import lock
from sm.store.paths import SessionDir
from tests.company import PEER, SM, Company
from tests.helpers import HANG_S, wait_for


def folder_of(company: Company, name: str) -> Path:
    session = company.session(name)
    return session.record.cwd / ".sm" / "handoffs" / session.name


def files(path: Path) -> list[str]:
    """Every file below it, with its time."""
    found = (one for one in path.rglob("*") if not one.is_dir())
    return sorted(f"{one.relative_to(path)} {one.lstat().st_mtime_ns}" for one in found)


def kept(directory: SessionDir) -> list[str]:
    """The same of a session, but for what its living agent and monitor write."""
    return [
        name
        for name in files(directory.path)
        if not name.startswith(("next", "seen", "events", "pass."))
    ]


def wait_for_end(company: Company, name: str) -> None:
    """Until its context is not being replaced any more."""
    directory = company.session(name).dir
    wait_for(lambda: handoff.read_record(directory) is None, f"the end of the cycle of {name}")


# What it would do


def test_a_dry_run_says_every_step_with_its_real_values(company: Company) -> None:
    ident = company.new("ann")
    company.sm("send", "ann", "gauge: 62")
    company.wait("ann")
    said = company.sm("cycle", "ann", "--dry-run").stdout
    folder = folder_of(company, "ann")
    assert re.search(r"^ann: its context was 62% full \d+s ago; its agent is idle$", said, re.M)
    assert "the cycle begins at 85%, by itself" in said
    assert "\n      Create handoff document now - context at 62%\n" in said
    assert re.search(rf"Write it to {folder}/handoff-[0-9-]+\.md\. Headings: Current Work, ", said)
    assert "wait for the document, 300 s" in said
    assert "clear its context by /clear\n" in said
    assert re.search(rf"Read handoff from {folder}/handoff-[0-9-]+\.md and resume work\n", said)
    assert "\n      Confirm you have resumed work from handoff\n" in said
    assert "which task you go on with.\n" in said
    assert "if it names none then either, clear and resume once more" in said
    assert said.endswith("in the way now: nothing\n")
    found = json.loads(company.sm("cycle", ident, "--dry-run", "--json").stdout)
    assert (found["name"], found["percent"], found["folder"]) == ("ann", 62, str(folder))
    assert len(found["steps"]) == 8


def test_a_dry_run_changes_nothing(company: Company) -> None:
    company.new("ann")
    directory = company.session("ann").dir
    with lock.hold(directory.lock, timeout_s=60):  # a pass writes what it likes
        before = kept(directory), files(directory.queue)
        company.sm("cycle", "ann", "--dry-run")
        assert (kept(directory), files(directory.queue)) == before
    assert not folder_of(company, "ann").exists()
    assert company.noted("ann") == []


def test_a_dry_run_says_what_is_in_the_way(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    (session.record.cwd / ".sm").symlink_to(company.folder.parent)
    answered = company.folder / "answered"
    company.sm("send", "ann", f"ask: {answered}")
    company.sm("wait", "ann", "--for", "dialog", "--timeout", str(HANG_S))
    said = company.sm("cycle", "ann", "--dry-run").stdout.splitlines()
    assert said[0].endswith("its agent is dialog")
    assert "how full its context is, is not known" in said[0]
    assert "there is a link on the way to" in said[-1]
    assert "it asks a question, which Enter would answer" in said[-1]
    refused = company.sm("cycle", "ann", code=1).stderr
    assert "there is a link on the way to" in refused
    assert handoff.read_record(session.dir) is None
    answered.touch()


def test_an_agent_at_work_is_in_the_way_of_nothing_but_the_clear(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"hold: {go}")
    said = company.sm("cycle", "ann", "--dry-run").stdout
    assert said.endswith("in the way now: it is busy until its turn ends\n")
    go.touch()


# By hand


def test_a_cycle_that_is_waited_for_tells_each_step(company: Company) -> None:
    company.new("ann")
    done = company.sm("cycle", "ann", "--wait")
    told = [re.sub(r"^ *\+[0-9.ms]+  ", "", line) for line in done.stdout.splitlines()]
    assert told[0] == "context: cycle begins (command)"
    asked = "context: asked for a handoff document: Create handoff document now"
    resumed = "context: the new context is to be told to resume: Read handoff from "
    assert asked in told
    assert told.index(asked) < told.index("context: cleared")
    assert any(line.startswith(resumed) for line in told)
    assert told[-1].startswith("context: finished, after ")
    (document,) = folder_of(company, "ann").glob("handoff-*.md")
    assert company.noted("ann")[-1].splitlines() == [
        f"Read handoff from {document} and resume work",
        ask_for_task("Resumed:"),
    ]
    assert company.noted("ann", "clear")
    assert company.sm("health", "ann", "--check").stdout == ""


def test_a_cycle_that_is_not_waited_for_is_carried_on_all_the_same(company: Company) -> None:
    company.new("ann")
    said = company.sm("cycle", "ann").stdout
    folder = folder_of(company, "ann")
    assert said.startswith(f"ann is asked for a handoff document in {folder}; ")
    company.hears("ann", "Read handoff from ")
    wait_for_end(company, "ann")
    (entry,) = json.loads(company.sm("health", "--json").stdout)
    assert (entry["status"], entry["details"]["cause"]) == ("confirmed", "command")


def test_json_says_which_rotation_it_is_and_what_came_of_it(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"hold: {go}")
    begun = json.loads(company.sm("cycle", "ann", "--json").stdout)
    assert begun["session"] == company.session("ann").name
    again = company.sm("cycle", "ann", code=1).stderr
    assert re.match(r"sm: the context of 'ann' is being replaced already, since \d+ s", again)
    assert "it would not begin: the context" in company.sm("cycle", "ann", "--dry-run").stdout
    go.touch()
    wait_for_end(company, "ann")
    (entry,) = json.loads(company.sm("health", "ann", "--json").stdout)
    assert entry["rotation"] == begun["rotation"]
    ended = company.sm("cycle", "ann", "--wait", "--json")
    assert json.loads(ended.stdout)["status"] == "confirmed"
    assert "context: cleared" in ended.stderr


def test_one_that_is_given_up_ends_with_exit_code_1_and_why(company: Company) -> None:
    company.configure(handoff_cycle={"timeout": "4s"})
    company.new("ann")
    company.sm("send", "ann", "asked: never")
    company.sm("send", "ann", "asked: never")
    company.wait("ann")
    done = company.sm("cycle", "ann", "--wait", code=1)
    assert done.stderr == "sm: it was given up: it has written no document, asked twice\n"
    assert "asked for a handoff document again" in done.stdout
    assert "It is as it was: go on with your work." in company.hears("ann", "was not replaced")
    checked = company.sm("health", "--check", code=1).stdout
    assert "failed" in checked
    assert "asked twice" in checked


def test_the_end_of_the_session_ends_the_wait(company: Company) -> None:
    company.new("ann")
    company.sm("send", "ann", "asked: working /nowhere/go")
    company.wait("ann")
    ident = company.session("ann").name
    killer = (
        f"until [ -s {company.root.session(ident).rotation} ]; do sleep 0.05; done; {SM} kill ann"
    )
    company.new("bob", provider="mute")
    pid = os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", killer)
    done = company.sm("cycle", "ann", "--wait", code=1)
    os.waitpid(pid, 0)
    assert "'ann' has ended before" in done.stderr


# What is refused


def test_a_session_acts_on_itself_and_its_children_alone(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    company.run_in("ann", f"{SM} new --provider peer --name kid")
    company.wait("kid")
    refused = company.run_in("ann", f"{SM} cycle bob")
    assert refused.startswith("1\n")
    assert "'ann' may replace the context of only itself and the sessions that it began" in refused
    assert company.run_in("ann", f"{SM} cycle kid").startswith("0\nkid is asked for")
    assert company.run_in("ann", f"{SM} cycle ann --dry-run").startswith("0\n")
    waits = company.run_in("ann", f"{SM} cycle ann --wait")
    assert waits == "2\nsm: a session cannot wait for its own new context: leave --wait out\n"
    assert company.run_in("ann", f"{SM} cycle ann").startswith("0\nann is asked for")
    company.hears("ann", "Read handoff from ")


def test_a_session_that_has_ended_is_refused(company: Company) -> None:
    company.new("ann")
    company.sm("send", "ann", "leave:", code=None)
    company.sm("wait", "ann", "--for", "end", "--timeout", str(HANG_S))
    wait_for(company.session("ann").dir.over.exists, "its end to be noted")
    assert "'ann' has ended" in company.sm("cycle", "ann", code=1).stderr
    assert "it would not begin: " in company.sm("cycle", "ann", "--dry-run").stdout
    assert company.sm("cycle", "nobody", code=2).stderr.startswith("sm: no session 'nobody'")


def test_an_agent_without_a_command_for_it_is_refused(company: Company) -> None:
    line = f"env PEER_LOG={company.folder / 'peers.jsonl'} {sys.executable} {PEER}"
    company.sm("new", "--name", "gen", "--provider", "generic", "--command", line)
    refused = "the profile 'generic' has no command that clears the context: set its 'clear'"
    assert company.sm("cycle", "gen", code=1).stderr == f"sm: {refused}\n"
    said = company.sm("cycle", "gen", "--dry-run").stdout
    assert said.endswith(f"it would not begin: {refused}\n")


# Together


def test_several_sessions_in_one_directory_do_not_disturb_each_other(company: Company) -> None:
    names = ("ann", "bob", "cid")
    for name in names:
        company.new(name)
    for name in names:
        company.sm("cycle", name)
    for name in names:
        wait_for_end(company, name)
        told = company.hears(name, "Read handoff from ")
        assert company.session(name).name in told
        assert len(company.noted(name, "clear")) == 1
    entries = json.loads(company.sm("health", "--json").stdout)
    assert sorted(entry["status"] for entry in entries) == ["confirmed"] * 3


def test_a_context_that_fills_up_fast_is_reported_and_cycled_later(company: Company) -> None:
    company.new("ann")
    company.run_in("ann", f"{SM} new --provider peer --name kid")
    company.wait("kid")

    def fills_up(percent: int, cycles: int) -> None:
        company.sm("send", "kid", f"gauge: {percent}")
        wait_for(lambda: len(company.noted("kid", "clear")) == cycles, f"cycle {cycles}")
        wait_for_end(company, "kid")

    fills_up(86, 1)
    fills_up(86, 2)
    told = "[sm] kid has needed 2 handoff cycles within an hour: its context fills up fast"
    assert company.hears("ann", "has needed").startswith(told)
    said = json.loads(company.sm("cycle", "kid", "--dry-run", "--json").stdout)
    assert said["threshold"] == 90
    company.sm("send", "kid", "gauge: 89")  # it hears that this is critical instead
    company.hears("kid", "critically high")
    company.wait("kid")
    assert len(company.noted("kid", "clear")) == 2
    fills_up(91, 3)
    company.hears("ann", "has needed 3 handoff cycles")


def test_trace_tells_it_in_words(company: Company) -> None:
    company.new("ann")
    company.sm("cycle", "ann", "--wait")
    said = company.sm("trace", "ann").stdout
    assert "context: cycle begins (command)" in said
    assert "context: the new context is to be told to resume: Read handoff from " in said
    assert re.search(r": idle, .*, 1 rotation$", said.strip())
