"""An agent for `bin/soak kills`: it works in small steps, and may be killed at each of them.

Its only memory is git: a new one goes on from whatever the worktree shows. What an issue needs
stands in its title, behind `needs:` (see `Need` in tests/soak/work.py). It calls the hooks as
Claude Code does. In `$SOAK_LEDGER` it keeps what it was told and which phases it wrote.
Only the standard library: it runs as the agent, in the agent's environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tty
from collections.abc import Callable
from pathlib import Path

STEP_S = float(os.environ["SOAK_STEP_S"])
HOOKS = Path(os.environ["SOAK_HOOKS"])
ISSUE = os.environ["ISSUE"]
CONTEXT = f"c0ffee00-0000-4000-8000-{os.getpid():012d}"
PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~\r"
PART, SHARED = Path("parts", f"{ISSUE}.txt"), Path("shared.txt")
STEPS = ("begun", "in the midst", "done")
PATIENCE_S = 40.0
"""So long a command may fail, on a full disk or at a lock, before a person is asked."""
turn = 0


class StuckError(Exception):
    """The agent cannot go on without a person; the text says why."""


def note(kind: str, text: str) -> None:
    """One line of the ledger, written as a whole."""
    entry = {"at": time.time(), "issue": int(ISSUE), "pid": os.getpid(), "kind": kind, "text": text}
    with Path(os.environ["SOAK_LEDGER"]).open("a") as ledger:
        ledger.write(json.dumps(entry) + "\n")


def hook(event: str, **more: object) -> str:
    """Call the hook of an event; returns the text that it adds to the context."""
    name = re.sub(r"(?<!^)([A-Z])", r"-\1", event).lower()
    head = {"session_id": CONTEXT, "transcript_path": "/none", "cwd": str(Path.cwd())}
    head |= {} if event == "SessionStart" else {"prompt_id": f"prompt-{turn}"}
    text = json.dumps(head | {"hook_event_name": event} | more, ensure_ascii=False)
    argv = ["bash", "-p", str(HOOKS / name)]
    said = subprocess.run(argv, input=text, capture_output=True, text=True, check=False).stdout
    try:
        added: str = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError):
        return ""
    return added


def persist(what: Callable[[], str | None], name: str) -> str:
    """Do `what` until it succeeds; what it says."""
    deadline, problem = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < deadline:
        try:
            return what() or ""
        except (OSError, subprocess.CalledProcessError) as error:
            problem = f"{error} {getattr(error, 'stderr', '')}".strip()
            time.sleep(STEP_S)
    raise StuckError(f"{name} fails: {problem}")


def run(*argv: str) -> str:
    """A command's output; tried again where it fails."""

    def once() -> str:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    return persist(once, " ".join(argv))


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def write(path: Path, text: str) -> None:
    def once() -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    persist(once, f"writing {path}")


def signal(phase: str) -> None:
    """Write a phase; noted before, so that none is written that the ledger does not know."""
    note("phase", phase)
    time.sleep(STEP_S)
    write(Path(os.environ["PHASE_FILE"]), f"PHASE:{phase}\n")


