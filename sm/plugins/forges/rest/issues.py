"""Issues, their labels and comments over REST: what forges like GitHub have alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError, RefusedError, UnreachableError
from sm.adapters.forge.model import Comment, Issue, IssueState, Saved, SourcedText
from sm.base.errors import UsageError
from sm.plugins.forges.rest.convert import add_marker
from sm.plugins.forges.rest.reader import COMMENT, GONE, RestReader
from sm.plugins.forges.rest.site import ForgeSite, R, RestSettings

NAMED = 30
"""Issues that are read because others depend on them."""


class RestIssues(Generic[R]):
    """The issues of one repository.

    Who writes is always the account of the token: the `author` of a call is for forges that have
    no accounts.
    """

    def __init__(self, site: ForgeSite[R]) -> None:
        """Ask nothing yet."""
        self.site = site

    @property
    def reader(self) -> R:
        """The reader of the repository."""
        return self.site.reader

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """The issues in that state that have all of `labels`, oldest first, without comments.

        Other forges mean "any of them", or drop a label that they do not know: so it is looked at
        here.
        """
        wanted = list(labels)
        found = self.reader.issue_shapes(state, wanted)
        issues = [self.reader.make_issue(one) for one in found if one.pull_request is None]
        chosen = [one for one in issues if set(wanted) <= set(one.labels)]
        return sorted(chosen, key=lambda one: one.number), []

    def read(self, number: int) -> Issue:
        """One issue with its texts."""
        return self.reader.issue(number)

    def read_source(self, number: int) -> SourcedText:
        """Title and text of an issue. These forges do not say over REST who has edited a text."""
        found = self.reader.make_issue(self.reader.issue_shape(number))
        unknown = Saved(0.0)
        return SourcedText(found.title, found.body, found.author, unknown, unknown)

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """File an issue. If its answer is lost, the caller is told that it may be there."""
        title, body = self.site.clean(title), add_marker(self.site.clean(body), "")
        return self.reader.make_issue(
            self.site.write(lambda: self.reader.add_issue(title, body, labels))
        )

    def edit(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text; UsageError if its text is not `instead_of`."""
        changes = {"title": self.site.clean(title)} if title else {}
        if body is not None:
            changes["body"] = add_marker(self.site.clean(body), "")
        return self.site.write(lambda: self._edit(number, changes, instead_of))

    def _edit(self, number: int, changes: dict[str, str], instead_of: str | None) -> Issue:
        known = self.reader.make_issue(self.reader.issue_shape(number))
        if instead_of is not None and known.body != instead_of:
            raise UsageError(f"the text of issue {number} has changed meanwhile: look at it again")
        return (
            self.reader.make_issue(self.reader.change_issue(number, changes)) if changes else known
        )

    def list_labels(self) -> set[str]:
        """Every label that an issue of the repository can have."""
        return {self.reader.spell(label.name or "") for label in self.reader.labels()}

    def close(self, number: int) -> Issue:
        """Close an issue; a closed one stays so."""
        return self.site.write(lambda: self._set_state(number, IssueState.CLOSED))

    def reopen(self, number: int) -> Issue:
        """Open an issue again; an open one stays so."""
        return self.site.write(lambda: self._set_state(number, IssueState.OPEN))

    def _set_state(self, number: int, state: IssueState) -> Issue:
        known = self.reader.make_issue(self.reader.issue_shape(number))
        if known.state is state:
            return known
        return self.reader.make_issue(self.reader.change_issue(number, {"state": str(state)}))

    def add_label(self, number: int, label: str) -> Issue:
        """Give an issue a label, if it lacks it. The forge makes one that it does not know."""
        return self.site.write(lambda: self._add_label(number, label))

    def _add_label(self, number: int, label: str) -> Issue:
        known = self.reader.make_issue(self.reader.issue_shape(number))
        if label in known.labels:
            return known
        given = self.reader.add_label(number, label)
        names = tuple(self.reader.spell(one.name or "") for one in given)
        return structs.replace(known, labels=names)

    def remove_label(self, number: int, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        return self.site.write(lambda: self._remove_label(number, label))

    def _remove_label(self, number: int, label: str) -> Issue:
        shape = self.reader.issue_shape(number)
        known = self.reader.make_issue(shape)
        for name in (one if isinstance(one, str) else one.name or "" for one in shape.labels):
            if self.reader.spell(name) == label:
                self.reader.remove_label(number, name)
        left = tuple(one for one in known.labels if one != label)
        return structs.replace(known, labels=left)

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The comments. These forges do not say over REST who has edited one."""
        return self.reader.comments(number)

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on an issue; False if one with `marker` is there already."""
        body = self.site.clean(body)
        return self.site.write(lambda: add_comment(self.reader, number, body, marker))


def add_comment(
    reader: RestReader, number: int, body: str, marker: str, *, on_pull: bool = False
) -> bool:
    """Comment on an issue or a pull request; False if one of ours with `marker` is there."""

    def is_there() -> bool:
        if not marker:
            return False
        return any(one.marker == marker for one in reader.comments(number, on_pull=on_pull))

    path = reader.comments_path(number, on_pull=on_pull)
    data = reader.comment_data(add_marker(body, marker))
    missing = f"there is no issue or pull request {number} in '{reader.repository}'"
    try:
        if is_there():
            return False
        if marker:
            reader.web.make(path, COMMENT, data, is_there)
        else:
            reader.web.write("POST", path, COMMENT, data)
    except UnreachableError:
        if reader.is_missing(number):
            raise NotFoundError(missing) from None
        raise
    except RefusedError as error:
        if error.status in GONE:
            raise NotFoundError(missing) from None
        raise
    return True


def read_dependencies(
    reader: RestReader, settings: RestSettings, issues: Mapping[int, Issue], of: Iterable[int]
) -> dict[int, Issue]:
    """The issues that those numbered `of` depend on, and that are in no list any more."""
    waiting = [issues[number] for number in of if number in issues]
    ready = [one for one in waiting if set(one.labels) & set(settings.labels)]
    named = dict.fromkeys(number for one in ready for number in one.dependencies())
    missing = [one for one in named if isinstance(one, int) and one not in issues][:NAMED]
    return reader.read_each(missing, lambda one: reader.make_issue(reader.issue_shape(one)))
