"""A small model of the world around one session, to walk the reaction matrix through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from sm.adapters.forge.model import CheckState, Hold, PullState, ReviewState
from sm.base.phase import Phase
from sm.issues.act.pending import FINAL
from sm.issues.rules.decide import Decision, decide
from sm.issues.rules.decision_input import Life, Policy
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME, INTERRUPTING, OVERTAKING
from sm.issues.rules.rows import Row
from sm.sessions.failure import Failure, FailureCause
from sm.sessions.history import BEGUN, UNASKED, Receipt, StepVerb, fold
from sm.sessions.plan import Plan, PlannedStep, find_next_step
from sm.sessions.signs import Signs
from tests.policy import POLICY

START_AT = 1_000_000.0
REACTIONS_AT_ONCE = 8
"""More than so many reactions to one moment can only be a loop."""

NEVER_REFUSED = frozenset({StepVerb.KILL, StepVerb.FORGET})


@dataclass
class World:
    """The truth about one session; `react` is what the reactor does with it."""

    policy: Policy = POLICY
    has_ci: bool = True
    hooks: bool = False
    doing: str = "busy"
    doing_at: float = START_AT
    active_at: float = START_AT
    failure: Failure | None = None
    reminded: int = 0
    blocked_message: bool = False
    now: float = START_AT
    alive: bool = True
    phase: Phase = Phase.NONE
    lost: bool = False
    unreadable: bool = False
    writes: int = 0
    written_at: float = 0.0
    idle_since: float | None = None
    issue_open: bool = True
    blocked: bool = False
    commits: int = 0
    pushed: int = 0
    pull: PullState | None = None
    check: CheckState = CheckState.PENDING
    check_at: float = START_AT
    conflicts: bool = False
    hold: Hold = Hold.NONE
    """What the forge does by itself; one with a queue merges nothing at once."""
    review: ReviewState | None = None
    reviews: int = 0
    replies: list[float] = field(default_factory=list)
    heard: int = 0
    restarts: int = 0
    first: bool = False
    """Whether the session that is asked before people is there."""
    refused: set[StepVerb] = field(default_factory=set)
    killed_before: StepVerb | None = None
    plan: Plan | None = None
    receipts: list[Receipt] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    forgotten: bool = False

    def __post_init__(self) -> None:
        start = Receipt(self.now, "start", "start", verb=StepVerb.START)
        self.receipts += [start, structs.replace(start, verb=None)]

    def tell(self, what: str) -> None:
        """Add a line to the story that a failure prints."""
        self.story.append(f"{self.now - START_AT:>12,.0f} s  {what}")

    def facts(self) -> Facts:
        """What sm/issues/look/observe.py would make of it."""
        history = fold(self.receipts)
        readable = not self.lost and not self.unreadable
        phase = self.phase if readable else Phase.NONE
        facts = Facts(
            now=self.now,
            policy=self.policy,
            history=history,
            session=Life.ALIVE if self.alive else Life.GONE,
            phase=phase,
            write=f"w{self.writes}" if phase is not Phase.NONE else "",
            written_at=self.written_at if phase is not Phase.NONE else 0.0,
            phase_lost=self.lost,
            signs=self.signs() if self.hooks else None,
            issue_open=self.issue_open,
            blocked=self.blocked,
            pushed=self.pushed > 0,
            unpushed=self.commits > self.pushed,
            pull=self.pull,
            head=f"c{self.pushed}",
            conflicts=self.conflicts and self.pull is not None,
            check=self.check if self.pull else CheckState.NONE,
            check_at=self.check_at,
            hold=self.hold if self.pull else Hold.NONE,
            review=self.review if self.pull else None,
            review_id=f"r{self.reviews}" if self.review and self.pull else "",
        )
        marked = self.idle_since is not None and self.idle_since > facts.addressed_at
        asked = facts.escalation
        answers = [at for at in self.replies if at > asked.since] if asked else []
        return structs.replace(
            facts,
            first_there=self.first and facts.open and phase is Phase.ESCALATE,
            idle_since=self.idle_since if marked else None,
            reply=f"a{answers[-1]}" if answers else "",
        )

    def signs(self) -> Signs:
        """What sm/sessions/turn.py would make of the agent's hooks."""
        return Signs(
            doing=self.doing,
            active_at=self.active_at,
            ended_at=self.doing_at if self.doing == "idle" else None,
            dialog_at=self.doing_at if self.doing == "dialog" else None,
            failure=self.failure if self.doing == "limited" else None,
        )

    def turns(self, doing: str) -> None:
        """The agent's hooks tell of something new."""
        self.now += 0.5
        self.doing, self.doing_at, self.active_at = doing, self.now, self.now
        self.idle_since = self.now if doing == "idle" else None
        if doing in ("idle", "waiting"):
            self.failure = None

    def fails(self, fault: FailureCause, wait_s: float) -> None:
        """The agent's turn fails, and the limit is said to be over in `wait_s`."""
        self.turns("limited")
        since, count = (self.failure.since, self.failure.count) if self.failure else (self.now, 0)
        self.failure = Failure(self.now, fault, self.now + wait_s, since, count + 1)

    def react(self) -> Decision:
        """Finish the plan under way, then decide and act until there is nothing left to do."""
        if self.unreadable and "phase-file" not in self.facts().history.troubles:
            self.receipts.append(Receipt(self.now, "phase-file", "phase-file", trouble="a link"))
        if self.plan and self._is_worth_it(self.plan):
            self._carry_out(self.plan)
        for _ in range(REACTIONS_AT_ONCE):
            decision = decide(self.facts())
            if self.forgotten or self.plan or not decision.acts:
                return decision
            assert decision.row is not None
            self._begin(decision.row, decision.key)
        raise AssertionError(f"no rest after {REACTIONS_AT_ONCE} reactions at one moment")

    def _is_worth_it(self, plan: Plan) -> bool:
        """Drop a plan that has lost its sense, as the reactor does."""
        row, facts = BY_NAME[plan.row], self.facts()
        step = find_next_step(plan, self.receipts)
        if step == len(plan.steps):
            return True
        over = row.passing and not (row.applies(facts) and row.key(facts) == plan.key)
        verb = plan.steps[step].verb
        stopped = verb in FINAL and not facts.merged and decide(facts, OVERTAKING).acts
        over = over or stopped
        if self.blocked_message and verb is StepVerb.INJECT:
            over = over or decide(facts, (*OVERTAKING, *INTERRUPTING)).acts
        if over:
            self.tell(f"{plan.row} has lost its sense")
            self.plan = None
        self.blocked_message = False
        return not over

    def _begin(self, row: Row, key: str) -> None:
        steps = tuple(PlannedStep(step.verb, step.text) for step in row.steps)
        facts = self.facts()
        tells = any(step.verb is StepVerb.INJECT for step in row.steps)
        assert not tells or row.name == "reply" or not facts.unreachable, (
            f"{row.name} to an unreachable agent"
        )
        for text in (step.text or str(step.verb) for step in row.steps):
            assert text not in TRUTHS or TRUTHS[text](self), f"'{text}' is not true"
        about = row.about(facts)
        plan = Plan(key, row.name, about, self.now, steps, row.counts, row.provisional)
        self.plan = plan.about_run(facts.run, again=facts.rerun)
        self.tell(f"sm: {row.name} ({', '.join(map(str, row.steps))})")
        self._carry_out(self.plan)

    def _carry_out(self, plan: Plan) -> None:
        for number in range(find_next_step(plan, self.receipts), len(plan.steps)):
            verb = plan.steps[number].verb
            if verb is self.killed_before:
                self.killed_before = None
                self.tell(f"the reactor is killed before '{verb}'")
                return
            if verb is StepVerb.INJECT and not self.alive:
                self.tell("nobody is there to hear it: the plan is dropped")
                self.plan = None
                return
            if verb is StepVerb.INJECT and self.doing == "dialog":
                self.tell("a dialog is open: the message waits")
                self.blocked_message = True
                return
            refused = verb in self.refused and verb not in NEVER_REFUSED
            if refused:
                self.tell(f"'{verb}' is refused for good")
            else:
                self._effect(verb, plan.steps[number].name)
                if verb in (StepVerb.INJECT, StepVerb.RECOVER):
                    self._hears(plan.steps[number].name)
            # A restart that fails counts as one, and is no trouble: the next crash is seen to.
            self.restarts += verb is StepVerb.RECOVER
            self._note(plan, number, "refused" if refused and verb is not StepVerb.RECOVER else "")
            if self.forgotten:
                return
        self._note(plan, len(plan.steps), "")
        self.done[plan.key] += 1
        self.plan = None

    def _note(self, plan: Plan, step: int, trouble: str) -> None:
        begins = (
            step < len(plan.steps) and plan.steps[step].verb is StepVerb.RERUN_CI and not trouble
        )
        receipt = plan.receipt(step, trouble=trouble, detail=BEGUN if begins else "")
        if receipt.verb is StepVerb.CONSULT:
            receipt = structs.replace(receipt, detail="gardener" if self.first else UNASKED)
        self.receipts.append(structs.replace(receipt, at=self.now))

    def _effect(self, verb: StepVerb, text: str) -> None:
        match verb:
            case StepVerb.INJECT if text == "review-changes":
                self.heard = self.reviews
            case StepVerb.CREATE_PHASE:
                self._create_phase()
            case StepVerb.OPEN_PULL | StepVerb.RERUN_CI:
                self.pull = PullState.OPEN
                self.start_check()
            case StepVerb.MERGE:
                self.pull = PullState.MERGED
            case StepVerb.LABEL_BLOCKED:
                self.blocked = True
            case StepVerb.CLOSE_ISSUE:
                self.issue_open = False
            case StepVerb.KILL:
                self.alive = False
            case StepVerb.RECOVER:
                assert not self.alive, "a second agent was started beside the first"
                self.alive = True
                self._create_phase()
            case StepVerb.FORGET:
                assert not self.alive, "an agent was left behind"
                self.forgotten = True

    def _hears(self, text: str) -> None:
        if text == "protocol-reminder":
            self.reminded += 1
        elif text != "resume":
            self.reminded = 0
        self.doing, self.doing_at, self.idle_since = "busy", self.now, None

    def _create_phase(self) -> None:
        if self.lost:
            self.phase, self.lost = Phase.NONE, False

    def start_check(self) -> None:
        """What the forge does with a new head."""
        self.check = CheckState.PENDING if self.has_ci else CheckState.NONE
        self.check_at = self.now

    def write(self, phase: Phase) -> None:
        """The agent writes its phase file."""
        self.phase, self.writes, self.written_at = phase, self.writes + 1, self.now
        self.lost, self.restarts = False, 0
        self.doing, self.active_at, self.failure = "busy", self.now, None

    def push(self) -> None:
        """The agent pushes all that it has committed."""
        self.pushed = self.commits
        if self.pull is PullState.OPEN:
            self.start_check()
            if self.review is ReviewState.APPROVED:
                self.review = None


