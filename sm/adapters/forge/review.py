"""Verdict of a pull request's reviewers. Only people who are trusted have a say."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.model import Review, ReviewState
from sm.adapters.forge.trust import Trust


def find_last_verdict(reviews: Iterable[Review]) -> Review | None:
    """Find the newest review that is more than a comment, by anyone and of any commit."""
    said = (one for one in reviews if one.state is not ReviewState.COMMENTED)
    return max(said, key=lambda one: (one.at, one.id), default=None)


def verdict(reviews: Iterable[Review], head: str, trust: Trust) -> Review | None:
    """Find the review that decides: a standing request for changes, else an approval of `head`.

    The latest review of each reviewer that is more than a comment counts. An approval of an older
    commit says nothing about `head`; a request for changes stands until its author takes it back.
    """
    latest: dict[str, Review] = {}
    for review in sorted(reviews, key=lambda r: r.at):
        if review.state is not ReviewState.COMMENTED and trust.includes(review.author):
            latest[review.author] = review
    asking = [r for r in latest.values() if r.state is ReviewState.CHANGES_REQUESTED]
    approving = [r for r in latest.values() if r.state is ReviewState.APPROVED and r.head == head]
    return max(asking or approving, key=lambda r: r.at, default=None)
