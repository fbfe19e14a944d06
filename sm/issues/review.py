"""Reviews a pull request: a person's review goes by an account of their own, if one is set."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.model import InlineComment, Review, ReviewState
from sm.base.errors import UsageError
from sm.sessions.project import Project


def review(
    project: Project,
    number: int,
    verdict: ReviewState,
    text: str = "",
    remarks: Iterable[InlineComment] = (),
    *,
    author: str,
    head: str = "",
    by_agent: bool = False,
) -> Review:
    """Review the commit `head` of a pull request, by default its last one.

    An agent never speaks by a person's account: `by_agent` takes that of sm.

    Raises:
        UsageError: the forge takes no verdict from the account that sm has there.
        SmError: the forge does not take it for another reason, or does not answer.

    """
    forge = project.forge if by_agent else project.reviewers_forge or project.forge
    try:
        return forge.pulls.review(number, verdict, text, remarks, author=author, head=head)
    except RefusedError as error:
        settings = project.settings.forge
        is_ours = not by_agent and settings.reviewer in (None, settings)
        if not is_ours or verdict is ReviewState.COMMENTED:
            raise
        raise UsageError(
            f"the forge takes no verdict from the account of sm ({error.said}): give it on "
            f"{settings.link_pull(number)}, or set forge.reviewer_token_file, see docs/FORGES.md"
        ) from error
