"""Table of the metrics: how each is called, what it counts, and by which labels. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from sm.base.need import NeedKind
from sm.passes.tally import PassEnd
from sm.plugins.metrics.facts import LeftRequests, ScrapeFacts, SpentTokens
from sm.views.numbers import SECONDS
from sm.views.states import ShownState

OTHER = "other"
"""Label value that all words without one of their own share."""
MOST = 100
"""Values that a label has at most if its words are not ours."""


class Bounded:
    """Gives each word of others its own value of a label, the first `most` of them.

    A word keeps its value, and all later words share `OTHER`: so no series changes its meaning.
    """

    def __init__(self, most: int = MOST) -> None:
        """Begin without any value."""
        self._most = most
        self._known: set[str] = set()

    def name(self, word: str) -> str:
        """Return the value for that word."""
        if word in self._known:
            return word
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(word)
        return word


Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels, in their order, and the number counted."""


class Measure(Struct, frozen=True):
    """A metric. If it is a counter, it never falls as long as the server lives."""

    name: str
    help: str
    labels: tuple[str, ...]
    list: Callable[[ScrapeFacts], Samples]
    counts: bool = False


def _list_parts(facts: ScrapeFacts) -> Samples:
    return (((part,), float(is_read)) for part, is_read in facts.parts.items())


def _list_sessions(facts: ScrapeFacts) -> Iterator[tuple[tuple[str, ...], float]]:
    projects = dict.fromkeys((*facts.projects, *(project for project, _ in facts.sessions)))
    for project in projects:
        for state in ShownState:
            yield (project, state), facts.sessions.get((project, state), 0)


def _list_needs(facts: ScrapeFacts) -> Samples:
    return (((kind,), facts.needs.get(kind, (0, 0.0))[0]) for kind in NeedKind)


def _list_oldest(facts: ScrapeFacts) -> Samples:
    return (((kind,), since) for kind, (_, since) in facts.needs.items() if since)


def _count_of(field: str) -> Callable[[ScrapeFacts], Samples]:
    return lambda facts: (((one.project,), getattr(one, field)) for one in facts.numbers)


def _list_times(facts: ScrapeFacts) -> Samples:
    return (
        ((one.project, turn), getattr(one, field))
        for one in facts.numbers
        for turn, field in SECONDS.items()
    )


def _heard(what: str) -> Callable[[ScrapeFacts], Samples]:
    return lambda facts: (
        ((word,), number) for (known, word), number in facts.heard.items() if known == what
    )


def _list_passes(facts: ScrapeFacts) -> Samples:
    sums = facts.passes
    return (((end,), sums.ended.get(end, 0)) for end in PassEnd) if sums else ()


def _list_requests(facts: ScrapeFacts) -> Samples:
    return (
        ((one.project, one.purpose, result), number)
        for one in facts.asked
        for result, number in one.results.items()
    )


def _of_limit(read: Callable[[LeftRequests], float]) -> Callable[[ScrapeFacts], Samples]:
    return lambda facts: (((one.project, one.bucket), read(one)) for one in facts.left)


def _of_spent(read: Callable[[SpentTokens], float | None]) -> Callable[[ScrapeFacts], Samples]:
    return lambda facts: (
        ((one.project, one.model), number)
        for one in facts.spent
        if (number := read(one)) is not None
    )


def _list_tokens(facts: ScrapeFacts) -> Samples:
    return (
        ((one.project, one.model, kind), number)
        for one in facts.spent
        for kind, number in one.tokens.items()
    )


OF_PROJECT = ("project",)
OF_MODEL = ("project", "model")
OF_LIMIT = ("project", "bucket")

