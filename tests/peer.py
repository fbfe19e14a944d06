"""An agent for tests of messages: it has hooks, calls them as its client would, and does orders.

It keeps what it was told in `$PEER_LOG`, a JSON line each. A message is answered at once, unless it
holds one of these lines: `run: COMMAND` runs it and notes what came of it, `hold: FILE` is at work
until there is such a file, `compact:` tells of a compaction, `say: TEXT` sets the last words,
`die:` ends it by SIGKILL, `leave:` as it ends when it is asked to.
Only the standard library: it runs as the agent, in the agent's environment.
"""

from __future__ import annotations

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


def obey(text: str) -> None:
    global words
    note("message", text)
    for line in text.split("\n"):
        order, _, rest = line.partition(": ")
        if order == "run":
            # What an agent's shell tool does, with orders that only a test writes.
            done = subprocess.run(rest, shell=True, capture_output=True, text=True, check=False)
            note("ran", f"{done.returncode}\n{done.stdout}{done.stderr}")
        elif order == "say":
            words = rest
        elif order == "hold":
            while not Path(rest).exists():
                time.sleep(0.02)
        elif line == "compact:":
            hook("PreCompact", trigger="auto")
            hook("SessionStart", source="compact")
            hook("PostCompact", trigger="auto")
        elif line == "die:":
            os.kill(os.getpid(), signal.SIGKILL)
        elif line == "leave:":
            hook("SessionEnd", reason="prompt_input_exit")
            sys.exit()


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
            take(message.replace(b"\x1b[201~", b"").replace(PASTE, b"").decode())


main()
