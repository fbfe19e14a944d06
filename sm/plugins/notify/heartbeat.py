"""The heartbeat: `notify.heartbeat_url` is called after each completed tick of dev-poll.

Somebody else then notices that it stops, also when this machine does. It is called in a process of
its own (`sm.issues.ticks`); a call that fails is not repeated, as the next tick makes another.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.base.errors import SmError
from sm.issues.ticks import Tick
from sm.plugins.notify.address import hide
from sm.plugins.notify.beat import Beat, BeatRequest, make_call, was_refused
from sm.plugins.notify.outbox import Post
from sm.store import events, journal
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import Root

if TYPE_CHECKING:
    import httpx2

CONNECT_S, ANSWER_S = 5.0, 10.0
"""A tick comes each minute: a service that is slower is called by the next one."""
BODY_LIMIT = 4096


class Beaten(Struct, frozen=True, omit_defaults=True):
    """The outcome of the last heartbeat.

    It was taken last at `taken_at`; `since` is when the first of those was sent that were not taken
    since then, and `reason` why the last one was not. 0 and '': all is well.
    """

    taken_at: float = 0.0
    since: float = 0.0
    reason: str = ""


def beat(root: Root, tick: Tick, addresses: Mapping[str, tuple[str, ...]]) -> None:
    """Call each address, with the outcome of the projects that it is about."""
    reasons = [call(_word(url, names, tick)) for url, names in addresses.items()]
    keep(root, next(filter(None, reasons), ""))


def _word(url: str, names: tuple[str, ...], tick: Tick) -> BeatRequest:
    mine = tick.narrow(names)
    took_s = sum(one.took_s for one in mine.projects.values())
    return make_call(url, Beat(mine.failed, mine.troubles, names, took_s))


def call(made: BeatRequest) -> str:
    """Call an address; return why the heartbeat was not taken, '' if it was."""
    import httpx2

    try:
        with (
            httpx2.Client(timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S)) as client,
            client.stream(
                made.method,
                made.url,
                content=made.body,
                headers={"User-Agent": "sm-orchestrator"},
            ) as answer,
        ):
            said = _read_some(answer)
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        return hide(f"{type(error).__name__}: {error}", made.url)
    if status >= 300:
        return f"the answer was {status}"
    return hide(said, made.url) if was_refused(made, said) else ""


def _read_some(answer: httpx2.Response) -> str:
    """The beginning of what was answered."""
    found = b""
    for part in answer.iter_bytes(BODY_LIMIT):
        found += part
        if len(found) >= BODY_LIMIT:
            break
    return found[:BODY_LIMIT].decode("utf-8", "replace")


def keep(root: Root, reason: str) -> None:
    """Note what became of it; in the journal once an hour, if it was not taken."""
    now = time.time()
    known = read_beaten(root)
    if reason:
        told = Beaten(known.taken_at, known.since or now, reason)
        with contextlib.suppress(SmError):
            problem = events.Problem(text=f"notify.heartbeat_url: {reason}")
            journal.record_once(root.journal, problem)
    else:
        told = Beaten(now)
    ensure_private_dir(Post(root).path)
    write_json(Post(root).heartbeat, told)


def read_beaten(root: Root) -> Beaten:
    """Return the outcome of the last heartbeat; an empty one if none was sent."""
    return read_rebuildable(Post(root).heartbeat, Beaten) or Beaten()