def _mergeable(w: World) -> bool:
    green = w.pull is PullState.OPEN and w.check in (CheckState.SUCCESS, CheckState.NONE)
    agreed = w.review is ReviewState.APPROVED or not (w.review or w.policy.review_required)
    return green and agreed and w.hold is Hold.NONE


def _waited_for(w: World) -> bool:
    history = fold(w.receipts)
    return w.phase is Phase.NONE or w.lost or w.unreadable or f"w{w.writes}" in history.answered


TRUTHS: dict[str, Callable[[World], bool]] = {
    "first": lambda w: w.first and w.phase is Phase.ESCALATE,
    "escalate": lambda w: not w.facts().asks_first,
    "ci-passed": lambda w: w.pull is PullState.OPEN and w.check is CheckState.SUCCESS,
    "ci-none": lambda w: w.pull is PullState.OPEN and not w.has_ci,
    "ci-broken": lambda w: w.pull is PullState.OPEN and w.check is CheckState.BROKEN,
    "ci-failed": lambda w: w.pull is PullState.OPEN and w.check is CheckState.FAILURE,
    "review-changes": lambda w: w.review is ReviewState.CHANGES_REQUESTED and w.reviews > w.heard,
    "review-exhausted": lambda w: w.review is ReviewState.CHANGES_REQUESTED and w.reviews > w.heard,
    "approved": _mergeable,
    "merge-reminder": _mergeable,
    str(StepVerb.MERGE): _mergeable,
    "not-merged": lambda w: w.pull is not PullState.MERGED,
    "dialog": lambda w: w.doing == "dialog" and w.now >= w.doing_at + 5,
    "turn-failed": lambda w: w.doing == "limited",
    "parked": lambda w: w.failure is not None and w.now < w.failure.until,
    "resume": lambda w: w.failure is not None and w.now >= w.failure.until,
    "protocol-reminder": lambda w: w.doing == "idle" and w.reminded < 2 and _waited_for(w),
    "nothing-pushed": lambda w: w.commits == 0 or w.commits > w.pushed,
}
"""What must be so when it is said. A plan finished late may be overtaken by events."""
