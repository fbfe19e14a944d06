"""A world for the rotation: an agent, its client, a person, a clock, and executors that die."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from msgspec import structs

from sm.context.decide import decide
from sm.context.rotation import (
    Cause,
    HandoffDocument,
    MessageKey,
    MessageKind,
    Move,
    RotationAct,
    RotationFacts,
    RotationRecord,
    RotationStage,
    StepTimeouts,
    begin,
)

MOMENT_S = 0.001
OVER = (RotationAct.FINISH, RotationAct.GIVE_UP)


@dataclass
class Agent:
    """What the agent is at. `heard` are the keys of our messages, by the context that got them."""

    context: int = 1
    begun: str = "startup"
    begun_at: float = 0.0
    """When it told of its context."""
    launch: int = 1
    launched_at: float = 0.0
    idle_since: float | None = None
    background_since: float | None = None
    alive: bool = True
    compacted_at: float = 0.0
    worked_at: float = 0.0
    clear_due: bool = False
    """Codex: the new context begins with the next prompt."""
    silent: bool = False
    """It has not told of its context yet."""
    heard: list[tuple[int, str]] = field(default_factory=list)
    task: str = ""
    """What it has named in its context."""
    others: bool = False
    """A person has told it something in its context."""


@dataclass
class World:
    """`codex`: a client that tells of a cleared context only with the next prompt.

    `names`: its agent names its task when it is asked; `proves`: what it says can be read.
    """

    codex: bool = False
    names: bool = False
    proves: bool = False
    limits: StepTimeouts = field(default_factory=StepTimeouts)
    now: float = 1000.0
    agent: Agent = field(default_factory=Agent)
    record: RotationRecord | None = None
    document: HandoffDocument | None = None
    readable: bool = True
    parked: bool = False
    obstacle: str = ""
    swallows_clear: bool = False
    deaf: bool = False
    fails_to_start: bool = False
    messages: dict[MessageKey, str] = field(default_factory=dict)
    """waiting, accepted or lost, by key, in the order in which they were queued."""
    told: list[str] = field(default_factory=list)
    """All that was ever queued."""
    holds: bool = False
    passing: MessageKey | None = None
    """The only message that is handed over while the rotation holds the others back."""
    typed: set[int] = field(default_factory=set)
    """The clears that were typed: none is a second time."""
    accepted_at: dict[MessageKey, float] = field(default_factory=dict)
    resumed_at: float = 0.0
    """When a pause was over."""
    old: int = 0
    """The context that is to be replaced."""
    replaced: set[int] = field(default_factory=set)
    """Those that were to be replaced: the old one, and a new one that named no task."""
    clears: int = 0
    reports: list[str] = field(default_factory=list)
    outcome: Move | None = None
    die_in: int | None = None
    """The executor is killed after so many of its steps."""

    def rotate(self, cause: Cause, document: str = "") -> None:
        """Somebody wants a rotation; where one is under way, a document of the agent's joins it."""
        if self.record is None:
            self.messages, self.accepted_at, self.typed = {}, {}, set()
            self.agent.heard = []
            self.old = self.agent.context + self.agent.clear_due
            self.outcome, self.replaced = None, {self.old}
            context, launch = self._known_context(), self.agent.launch
            self._save(begin("r", cause, self.now, context, document, launch=launch))
        elif document and self.record.step not in (RotationStage.RESUME, RotationStage.VERIFY):
            self._save(structs.replace(self.record, document=document, kept=False))

    def step(self, to: float) -> None:
        """Let the clock go on."""
        self.now = max(self.now, to)

    def seen(self) -> RotationFacts:
        """The facts."""
        agent = self.agent
        return RotationFacts(
            now=self.now,
            alive=agent.alive,
            idle_since=agent.idle_since,
            background_since=agent.background_since,
            context=self._known_context(),
            begun="" if agent.silent else agent.begun,
            begun_at=0.0 if agent.silent else agent.begun_at,
            launch=agent.launch,
            launched_at=agent.launched_at,
            compacted_at=agent.compacted_at,
            worked_at=agent.worked_at,
            resumed_at=self.resumed_at,
            parked=self.parked,
            document=self.document,
            readable=self.readable,
            accepted=dict(self.accepted_at),
            relaunched=agent.silent and bool(self.record and self.record.generation),
            lost=frozenset(key for key, at in self.messages.items() if at == "lost"),
            task=agent.task if self.record and self.record.step is RotationStage.VERIFY else "",
            proves=self.proves,
            others=agent.others,
        )

    def _known_context(self) -> str:
        return "" if self.agent.silent else str(self.agent.context)

    def run(self) -> float:
        """Passes until there is nothing to do; returns when to look again at the latest."""
        for _ in range(50):
            if self.record is None:
                return math.inf
            self._align()
            move = decide(self.record, self.seen(), self.limits)
            if self._dies():
                return self.now
            self.record = move.record
            if self._dies():
                return self.now
            self._save(move.record)
            before = (self.record, self.agent.context, dict(self.messages))
            self._perform(move)
            if self.outcome:
                return math.inf
            if before == (self.record, self.agent.context, dict(self.messages)):
                return move.until
        raise AssertionError(f"it does not come to rest: {move}")

    def _save(self, record: RotationRecord) -> None:
        """Take back what is of another step."""
        self.record = record
        self._align()
        self._withdraw(but=record.key)

    def _align(self) -> None:
        assert self.record is not None
        self.holds, self.passing = self.record.holds, self.record.key
        if self.record.again and self.record.step in (RotationStage.QUIET, RotationStage.CLEAR):
            self.replaced.add(self.agent.context)

    def _withdraw(self, but: MessageKey | None = None) -> None:
        waiting = [key for key, at in self.messages.items() if at == "waiting" and key != but]
        for key in waiting:
            del self.messages[key]

    def _dies(self) -> bool:
        if self.die_in is None:
            return False
        self.die_in -= 1
        if self.die_in < 0:
            self.die_in = None
            return True
        return False

    def _perform(self, move: Move) -> None:
        if move.act is RotationAct.TELL:
            assert move.record.key
            self._tell(move.record.key)
        elif move.act is RotationAct.INTERRUPT:
            if not self.obstacle:
                self.agent.idle_since = self.now
                self._save(structs.replace(move.record, interrupted=True))
        elif move.act is RotationAct.CLEAR:
            self._clear(move.record)
        elif move.act is RotationAct.RELAUNCH:
            self._relaunch(move.record)
        elif move.act is RotationAct.REPORT:
            self.reports.append(move.reason)
        elif move.act in OVER:
            self._withdraw()
            self.outcome, self.record, self.holds = move, None, False

    def _clear(self, record: RotationRecord) -> None:
        at_work = self.agent.idle_since is None and self.agent.background_since is None
        if self.obstacle or at_work:
            obstacle = self.obstacle or "it is at work"
            if record.obstacle != obstacle:
                self.record = structs.replace(record, obstacle=obstacle, since=self.now)
            return
        self.record = structs.replace(record, obstacle="", kept=True)
        if self.swallows_clear or record.clears in self.typed:
            self.typed.add(record.clears)
            if self.codex:
                self.record = structs.replace(self.record, cleared=True)
            return
        self.typed.add(record.clears)
        self.clears += 1
        if self.codex:
            self.agent.clear_due = True
            self.record = structs.replace(self.record, cleared=True)
        else:
            self._new_context("clear")

    def _relaunch(self, record: RotationRecord) -> None:
        if not record.generation:
            self.record = structs.replace(record, generation=1, since=self.now)
            if not self.fails_to_start:
                self.start_anew()

    def resume(self) -> None:
        """A new client, in the context that was there."""
        self._launch()
        self.agent.begun = "resume"

    def _launch(self) -> None:
        self.agent.alive = True
        self.agent.launch += 1
        self.agent.launched_at = self.now

    def _new_context(self, begun: str) -> None:
        self.agent.context += 1
        self.agent.begun = begun
        self.agent.idle_since, self.agent.background_since = self.now, None
        self.agent.clear_due = False
        self.agent.task, self.agent.others = "", False
        self._tell_context()

    def _tell_context(self) -> None:
        """Its hooks tell of it, a moment after whatever was before."""
        self.now += MOMENT_S
        self.agent.silent, self.agent.begun_at = False, self.now

    def begin_turn(self) -> None:
        """It gets a prompt: Codex tells of its context with the first."""
        if self.agent.clear_due:
            self._new_context("clear")
        if self.agent.silent:
            self._tell_context()
        self.agent.idle_since = None

    def start_anew(self) -> None:
        """A new client, in a new context."""
        self._launch()
        self._new_context("startup")
        self.agent.silent = self.codex

    def _tell(self, key: MessageKey) -> None:
        if key not in self.messages:
            self.messages[key] = "waiting"
            self.told.append(str(key))
            if key.kind is MessageKind.RESUME and self.agent.clear_due:
                self.agent.silent = True  # what its hooks have told last is of the old context
        self.deliver()

    def deliver(self) -> None:
        """Hand over what waits and may pass, the oldest first, as anybody does who comes by."""
        for key, at in list(self.messages.items()):
            if at != "waiting" or (self.holds and key != self.passing) or self.obstacle:
                continue
            steered = key.kind is not MessageKind.RESUME
            if not self.agent.alive or (self.agent.idle_since is None and not steered):
                continue
            self._hear(key)

    def _hear(self, key: MessageKey) -> None:
        if self.deaf:
            self.messages[key] = "lost"
            return
        self.begin_turn()
        self.messages[key] = "accepted"
        self.accepted_at[key] = self.now
        self.agent.heard.append((self.agent.context, str(key)))
        if self.names and key.kind in (MessageKind.RESUME, MessageKind.CONFIRM):
            self.agent.task = "the next step"
