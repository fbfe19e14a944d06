"""The endpoints of `sm serve`: each does what the command of the same name does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from sm.config.load import load
from sm.context import rotation_files
from sm.context import usage as readings
from sm.context.flags import rearm
from sm.context.thresholds import FillReading
from sm.sessions import agent_state, registry, window
from sm.sessions.project import Project
from sm.sessions.settings import read_own
from sm.store import lock
from sm.store.files import write_json
from sm.store.paths import Root
from tests.company import Company, transcripts
from tests.helpers import (
    HANG_S,
    Repository,
    kill_monitor,
    monitor_of,
    put_session,
    sm_yaml,
    wait_for,
)
from tests.serving import Said, Served, serving


@pytest.fixture
def served(company: Company) -> Iterator[Served]:
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as found:
        yield found


def document(company: Company) -> Path:
    path = company.folder / "handoff.md"
    path.write_text("# Where I am\n")
    return path


# What there is


def test_health_tells_the_version(served: Served) -> None:
    said = served.get("/health")
    assert said.status == 200
    assert said.body["status"] == "healthy"
    assert said.body["version"]


def test_what_needs_a_person_is_listed_as_by_the_command(company: Company, served: Served) -> None:
    assert served.get("/needs").body == {"needs": []}
    state = company.root.session(company.new("ann", provider="mute")).state
    state.write_text(f"dialog {time.time():.6f} context prompt\n")
    state.chmod(0o600)
    [need] = served.get("/needs").body["needs"]
    assert (need["kind"], need["command"]) == ("dialog", "sm attach ann")
    assert served.get("/sessions/ann/needs").body["needs"] == [need]
    assert json.loads(company.sm("needs", "--json", code=1).stdout) == [need]
    assert served.get("/sessions/nobody/needs").status == 404


def test_sessions_are_shown_as_on_record(company: Company, served: Served) -> None:
    assert served.get("/sessions").body == {"sessions": []}
    ann = company.new("ann")
    (shown,) = served.get("/sessions").body["sessions"]
    assert shown == {
        "id": ann,
        "name": "ann",
        "status": "idle",
        "provider": "peer",
        "parent_session_id": None,
        "working_dir": str(company.folder.resolve()),
        "tmux_session": ann,
        "transcript_path": shown["transcript_path"],
        "created_at": shown["created_at"],
        "project": None,
        "issue": None,
        "waiting": 0,
        "tokens_used": None,
        "used_percentage": None,
        "context_window_size": None,
        "last_handoff_path": None,
        "pending_rotation": None,
        "state_since": shown["state_since"],
        "proof": {"kind": "hook", "at": shown["proof"]["at"], "what": ""},
        "figures": {},
    }
    assert shown["created_at"].endswith("+00:00")
    context = window.read(company.session("ann").dir).id
    assert shown["transcript_path"] == str(transcripts(company.folder) / f"{context}.jsonl")
    for name in (ann, "ann", ann[:6]):
        assert served.get(f"/sessions/{name}").body["id"] == ann


def test_the_start_of_an_id_is_too_little_to_act_upon(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    for start in (ann[:6], ann[:-1]):
        assert served.get(f"/sessions/{start}").status == 200
        for path, body in (("input", {"text": "Hello."}), ("kill", {})):
            said = served.post(f"/sessions/{start}/{path}", body)
            assert said.status == 404
            assert (
                said.body["error"]
                == f"no session '{start}': send the whole id '{ann}', or the name"
            )
    assert served.get(f"/sessions/{ann}").body["waiting"] == 0


def test_a_reading_from_before_a_compaction_is_not_the_present_one(
    company: Company, served: Served
) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    readings.note(directory, FillReading(at=time.time(), percent=104, window=200000))
    assert served.get(f"/sessions/{ann}").body["used_percentage"] == 100
    rearm(directory, time.time())
    shown = served.get(f"/sessions/{ann}").body
    assert (shown["used_percentage"], shown["tokens_used"]) == (None, None)


def test_a_child_names_its_parent(company: Company, served: Served) -> None:
    ann = company.new("ann")
    company.run_in("ann", f"{sys.executable} -Im sm new --provider mute --name bob")
    assert served.get("/sessions/bob").body["parent_session_id"] == ann


def test_a_session_of_an_issue_is_found_by_project_and_number(
    root: Root, repository: Repository, served: Served
) -> None:
    config = load(sm_yaml(repository.clone.parent), os.environ, repository.clone)
    session = put_session(Project(config, config.projects[0]), 7, alive=False)
    shown = served.get("/sessions/harb%237").body
    assert (shown["id"], shown["project"], shown["issue"]) == (session.name, "harb", 7)
    registry.forget(root, session)


def test_what_is_no_session_is_not_found(company: Company, served: Served) -> None:
    company.new("ann", provider="mute")
    for ident in ("s-none", "anna", "..%2F..%2Fetc", "%00", "a%0ab", "x" * 500, "%ff", "s-"):
        said = served.get(f"/sessions/{ident}")
        assert said.status == 404, ident
        assert set(said.body) == {"error"}
    assert served.get("/sessions/anna").body["error"] == "no session 'anna': did you mean 'ann'?"


def test_a_damaged_session_hides_no_other(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    bob = company.new("bob", provider="mute")
    directory = company.session("bob").dir
    with lock.hold(directory.lock, timeout_s=60):  # a pass sets the damaged file aside
        directory.handoff.write_text("{")
        directory.handoff.chmod(0o600)
        carl = company.root.session("s-carl")
        carl.path.mkdir(mode=0o700)
        carl.identity.write_text("{")
        carl.identity.chmod(0o600)
        listed = {one["id"]: one for one in served.get("/sessions").body["sessions"]}
        assert set(listed) == {ann, bob, "s-carl"}
        assert "error" not in listed[ann]
        for ident, name in ((bob, "bob"), ("s-carl", None)):
            row = listed[ident]
            assert (row["name"], row["status"], row["waiting"]) == (name, "damaged", None)
            assert "is damaged" in row["error"]
        shutil.rmtree(carl.path)
        said = served.get(f"/sessions/{bob}")
        assert said.status == 500
        assert "is damaged" in said.body["error"]
        directory.handoff.unlink()


# Handoff


def test_a_handoff_is_scheduled_as_by_the_command(company: Company, served: Served) -> None:
    ann, path = company.new("ann"), document(company)
    gate = company.folder / "gate"
    company.sm("send", "ann", f"Work.\nhold: {gate}")
    wait_for(lambda: served.get("/sessions/ann").body["status"] == "busy", "ann to be at work")
    winding = f"{path.parent}/a/.././/{path.name}"
    for given in (str(path), winding):
        request = {"requester_session_id": ann, "file_path": given}
        said = served.post(f"/sessions/{ann}/handoff", request)
        assert (said.status, said.body) == (200, {"status": "scheduled"})
        pending = served.get("/sessions/ann").body["pending_rotation"]
        assert pending["path"] == str(path), "as the command has it"
        assert pending["state"] in {"scheduled", "quiet"}, "until the monitor has seen it, and then"
    gate.touch()


def test_a_handoff_is_carried_out_at_the_turns_end(company: Company, served: Served) -> None:
    ann, path = company.new("ann"), document(company)
    gate = company.folder / "gate"
    company.sm("send", "ann", f"Work.\nhold: {gate}")
    served.post(f"/sessions/{ann}/handoff", {"requester_session_id": ann, "file_path": str(path)})
    served.post(f"/sessions/{ann}/input", {"text": "Meant for the next context."})
    gate.touch()
    company.hears("ann", f"Read {path} and continue from where you left off.")
    company.hears("ann", "Meant for the next context.")
    wait_for(lambda: not served.get("/sessions/ann").body["pending_rotation"], "it to be over")
    shown = served.get("/sessions/ann").body
    assert (shown["id"], shown["last_handoff_path"]) == (ann, str(path))
    assert company.noted("ann")[-2:] == [
        f"Read {path} and continue from where you left off.",
        "Meant for the next context.",
    ]


def test_a_handoff_is_for_oneself_alone(company: Company, served: Served) -> None:
    ann, bob = company.new("ann", provider="mute"), company.new("bob", provider="mute")
    body = {"requester_session_id": bob, "file_path": str(document(company))}
    said = served.post(f"/sessions/{ann}/handoff", body)
    assert (said.status, said.body) == (
        200,
        {"error": "sm handoff is self-directed only — requester must equal target session"},
    )
    assert rotation_files.read_wish(company.session("ann").dir) is None


def test_a_handoff_of_nobody_is_an_error(company: Company, served: Served) -> None:
    body = {"requester_session_id": "s-nobody", "file_path": str(document(company))}
    said = served.post("/sessions/s-nobody/handoff", body)
    assert (said.status, said.body) == (200, {"error": "Session s-nobody not found"})


def test_a_handoff_wants_a_file(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    odd = "file_path has to be an absolute path on one line"
    empty = company.folder / "empty.md"
    empty.touch()
    for path, error in (
        (str(empty), f"cannot hand off '{empty}': it is empty"),
        ("/nowhere/x.md", "File not found: /nowhere/x.md"),
        (f"/{'x' * 300}", f"File not found: /{'x' * 300}"),
        ("/tmp", "File not found: /tmp"),
        ("x.md", odd),
        ("/tmp/a\nb", odd),
        ("/tmp/a\0b", odd),
        ("/tmp/a\x1b[201~b", odd),
        ("/tmp/a\x9b201~b", odd),
        ("/tmp/a\u2028b", odd),
    ):
        body = {"requester_session_id": ann, "file_path": path}
        assert served.post(f"/sessions/{ann}/handoff", body).body == {"error": error}
    assert rotation_files.read_wish(company.session("ann").dir) is None


@pytest.mark.parametrize("name", ["a\nb.md", "a\x1b[201~b.md", "a\x85b.md"])
def test_a_handoff_of_a_link_to_a_name_that_cannot_be_typed_is_refused(
    company: Company, served: Served, name: str
) -> None:
    ann = company.new("ann", provider="mute")
    file, link = company.folder / name, company.folder / "link.md"
    file.write_text("what is next")
    link.symlink_to(file)
    body = {"requester_session_id": ann, "file_path": str(link)}
    said = served.post(f"/sessions/{ann}/handoff", body).body
    assert said["error"].endswith(": no agent can be told that name: rename it")
    assert rotation_files.read_wish(company.session("ann").dir) is None


def test_an_agent_without_a_terminal_has_no_handoff(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    session = company.session("ann")
    identity = json.loads(session.dir.identity.read_text()) | {"provider": "codex-app"}
    write_json(session.dir.identity, identity)
    body = {"requester_session_id": ann, "file_path": str(document(company))}
    assert served.post(f"/sessions/{ann}/handoff", body).body == {
        "error": "sm handoff is not supported for codex-app sessions"
    }


def test_the_last_handoff_is_shown(company: Company, served: Served) -> None:
    company.new("ann", provider="mute")
    path = document(company)
    rotation_files.note_begun(company.session("ann").dir, path, "")
    assert served.get("/sessions/ann").body["last_handoff_path"] == str(path)


# Messages


def test_input_reaches_the_agent(company: Company, served: Served) -> None:
    ann = company.new("ann")
    text = 'Look – at “this”: \t<&>\n漢字 😀 \\ "quoted"'
    said = served.post(f"/sessions/{ann}/input", {"text": text, "delivery_mode": "sequential"})
    assert said.status == 200
    assert said.body | {"id": ""} == {
        "status": "accepted",
        "session_id": ann,
        "id": "",
        "name": "ann",
        "reason": "",
    }
    assert "漢字 😀" in company.hears("ann", "Look")


def test_input_to_an_agent_at_work_is_queued(company: Company, served: Served) -> None:
    company.new("ann")
    gate = company.folder / "gate"
    company.sm("send", "ann", f"Work.\nhold: {gate}")
    said = served.post("/sessions/ann/input", {"text": "And then this."})
    assert (said.body["status"], said.body["reason"]) == (
        "waiting",
        "it is busy until its turn ends",
    )
    assert served.get("/sessions/ann").body["waiting"] == 1
    gate.touch()
    company.hears("ann", "And then this.")


def test_input_names_its_sender_and_tells_it_of_the_end(company: Company, served: Served) -> None:
    ann = company.new("ann")
    company.new("bob")
    body = {"text": "Please look.", "sender_session_id": ann, "notify_on_stop": True}
    assert served.post("/sessions/bob/input", body).status == 200
    assert "ann" in company.hears("bob", "Please look.")
    company.hears("ann", "bob")


def test_input_that_cannot_be_sent_is_refused(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    cases: tuple[tuple[object, int], ...] = (
        ({"text": ""}, 422),
        ({"text": " \n "}, 422),
        ({}, 422),
        ({"text": 7}, 422),
        ({"text": "x", "delivery_mode": "soon"}, 422),
        ({"text": "x", "sender_session_id": "s-nobody"}, 422),
        ({"text": "x", "notify_on_stop": True}, 422),
        ({"text": "x" * 250_001}, 413),
        ([1], 422),
    )
    for body, status in cases:
        said = served.post(f"/sessions/{ann}/input", body)
        assert (said.status, set(said.body)) == (status, {"error"}), body
    assert served.get(f"/sessions/{ann}").body["waiting"] == 0
    assert company.noted("ann") == []


def test_input_to_a_session_that_has_ended_is_refused(company: Company, served: Served) -> None:
    company.new("ann")
    company.sm("send", "ann", "leave:")
    company.sm("wait", "ann", "--for", "end", "--timeout", str(HANG_S))
    wait_for(company.session("ann").dir.over.exists, "its end to be noted")
    said = served.post("/sessions/ann/input", {"text": "Hello?"})
    assert said.status == 409
    assert served.post("/sessions/nobody/input", {"text": "Hello?"}).status == 404


# Kill


def test_kill_ends_a_session(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    said = served.post("/sessions/ann/kill", {})
    assert said.body == {"status": "killed", "session_id": ann, "notes": [f"ended {ann} (ann)"]}
    assert served.get(f"/sessions/{ann}").status == 404


def test_a_session_may_not_end_a_stranger(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    bob = company.new("bob", provider="mute")
    said = served.post(f"/sessions/{bob}/kill", {"requester_session_id": ann})
    assert said.status == 403
    assert "may end only itself" in said.body["error"]
    assert served.post(f"/sessions/{bob}/kill", {"requester_session_id": bob}).status == 200


# Pause


def test_a_session_rests_over_http_and_may_not_have_a_stranger_rest(
    company: Company, served: Served
) -> None:
    ann, bob = company.new("ann"), company.new("bob")
    said = served.post("/pause", {"targets": ["ann"], "now": True, "reason": "a release"})
    assert [(one["extent"], one["name"]) for one in said.body["paused"]] == [("session", "ann")]
    sent = served.post(f"/sessions/{ann}/input", {"text": "Later."})
    assert sent.body["reason"] == "it is paused: 'sm resume' lets it go on"
    for path in ("/pause", "/resume"):
        refused = served.post(path, {"targets": ["ann"], "requester_session_id": bob})
        assert refused.status == 403
    assert served.post("/pause", {"targets": ["nobody"]}).status == 422
    assert served.post("/resume", {"targets": ["ann"]}).body["paused"] == []
    company.hears("ann", "Later.")


# Hooks


def usage(session: str, **more: object) -> dict[str, object]:
    return {
        "session_id": session,
        "used_percentage": 42,
        "total_input_tokens": 84000,
        "total_output_tokens": 1200,
        "context_window_size": 200000,
    } | more


def test_a_reading_is_noted(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    said = served.post("/hooks/context-usage", usage(ann))
    assert (said.status, said.body) == (200, {"status": "ok", "used_percentage": 42})
    shown = served.get(f"/sessions/{ann}").body
    assert (shown["tokens_used"], shown["used_percentage"]) == (84000, 42.0)
    assert shown["context_window_size"] == 200000


def test_a_reading_of_nobody_is_no_error(served: Served) -> None:
    for ident in ("s-nobody", "../../x", "", None, "\0"):
        said = served.post("/hooks/context-usage", usage("") | {"session_id": ident})
        assert (said.status, said.body) == (200, {"status": "unknown_session"})


def test_no_reading_yet_is_not_noted(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    said = served.post("/hooks/context-usage", usage(ann, used_percentage=None))
    assert said.body == {"status": "ok", "used_percentage": None}
    assert readings.read(company.session("ann").dir) is None


def test_a_reading_that_is_none_is_refused(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    for value in (-1, "42", True, [42], 1e15):
        for key in ("used_percentage", "total_input_tokens"):
            said = served.post("/hooks/context-usage", usage(ann, **{key: value}))
            assert said.status == 422, (key, value)
    assert readings.read(company.session("ann").dir) is None


def test_a_reading_right_after_a_new_beginning_may_be_of_what_was_before(
    company: Company, served: Served
) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    rearm(directory, time.time() + 2)  # or a slow machine is too late
    served.post("/hooks/context-usage", usage(ann, used_percentage=90))
    found = readings.read(directory)
    assert found is None

    def later() -> bool:
        served.post("/hooks/context-usage", usage(ann, used_percentage=9))
        return readings.read(directory) is not None

    wait_for(later, "a reading to be believed")


def test_a_compaction_is_told_to_the_parent_once(company: Company, served: Served) -> None:
    company.new("ann")
    company.run_in("ann", f"{sys.executable} -Im sm new --provider peer --name bob")
    bob = company.session("bob").name
    body = {"session_id": bob, "event": "compaction", "trigger": "auto"}
    for _ in range(2):
        said = served.post("/hooks/context-usage", body)
        assert (said.status, said.body) == (200, {"status": "compaction_logged"})
    company.hears("ann", "ompact")
    events = company.session("bob").dir.events.read_text()
    assert events.count(" PreCompact ") == 1


def test_a_compaction_that_the_agents_own_hook_tells_of_is_not_told_twice(
    company: Company, served: Served
) -> None:
    company.new("ann")
    company.sm("send", "ann", "compact:")
    directory = company.session("ann").dir
    wait_for(lambda: " PreCompact " in directory.events.read_text(), "the hook's own line")
    body = {"session_id": company.session("ann").name, "event": "compaction", "trigger": "auto"}
    assert served.post("/hooks/context-usage", body).body == {"status": "compaction_logged"}
    assert directory.events.read_text().count(" PreCompact ") == 1


def test_thresholds_are_told_of_readings_over_http(company: Company, served: Served) -> None:
    """Once each, also where the percentage falls; again after a compaction, however full it is."""
    ann = company.new("ann", provider="mute")

    def send(percentage: float) -> None:
        tokens = int(percentage * 2000)
        body = usage(ann, used_percentage=percentage, total_input_tokens=tokens)
        assert served.post("/hooks/context-usage", body).body["status"] == "ok"

    def told() -> list[str]:
        return [text[:48] for text in company.noted("ann") if "[sm context]" in text]

    send(52)
    company.hears("ann", "[sm context] Context at 52% (104,000 tokens).")
    for percentage in (53, 20, 54, 64.5):
        send(percentage)
    send(66)
    company.hears("ann", "[sm context] Context at 66% — critically high.")
    send(67)
    assert len(told()) == 2
    served.post("/hooks/context-usage", {"session_id": ann, "event": "compaction"})

    def warned() -> bool:
        send(55)
        return len(told()) == 3

    wait_for(warned, "a warning in the context that was summed up")
    assert told()[2].startswith("[sm context] Context at 55%")


def event(session: str, name: str, **more: object) -> dict[str, object]:
    head: dict[str, object] = {"session_id": "c0ffee00-1", "hook_event_name": name}
    return head | more | {"session_manager_id": session}


def test_a_hooks_payload_is_noted_as_the_hook_would(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    said = served.post("/hooks/claude", event(ann, "UserPromptSubmit", prompt="Go."))
    assert said.body == {"status": "received", "hook_event": "UserPromptSubmit", "noted": True}
    assert directory.state.read_text().split()[0] == "busy"
    served.post("/hooks/claude", event(ann, "Stop", last_assistant_message='Done, "all" of it.'))
    assert directory.state.read_text().split()[0] == "idle"
    assert served.get("/sessions/ann").body["status"] == "idle"
    assert json.loads(directory.stop_payload.read_text())["last_assistant_message"]


def test_a_hook_over_http_hands_nothing_out(company: Company, served: Served) -> None:
    """Its answer reaches no agent, so a message in it would be lost."""
    ann = company.new("ann", provider="mute")
    company.sm("send", "ann", f"Work.\nhold: {company.folder / 'gate'}")
    company.sm("send", "ann", "And then this.")
    company.sm("send", "ann", "--mode", "steer", "And meanwhile this.")
    for name in ("PostToolUse", "Stop", "UserPromptSubmit"):
        assert served.post("/hooks/claude", event(ann, name)).body["noted"]
    assert served.get("/sessions/ann").body["waiting"] == 2
    (company.folder / "gate").touch()
    company.hears("ann", "And then this.")
    company.hears("ann", "And meanwhile this.")


def test_an_agent_with_hooks_of_its_own_is_not_spoken_for(company: Company, served: Served) -> None:
    """A second, late report of a turn's end would make an agent idle that is at work."""
    ann = company.new("ann")
    gate = company.folder / "gate"
    company.sm("send", "ann", f"Work.\nhold: {gate}")
    said = served.post("/hooks/claude", event(ann, "Stop"))
    assert said.body == {"status": "received", "hook_event": "Stop", "noted": False}
    assert served.get("/sessions/ann").body["status"] == "busy"
    gate.touch()


