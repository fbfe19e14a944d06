"""Issues, their labels and comments over REST: what GitHub, Forgejo and Gitea have alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError, RefusedError
from sm.adapters.forge.marker import add_marker
from sm.adapters.forge.model import Issue, IssueState
from sm.base.errors import UsageError
from sm.plugins.forges.rest.convert import make_issue
from sm.plugins.forges.rest.reader import COMMENT, GONE, Reader
from sm.plugins.forges.rest.settings import RestSettings

NAMED = 30
"""Issues that are read because others depend on them."""


def list_issues(
    reader: Reader, state: IssueState | None, labels: Iterable[str]
) -> tuple[list[Issue], list[str]]:
    """The issues in that state that have all of `labels`, oldest first; and the problems.

    Other forges mean "any of them", or drop a label that they do not know: so it is looked at here.
    """
    wanted = list(labels)
    found = reader.issue_shapes(state, wanted)
    issues = [make_issue(one) for one in found if one.pull_request is None]
    chosen = [one for one in issues if set(wanted) <= set(one.labels)]
    return sorted(chosen, key=lambda one: one.number), []


def add_issue(reader: Reader, title: str, body: str, labels: Iterable[str]) -> Issue:
    """File an issue. If its answer is lost, the caller is told that it may be there."""
    return make_issue(reader.add_issue(title, add_marker(body, ""), labels))


def edit_issue(
    reader: Reader, number: int, title: str, body: str | None, instead_of: str | None
) -> Issue:
    """Give an issue another title or text.

    Raises:
        UsageError: its text is not `instead_of` any more.

    """
    known = make_issue(reader.issue_shape(number))
    if instead_of is not None and known.body != instead_of:
        raise UsageError(f"the text of issue {number} has changed meanwhile: look at it again")
    changes = {"title": title} if title else {}
    if body is not None:
        changes["body"] = add_marker(body, "")
    return make_issue(reader.change_issue(number, changes)) if changes else known


def set_state(reader: Reader, number: int, state: IssueState) -> Issue:
    """Open or close an issue; one that is so already stays untouched."""
    known = make_issue(reader.issue_shape(number))
    if known.state is state:
        return known
    return make_issue(reader.change_issue(number, {"state": str(state)}))


def add_label(reader: Reader, number: int, label: str) -> Issue:
    """Give an issue a label, if it lacks it. The forge makes one that it does not know."""
    known = make_issue(reader.issue_shape(number))
    if label in known.labels:
        return known
    names = tuple(one.name or "" for one in reader.add_label(number, label))
    return structs.replace(known, labels=names)


def remove_label(reader: Reader, number: int, label: str) -> Issue:
    """Take a label off an issue, if it has it."""
    known = make_issue(reader.issue_shape(number))
    if label in known.labels:
        reader.remove_label(number, label)
    left = tuple(one for one in known.labels if one != label)
    return structs.replace(known, labels=left)


def add_comment(reader: Reader, number: int, body: str, marker: str, *, on_pull: bool) -> bool:
    """Comment on an issue or a pull request; False if one of ours with `marker` is there."""

    def is_there() -> bool:
        if not marker:
            return False
        return any(one.marker == marker for one in reader.comments(number, on_pull=on_pull))

    path = reader.comments_path(number, on_pull=on_pull)
    data = reader.comment_data(add_marker(body, marker))
    try:
        if is_there():
            return False
        if marker:
            reader.web.make(path, COMMENT, data, is_there)
        else:
            reader.web.write("POST", path, COMMENT, data)
    except RefusedError as error:
        if error.status in GONE:
            missing = f"there is no issue or pull request {number} in '{reader.repository}'"
            raise NotFoundError(missing) from None
        raise
    return True


def read_dependencies(
    reader: Reader, settings: RestSettings, issues: Mapping[int, Issue], of: Iterable[int]
) -> dict[int, Issue]:
    """The issues that those numbered `of` depend on, and that are in no list any more."""
    waiting = [issues[number] for number in of if number in issues]
    ready = [one for one in waiting if set(one.labels) & set(settings.labels)]
    named = dict.fromkeys(number for one in ready for number in one.dependencies())
    missing = [one for one in named if one not in issues][:NAMED]
    return reader.read_each(missing, lambda one: make_issue(reader.issue_shape(one)))
