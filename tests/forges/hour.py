"""An hour of sessions that wait for CI on GitHub, as the forge counts it; no time passes for it."""

from __future__ import annotations

import subprocess
import time
from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import BOT, Batch
from sm.issues.look.snapshot import WHOLE_S
from sm.plugins.forges.web.ledger import read_book
from tests.forges.github import Github
from tests.forges.sides import RemoteSide
from tests.forges.state import Pull, Run

HOUR_S = 3600
POLL_S = 30
"""The interval that `ci.poll` has by default."""


class Spent(Struct, frozen=True):
    """What an hour has cost: looks, requests, those that were free, and points by the forge."""

    looks: int
    requests: int
    unchanged: int
    points: int


def add_waiting(side: RemoteSide, count: int) -> list[Run]:
    """So many issues at work, each with a comment and a pull request whose check is under way."""
    heads = _add_branches(side, count)
    for number, head in enumerate(heads):
        issue = side.state.add(f"i{number}", "Do it.", "ada")
        side.state.label(issue, ["in-progress"])
        side.state.say(issue, "ada", "Soon.")
        side.state.add(f"p{number}", "", BOT, Pull(f"fix/{number}", "main", head))
    side.admit("ada")
    return [side.state.run_of(head, "build") for head in heads]


def _add_branches(side: RemoteSide, count: int) -> list[str]:
    bare = side.hub.repository.bare
    main, who = side.hub.main(), "Ada Tester <ada@example.com> 1767322985 +0000"
    stream = "".join(
        f"commit refs/heads/fix/{number}\ncommitter {who}\ndata 4\nwork\nfrom {main}\n"
        f"M 100644 inline work-{number}.txt\ndata 5\nwork\n\n"
        for number in range(count)
    )
    command = ["git", "-C", str(bare), "fast-import", "--quiet"]
    subprocess.run(command, input=stream.encode(), check=True)
    heads = side.state.heads()
    return [heads[f"fix/{number}"] for number in range(count)]


def age(side: RemoteSide, seconds: float) -> None:
    """Let time pass on the forge."""
    ahead = side.state.clock() - time.time() + seconds
    side.state.clock = lambda: time.time() + ahead


def look_by_clock() -> list[float]:
    """When it is looked without webhooks, in seconds from the beginning of the hour."""
    return [float(at) for at in range(0, HOUR_S, POLL_S)]


def look_for_webhooks(events: Iterable[float]) -> list[float]:
    """When it is looked if a webhook tells of each event: then, and once more when it is quiet."""
    told = sorted(events)
    quiet = [
        at + POLL_S
        for at, after in zip(told, [*told[1:], HOUR_S], strict=True)
        if after - at > POLL_S
    ]
    return _with_whole_ones(sorted([*told, *quiet]))


def _with_whole_ones(looks: Iterable[float]) -> list[float]:
    """Those looks, and one whenever nothing was read anew for five minutes."""
    found, whole_at = [0.0], 0.0
    for at in (*looks, float(HOUR_S)):
        while at - whole_at > WHOLE_S:
            whole_at += WHOLE_S
            found.append(whole_at)
        if at < HOUR_S:
            found.append(at)
    return found


def spend(
    side: RemoteSide, looks: Iterable[float], ends: Iterable[tuple[float, Run]] = ()
) -> Spent:
    """Look at these times, while checks end; what the forge says that it has cost."""
    assert isinstance(side.dialect, Github)
    forge = open_forge(side.project, None, side.folder)
    since: Batch | None = None
    to_end, now, whole_at, count = deque(ends), 0.0, 0.0, 0
    age(side, POLL_S)  # what there is, was there before
    for at in looks:
        age(side, at - now)
        now = at
        while to_end and to_end[0][0] <= now:
            to_end.popleft()[1].word = "success"
        is_whole = since is None or now - whole_at >= WHOLE_S
        since = forge.observe(None if is_whole else since)
        whole_at, count = now if is_whole else whole_at, count + 1
    total = read_book(side.folder / "quota.json").by_session().values()
    return Spent(
        count,
        sum(one.requests for one in total),
        sum(one.unchanged for one in total),
        sum(side.dialect.used.values()),
    )
