"""The demo's agent: a terminal program that behaves like an agent CLI, its model a script.

`agent.py PROMPT` does what the prompt says in the worktree of an issue, then what each message in
its composer says. All that it can write is in knowledge.toml; its only memory is git.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
import tomllib
import tty
from pathlib import Path
from typing import Any

PROMPT = " ".join(sys.argv[1:])
FUNCTION = "".join(re.findall(r"\bAdd (\w+)\(\)", PROMPT)[:1])
KNOWN = tomllib.loads(Path(__file__).with_name("knowledge.toml").read_text()).get(FUNCTION, {})


def show(text: str) -> None:
    """Show a text in place of the last line."""
    print(f"\r\x1b[2K{text}", end="", flush=True)


def say(text: str) -> None:
    """Tell what is being done, above the busy line."""
    show(f"● {text}\n✻ working…")


def ask() -> str:
    """Show the composer; returns what is pasted or typed into it, once Enter follows."""
    show("❯ ")
    typed, begin, end = b"", b"\x1b[200~", b"\x1b[201~"
    while not typed.endswith((b"\r", b"\n")) or typed.rfind(begin) > typed.rfind(end):
        key = os.read(0, 1)
        if key in (b"", b"\x04"):  # the terminal is closed, or Ctrl-D
            raise EOFError
        typed += key
    text = typed.replace(begin, b"").replace(end, b"").replace(b"\r", b"\n")
    return text.decode(errors="replace").strip() or ask()


class StuckError(Exception):
    """The agent cannot go on without a person; the text says why."""


def run(*argv: str) -> str:
    """Run a program; returns what it printed."""
    say(f"$ {' '.join(argv)}")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise StuckError(f"'{' '.join(argv)}' failed: {' '.join(done.stderr.split())}")
    return done.stdout


def edit(path: str, text: str) -> None:
    """Write a file."""
    say(f"edit {path}")
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)


def push(subject: str) -> bool:
    """Commit and push whatever is not yet; returns whether there was anything."""
    if run("git", "status", "--porcelain"):
        run("git", "add", "--all")
        run("git", "commit", "--quiet", "-m", subject)
    return "[up to date]" not in run("git", "push", "--porcelain", "origin", "HEAD")


def pick(table: dict[str, Any], text: str) -> Any:
    """The entry of the table whose words are in the text."""
    for words, entry in table.items():
        if re.search(rf"\b{words}\b", text, re.I):
            return entry
    raise StuckError(f"what is to be done about '{text}'?")


def quoted(message: str) -> str:
    """The CI log or the review between the marks of the message."""
    return message.partition("\n--- begin ")[2].partition("\n--- end ")[0]


def write(choice: dict[str, str]) -> None:
    """Write all files, README.md last: where it has the example, the others are complete."""
    readme, planned = Path("README.md").read_text(), f"## {FUNCTION}\n\nPlanned."
    if planned not in readme:
        return
    if "question" in KNOWN and not choice:
        raise StuckError(KNOWN["question"])
    usage = readme.replace(planned, f"## {FUNCTION}\n\n    {KNOWN['usage']}")
    for path, text in [*KNOWN["files"].items(), ("README.md", usage)]:
        for word, meaning in choice.items():
            text = text.replace(word, meaning)
        edit(path, text)


def work(prompt: str) -> str:
    """Begin, or go on from whatever was left: nothing, edits, commits, all of it."""
    if not KNOWN:
        raise StuckError("this script knows nothing about such an issue")
    write({})
    if "ponders" in KNOWN and "You work on" in prompt:
        signal.pause()
    last = re.search(r"^Last phase: PHASE:(\w+)", prompt, re.M)
    if push(f"Add {FUNCTION}()") or not last:
        return "awaiting_ci"
    return last[1] if "write it again" in prompt else ""


def obey(message: str) -> str:
    """A person has answered, and that decides."""
    write(pick(KNOWN.get("answers", {}), message.splitlines()[1]))
    push(f"Add {FUNCTION}()")
    return "awaiting_ci"


def mend(message: str) -> str:
    """CI failed; its log names the tests that did."""
    for test in re.findall(r"^(?:FAIL|ERROR): (\w+)", quoted(message), re.M):
        path, wrong, right = pick(KNOWN.get("mends", {}), test)
        edit(path, Path(path).read_text().replace(wrong, right))
    if not push(f"Mend {FUNCTION}()"):
        raise StuckError("cannot tell from the log why CI fails")
    return "awaiting_ci"


def address(message: str) -> str:
    """Changes were requested; each remark names a line."""
    for path, line, remark in re.findall(r"^(\S+):(\d+): (.+)$", quoted(message), re.M):
        lines = Path(path).read_text().splitlines(keepends=True)
        lines.insert(int(line) - 1, pick(KNOWN.get("remarks", {}), remark))
        edit(path, "".join(lines))
    if not push(f"Address the review of {FUNCTION}()"):
        raise StuckError("cannot tell from the review what is to be changed")
    return "awaiting_review"


def merge(message: str) -> str:
    """Approved; the message says how to merge."""
    command = re.search(r"sm pr merge \d+ --project \S+", message)
    if not command:
        raise StuckError("how is it to be merged?")
    run(*command[0].split())
    return "done"


STEPS = {
    "You work on issue": work,
    "You take over issue": work,
    "A person answered": obey,
    "CI failed": mend,
    "CI passed": lambda _: "awaiting_review",
    "Review: REQUEST_CHANGES": address,
    "Review: approved": merge,
}
"""By words of a message's first line: what is done about it, up to the phase it returns."""


def hear(message: str) -> None:
    """Do what the message asks for; where that is not clear, ask a person."""
    first = message.partition("\n")[0]
    show(f"> {first}\n")
    try:
        phase = pick(STEPS, first)(message)
    except (StuckError, OSError) as error:
        phase = f"escalate\nReason: {error}"
    if phase:
        say(f"PHASE:{phase}")
        Path(os.environ["PHASE_FILE"]).write_text(f"PHASE:{phase}\n")


def main() -> None:
    """Do as the prompt says, then as every message says, until Ctrl-C or Ctrl-D."""
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    show("\x1b[?2004h")  # from here on pastes are marked as such
    message = PROMPT
    try:
        while True:
            hear(message)
            message = ask()
    except (EOFError, KeyboardInterrupt):
        show("\x1b[?2004l")
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main()
