"""Issues of the local forge: documents as values, and the changes that a forge allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from msgspec import Struct, structs

from sm.adapters.forge.local.document import BODY, ForgeFile, show_time
from sm.adapters.forge.local.fields import Fields
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.model import Comment, Issue, IssueState, Review, Saved, SourcedText
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


class LocalIssues(Struct, frozen=True):
    """Issues of a forge."""

    folder: ForgeFolder

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """Find the issues in that state that have all of `labels`, oldest first.

        Also returned: what is wrong with the files that hold none.
        """
        found, problems = self.folder.each("issues", self.read)
        wanted = set(labels)
        chosen = [one for one in found if state in (None, one.state) and wanted <= set(one.labels)]
        return chosen, problems

    def read(self, number: int) -> Issue:
        """Read an issue; what a person left out of its file is added to it."""
        document = self.folder.read("issues", number)
        if document.unsettled:
            document = self.folder.update("issues", number, complete)
        return issue_of(self.folder, number, document)

    def read_source(self, number: int) -> SourcedText:
        """Return title and text of an issue. Its author stands for all editors.

        A folder has no accounts: all who may write to it can write in any name.
        """
        found = self.read(number)
        saved = Saved(found.at, found.author)
        return SourcedText(found.title, found.body, found.author, saved, saved)

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """File an issue."""
        names = [_label(label) for label in labels]
        if len(names) > LABELS:
            raise UsageError(f"these are {len(names):,} labels, {LABELS} at most: leave some out")
        front = make_front(title, author) | {"labels": names}
        return self.read(self.folder.add("issues", ForgeFile(front, body)))

    def edit(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text, as far as they are given.

        Raises:
            UsageError: its text is not `instead_of` any more.

        """

        def change(document: ForgeFile) -> ForgeFile:
            if instead_of is not None and document.body != instead_of:
                raise UsageError(f"the text of issue {number} has been changed meanwhile")
            if title:
                document = document.with_front(title=_title(title))
            return document if body is None else structs.replace(document, body=body)

        return self._update(number, change)

    def close(self, number: int) -> Issue:
        """Close an issue; one that is closed stays so."""
        return self._update(number, lambda found: found.with_front(state=str(IssueState.CLOSED)))

    def reopen(self, number: int) -> Issue:
        """Open an issue again; one that is open stays so."""
        return self._update(number, lambda found: found.with_front(state=str(IssueState.OPEN)))

    def list_labels(self) -> set[str]:
        """List every label that an issue has."""
        return {label for issue in self.find()[0] for label in issue.labels}

    def add_label(self, number: int, label: str) -> Issue:
        """Give an issue a label; one that it has stays."""
        return self._change_labels(number, add=label)

    def remove_label(self, number: int, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        return self._change_labels(number, remove=label)

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """Read the comments. A folder has no accounts: who edits is the author."""
        return self.read(number).comments

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on an issue or pull request; False where one with `marker` is there already."""
        return add_comment(self.folder, number, body, author, marker)

    def _change_labels(self, number: int, *, add: str = "", remove: str = "") -> Issue:
        """Give an issue a label or take one off; nothing happens if that is so already."""

        def change(document: ForgeFile) -> ForgeFile:
            labels = Fields(self.folder.name("issues", number), document).texts("labels")
            wanted = [label for label in labels if label != remove]
            if add and _label(add) not in wanted:
                wanted.append(_label(add))
            if len(wanted) > max(LABELS, len(labels)):
                raise UsageError(f"issue {number} has {LABELS} labels already: take one off first")
            return document if wanted == list(labels) else document.with_front(labels=wanted)

        return self._update(number, change)

    def _update(self, number: int, change: Callable[[ForgeFile], ForgeFile]) -> Issue:
        self.folder.update("issues", number, change)
        return self.read(number)


def add_comment(folder: ForgeFolder, number: int, body: str, author: str, marker: str) -> bool:
    """Comment on an issue or pull request; False where one with that marker is there already."""
    comment = Comment(tidy_name(author), round(time.time(), 3), body, marker)
    posted = False

    def change(document: ForgeFile) -> ForgeFile:
        nonlocal posted
        posted = not marker or all(known.marker != marker for known in document.comments)
        return document.plus(comment) if posted else document

    folder.update(folder.kind_of(number), number, change)
    return posted


def issue_of(folder: ForgeFolder, number: int, document: ForgeFile) -> Issue:
    """Return the issue that a document describes.

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


def complete(document: ForgeFile, head: str = "") -> ForgeFile:
    """Add to `document` all that a person need not write: dates, and the commit of a review."""
    sections = tuple(
        structs.replace(section, id=section.id or make_id(), head=section.head or head)
        if isinstance(section, Review)
        else section
        for section in document.sections
    )
    front = {"created": show_time(document.at)} | document.front
    return structs.replace(document, front=front, sections=sections, unsettled=False)


def make_id() -> str:
    """Make a name that no other review has."""
    return make_nonce(6)


def make_front(title: str, author: str) -> dict[str, object]:
    """Make the front matter of something filed now."""
    return {
        "title": _title(title),
        "state": "open",
        "author": tidy_name(author),
        "created": show_time(time.time()),
    }


def _title(title: str) -> str:
    if not tidy(title):
        raise UsageError("the title is empty: say in a few words what it is about")
    return _check_text("the title", title, TITLE_LIMIT)


def tidy_name(author: str) -> str:
    """Return the author as a file of the forge has it.

    Raises:
        UsageError: it is too long.

    """
    return _check_text("a name", foreign.tidy_name(author)) or "unknown"


def _check_text(what: str, text: str, limit: int = NAME_LIMIT) -> str:
    try:
        return check_length(what, tidy(text), limit)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _label(label: str) -> str:
    name = _check_text("a label", label)
    if not name or "," in name:
        raise UsageError(f"'{shorten(label)}' cannot be a label: use a word or two without a comma")
    return name
