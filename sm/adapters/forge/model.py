"""Issues, pull requests, reviews and checks, in shapes that all forges share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sm.adapters.forge.prose import list_prose
from sm.base.issue_id import KEY, NUMBER, IssueId

DEPENDS_ON = re.compile(
    r"^[^\S\n]*+[-*]?[^\S\n]*+depends on:?\s++(.*)$", re.IGNORECASE | re.MULTILINE
)
"""Words that open a line of dependencies. The space before them is on their line: blank lines are
not gone through once for each."""
WITHIN_A_SENTENCE = re.compile(
    r"(?<!longer )(?<!not )\bdepends on:? (?:issues? )?(#[0-9]+(?:(?:,? and |, )#[0-9]+){0,200})",
    re.IGNORECASE,
)
"""Dependencies in mid-line, where only the numbers that follow at once are meant."""
REFERENCE = re.compile(r"(?<![\w/])#([0-9]{1,9})(?![0-9])")
"""Reference to an issue here: `octo/lib#1` is one of another repository."""
BEYOND_NUMBERS = re.compile(r"(?<![\w/])#[0-9]{10,}+")
OF_TRACKER = re.compile(rf"(?<![\w/-]){KEY}-{NUMBER}(?![\w-])")
"""Reference to an issue of a tracker, such as `ENG-123`."""
TRACKED_WITHIN = re.compile(
    rf"(?<!longer )(?<!not )\b[Dd]epends on:? (?:issues? )?"
    rf"({KEY}-{NUMBER}(?:(?:,? and |, ){KEY}-{NUMBER}){{0,200}})(?![\w-])"
)
"""Dependencies in mid-line, as `WITHIN_A_SENTENCE`, in the words of a tracker."""
ASIDE = re.compile(r"\([^()]*+\)")
"""Aside, which says more of what was named before it, such as which epic that is part of."""

if TYPE_CHECKING:
    OwnId = Any  # a forge knows that its own are numbers, a tracker that its own are texts
else:
    OwnId = IssueId

BOT = "sm"
"""Author of what sm itself writes on a forge."""


class IssueState(StrEnum):
    """State of an issue: whether it is still to be worked on."""

    OPEN = "open"
    CLOSED = "closed"


class Sign(StrEnum):
    """Sign that a forge writes before the number of a pull request."""

    SHARED = "#"
    OWN = "!"
    """The numbers of pull requests are not those of issues."""


class PullState(StrEnum):
    """State of a pull request."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class ReviewState(StrEnum):
    """Verdict of a reviewer."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes-requested"
    COMMENTED = "commented"


class CheckState(StrEnum):
    """State of CI at a commit; NONE where no CI is configured.

    BROKEN: CI itself has failed, so nothing is known of the commit.
    """

    NONE = "none"
    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    BROKEN = "broken"


class Hold(StrEnum):
    """Reason why the forge itself does not merge a pull request, as far as it tells.

    BEHIND: its branch must have the base's last commit first. QUEUED: it is in a merge queue.
    """

    NONE = ""
    BLOCKED = "blocked"
    BEHIND = "behind"
    QUEUED = "queued"


class Comment(Struct, frozen=True):
    """Remark on an issue or a pull request. `marker` identifies one that sm wrote itself.

    `editor` has edited it last, '' if nobody has, or the forge does not say.
    """

    author: str
    at: float
    body: str
    marker: str = ""
    editor: str = ""


class Issue(Struct, frozen=True):
    """Issue, or something to do. `at` is when it was filed, in seconds since the epoch.

    On a tracker `number` is a text, such as `ENG-123`. `text_hash` identifies title and text if
    they are left out, '' if they are not. `waits` says what is open and it depends on by the
    forge's own means, '' for nothing.
    """

    number: OwnId
    title: str
    state: IssueState
    author: str
    at: float
    labels: tuple[str, ...] = ()
    body: str = ""
    comments: tuple[Comment, ...] = ()
    assignees: tuple[str, ...] = ()
    text_hash: str = ""
    waits: str = ""

    def dependencies(self) -> tuple[IssueId, ...]:
        """List the issues named after the words `Depends on`, each once."""
        if isinstance(self.number, str):
            said = self._needs()
            return tuple(dict.fromkeys(one for line in said for one in OF_TRACKER.findall(line)))
        numbers = (int(number) for said in self._needs() for number in REFERENCE.findall(said))
        return tuple(dict.fromkeys(numbers))

    def beyond_numbers(self) -> str:
        """Return the words that name no possible issue, in place of a number; '' for none.

        Passed over, they would not be waited for: such an issue is not to be used at all.
        """
        found = map(BEYOND_NUMBERS.search, self._needs())
        return next((one[0] for one in found if one), "")

    def _needs(self) -> list[str]:
        """Return its words on dependencies: the rest of such a line, or numbers in a sentence."""
        if "epends on" not in self.body.lower():
            return []
        said = "\n".join(list_prose(self.body))
        is_tracked = isinstance(self.number, str)
        named = (OF_TRACKER,) if is_tracked else (REFERENCE, BEYOND_NUMBERS)
        lines = [_without_asides(line, named) for line in DEPENDS_ON.findall(said)]
        return [*lines, *(TRACKED_WITHIN if is_tracked else WITHIN_A_SENTENCE).findall(said)]


def _without_asides(line: str, named: Iterable[re.Pattern[str]]) -> str:
    """Drop what is in parentheses from the line, unless the issues are only named there."""
    outside = ASIDE.sub(" ", line)
    return outside if any(one.search(outside) for one in named) else line


def hash_text(title: str, body: str) -> str:
    """Hash a title and a text, as a SHA-256 in hexadecimal digits."""
    return hashlib.sha256(f"{title}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()


class Saved(Struct, frozen=True):
    """Time at which something was saved, in seconds since the epoch, and `by` whom.

    '' where the forge does not say who; then `at` says nothing either.
    """

    at: float
    by: str = ""


class SourcedText(Struct, frozen=True):
    """Title and text of an issue at one moment, and who has saved each of them last.

    A text that was never edited was saved by the author. `labelled` has when and by whom each label
    was set last, as far as the forge says.
    """

    title: str
    body: str
    author: str
    title_saved: Saved
    body_saved: Saved
    labelled: dict[str, Saved] = {}


class InlineComment(Struct, frozen=True):
    """Remark of a reviewer on one line of one file.

    `hunk` is the part of the diff that ends with that line, '' if it is not known. `outdated`: the
    code has changed since. `id` is the forge's, '' if it has none. `editor` is as in `Comment`.
    """

    path: str
    line: int
    body: str
    hunk: str = ""
    outdated: bool = False
    id: str = ""
    editor: str = ""


class Review(Struct, frozen=True):
    """Review of one commit (`head`, a full SHA).

    `editor` has edited its text last, as in `Comment`. `revision` is another word once one of its
    texts was edited, also if they are left out; '' if that is not known. `official`: the forge
    counts it among the approvals that a branch asks for.
    """

    id: str
    author: str
    at: float
    state: ReviewState
    head: str
    body: str = ""
    comments: tuple[InlineComment, ...] = ()
    editor: str = ""
    revision: str = ""
    official: bool = True


def hash_review(review: Review) -> str:
    """Hash the texts of a review, '' if it has none."""
    said = [review.body, *(f"{one.id} {one.path}\n{one.body}" for one in review.comments)]
    return hash_text("", "\n".join(said)) if any(said) else ""


class Check(Struct, frozen=True):
    """State of CI at the commit `head`, since `at` (seconds since the epoch).

    `log` is the output of the failing `step`, shortened, and `file` the path of the whole. If the
    forge requires only some checks, `state` is about these: `missing` are those that have not
    begun, and `optional` the other checks that have failed. `outage` says why CI has failed itself,
    if that is known of a FAILURE. `progress` is a word that changes as single checks come to an
    end. `unapproved` is what begins once a person has approved it at `url`.
    """

    state: CheckState
    head: str = ""
    step: str = ""
    url: str = ""
    log: str = ""
    at: float = 0.0
    file: str = ""
    outage: str = ""
    progress: str = ""
    missing: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    unapproved: str = ""
    overdue: bool = False
    """The check was stopped without a result, as it took too long; then it is PENDING."""


NO_CHECK = Check(CheckState.NONE)


class PullRequest(Struct, frozen=True):
    """Branch that is offered for merging. `conflicts`: it cannot be merged into its base.

    `closed_at` is when it was merged or closed, 0 while it is open. `held` are the forge's words
    for `hold`.
    """

    number: int
    title: str
    state: PullState
    author: str
    at: float
    branch: str
    base: str
    head: str
    body: str = ""
    conflicts: bool = False
    merged_as: str = ""
    closed_at: float = 0.0
    reviews: tuple[Review, ...] = ()
    comments: tuple[Comment, ...] = ()
    check: Check = NO_CHECK
    hold: Hold = Hold.NONE
    held: str = ""
    sign: Sign = Sign.SHARED
    touched: str = ""
    """Another word once somebody has said something there; '' if that is not known."""

    @property
    def name(self) -> str:
        """Number in a text, written so that the forge makes a link of it."""
        return f"{self.sign}{self.number}"


class Batch(Struct, frozen=True):
    """Findings of one observation of a forge.

    `writers` are the authors in it who may push to the repository. `problems` tell what could not
    be read, and why. `validators` are the forge's own: cursors, ETags, a stamp. They are worth
    something only together with the rest, so they are kept with it or not at all.
    """

    issues: tuple[Issue, ...] = ()
    pulls: tuple[PullRequest, ...] = ()
    writers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    validators: dict[str, str] = {}


def authors_in(issues: Iterable[Issue], pulls: Iterable[PullRequest]) -> set[str]:
    """Return everyone who has said something there."""
    found = set[str]()
    for issue in issues:
        found |= {issue.author, *(comment.author for comment in issue.comments)}
    for pull in pulls:
        found |= {pull.author, *(review.author for review in pull.reviews)}
    return found
