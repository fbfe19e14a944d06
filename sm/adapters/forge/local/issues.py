"""Issues of the local forge: from documents to values, and the changes that a forge allows."""

from __future__ import annotations

import time

from msgspec import structs

from sm.adapters.forge.local.document import BODY, Document, show_time
from sm.adapters.forge.local.fields import Fields
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.model import Comment, Issue, IssueState, Review
from sm.base import foreign
from sm.base.errors import UsageError
from sm.base.foreign import (
    DEPENDENCIES,
    LABELS,
    NAME_LIMIT,
    TITLE_LIMIT,
    check_length,
    shorten,
    tidy,
)
from sm.base.nonce import make_nonce

KEYS = ("number", "title", "state", "author", "created", "labels")


def issue_of(folder: ForgeFolder, number: int, document: Document) -> Issue:
    """The issue that a document describes.

    Raises:
        DocumentError: its front matter is not what it must be.

    """
    fields = Fields(folder.name("issues", number), document)
    fields.check_keys(KEYS)
    fields.check_number(number)
    issue = Issue(
        number=number,
        title=fields.text("title", limit=TITLE_LIMIT),
        state=fields.choice("state", IssueState),
        author=fields.text("author", "unknown"),
        at=fields.time("created"),
        labels=fields.texts("labels"),
        body=document.body,
        comments=document.comments,
    )
    if issue.state is IssueState.OPEN:  # what is done waits for nothing
        _check_dependencies(fields, issue)
    return issue


def _check_dependencies(fields: Fields, issue: Issue) -> None:
    if beyond := issue.beyond_numbers():
        raise fields.error(
            BODY, f"it depends on '{shorten(beyond)}', which no issue can be: mend it"
        )
    if (count := len(issue.dependencies())) > DEPENDENCIES:
        raise fields.error(BODY, f"it depends on {count:,} issues, {DEPENDENCIES} at most")


def read_issue(folder: ForgeFolder, number: int) -> Issue:
    """One issue; what a person left out of its file is added to it."""
    document = folder.read("issues", number)
    if document.unsettled:
        document = folder.update("issues", number, complete)
    return issue_of(folder, number, document)


def read_issues(folder: ForgeFolder) -> tuple[list[Issue], list[str]]:
    """Every issue in order, and what is wrong with the files that hold none."""
    return folder.each("issues", lambda number: read_issue(folder, number))


def complete(document: Document, head: str = "") -> Document:
    """`document` with all that a person need not write: dates, and what a review is of."""
    sections = tuple(
        _settled_review(section, head) if isinstance(section, Review) else section
        for section in document.sections
    )
    front = {"created": show_time(document.at)} | document.front
    return structs.replace(document, front=front, sections=sections, unsettled=False)


def _settled_review(review: Review, head: str) -> Review:
    return structs.replace(review, id=review.id or make_id(), head=review.head or head)


def make_id() -> str:
    """A name that no other review has."""
    return make_nonce(6)


def add_issue(
    folder: ForgeFolder, title: str, body: str, labels: tuple[str, ...], author: str
) -> Issue:
    """File an issue."""
    front = make_front(title, author) | {"labels": [_label(label) for label in labels]}
    if len(labels) > LABELS:
        raise UsageError(f"these are {len(labels):,} labels, {LABELS} at most: leave some out")
    number = folder.add("issues", Document(front, body))
    return read_issue(folder, number)


def make_front(title: str, author: str) -> dict[str, object]:
    """The front matter of something filed now."""
    return {
        "title": _title(title),
        "state": "open",
        "author": tidy_name(author),
        "created": show_time(time.time()),
    }


def _title(title: str) -> str:
    if not tidy(title):
        raise UsageError("the title is empty: say in a few words what it is about")
    return _named("the title", title, TITLE_LIMIT)


def tidy_name(author: str) -> str:
    """The author as a file of the forge has it.

    Raises:
        UsageError: it is too long.

    """
    return _named("a name", foreign.tidy_name(author)) or "unknown"


def _named(what: str, text: str, limit: int = NAME_LIMIT) -> str:
    try:
        return check_length(what, tidy(text), limit)
    except ValueError as error:
        raise UsageError(str(error)) from error


def edit_issue(
    folder: ForgeFolder, number: int, title: str, body: str | None, instead_of: str | None
) -> Issue:
    """Give an issue another title or text; '' and None leave what is there."""

    def change(document: Document) -> Document:
        if instead_of is not None and document.body != instead_of:
            raise UsageError(f"the text of issue {number} has been changed meanwhile")
        if title:
            document = document.with_front(title=_title(title))
        return document if body is None else structs.replace(document, body=body)

    folder.update("issues", number, change)
    return read_issue(folder, number)


def set_issue_state(folder: ForgeFolder, number: int, state: IssueState) -> Issue:
    """Open or close an issue."""
    folder.update("issues", number, lambda found: found.with_front(state=str(state)))
    return read_issue(folder, number)


def change_labels(folder: ForgeFolder, number: int, *, add: str = "", remove: str = "") -> Issue:
    """Give an issue a label or take one off; nothing happens where that is so already."""

    def change(document: Document) -> Document:
        labels = Fields(folder.name("issues", number), document).texts("labels")
        wanted = [label for label in labels if label != remove]
        if add and _label(add) not in wanted:
            wanted.append(_label(add))
        if len(wanted) > max(LABELS, len(labels)):
            raise UsageError(f"issue {number} has {LABELS} labels already: take one off first")
        return document if wanted == list(labels) else document.with_front(labels=wanted)

    folder.update("issues", number, change)
    return read_issue(folder, number)


def add_comment(folder: ForgeFolder, number: int, body: str, author: str, marker: str = "") -> bool:
    """Comment on an issue or pull request; False where one with that marker is there already."""
    comment = Comment(tidy_name(author), round(time.time(), 3), body, marker)
    posted = False

    def change(document: Document) -> Document:
        nonlocal posted
        posted = not marker or all(known.marker != marker for known in document.comments)
        return document.plus(comment) if posted else document

    folder.update(folder.kind_of(number), number, change)
    return posted


def _label(label: str) -> str:
    name = _named("a label", label)
    if not name or "," in name:
        raise UsageError(f"'{shorten(label)}' cannot be a label: use a word or two without a comma")
    return name