def test_a_context_that_begins_is_known_by_hooks_over_http_alone(
    company: Company, served: Served
) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir

    def tell(context: str, name: str, **more: object) -> tuple[str, str]:
        body = event(ann, name, **more) | {"session_id": context}
        assert served.post("/hooks/claude", body).body["noted"]
        now = agent_state.read(directory)
        return now.context, now.state

    assert tell("c-1", "SessionStart", source="startup") == ("c-1", "idle")
    assert tell("c-1", "UserPromptSubmit", prompt="Go.") == ("c-1", "busy")
    # A client that the agent has started says the same of itself.
    assert tell("c-9", "SessionStart", source="startup") == ("c-1", "busy")
    assert tell("c-9", "SessionStart", source="resume") == ("c-1", "busy")
    assert tell("c-9", "SessionStart", source="compact") == ("c-1", "busy")
    assert tell("c-9", "Stop") == ("c-1", "busy")
    assert tell("c-1", "SessionStart", source="compact") == ("c-1", "busy")
    assert tell("c-1", "Stop") == ("c-1", "idle")
    assert tell("c-2", "SessionStart", source="clear") == ("c-2", "idle")
    assert window.read(directory).begun == "clear"
    assert tell("c-2", "UserPromptSubmit", prompt="Go.") == ("c-2", "busy")
    later = directory.state.stat().st_mtime + 1
    os.utime(directory.agent_pid, (later, later))  # as of an agent that was started anew
    assert tell("c-3", "SessionStart", source="startup") == ("c-3", "idle")


