"""What docs/HTTP.md says of `sm serve` is true, and so is what scripts are written for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sm.context import rotation_files
from tests.company import Company
from tests.documentscripts import PRE_COMPACT, RECOVERY, STATUS_LINE
from tests.helpers import HANG_S, wait_for
from tests.serving import Served, serving
from tests.shell import REPOSITORY

EXAMPLE = re.compile(r"```http\n(\w+) (\S+)\n(?:\n(.+?))?```\n\n```json\n(.+?)```", re.DOTALL)
SAID = ("status", "error", "hook_event", "noted")
"""What an example has as it really is; of the rest only the type."""
ABSENT = ("case",)
"""What may be null."""
VARIED = ("act",)
"""What has other keys for each kind."""


@pytest.fixture
def served(company: Company) -> Iterator[Served]:
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as found:
        yield found


def _is_as_said(key: str, documented: Any, answered: Any) -> bool:
    return documented == answered if key in SAID else alike(documented, answered)


def alike(documented: Any, answered: Any) -> bool:
    if isinstance(documented, dict) and isinstance(answered, dict):
        return set(documented) == set(answered) and all(
            key in VARIED or _is_as_said(key, value, answered[key])
            for key, value in documented.items()
            if answered[key] is not None or key not in ABSENT
        )
    if isinstance(documented, list) and isinstance(answered, list) and documented:
        return bool(answered) and all(alike(documented[0], one) for one in answered)
    return type(documented) is type(answered)


def test_the_examples_are_answered_as_documented(company: Company, served: Served) -> None:
    file = company.folder / "handoff.md"
    file.write_text("# Where I am\n")
    ident = company.new("ann")
    waiting = company.root.session(company.new("bob")).state
    wait_for(lambda: waiting.exists() and waiting.read_text().startswith("idle"), "bob's prompt")
    waiting.write_text(f"dialog {time.time():.6f} context prompt\n")
    waiting.chmod(0o600)
    examples = EXAMPLE.findall((REPOSITORY / "docs" / "HTTP.md").read_text())
    assert len(examples) > 8
    for method, path, body, answer in examples:
        sent = body.replace("{id}", ident).replace("{file}", str(file)).encode() or None
        said = served.ask(method, path.replace("{id}", ident), sent)
        assert said.status == 200, (path, said)
        assert alike(json.loads(answer), said.body), (path, said)


def test_every_endpoint_and_status_is_documented(served: Served) -> None:
    text = (REPOSITORY / "docs" / "HTTP.md").read_text()
    table = "".join(line for line in text.splitlines() if re.match(r"\| \d", line))
    for path, methods in served.get("/openapi.json").body["paths"].items():
        for method, operation in methods.items():
            place = path.replace("session_id", "id")
            assert f"{method.upper()} {place}" in text
            for status in operation["responses"]:
                assert status == "200" or status in table, (path, status)


# Scripts: curl and jq, as people have them in their settings


needs_curl = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is not installed"
)


def post(url: str, body: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    """As a script does, with a body as jq prints it; but a busy machine is waited for."""
    arguments = ("-s", "--max-time", str(HANG_S), "-X", "POST", url)
    kind = ("-H", "Content-Type: application/json")
    return subprocess.run(
        ["curl", *arguments, *kind, "-d", json.dumps(body, indent=2)],
        capture_output=True,
        text=True,
        check=False,
    )


def last_handoff(url: str) -> str:
    """As a script reads it: nothing where there is none."""
    command = f"curl -s --max-time {HANG_S} {url} | jq -r '.last_handoff_path // empty'"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    return done.stdout.strip()


@needs_curl
def test_scripts_report_readings_and_compactions(company: Company, served: Served) -> None:
    company.new("ann")
    company.run_in("ann", f"{sys.executable} -Im sm new --provider mute --name bob")
    bob = company.session("bob").name
    url = f"http://localhost:{served.port}/hooks/context-usage"
    reading = {
        "session_id": bob,
        "used_percentage": 52,
        "total_input_tokens": 104000,
        "total_output_tokens": 1200,
        "context_window_size": 200000,
    }
    assert post(url, reading).returncode == 0
    company.hears("bob", "[sm context] Context at 52% (104,000 tokens).")
    event = {"session_id": bob, "event": "compaction", "trigger": "auto"}
    assert json.loads(post(url, event).stdout) == {"status": "compaction_logged"}
    company.hears("ann", "[sm context] Compaction fired for bob. Context was lost.")
    assert json.loads(post(url, reading | {"session_id": "s-none"}).stdout) == {
        "status": "unknown_session"
    }


@needs_curl
def test_scripts_find_the_last_handoff(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    url = f"http://localhost:{served.port}/sessions/{ann}"
    assert last_handoff(url) == ""
    assert last_handoff(f"{url}-none") == ""
    file = Path(company.folder / "hand off.md")
    rotation_files.note_begun(company.session("ann").dir, file, "")
    assert last_handoff(url) == str(file)


# What others pay for it


@pytest.mark.parametrize(
    "arguments", [["--help"], ["status", "--help"], ["serve", "--help"], ["hooks", "show"]]
)
def test_no_command_but_the_server_imports_the_web(company: Company, arguments: list[str]) -> None:
    script = (
        "import sys; from sm.__main__ import run; run(sys.argv[1:]);"
        "print('imported', sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'anyio', 'h11', 'starlette', 'uvicorn'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=company.folder,
    )
    assert done.stdout.endswith("imported []\n")


def run_script(script: str, served: Served, session: str, **payload: object) -> str:
    """Run a script of the document as a hook of that session's agent; returns what it printed."""
    patient = re.sub(r"--max-time [\d.]+", f"--max-time {HANG_S}", script)
    done = subprocess.run(
        ["bash", "-c", patient.replace("8420", str(served.port))],
        input=json.dumps(payload),
        env=os.environ | {"CLAUDE_SESSION_MANAGER_ID": session},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout


@needs_curl
def test_the_scripts_of_the_document_report_a_reading_and_a_compaction(
    company: Company, served: Served
) -> None:
    company.new("ann")
    company.run_in("ann", f"{sys.executable} -Im sm new --provider mute --name bob")
    bob = company.session("bob").name
    window = {"used_percentage": 52, "total_input_tokens": 104000, "context_window_size": 200000}
    assert run_script(STATUS_LINE, served, bob, context_window=window) == "52% ctx\n"
    company.hears("bob", "[sm context] Context at 52% (104,000 tokens).")
    assert run_script(PRE_COMPACT, served, bob, trigger="auto") == ""
    company.hears("ann", "[sm context] Compaction fired for bob. Context was lost.")
    assert run_script(STATUS_LINE, served, "s-none", context_window=window) == "52% ctx\n"


@needs_curl
def test_a_recovery_script_beside_our_hook_does_not_tell_the_document_twice(
    company: Company, served: Served
) -> None:
    ann = company.new("ann")
    directory = company.session("ann").dir
    document = company.folder / "notes.md"
    document.write_text("# What is to be done next\n")
    rotation_files.keep(directory, document)
    rotation_files.note_begun(directory, document, "")

    def recover() -> str:
        return run_script(RECOVERY, served, ann, source="compact")

    assert "What is to be done next" in recover()  # nothing of ours has told it
    directory.compacting.write_text(f"{time.time():.6f}\n")
    directory.compacting.chmod(0o600)
    assert recover() == ""
    company.sm("send", "ann", "compact:", "--wait", str(HANG_S))
    (added,) = wait_for(lambda: company.noted("ann", "added"), "what our hook adds")
    assert "What is to be done next" in added
    assert not directory.compacting.read_text()
    assert recover() == ""
    long_ago = directory.recalled.stat().st_mtime - 60
    os.utime(directory.recalled, (long_ago, long_ago))
    assert "What is to be done next" in recover()


@needs_curl
def test_a_recovery_script_tells_the_document_where_no_hook_of_ours_does(
    company: Company, served: Served
) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    rotation_files.note_begun(directory, company.folder / "notes.md", "")
    for event in ("PreCompact", "SessionStart"):
        body = {"session_id": "c-1", "hook_event_name": event, "source": "compact"}
        served.post("/hooks/claude", body | {"session_manager_id": ann})
        found = last_handoff(f"http://localhost:{served.port}/sessions/{ann}")
        assert found == str(company.folder / "notes.md")
