"""Words of a heartbeat for the service that waits for it. Pure.

- healthchecks.io: a POST whose body is kept with it; `/fail` behind the address says that something
  failed (https://healthchecks.io/docs/http_api/, signaling_failures/ beside it).
- Uptime Kuma, a monitor of the type Push: a GET of `/api/push/TOKEN` with `status`, `msg`, `ping`
  (server/routers/api-router.js of louislam/uptime-kuma). An answer of 200 may say `"ok": false`.

Any other service gets what healthchecks.io does.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlencode

from sm.base.redact import redact
from sm.base.text import one_line

PUSH = re.compile(r"^[^?#]*/api/push/[^/?#]+")
REFUSED = re.compile(r'"ok"\s*:\s*false')
BODY_LIMIT, LINE_LIMIT, MESSAGE_LIMIT = 8000, 300, 200
"""Characters. healthchecks.io keeps 10 KB at least; a message of Uptime Kuma is in its URL."""


class Beat(NamedTuple):
    """The outcome of a tick: what failed, if anything, in these projects; how long it took."""

    failed: bool
    troubles: tuple[str, ...]
    projects: tuple[str, ...]
    took_s: float = 0.0


class BeatRequest(NamedTuple):
    """A request; `pushes`: to Uptime Kuma."""

    method: str
    url: str
    body: bytes | None = None
    pushes: bool = False


def make_call(url: str, beat: Beat) -> BeatRequest:
    """Return the request that tells it to the service at `url`."""
    if found := PUSH.match(url):
        query = {
            "status": "down" if beat.failed else "up",
            "msg": one_line(write_lines(beat).replace("\n", "; "), MESSAGE_LIMIT),
            "ping": round(beat.took_s * 1000),
        }
        return BeatRequest("GET", f"{found[0]}?{urlencode(query)}", pushes=True)
    head, mark, query_text = url.partition("?")
    where = f"{head.rstrip('/')}/fail{mark}{query_text}" if beat.failed else url
    return BeatRequest("POST", where, write_lines(beat)[:BODY_LIMIT].encode())


def write_lines(beat: Beat) -> str:
    """Return what happened, for people; the words of others without secrets."""
    if beat.troubles:
        return "\n".join(one_line(redact(line), LINE_LIMIT) for line in beat.troubles)
    return f"dev-poll: {', '.join(beat.projects) or 'no project'}, in {beat.took_s:.1f} s"


def was_refused(call: BeatRequest, said: str) -> bool:
    """Whether an answer of success says that it was refused all the same."""
    return call.pushes and bool(REFUSED.search(said))