MEASURES = (
    Measure(
        "sm_part_up",
        "Whether this part of the metrics could be read; without it they are missing.",
        ("part",),
        _list_parts,
    ),
    Measure(
        "sm_sessions",
        "Sessions by state; those without an issue have no project.",
        ("project", "state"),
        _list_sessions,
    ),
    Measure("sm_needs", "What waits for a person, by kind.", ("kind",), _list_needs),
    Measure(
        "sm_need_oldest_timestamp_seconds",
        "Since when the oldest need of a kind waits.",
        ("kind",),
        _list_oldest,
    ),
    Measure(
        "sm_messages_waiting",
        "Messages that wait for their agents.",
        (),
        lambda facts: [((), facts.queued)],
    ),
    Measure(
        "sm_messages_sent",
        "Messages of people and agents, by how far each had come at once.",
        ("status",),
        _heard("message"),
        counts=True,
    ),
    Measure(
        "sm_messages_settled",
        "Messages of people and agents, by what became of each in the end.",
        ("outcome",),
        _heard("outcome"),
        counts=True,
    ),
    Measure(
        "sm_issues_merged",
        "Issues whose pull request was merged.",
        OF_PROJECT,
        _count_of("merged"),
        counts=True,
    ),
    Measure(
        "sm_agent_restarts",
        "Agents that were started anew, after a crash or by hand.",
        OF_PROJECT,
        _count_of("restarts"),
        counts=True,
    ),
    Measure(
        "sm_ci_attempts",
        "Failed runs of CI that an agent was told of.",
        OF_PROJECT,
        _count_of("ci_attempts"),
        counts=True,
    ),
    Measure(
        "sm_review_rounds",
        "Reviews with changes that an agent was told of.",
        OF_PROJECT,
        _count_of("rounds"),
        counts=True,
    ),
    Measure(
        "sm_issue_time_seconds",
        "Time of issues, by whose turn it was.",
        ("project", "turn"),
        _list_times,
        counts=True,
    ),
    Measure(
        "sm_context_rotations",
        "Contexts that were to be replaced, by what came of it.",
        ("result",),
        _heard("rotation"),
        counts=True,
    ),
    Measure(
        "sm_context_compactions",
        "Contexts that an agent CLI has summed up, by itself or as asked.",
        ("trigger",),
        _heard("compaction"),
        counts=True,
    ),
    Measure(
        "sm_problems",
        "Problems that the journal tells of.",
        (),
        lambda facts: [((), facts.heard.get(("problem", ""), 0))],
        counts=True,
    ),
    Measure(
        "sm_passes",
        "Passes over sessions, by how they ended.",
        ("end",),
        _list_passes,
        counts=True,
    ),
    Measure(
        "sm_poll_last_timestamp_seconds",
        "When the last tick of dev-poll was completed.",
        OF_PROJECT,
        lambda facts: (((one.project,), one.at) for one in facts.ticks),
    ),
    Measure(
        "sm_poll_last_duration_seconds",
        "How long it took.",
        OF_PROJECT,
        lambda facts: (((one.project,), one.took_s) for one in facts.ticks),
    ),
    Measure(
        "sm_poll_last_failed",
        "Whether something in it went wrong.",
        OF_PROJECT,
        lambda facts: (((one.project,), float(one.failed)) for one in facts.ticks),
    ),
    Measure(
        "sm_forge_requests",
        "Requests to a forge elsewhere, by what came of them.",
        ("project", "purpose", "result"),
        _list_requests,
        counts=True,
    ),
    Measure(
        "sm_forge_points",
        "What requests have taken from the limits of a forge.",
        ("project", "purpose"),
        lambda facts: (((one.project, one.purpose), one.points) for one in facts.asked),
        counts=True,
    ),
    Measure(
        "sm_forge_limit",
        "How many points a forge allows in a period.",
        OF_LIMIT,
        _of_limit(lambda one: one.limit),
    ),
    Measure(
        "sm_forge_limit_left",
        "How many of them are left.",
        OF_LIMIT,
        _of_limit(lambda one: one.left),
    ),
    Measure(
        "sm_forge_limit_reset_timestamp_seconds",
        "When the period ends.",
        OF_LIMIT,
        _of_limit(lambda one: one.resets_at),
    ),
    Measure(
        "sm_forge_blocked_until_timestamp_seconds",
        "Until when a forge takes no requests, 0 if it takes them.",
        OF_PROJECT,
        lambda facts: (((project,), until) for project, until in facts.blocked.items()),
    ),
    Measure(
        "sm_model_requests",
        "Requests to a model that are on record.",
        OF_MODEL,
        _of_spent(lambda one: one.requests),
        counts=True,
    ),
    Measure(
        "sm_model_requests_unpriced",
        "Those of them without a known price, which are not in the cost.",
        OF_MODEL,
        _of_spent(lambda one: one.unpriced),
    ),
    Measure(
        "sm_model_requests_incomplete",
        "Requests that have used more than is counted, or nobody knows what.",
        OF_MODEL,
        _of_spent(lambda one: one.incomplete),
    ),
    Measure(
        "sm_tokens",
        "Tokens by kind; no token is in two kinds.",
        ("project", "model", "kind"),
        _list_tokens,
        counts=True,
    ),
    Measure(
        "sm_cost_dollars",
        "Cost at list prices; missing where no price is known.",
        OF_MODEL,
        _of_spent(lambda one: one.dollars),
        counts=True,
    ),
    Measure(
        "sm_client_window_used_ratio",
        "How much of a usage window of an agent CLI's account is used.",
        ("account", "window"),
        lambda facts: (((one.account, one.window), one.share) for one in facts.windows),
    ),
    Measure(
        "sm_client_window_reset_timestamp_seconds",
        "When that window begins anew.",
        ("account", "window"),
        lambda facts: (
            ((one.account, one.window), one.resets_at)
            for one in facts.windows
            if one.resets_at is not None
        ),
    ),
)
"""All metrics but the histogram."""

TOOK = "sm_pass_duration_seconds"
TOOK_HELP = "How long passes over sessions took."
