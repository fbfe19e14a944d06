"""Effect of webhooks on looks at a forge: they start some, and make others rarer.

A webhook is a wake-up and no more: what is true is read from the forge. While webhooks arrive, the
only looks without one are those that read everything again (`snapshot.WHOLE_S`). So a lost webhook
costs five minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sm.adapters.forge.model import CheckState, PullRequest, PullState
from sm.config.schema import ProjectSettings
from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import ProjectDir

TRUST_S = 900.0
"""Seconds after the last webhook for which others are believed to arrive."""
COMMITS = 200
"""Greatest number of commits that are kept whose checks a webhook has told about: the last ones."""


class HeardWebhooks(Struct, frozen=True):
    """Record of webhooks: the last one came `at` (seconds since 1970), with this `event`.

    The last one that mattered arrived at `woke_at`. `commits` are those about whose checks there
    were webhooks, the latest last.
    """

    at: float = 0.0
    event: str = ""
    woke_at: float = 0.0
    commits: tuple[str, ...] = ()


def read_heard_webhooks(directory: ProjectDir) -> HeardWebhooks:
    """Return what has arrived for the project; an empty record if that is not known."""
    return read_rebuildable(directory.webhooks, HeardWebhooks) or HeardWebhooks()


def note_webhook(
    directory: ProjectDir, event: str, *, wakes: bool = False, commits: Iterable[str] = ()
) -> None:
    """Note that a webhook has arrived; with `wakes` it is one that matters."""
    before, now = read_heard_webhooks(directory), time.time()
    known = dict.fromkeys(before.commits)
    for commit in commits:
        known.pop(commit, None)
        known[commit] = None
    woke_at = now if wakes else before.woke_at
    write_json(directory.webhooks, HeardWebhooks(now, event, woke_at, tuple(known)[-COMMITS:]))


def can_wait(
    settings: ProjectSettings,
    heard: HeardWebhooks,
    taken_at: float,
    pulls: Iterable[PullRequest],
    now: float,
) -> bool:
    """Whether a look taken at `taken_at`, which saw `pulls`, is enough until a webhook arrives.

    It is not if no webhook has arrived for a while. It is not if it was taken right after the last
    one: a forge may show a change some seconds after it has told of it, so there is one more look
    after the usual interval. And it is not while CI is awaited on a commit without any webhook: the
    program that checks it may not be among the events that the forge delivers.
    """
    if not 0 <= now - heard.woke_at < TRUST_S:
        return False
    if taken_at < heard.woke_at + settings.ci.poll_s:
        return False
    return set(_list_awaited(settings, pulls)) <= set(heard.commits)


def _list_awaited(settings: ProjectSettings, pulls: Iterable[PullRequest]) -> Iterator[str]:
    """The commits of our sessions whose checks are waited for."""
    open_states = {CheckState.PENDING, *([CheckState.NONE] if settings.forge.has_ci else [])}
    for pull in pulls:
        is_ours = pull.branch.startswith(f"{settings.branch_prefix}/")
        if is_ours and pull.state is PullState.OPEN and pull.check.state in open_states:
            yield pull.head