def test_hooks_of_nobody_and_of_unknown_events_are_no_error(
    company: Company, served: Served
) -> None:
    assert served.post("/hooks/claude", event("s-nobody", "Stop")).body == {
        "status": "unknown_session"
    }
    assert served.post("/hooks/claude", {"hook_event_name": "Stop"}).body == {
        "status": "unknown_session"
    }
    ann = company.new("ann", provider="mute")
    for name in ("SubagentStop", "../../x", ""):
        assert served.post("/hooks/claude", event(ann, name)).body["noted"] is False


# The description


def test_the_description_is_valid_and_complete(served: Served) -> None:
    described = served.get("/openapi.json").body
    OpenAPIV31SpecValidator(described).validate()
    assert set(described["paths"]) == {
        "/health",
        "/sessions",
        "/sessions/{session_id}",
        "/sessions/{session_id}/handoff",
        "/sessions/{session_id}/input",
        "/sessions/{session_id}/kill",
        "/sessions/{session_id}/needs",
        "/cost",
        "/needs",
        "/pause",
        "/resume",
        "/hooks/context-usage",
        "/hooks/claude",
    }
    assert "security" not in described


def test_answers_are_as_described(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    described = served.get("/openapi.json").body
    for method, path, body in (
        ("get", "/health", None),
        ("get", "/sessions", None),
        ("get", "/sessions/{session_id}", None),
        ("post", "/sessions/{session_id}/handoff", {"requester_session_id": "x", "file_path": "x"}),
        ("post", "/sessions/{session_id}/input", {"text": "Hello."}),
        ("post", "/hooks/context-usage", usage(ann)),
        ("post", "/hooks/claude", event(ann, "Stop")),
        ("post", "/pause", {}),
        ("post", "/resume", {"targets": [ann]}),
        ("post", "/resume", {}),
        ("post", "/sessions/{session_id}/kill", {}),
    ):
        place = path.format(session_id=ann)
        said = served.get(place) if body is None else served.post(place, body)
        answer = described["paths"][path][method]["responses"][str(said.status)]
        schema = answer["content"]["application/json"]["schema"]
        OAS31Validator(schema | {"components": described["components"]}).validate(said.body)


# Its life


EARLY = """
import os, signal, uvicorn
from sm.__main__ import main
begin = uvicorn.Server.run
def run(server, **given):
    os.kill(os.getpid(), signal.SIGTERM)
    begin(server, **given)
uvicorn.Server.run = run
main()
"""


def test_a_server_that_is_stopped_before_it_has_begun_ends(root: Root, tmp_path: Path) -> None:
    """It heard of it only once it answered, and went on for ever."""
    with serving(tmp_path, program=("-Ic", EARLY)) as served:
        assert served.process.communicate(timeout=HANG_S) == ("", "")
        assert served.process.returncode == 0


RESTING = """
from sm.__main__ import main
from sm.web import server
server.TICK_S = 3600.0
main()
"""


def test_a_server_at_rest_hears_at_once_that_it_is_stopped(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path, program=("-Ic", RESTING)) as served:
        assert served.get("/health").status == 200
        assert served.stop() == (0, "")


LOADED = """
import sys
from sm.__main__ import main
from sm.plugins.http import entry as serve
class Told:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("sm", "starlette"):
            sys.stderr.write(f"{name} is loaded late\\n")
opened = serve.serving
def listening(*given):
    sys.meta_path.insert(0, Told())
    return opened(*given)
serve.serving = listening
main()
"""


def test_it_has_loaded_what_answers_before_it_listens(company: Company) -> None:
    """The first script after a start waited for that, and scripts wait half a second."""
    ann = company.new("ann")
    env = {"SM_CONFIG": str(company.config)}
    with serving(company.folder, env=env, program=("-Ic", LOADED)) as served:
        assert served.get(f"/sessions/{ann}").status == 200
        assert served.stop() == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(company: Company, number: signal.Signals) -> None:
    with serving(company.folder) as served:
        served.get("/health")
        assert served.stop(number) == (0, "")


def test_it_stops_while_something_is_under_way(company: Company, served: Served) -> None:
    """Who waits is told, and the message, which is in the queue, is not lost."""
    ann = company.new("ann", provider="mute")
    with (
        ThreadPoolExecutor(1) as pool,
        lock.hold(company.session(ann).dir.delivery_lock),
    ):
        sending = pool.submit(served.post, f"/sessions/{ann}/input", {"text": "Hello."})
        wait_for(lambda: served.get(f"/sessions/{ann}").body["waiting"], "it to be queued")
        assert served.stop() == (0, "")
        said = sending.result()
    assert (said.status, said.body) == (
        503,
        {"error": "the server stops: it may still be carried out"},
    )
    company.hears("ann", "Hello.")


def test_a_port_in_use_is_a_clear_error(company: Company, served: Served) -> None:
    done = company.sm("serve", "--port", str(served.port), code=1)
    assert done.stderr == (
        f"sm: cannot listen on '{served.url}': address already in use: "
        "choose another port with --port\n"
    )


def test_two_servers_do_no_harm(company: Company, served: Served) -> None:
    ann = company.new("ann")
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as second:
        for one in (served, second):
            said = one.post(f"/sessions/{ann}/input", {"text": f"From {one.port}."})
            assert said.body["status"] in ("accepted", "waiting")
        for one in (served, second):
            company.hears("ann", f"From {one.port}.")


def test_everything_works_when_it_is_killed(company: Company) -> None:
    """Nothing depends on it: what it took is there, and hooks, messages and commands go on."""
    ann = company.new("ann")
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as served:
        gate = company.folder / "gate"
        company.sm("send", "ann", f"Work.\nhold: {gate}")
        served.post(f"/sessions/{ann}/input", {"text": "Taken over HTTP."})
        assert served.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        gate.touch()
        company.hears("ann", "Taken over HTTP.")
    assert company.sm("send", "ann", "--wait", str(HANG_S), "Without it.").stdout.startswith(
        "accepted"
    )
    assert company.run_in("ann", f"{sys.executable} -Im sm whoami --json").startswith("0")


def test_a_session_starts_no_server(company: Company) -> None:
    company.new("ann")
    for verb in ("serve", "mcp --http"):
        ran = company.run_in("ann", f"{sys.executable} -Im sm {verb} --port 0")
        assert ran.startswith("2\n")
        assert "everybody acts as a person" in ran


def test_what_it_starts_knows_no_token(company: Company) -> None:
    """A message has a monitor started where there is none, with the server's environment."""
    ann = company.new("ann", provider="mute")
    token = "a-token-of-a-test"
    env = {"SM_CONFIG": str(company.config), "SM_SERVE_TOKEN": token}
    with serving(company.folder, env=env) as served:
        bearer = {"authorization": f"Bearer {token}"}
        session = company.session(ann)
        kill_monitor(session)
        served.post(f"/sessions/{ann}/input", {"text": "Hello."}, **bearer)
        monitor = wait_for(lambda: monitor_of(session), "another monitor")
        environment = Path(f"/proc/{monitor}/environ").read_bytes()
    assert b"SM_STATE_ROOT=" in environment
    assert token.encode() not in environment


# Sessions begun, changed and ended over HTTP


def begun(served: Served, company: Company, **more: object) -> Said:
    return served.post("/sessions", {"working_dir": str(company.folder), "provider": "peer"} | more)


def changed(served: Served, session: str, **what: object) -> Said:
    return served.ask("PATCH", f"/sessions/{session}", json.dumps(what).encode())


def test_a_session_is_begun_as_by_sm_new(company: Company, served: Served) -> None:
    ann = company.new("ann")
    said = begun(served, company, name="bob", prompt="Begin.", parent_session_id=ann)
    assert (said.status, said.body["name"], said.body["provider"]) == (200, "bob", "peer")
    assert said.body["parent_session_id"] == ann
    assert company.hears("bob", "Begin.")
    assert served.get("/sessions/bob").body["id"] == said.body["id"]


def test_what_cannot_be_begun_is_refused_and_leaves_nothing(
    company: Company, served: Served
) -> None:
    company.new("ann")
    for wish, status in (
        ({"name": "ann"}, 422),
        ({"name": "s-12345678"}, 422),
        ({"working_dir": "relative"}, 422),
        ({"working_dir": str(company.folder / "none")}, 422),
        ({"provider": "nobody"}, 422),
        ({"parent_session_id": "s-nobody"}, 422),
        ({"prompt": "x" * 250_001}, 413),
    ):
        said = begun(served, company, **wish)
        assert (said.status, bool(said.body["error"])) == (status, True), wish
    assert served.post("/sessions", {"provider": "peer"}).status == 422
    assert len(served.get("/sessions").body["sessions"]) == 1


def test_no_request_says_which_program_is_run(company: Company, served: Served) -> None:
    said = begun(served, company, command="touch /tmp/never", line="touch /tmp/never")
    assert company.session(said.body["id"]).record.provider == "peer"
    company.wait(said.body["id"])
    assert company.noted(said.body["id"]) == []


def test_name_parent_and_monitor_are_changed_and_the_rest_stays(
    company: Company, served: Served
) -> None:
    ann, bob = company.new("ann"), company.new("bob")
    before = company.session("bob")
    said = changed(served, "bob", name="tester", parent_session_id=ann, context_monitor=False)
    assert (said.status, said.body["name"], said.body["parent_session_id"]) == (200, "tester", ann)
    after = company.session("tester")
    assert after == before.change(alias="tester", parent=ann)
    assert read_own(after.dir).monitor is False
    assert "tester" in company.sm("children", "ann").stdout
    company.sm("send", "tester", "Hello.")
    assert company.hears("tester", "Hello.")
    assert changed(served, bob).body["name"] == "tester"
    said = changed(served, bob, name=None, parent_session_id=None)
    assert (said.body["name"], said.body["parent_session_id"]) == (bob, None)


def test_a_change_that_cannot_be_is_refused(company: Company, served: Served) -> None:
    ann, bob = company.new("ann"), company.new("bob")
    assert changed(served, bob, parent_session_id=ann).status == 200
    for session, what, status in (
        (bob, {"name": "ann"}, 422),
        (bob, {"parent_session_id": bob}, 422),
        (ann, {"parent_session_id": bob}, 422),
        (bob, {"parent_session_id": "s-nobody"}, 422),
        (bob, {"context_monitor": "off"}, 422),
        (ann, {"name": "x", "requester_session_id": bob}, 403),
        ("s-nobody", {"name": "x"}, 404),
        (bob, {"name": "x", "parent_session_id": "s-nobody", "context_monitor": False}, 422),
        (bob, {"name": "ann", "parent_session_id": None}, 422),
    ):
        assert changed(served, session, **what).status == status, (session, what)
    assert company.session(bob).record.parent == ann
    assert not company.session(bob).dir.context_settings.exists()
    assert [company.session(one).label for one in (ann, bob)] == ["ann", "bob"]


def test_a_session_is_ended_by_delete(company: Company, served: Served) -> None:
    ann = company.new("ann")
    assert served.ask("DELETE", f"/sessions/{ann[:5]}").status == 404
    said = served.ask("DELETE", f"/sessions/{ann}")
    assert (said.status, said.body["status"]) == (200, "killed")
    assert served.get("/sessions").body == {"sessions": []}
