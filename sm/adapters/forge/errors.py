"""Errors of a forge that refuses, or does not answer, each a class for a caller to act on."""

from __future__ import annotations

from sm.base.errors import SmError, TemporaryError, UsageError


class NotFoundError(UsageError):
    """There is no such issue, pull request, branch or commit."""


class NothingToMergeError(SmError):
    """The branch has no commits that its base lacks."""


class MergeRefusedError(SmError):
    """The pull request cannot be merged as it is; the subclasses say why."""


class PullClosedError(MergeRefusedError):
    """The pull request was closed without being merged."""


class HeadMovedError(MergeRefusedError):
    """The branch is at another commit than the one that was to be merged, or was looked at.

    `news` says what has come since, such as `1 new commit`; '' if nobody has counted.
    """

    def __init__(self, message: str, news: str = "") -> None:
        super().__init__(message)
        self.news = news


class NotApprovedError(MergeRefusedError):
    """No reviewer has approved this commit, or one still wants changes."""


class ChecksNotPassedError(MergeRefusedError):
    """CI has failed on this commit."""


class ConflictError(MergeRefusedError):
    """The branch and its base change the same lines."""


class BehindError(MergeRefusedError):
    """The forge merges only what has all commits of the base, and it lacks some."""


class AtWorkError(TemporaryError):
    """CI is at work on the commit, or has not begun."""


class QueueUnknownError(TemporaryError):
    """The forge does not say whether the base has a merge queue, which must not be passed by."""


class BaseMovedError(TemporaryError):
    """Other branches are merged into the base in this moment, or were: merge again."""


class UnreachableError(TemporaryError):
    """The forge did not answer, or only with an error of its own, as often as it was asked."""


class UnknownOutcomeError(UnreachableError):
    """No answer to a write that must not be repeated blindly: it may have been done."""


class RefusedError(SmError):
    """The forge refuses the request for good; `status` is HTTP's, `said` its own words."""

    def __init__(self, message: str, status: int, said: str) -> None:
        super().__init__(message)
        self.status = status
        self.said = said
