"""An agent for tests of messages: it has hooks, calls them as its client would, and does orders.

It keeps what it was told in `$PEER_LOG`, a JSON line each. A message is answered at once, unless it
holds one of these lines: `run: COMMAND` runs it and notes what came of it, `hold: FILE` is at work
until there is such a file, `ask: FILE` shows a dialog until then, `compact:` tells of a compaction,
`fail:` ends the turn in an error of the API, `say: TEXT` sets the last words, `die:` ends it by
SIGKILL, `leave:` as it ends when it is asked to.
Only the standard library: it runs as the agent, in the agent's environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import tty
from pathlib import Path

PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~\r"
HOOKS = Path(os.environ["PEER_HOOKS"]) if os.environ.get("PEER_HOOKS") else None
CONTEXT = f"c0ffee00-0000-4000-8000-{os.getpid():012d}"
turn = 0


class FailedError(Exception):
    """The turn has ended in an error of the API."""


words = ""


def note(kind: str, text: str) -> None:
    entry = {"session": os.environ["SESSION_NAME"], "kind": kind, "text": text}
    with Path(os.environ["PEER_LOG"]).open("a") as log:
        log.write(json.dumps(entry) + "\n")


def hook(event: str, **more: object) -> str:
    """What the hook of an event answers, as the text that it adds."""
    if HOOKS is None:
        return ""
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in event).lstrip("-")
    head = {"session_id": CONTEXT, "transcript_path": "/none", "cwd": str(Path.cwd())}
    payload = head | {"prompt_id": f"prompt-{turn}", "hook_event_name": event} | more
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False) + "\n"
    script = ["bash", "-p", str(HOOKS / name)]
    done = subprocess.run(script, input=text.encode(), capture_output=True, check=False)
    if not done.stdout.strip():
        return ""
    added: str = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    return added


def run(command: str) -> None:
    # What an agent's shell tool does, with orders that only a test writes.
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    note("ran", f"{done.returncode}\n{done.stdout}{done.stderr}")


def say(text: str) -> None:
    global words
    words = text


def hold(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.02)


def ask(file: str) -> None:
    os.write(1, "\x1b[2J\x1b[HMay I?\r\n❯ 1. Yes\r\n".encode())
    hook("PermissionRequest", tool_name="Bash", tool_input={"command": "true"})
    hold(file)


def compact(_rest: str) -> None:
    hook("PreCompact", trigger="auto")
    hook("SessionStart", source="compact")
    hook("PostCompact", trigger="auto")


def fail(_rest: str) -> None:
    hook("StopFailure", error="server_error", last_assistant_message="API Error: 529 Overloaded")
    raise FailedError


def die(_rest: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_rest: str) -> None:
    hook("SessionEnd", reason="prompt_input_exit")
    sys.exit()


ORDERS = {order.__name__: order for order in (run, say, hold, ask, compact, fail, die, leave)}


def obey(text: str) -> None:
    note("message", text)
    for line in text.split("\n"):
        order, colon, rest = line.partition(":")
        if colon and order in ORDERS:
            ORDERS[order](rest.strip())


def take(prompt: str) -> None:
    """One turn, and as many more as the Stop hook goes on with."""
    global turn, words
    turn, words = turn + 1, "done"
    os.write(1, "\x1b[2J\x1b[Hworking ...\r\n❯\u00a0".encode())
    more = hook("UserPromptSubmit", prompt=prompt)
    obey(prompt if not more else f"{prompt}\n{more}")
    active = False
    while more := hook(
        "Stop", stop_hook_active=active, last_assistant_message=words, background_tasks=[]
    ):
        active = True
        obey(more)


def main() -> None:
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    hook("SessionStart", source="startup")
    if len(sys.argv) > 1 and not sys.argv[-1].startswith("--"):
        take(sys.argv[-1])
    buffer = b""
    while True:
        os.write(1, "\x1b[2J\x1b[H❯\u00a0".encode())
        data = os.read(0, 65536)
        if not data or data == b"\x03":
            return
        buffer += data
        while PASTE_END in buffer:
            message, _, buffer = buffer.partition(PASTE_END)
            with contextlib.suppress(FailedError):
                take(message.replace(b"\x1b[201~", b"").replace(PASTE, b"").decode())


main()
