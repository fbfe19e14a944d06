"""An agent for tests of messages: it has hooks, calls them as its client would, and does orders.

It keeps what it was told in `$PEER_LOG`, a JSON line each, with the context that it was in. A
message is answered at once, unless it holds one of these lines: `run: COMMAND` runs it and notes
what came of it, `hold: FILE` is at work until there is such a file, `ask: FILE` shows a dialog
until then, `compact:` tells of a compaction, `fail:` ends the turn in an error of the API,
`say: TEXT` sets the last words, `die:` ends it by SIGKILL, `leave:` as it ends when it is asked to.

Of its context: `gauge: 52` is what its status line tells from then on, `null` among them, and
`gauge: 52 ID` tells it once of another context; `/clear` begins a new one, `swallow: 2` passes
over the next two, `late: FILE` lets the next one wait for that file, `mortal:` dies right after
one. `background: FILE` is a task that goes on behind the turn until there is that file,
`work: FILE` uses tools until then, `lag: FILE` draws the turn's end only then.
`write: FILE` writes a handoff document, `asked: WORD` says what it does the next time that sm asks
for one: `write`, as where nothing was said, `never`,
`compacting` (has its context summed up, and writes none), `lacking` (sections, which it adds when
it is told), `stubborn` (does not), `working FILE` (writes, and uses tools until there is FILE),
`twice FILE` (writes, again as there is FILE), `handoff` (writes it elsewhere, for `sm handoff`).
A new context that is asked for its task names it, but for as often as `mum: 2` says.
With `$PEER_TRANSCRIPTS`, a folder, it writes down there what is said, as Claude Code does.
With `$PEER_OPENS` it begins its first turn as soon as there is that file.
Only the standard library: it runs as the agent, in the agent's environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Callable
from pathlib import Path

PASTE, PASTE_END, ESCAPE = b"\x1b[200~", b"\x1b[201~\r", b"\x1b"
HOOKS = Path(os.environ["PEER_HOOKS"]) if os.environ.get("PEER_HOOKS") else None
SECTIONS = (
    *("Current Work", "Completed Since Last Handoff", "Next Steps"),
    *("Critical State", "Blockers / Issues", "Notes"),
)
WRITE = re.compile(r"^Write it to (.+?\.md)\. Headings", re.MULTILINE)
NAMING = re.compile(r"in one line that begins with `(.+?)` which task")
TRANSCRIPTS = Path(os.environ.get("PEER_TRANSCRIPTS", "/none"))
ADD = re.compile(r"^Add to the handoff document (.+?\.md) what it lacks", re.MULTILINE)
LOOK_S = 0.02
contexts = 1
turn = 0
gauges = "null"
swallowed = 0
opens_at: Path | None = None
drawn_at: Path | None = None
dies = False
tasks: list[Path] = []
reactions: list[str] = []
mum_for = 0
completed: list[str] = []
buffer = b""
words = ""


class FailedError(Exception):
    """The turn has ended in an error of the API, or by Escape: there is no Stop."""


def note(kind: str, text: str) -> None:
    where = {"session": os.environ["SESSION_NAME"], "context": context()}
    entry = where | {"kind": kind, "text": text}
    with Path(os.environ["PEER_LOG"]).open("a") as log:
        log.write(json.dumps(entry) + "\n")


def context() -> str:
    return f"c0ffee00-0000-4000-{8000 + contexts % 1000}-{os.getpid():012d}"


def transcript() -> Path:
    return TRANSCRIPTS / f"{context()}.jsonl"


def write_down(who: str, text: str) -> None:
    if TRANSCRIPTS.is_dir():
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        content = [{"type": "text", "text": text}]
        line = {"type": who, "uuid": f"{time.time_ns():032x}", "timestamp": at}
        with transcript().open("a") as file:
            file.write(json.dumps(line | {"message": {"role": who, "content": content}}) + "\n")


def call(name: str, payload: dict[str, object]) -> str:
    """What a hook says."""
    if HOOKS is None:
        return ""
    place = {"session_id": context(), "transcript_path": str(transcript())}
    whole = place | {"cwd": str(Path.cwd())} | payload
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False) + "\n"
    script = ["bash", "-p", str(HOOKS / name)]
    done = subprocess.run(script, input=text.encode(), capture_output=True, check=False)
    return done.stdout.decode().strip()


def hook(event: str, **more: object) -> str:
    """What the hook of an event answers, as the text that it adds."""
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in event).lstrip("-")
    begins = event.startswith("Session")
    head = {} if begins else {"prompt_id": f"prompt-{contexts}-{turn}"}
    said = call(name, head | {"hook_event_name": event} | more)
    if not said:
        return ""
    added: str = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    return added


def tell_gauge(percent: float | None, of: str = "") -> None:
    """What the client gives its status line: null where nothing was asked in this context yet."""
    window = 200_000
    tokens = int(window * (percent or 0) / 100)
    usage = {"input_tokens": tokens, "output_tokens": 20, "cache_read_input_tokens": 0}
    size = {"total_input_tokens": tokens, "context_window_size": window, "current_usage": usage}
    used = {"used_percentage": percent, "remaining_percentage": percent and 100 - percent}
    told = {"session_id": of or context(), "context_window": size | used}
    call("status-line", told | {"version": "2.1.329", "exceeds_200k_tokens": False})


def run(command: str) -> None:
    # What an agent's shell tool does, with orders that only a test writes.
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    note("ran", f"{done.returncode}\n{done.stdout}{done.stderr}")


def use_tool() -> None:
    """What rides on a tool's result is obeyed in the same turn."""
    if more := hook("PostToolUse", tool_name="Bash", tool_input={"command": "true"}):
        obey(more)