class Worker:
    """Works on the issue that its first prompt tells of."""

    def __init__(self, prompt: str) -> None:
        found = re.search(r"needs: (\w+)", prompt)
        self.need = found[1] if found else "nothing"
        branch = re.search(r"on branch ([\w/]+)", prompt)
        self.branch = branch[1] if branch else "HEAD"
        self.last = ""

    def hear(self, message: str) -> None:
        """Do what the message asks for."""
        react = next((react for words, react in REACTIONS.items() if words in message), None)
        if react is None:
            note("riddle", message)
            return
        try:
            phase = react(self, message)
        except StuckError as error:
            phase = f"escalate\nReason: {error}"
        if phase:
            self.last = phase
            signal(phase)

    def begin(self, prompt: str) -> str:
        """Begin, or go on from whatever was left."""
        last = re.search(r"^Last phase: PHASE:(\w+)", prompt, re.M)
        again = "write it again" in prompt
        waits = last is not None and last[1] == "escalate" and not again
        if waits and self.lacks_answer():
            return ""  # it has been asked
        if self.work() or not last:
            return "awaiting_ci"
        return last[1] if again else ""

    def lacks_answer(self) -> bool:
        return self.need == "answer" and "answered" not in text_of(PART)

    def work(self) -> bool:
        """Write, commit and push what is missing; returns whether anything was."""
        self.tidy()
        for step in STEPS:
            self.add(step)
        return self.push()

    def tidy(self) -> None:
        """Give up a rebase that somebody has died over."""
        for name in ("rebase-merge", "rebase-apply"):
            if Path(run("git", "rev-parse", "--git-path", name).strip()).exists():
                run("git", "rebase", "--abort")

    def add(self, step: str) -> None:
        """One step, each a commit of its own; some need more than a line."""
        text = text_of(PART)
        if f"{step}\n" not in text:
            if step == "in the midst" and self.lacks_answer():
                raise StuckError("which colour?")
            if step == "in the midst" and self.need == "mending":
                text += "broken\n"
            if step == "done" and self.need == "room":
                write(SHARED, text_of(SHARED) + f"#{ISSUE}\n")
            write(PART, f"{text}{step}\n")
            time.sleep(STEP_S)
        self.commit(f"Part {ISSUE}: {step}")

    def commit(self, subject: str) -> None:
        if run("git", "status", "--porcelain"):
            run("git", "add", "--all")
            run("git", "commit", "--quiet", "-m", subject)
            time.sleep(STEP_S)

    def push(self) -> bool:
        """Returns whether the remote lacked anything. The branch is this agent's alone.

        An agent that died over its push may have left the remote ahead of what the clone knows.
        """
        run("git", "fetch", "--quiet", "origin", self.branch)
        whole = ("--porcelain", "--force-with-lease", "origin", f"HEAD:{self.branch}")
        return "[up to date]" not in run("git", "push", *whole)

    def obey(self, message: str) -> str:
        """A person has answered."""
        self.tidy()
        if self.lacks_answer():
            write(PART, text_of(PART) + "answered\n")
        if not self.work():
            self.have_checked_again(message)
        return "awaiting_ci"

    def mend(self, message: str) -> str:
        """CI failed; where the work is not to blame, it is asked once more."""
        self.tidy()
        text = text_of(PART)
        if "broken\n" in text:
            write(PART, text.replace("broken\n", "mended\n"))
            self.commit(f"Part {ISSUE}: mended")
            self.push()
        else:
            self.have_checked_again(message)
        return "awaiting_ci"

    def have_checked_again(self, message: str) -> None:
        """The work is not to blame: CI gets another commit to look at."""
        note("blameless", message)
        run("git", "commit", "--quiet", "--allow-empty", "-m", f"Part {ISSUE}: once more")
        self.push()

    def address(self, message: str) -> str:
        self.tidy()
        if "reviewed\n" not in text_of(PART):
            write(PART, text_of(PART) + "reviewed\n")
        self.commit(f"Part {ISSUE}: reviewed")
        self.push()
        return "awaiting_review"

    def rebase(self, message: str) -> str:
        """Both sides have added lines to the same file: all of them stay."""
        self.tidy()
        run("git", "fetch", "--quiet", "origin", "main")
        base = ("git", "rebase", "--quiet", "origin/main")
        going = subprocess.run(base, capture_output=True, text=True, check=False)
        while going.returncode and "<<<<<<<" in text_of(SHARED):
            lines = text_of(SHARED).splitlines(keepends=True)
            write(SHARED, "".join(line for line in lines if line[0] not in "<=>"))
            run("git", "add", "--all")
            time.sleep(STEP_S)
            on = ("git", "-c", "core.editor=true", "rebase", "--continue")
            going = subprocess.run(on, capture_output=True, text=True, check=False)
        if going.returncode:
            raise StuckError(f"cannot rebase: {going.stderr}")
        self.push()
        return "awaiting_ci"

    def merge(self, message: str) -> str:
        """The message says how to merge."""
        command = re.search(r"sm pr merge \d+ --project \S+", message)
        if not command:
            return "awaiting_review"
        for _ in range(3):
            argv = command[0].split()
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            note("merge", f"{done.returncode} {done.stdout}{done.stderr}".strip())
            if done.returncode == 0:
                return "done"
            time.sleep(2 * STEP_S)
        return "awaiting_review"

    def catch_up(self, message: str) -> str:
        """An earlier attempt has pushed the same lines meanwhile."""
        self.tidy()
        run("git", "fetch", "--quiet", "origin", self.branch)
        run("git", "merge", "--quiet", "--no-edit", "-X", "ours", "FETCH_HEAD")
        self.push()
        return self.last or "awaiting_ci"

    def write_again(self, message: str) -> str:
        """The phase was lost, or never read."""
        return "awaiting_ci" if self.work() or not self.last else self.last

    def wait(self, message: str) -> str:
        return ""


REACTIONS: dict[str, Callable[[Worker, str], str]] = {
    "You work on issue": Worker.begin,
    "You take over issue": Worker.begin,
    "[sm] A person answered": Worker.obey,
    "[sm] CI failed": Worker.mend,
    "[sm] CI passed": lambda worker, message: "awaiting_review",
    "[sm] Review of #": Worker.address,
    "[sm] Review: approved": Worker.merge,
    "[sm] Reminder: pull request": Worker.merge,
    "[sm] PR not merged yet": Worker.merge,
    " conflicts with ": Worker.rebase,
    " has commits that your worktree lacks": Worker.catch_up,
    " lacks your work": Worker.write_again,
    "[sm] The phase file was lost": Worker.write_again,
    "[sm] The phase file holds a line": Worker.write_again,
    "[sm] Your turn has ended": Worker.write_again,
    "A person is being asked; wait": Worker.wait,
    "escalating; wait": Worker.wait,
    "[note ": Worker.wait,
}
"""By the words of the message. The first that stand in it count."""


def read_task(prompt: str) -> str:
    """The task, where the first prompt only names its file."""
    named = prompt.startswith("[sm] Task ")
    return Path(prompt.rpartition(": ")[2]).read_text() if named else prompt


def take(worker: Worker, prompt: str) -> None:
    """One turn, and as many more as the Stop hook goes on with."""
    global turn
    turn += 1
    os.write(1, "\x1b[2J\x1b[Hworking ...\r\n❯\u00a0".encode())
    note("told", prompt)
    if more := hook("UserPromptSubmit", prompt=prompt):
        note("told", more)
    worker.hear(read_task(prompt))
    active = False
    while more := hook("Stop", stop_hook_active=active, last_assistant_message="done"):
        active = True
        note("told", more)
        worker.hear(more)


def main() -> None:
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    prompt = sys.argv[-1]
    note("begins", str(Path.cwd()))
    hook("SessionStart", source="startup")
    worker, buffer = Worker(read_task(prompt)), b""
    take(worker, prompt)
    while True:
        os.write(1, "\x1b[2J\x1b[H❯\u00a0".encode())
        while PASTE_END not in buffer:
            data = os.read(0, 65536)
            if not data or data == b"\x03":
                return
            buffer += data
        message, _, buffer = buffer.partition(PASTE_END)
        take(worker, message.partition(PASTE)[2].decode())


if __name__ == "__main__":
    main()
