"""`sm review`: say what you think of a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from sm.acts.permission import find_author_name, is_agent, leave_to_others
from sm.base.errors import UsageError
from sm.base.nearest import advise
from sm.base.output import say
from sm.cli.forges import author_option, head_option, number_argument
from sm.cli.options import project_option
from sm.sessions.project import Project

if TYPE_CHECKING:
    from sm.adapters.forge.model import InlineComment

NAMED = 5
"""Number of files that an error lists."""
REMARK = re.compile(r"(?P<path>.+?):(?P<line>[1-9]\d{0,8}):(?P<text>.*\S.*)", re.DOTALL)


@click.command()
@number_argument
@click.option("--approve", "verdict", flag_value="approved", help="It may be merged.")
@click.option(
    "--request-changes",
    "verdict",
    flag_value="changes-requested",
    help="The agent is to change something first.",
)
@click.option("-m", "--message", metavar="TEXT", default="", help="What you say of the whole.")
@click.option(
    "--comment",
    "remarks",
    metavar="FILE:LINE:TEXT",
    multiple=True,
    help="A remark on one line; may be given several times.",
)
@head_option
@author_option
@project_option
def command(
    project: Project,
    number: int,
    verdict: str | None,
    message: str,
    remarks: tuple[str, ...],
    head: str,
    author: str | None,
) -> None:
    """Review pull request NUMBER: approve it, request changes, or only comment.

    A remark is on a line of a file that the pull request changes.

    The verdict is of the last commit, and is named with it. With --head it is refused if the branch
    is not at that commit any more: 'sm pr diff' names the one that it shows. When commits are
    pushed after it, an approval has to be given again; a request for changes stands until you
    approve. If merge.by is 'sm', an approval merges what nothing else is missing of, and says so.
    If somebody else has just given a verdict, you are told who, and yours is not sent.

    On a forge elsewhere you review by your own account, if forge.reviewer_token_file or the like
    is set: the account of sm opens the pull requests, so most forges take no verdict from it.

    An agent may not review the pull request of its own issue.
    """
    from sm.adapters.forge.model import ReviewState
    from sm.issues.review import merges_when_approved, tell_verdict
    from sm.issues.review import review as review_pull

    leave_to_others(project, "review it", pull=number)
    if not message.strip() and not remarks and verdict != "approved":
        raise UsageError("the review says nothing: add --approve, or a text with -m or --comment")
    comments = [read_remark(remark) for remark in remarks]
    if comments:
        _check_files(comments, project.forge.pulls.list_files(number, head))
    merges = verdict == "approved" and merges_when_approved(project, number)
    review = review_pull(
        project,
        number,
        ReviewState(verdict) if verdict else ReviewState.COMMENTED,
        message,
        comments,
        author=find_author_name(project, author),
        head=head,
        by_agent=is_agent(project.root),
    )
    say(tell_verdict(review, number, merges=merges))


def _check_files(comments: list[InlineComment], changed: list[str]) -> None:
    for comment in comments:
        if comment.path not in changed:
            meant = advise(comment.path, changed, f"it changes {_name_some(changed)}")
            raise UsageError(f"the pull request does not change '{comment.path}': {meant}")


def _name_some(files: list[str]) -> str:
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return ", ".join(f"'{name}'" for name in files[:NAMED]) + more or "no file"


def read_remark(text: str) -> InlineComment:
    """Parse the remark in `FILE:LINE:TEXT`."""
    from sm.adapters.forge.model import InlineComment

    found = REMARK.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text[:80]}' is no remark on a line: write FILE:LINE:TEXT")
    return InlineComment(found["path"], int(found["line"]), found["text"])