def say(text: str) -> None:
    global words
    words = text


def hold(file: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    while not Path(file).exists():
        meanwhile()
        if is_typed(LOOK_S) and read() == ESCAPE:
            raise FailedError


def work(file: str) -> None:
    hold(file, use_tool)


def ask(file: str) -> None:
    os.write(1, "\x1b[2J\x1b[HMay I?\r\n❯ 1. Yes\r\n".encode())
    hook("PermissionRequest", tool_name="Bash", tool_input={"command": "true"})
    hold(file)


def compact(_rest: str) -> None:
    hook("PreCompact", trigger="auto")
    if more := hook("SessionStart", source="compact"):
        note("added", more)
    hook("PostCompact", trigger="auto")


def fail(_rest: str) -> None:
    hook("StopFailure", error="server_error", last_assistant_message="API Error: 529 Overloaded")
    raise FailedError


def die(_rest: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_rest: str) -> None:
    hook("SessionEnd", reason="prompt_input_exit")
    sys.exit()


def gauge(rest: str) -> None:
    global gauges
    told, _, of = rest.partition(" ")
    tell_gauge(None if told == "null" else json.loads(told), of)
    gauges = gauges if of else told


def mum(times: str) -> None:
    global mum_for
    mum_for = int(times)


def name_task(begins: str) -> None:
    global mum_for
    if mum_for:
        mum_for -= 1
    else:
        say(f"{begins} what was left")


def swallow(times: str) -> None:
    global swallowed
    swallowed = int(times)


def late(file: str) -> None:
    global opens_at
    opens_at = Path(file)


def lag(file: str) -> None:
    global drawn_at
    drawn_at = Path(file)


def mortal(_rest: str) -> None:
    global dies
    dies = True


def background(file: str) -> None:
    tasks.append(Path(file))


def write(file: str, sections: tuple[str, ...] = SECTIONS) -> None:
    text = "".join(f"## {name}\n\nAs it should be.\n\n" for name in sections)
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(f"# Handoff Document\n\n{text}")


def asked(rest: str) -> None:
    reactions.append(rest)


def react(path: str) -> None:
    """Write the document that was asked for, or whatever it is to do instead."""
    global gauges
    word, _, file = (reactions.pop(0) if reactions else "write").partition(" ")
    note("asked", word)
    if word == "handoff":
        write("notes.md")
        run(f"{sys.executable} -Im sm handoff notes.md")
    elif word == "compacting":
        compact("")
        gauges = "12"  # else it would be asked again at once
    elif word != "never":
        write(path, SECTIONS[:3] if word in ("lacking", "stubborn") else SECTIONS)
    if word == "lacking":
        completed.append(path)
    elif word == "working":
        work(file)
    elif word == "twice":
        hold(file)
        write(path)


def complete(path: str) -> None:
    note("asked", "sections")
    if path in completed:
        write(path)


ORDERS = {
    order.__name__: order
    for order in (
        *(run, say, hold, work, ask, compact, fail, die, leave),
        *(mum, gauge, swallow, late, lag, mortal, background, write, asked),
    )
}


def obey(text: str) -> None:
    note("message", text)
    for line in text.split("\n"):
        order, colon, rest = line.partition(":")
        if colon and order in ORDERS:
            ORDERS[order](rest.strip())
        elif found := WRITE.match(line):
            react(found[1])
        elif found := ADD.match(line):
            complete(found[1])
        elif found := NAMING.search(line):
            name_task(found[1])


def take(prompt: str) -> None:
    """One turn, and as many more as the Stop hook goes on with."""
    global turn, words, drawn_at
    turn, words = turn + 1, "done"
    os.write(1, "\x1b[2J\x1b[Hworking ...\r\n❯\u00a0".encode())
    more = hook("UserPromptSubmit", prompt=prompt)
    if prompt.startswith("[sm] Task "):
        prompt, more = more or Path(prompt.rpartition(": ")[2]).read_text(), ""
    told = prompt if not more else f"{prompt}\n{more}"
    write_down("user", told)
    obey(told)
    if gauges != "null":
        tell_gauge(json.loads(gauges))
    active = False
    while more := stop(active=active):
        active = True
        obey(more)
    if drawn_at:
        hold(str(drawn_at))
        drawn_at = None


def stop(*, active: bool) -> str:
    write_down("assistant", words)
    running = [{"id": f"b{number}", "type": "shell"} for number in range(len(tasks))]
    said = {"last_assistant_message": words, "background_tasks": running}
    return hook("Stop", stop_hook_active=active, **said)


def clear() -> None:
    """What the client does at `/clear`: no prompt, no Stop, another context."""
    global contexts, gauges, swallowed, opens_at
    note("clear", context())
    if swallowed:
        swallowed -= 1
        return
    if opens_at:
        hold(str(opens_at))
        opens_at = None
    hook("SessionEnd", reason="clear")
    contexts, gauges = contexts + 1, "null"
    hook("SessionStart", source="clear")
    if dies:
        die("")
    tell_gauge(None)


def is_typed(wait_s: float) -> bool:
    return bool(select.select([0], [], [], wait_s)[0])


def read() -> bytes:
    """What was typed, which is kept as well, unless it is the key that stops a turn."""
    global buffer
    data = os.read(0, 65536)
    if not data or data == b"\x03":
        sys.exit()
    if data != ESCAPE:
        buffer += data
    return data


def finish_tasks() -> None:
    """A task in the background that ends begins a turn of its own."""
    for task in [one for one in tasks if one.exists()]:
        tasks.remove(task)
        take("<task-notification>\n<summary>A task is done.</summary>\n</task-notification>")
        show_prompt()


def show_prompt() -> None:
    os.write(1, f"\x1b[2J\x1b[H{words}\r\n❯\u00a0".encode())


def main() -> None:
    global buffer
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    hook("SessionStart", source="startup")
    if len(sys.argv) > 1 and not sys.argv[-1].startswith("--"):
        if opens := os.environ.get("PEER_OPENS"):
            show_prompt()
            hold(opens)
        with contextlib.suppress(FailedError):
            take(sys.argv[-1])
    while True:
        show_prompt()
        while PASTE_END not in buffer:
            if not tasks or is_typed(LOOK_S):
                read()
            finish_tasks()
        message, _, buffer = buffer.partition(PASTE_END)
        text = message.replace(b"\x1b[201~", b"").replace(PASTE, b"").decode()
        with contextlib.suppress(FailedError):
            clear() if text == "/clear" else take(text)


main()
