"""One session with a real client and a scripted model, a person beside it, and trials with them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from sm.adapters.agent.prompt import Prompt
from sm.adapters.tmux import TmuxError
from sm.base.refusal import Refusal
from sm.context import rotation_files
from sm.messages import delivery, queue
from sm.messages.queue import Mode
from sm.sessions import agent as agents
from sm.sessions.agent_state import State
from sm.store import journal
from sm.store.events import Rotation, RotationStep
from tests.real.api import Api, Reply
from tests.real.handoffs import NUMBER, Writer, contexts, heard
from tests.real.lasting import lasting_session
from tests.soak.moments import LETTERS, OPTIONS, SIZES, Moment, Step, draw
from tests.soak.typist import PREFIX, Typist, environment

ROOT = Path(__file__).resolve().parents[2]
SETTLE_S = 60.0
LOOK_S, DRAWN_S = 0.05, 10.0
MOMENT_S = 1.0
"""A key may come between the look at who is there and what is done then."""
ANSWER_S, CLOSED_S = 0.6, 2.0
ESCAPE_S = 0.7
"""tmux takes a key that follows sooner as one with Escape (escape-time)."""
BUSY = "while :; do :; done"
FAULTS = (
    *("lost", "doubled", "fused", "altered", "run by a shell", "a draft lost"),
    *("ended under hands", "cleared under hands", "a wait without a reason", "the trial itself"),
)
"""What is counted, and all of it should be zero."""


ARRIVALS = {
    Step.MESSAGE: (Mode.SEQUENTIAL, "", ""),
    Step.WORK: (Mode.SEQUENTIAL, "", "slowly"),
    Step.TOOL: (Mode.SEQUENTIAL, "", "python3 -c 'import time; time.sleep(0.3)'"),
    Step.ROTATE: (Mode.SEQUENTIAL, "Hand off.\n", ""),
    Step.RESULT: (Mode.IMPORTANT, "", ""),
    Step.REMINDER: (Mode.STEER, "", ""),
    Step.URGENT: (Mode.URGENT, "", ""),
}
"""How each comes, what it begins with, and how the model answers it: with a command of its own."""


@dataclass(frozen=True)
class Fault:
    """What went wrong in the trial of a seed."""

    seed: int
    kind: str
    detail: str


@dataclass
class Text:
    """What the agent is to hear once; `by_person` was typed."""

    number: int
    text: str
    by_person: bool = False
    id: str = ""


@dataclass
class Beside:
    """The session, and the person; `open` starts both."""

    program: Path
    folder: Path
    numbers: int = 0
    heard_in: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    @contextlib.contextmanager
    def open(self) -> Iterator[Beside]:
        """Start them; at the end nothing of them is left."""
        with (
            lasting_session(self.program, self.folder) as managed,
            pytest.MonkeyPatch.context() as patch,
        ):
            self.managed = managed
            patch.setenv("SM_TMUX_SOCKET", managed.tmux.socket or "")  # for the monitor
            managed.api.model = self.writer = Writer(self.folder / "notes.md")
            managed.start()
            managed.watch()
            (place := self.folder / "shell").mkdir()
            settings = {
                "SM_STATE_ROOT": str(managed.root.path),
                "SM_TMUX_SOCKET": managed.tmux.socket or "",
            }
            attach = shlex.join([sys.executable, "-Im", "sm", "attach", managed.session.name])
            home = self.folder / "home"
            self.person = Typist(
                managed.tmux, managed.session.name, attach, environment(home, settings), place
            )
            try:
                yield self
            finally:
                self.person.close()

    def make_number(self) -> int:
        """A number that no text has had."""
        self.numbers += 1
        return self.numbers

    def ran(self) -> list[Path]:
        """What a shell made of texts that were meant for the agent."""
        # In Python 3.11 `Path.rglob` fails where a folder goes while it looks.
        return [
            Path(at, name)
            for at, _, names in os.walk(self.folder)
            for name in names
            if name.startswith("ran-")
        ]


class Trial:
    """One seed, played with a session that is idle."""

    def __init__(self, beside: Beside, seed: int) -> None:
        self.beside, self.seed = beside, seed
        self.managed, self.person = beside.managed, beside.person
        self.texts: dict[int, Text] = {}
        self.draft: Text | None = None
        self.looks_back = self.in_menu = False
        self.rows = itertools.cycle((40, 41))
        self.holds: list[threading.Event] = []
        self.loads: list[subprocess.Popen[bytes]] = []
        self.before, self.began_at = self.managed.agent, time.time()
        self.story: list[str] = []
        self.faults: list[Fault] = []

    def play(self) -> list[Fault]:
        """Let it all happen, then judge."""
        try:
            for moment in draw(self.seed):
                time.sleep(moment.pause_s)
                self.story.append(moment.step)
                self._do(moment)
            self._tidy()
            self._judge()
        except AssertionError as error:
            self._note("the trial itself", str(error))
        finally:
            for hold in self.holds:
                hold.set()
            for load in self.loads:
                load.kill()
                load.wait()
        return self.faults

    def _note(self, kind: str, detail: str) -> None:
        self.faults.append(Fault(self.seed, kind, f"{detail}; {', '.join(self.story)}"))

    def _do(self, moment: Moment) -> None:
        chance, step = random.Random(moment.dice), moment.step
        if arrival := ARRIVALS.get(step):
            self._arrive(chance, *arrival)
        elif act := self._beside.get(step):
            act(chance)
        elif self.person.is_attached:
            self._at_terminal(step, chance)

    @cached_property
    def _beside(self) -> dict[Step, Callable[[random.Random], None]]:
        """What a person does beside the agent's input line, and others on the machine."""
        return {
            Step.ATTACH: lambda _: self.person.attach(),
            Step.DETACH: lambda _: self._detach(),
            Step.RESIZE: lambda chance: self.person.resize(chance.choice(SIZES)),
            Step.TUNE: lambda chance: self._tune(chance.choice(OPTIONS)),
            Step.SETTINGS: self._change_settings,
            Step.SPLIT: lambda _: self._split(),
            Step.LOAD: lambda _: self._load(),
            Step.PAUSE: lambda chance: time.sleep(chance.random()),
        }

    def _detach(self) -> None:
        self._stop_looking()
        self.person.detach()

    def _load(self) -> None:
        self.loads += [subprocess.Popen(["sh", "-c", BUSY]) for _ in range(2)]

    # What comes

    def _arrive(self, chance: random.Random, mode: Mode, before: str, answer: str) -> None:
        if answer == "slowly":
            self.beside.writer.turns.append(self._slowly())
        elif answer:
            self.beside.writer.turns.append(self.beside.writer.reply("", answer))
        number = self.beside.make_number()
        body = "".join(chance.choices(LETTERS, k=chance.choice((5, 40, 200)))).strip()
        text = Text(number, f"{before}touch ran-{number} <{number}> {body} end", id=queue.make_id())
        self.texts[number] = text
        self.managed.send(text.text, mode, text.id)

    def _slowly(self) -> Reply:
        hold = threading.Event()
        self.holds.append(hold)
        timer = threading.Timer(ANSWER_S, hold.set)
        timer.daemon = True
        timer.start()
        return Reply("A longer answer.\nSlowly.", hold=hold)

    # What the person does

    def _at_terminal(self, step: Step, chance: random.Random) -> None:
        if step is Step.COPY and not self.in_menu:
            self.person.type(PREFIX + "[", chance)
            self.looks_back = True
            return
        if step is Step.LEAVE:
            self._stop_looking()
            return
        if step is Step.CLOSE:
            self._close_menu()
            return
        self._stop_looking()
        self._close_menu()
        screen = self.managed.screen()
        match step:
            case Step.TYPE if not self.draft and screen.prompt in (Prompt.IDLE, Prompt.BUSY):
                number = self.beside.make_number()
                words = "".join(chance.choices("abcdefghi jklm nop", k=chance.choice((3, 30))))
                self.draft = Text(number, f"touch ran-{number} <{number}> {words}.", by_person=True)
                self.person.type(self.draft.text, chance)
            case Step.SUBMIT if self.draft:
                self._submit(chance)
            case Step.MENU if not self.draft and screen.prompt is Prompt.IDLE and not screen.draft:
                self.person.type("/model", chance)
                self.person.type("\r", chance)
                self._wait(self._asks, "the menu")
                self.in_menu = True
            case Step.TRANSCRIPT if not self.draft:
                self.person.type("\x0f", chance)
                time.sleep(chance.random())
                self.person.type("\x0f", chance)
            case Step.INTERRUPT if self._is_answering() and not self.draft:
                self.person.type("\x1b", chance)
                time.sleep(ESCAPE_S)
            case _:
                pass

    def _asks(self) -> bool:
        return self.managed.screen().prompt is Prompt.DIALOG

    def _submit(self, chance: random.Random) -> None:
        if self.draft is None:
            return
        # To the client a line break that comes with the text is a part of it, as of a paste.
        with contextlib.suppress(AssertionError):
            self._wait(self._shows_draft, "the draft", within_s=DRAWN_S)
        self.texts[self.draft.number] = self.draft
        self.person.type("\r", chance)
        self.draft = None

    def _is_answering(self) -> bool:
        return any(not hold.is_set() for hold in self.holds) and (
            self.managed.screen().prompt is Prompt.BUSY
        )

    def _stop_looking(self) -> None:
        if self.looks_back and self.person.is_attached:
            self._until_out_of_mode()
        self.looks_back = False

    def _until_out_of_mode(self) -> None:
        def is_out() -> bool:
            pane, _ = self.managed.tmux.look(self.managed.agent.pane_id)
            if pane.in_mode:
                self.person.terminal.type("q")
            return not pane.in_mode

        # A key too many would stand in the composer.
        self._wait(is_out, "the end of copy mode", every_s=0.5)

    def _close_menu(self) -> None:
        if not self.in_menu:
            return
        self.in_menu = False
        if self.managed.tmux.look(self.managed.agent.pane_id)[0].is_cramped:
            self.person.resize((80, 24))  # as a person would who sees nothing of the menu

        def is_closed() -> bool:
            screen = self.managed.screen()
            if screen.prompt is Prompt.DIALOG:
                self.person.terminal.type("\x1b")
            return screen.prompt in (Prompt.IDLE, Prompt.BUSY) and not screen.draft.startswith("/")

        # A second Escape that comes before the first was taken opens another menu.
        self._wait(is_closed, "the end of the menu", every_s=CLOSED_S)
        time.sleep(ESCAPE_S)

    def _tune(self, option: str) -> None:
        target = ("-t", f"={self.managed.session.name}:")
        scope, _, rest = option.rpartition("-w ")
        flags = ("-w",) if "-w " in option else ()
        name, value = rest.split() if scope or flags else option.split()
        self.managed.tmux.command("set-option", *flags, *target, name, value)

    def _split(self) -> None:
        with contextlib.suppress(TmuxError):  # no room
            target = self.managed.agent.pane_id
            self.managed.tmux.command("split-window", "-d", "-t", target, "cat >/dev/null")

    def _change_settings(self, chance: random.Random) -> None:
        path = self.managed.folder / "home" / ".claude" / "settings.json"
        settings = json.loads(path.read_text())
        settings[chance.choice(("verbose", "spinnerTipsEnabled"))] = chance.random() < 0.5
        (new := path.with_suffix(".new")).write_text(json.dumps(settings))
        new.rename(path)

    # The end

    def _tidy(self) -> None:
        """The person sees to what stands in the way; then everything has to arrive."""
        for hold in self.holds:
            hold.set()
        for load in self.loads:
            load.kill()
        self.managed.tmux.command("kill-pane", "-a", "-t", self.managed.agent.pane_id)
        self.person.resize((120, 40))
        self.person.attach()
        self.looks_back = self.looks_back or self._is_in_mode()
        self._stop_looking()
        self.in_menu = self.in_menu or self._asks()
        self._close_menu()
        rotates = Step.ROTATE in self.story
        if not rotates:  # a person who is there holds it up, and all behind it
            self._settle()
        if self.draft:
            self._check_draft(self.draft)
            self._submit(random.Random(0))
        if rotates:  # nothing tells that they leave
            self.person.detach()
        self._settle()

    def _is_in_mode(self) -> bool:
        return self.managed.tmux.look(self.managed.agent.pane_id)[0].in_mode

    def _settle(self) -> None:
        """Wait until nothing waits for the agent, and it has nothing to do."""

        def is_settled() -> bool:
            if not delivery.is_at_rest(self.managed.session):
                return False
            screen = self.managed.screen()
            if screen.prompt is Prompt.DIALOG:  # a key that came late has opened another menu
                self.in_menu = True
                self._close_menu()
                return False
            if screen.prompt is Prompt.NONE and not self._missing():
                # The client has lost it, nothing waits for it, and the person wants it back.
                self.person.resize((120, next(self.rows)))
                return False
            idle = self.managed.state is State.IDLE and screen.prompt is Prompt.IDLE
            rotates = rotation_files.is_wanted(self.managed.session.dir)
            return idle and not (self._missing() or screen.stashed or rotates)

        try:
            self._wait(is_settled, "rest")
        except AssertionError:
            waiting = self._why_waiting()
            kind = "a wait without a reason" if waiting else "the trial itself"
            screen = self.managed.screen()
            detail = f"{self._missing()} after {SETTLE_S:g} s: {waiting}, {self.managed.state}"
            self._note(kind, f"{detail}, {screen.prompt} {screen.draft!r}")
            print(self.managed.tmux.capture(self.managed.agent.pane_id), flush=True)

    def _missing(self) -> list[int]:
        return sorted(set(self.texts) - set(heard(self.managed.api)))

    def _why_waiting(self) -> str:
        reasons = [
            delivery.find_outcome(self.managed.session, text.id).refusal
            for text in self.texts.values()
            if text.id
        ]
        return ", ".join(reason.value for reason in reasons if isinstance(reason, Refusal))

    def _shows_draft(self) -> bool:
        wanted = self.draft.text if self.draft else ""
        return _squeezed(self.managed.screen().draft) == _squeezed(wanted)

    def _check_draft(self, draft: Text) -> None:
        try:
            self._wait(self._shows_draft, "the draft", within_s=DRAWN_S)
        except AssertionError:
            shown = self.managed.screen().draft
            self._note("a draft lost", f"{draft.text!r} is {shown!r}")

    def _judge(self) -> None:
        for number in self._missing():
            self._note("lost", f"{self.texts[number].text!r}")
        self._look_for_doubles()
        self._compare()
        for path in self.beside.ran():
            self._note("run by a shell", path.name)
            path.unlink()
        if self.managed.agent != self.before or not agents.is_alive(self.managed.session.dir):
            self._note("ended under hands", "another agent runs")
        for at in self._list_clears():
            if any(since + MOMENT_S < at < until for since, until in self.person.spans):
                self._note("cleared under hands", f"at {at:.3f}: {self.person.spans}")
        if self.managed.screen().draft:
            self._note("altered", f"{self.managed.screen().draft!r} is left in the composer")

    def _list_clears(self) -> list[float]:
        """When the agent's context was cleared in this trial."""
        self.person.note_span()
        found = journal.read(self.managed.root.journal, self.managed.session.name)
        return [
            event.at
            for event in found
            if isinstance(event, Rotation)
            and event.step is RotationStep.CLEARED
            and event.at > self.began_at
        ]

    def _look_for_doubles(self) -> None:
        """Those of trials before count as well: they may come again."""
        heard_in = self.beside.heard_in
        for number, context in _contexts_of(self.managed.api):
            heard_in[number].add(context)
        for number, times in heard(self.managed.api).items():
            if times > 1 or len(heard_in[number]) > 1:
                text = self.texts[number].text if number in self.texts else "of a trial before"
                self._note("doubled", f"{number}, {times} times: {text!r}")

    def _compare(self) -> None:
        """Each text stands by itself, as it was."""
        lines = {
            line
            for requests in contexts(self.managed.api).values()
            for text in requests[-1].texts
            for line in text.splitlines()
        }
        known = {number: text.text.splitlines()[-1] for number, text in self.texts.items()}
        for line in lines:
            numbers = [int(number) for number in NUMBER.findall(line)]
            ours = [number for number in numbers if number in known]
            if len(numbers) > 1 and ours:
                self._note("fused", repr(line))
            elif ours and not line.endswith(known[ours[0]]):
                self._note("altered", f"{known[ours[0]]!r} is {line!r}")

    def _wait(
        self,
        condition: Callable[[], bool],
        what: str,
        within_s: float = 0.0,
        every_s: float = LOOK_S,
    ) -> None:
        deadline = time.monotonic() + (within_s or SETTLE_S)
        while not condition():
            assert time.monotonic() < deadline, f"no {what}"
            time.sleep(every_s)


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def _contexts_of(api: Api) -> Iterator[tuple[int, str]]:
    for context, requests in contexts(api).items():
        for text in requests[-1].texts:
            for number in NUMBER.findall(text):
                yield int(number), context


def play(program: Path, folder: Path, seeds: list[int]) -> tuple[list[Fault], Counter[str]]:
    """Play these seeds, with a new session after each that went wrong; what was met as well."""
    faults: list[Fault] = []
    met: Counter[str] = Counter()
    left = list(seeds)
    while left:
        (here := folder / f"from-{left[0]}").mkdir(parents=True)
        with Beside(program, here).open() as beside:
            while left:
                trial = Trial(beside, left.pop(0))
                found = trial.play()
                met.update(trial.story)
                faults += found
                if found:
                    break
                beside.managed.api.seen[:] = beside.managed.api.seen[-1:]
    return faults, met


def new_folder() -> Path:
    """A short one: a socket's path may have 107 bytes."""
    return Path("/tmp") / f"sm-people-{os.getpid()}"
