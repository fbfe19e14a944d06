"""An agent for tests: a terminal program whose model is a few rules, or the test itself.

It keeps what it was told in `$PUPPET_LOG`, one JSON line a message. With `PUPPET_AUTO=1` it
follows the protocol by itself: adds a file, commits, pushes, asks for CI, for a review, merges.
A line `run: COMMAND` of a message is run.
With `PUPPET_HOOKS` it calls the hooks in that folder for its start and for what it is told; with
`PUPPET_TRANSCRIPTS` it names a transcript in that folder.
Only the standard library: it runs as the agent, in the agent's environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tty
from pathlib import Path

PASTE_END = b"\x1b[201~\r"
ISSUE = os.environ["ISSUE"]


def tell(kind: str, text: str) -> None:
    entry = {"session": os.environ["SESSION_NAME"], "pid": os.getpid(), "kind": kind, "text": text}
    with Path(os.environ["PUPPET_LOG"]).open("a") as log:
        log.write(json.dumps(entry) + "\n")


def call_hook(name: str, event: str, **payload: str) -> None:
    """As an agent CLI does; the test calls the other hooks."""
    if folder := os.environ.get("PUPPET_HOOKS"):
        head = {"session_id": f"context-{os.getpid()}", "hook_event_name": event}
        if place := os.environ.get("PUPPET_TRANSCRIPTS"):
            head["transcript_path"] = f"{place}/context-{os.getpid()}.jsonl"
        text = json.dumps(head | payload, ensure_ascii=False)
        subprocess.run(["bash", "-p", f"{folder}/{name}"], input=text, text=True, check=True)


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def signal(phase: str) -> None:
    Path(os.environ["PHASE_FILE"]).write_text(f"PHASE:{phase}\n")
    tell("phase", phase)


def work() -> None:
    """Whatever is missing of: a file, a commit, a push."""
    name = Path(f"work-{ISSUE}.txt")
    if not name.exists():
        name.write_text(f"work on issue {ISSUE}\n")
    git("add", "-A")
    git("commit", "-m", f"Do issue {ISSUE}")
    git("push", "origin", "HEAD")
    signal("awaiting_ci")


def read_task(prompt: str) -> str:
    """The task, where the prompt only names its file."""
    named = prompt.startswith("[sm] Task ")
    return Path(prompt.rpartition(": ")[2]).read_text() if named else prompt


def obey(message: str) -> None:
    """The rules: what the protocol asks of an agent, without any thought."""
    prompt, message = message, read_task(message)
    tell("message", message)
    prompt_id = f"prompt-{time.time_ns()}"
    call_hook("user-prompt-submit", "UserPromptSubmit", prompt_id=prompt_id, prompt=prompt)
    for line in message.splitlines():
        if line.startswith("run: "):
            tell("ran", subprocess.run(line[5:], shell=True, capture_output=True, text=True).stdout)
    if os.environ.get("PUPPET_AUTO") != "1":
        return
    if "PHASE:awaiting_review again" in message or message.startswith("You work on"):
        work()
    elif message.startswith("You take over"):
        waits = [
            p for p in ("awaiting_ci", "awaiting_review") if f"Last phase: PHASE:{p}" in message
        ]
        signal(waits[0]) if waits else work()
    elif "phase file was lost" in message or "lacks your work" in message:
        work()
    elif "CI passed" in message:
        signal("awaiting_review")
    elif "Review: approved" in message:
        command = next(line for line in message.splitlines() if line.startswith("  sm pr merge"))
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        tell("merge", done.stdout + done.stderr)
        signal("done")
    elif "PR not merged yet" in message:
        time.sleep(0.2)
        signal("done")


def main() -> None:
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    tell("arguments", " ".join(sys.argv[1:-1]))
    call_hook("session-start", "SessionStart", source="startup")
    if len(sys.argv) > 1:
        obey(sys.argv[-1])
    buffer = b""
    while True:
        os.write(1, "\r\n❯\u00a0".encode())
        data = os.read(0, 65536)
        if not data or data == b"\x03":
            return
        buffer += data
        while PASTE_END in buffer:
            message, _, buffer = buffer.partition(PASTE_END)
            os.write(1, b"\r\nworking ...\r\n")
            obey(message.partition(b"\x1b[200~")[2].decode())


main()
