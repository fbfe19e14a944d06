"""Forge of a project with a tracker: issues from there, all else from the forge.

The rest of `sm` sees a forge as any other. People of the tracker are called `NAME@KIND`, as a forge
may have other people of the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import (
    Batch,
    Comment,
    Issue,
    IssueState,
    Saved,
    SourcedText,
)
from sm.adapters.forge.protocol import Checks, Forge, Pulls, list_signs
from sm.adapters.forge.tracker import Tracker
from sm.base.errors import StateError
from sm.base.issue_id import IssueId, is_id
from sm.config.forges import TrackerSettings

ABILITIES = ("find_account", "find_limits", "git_dirs", "run_check")
"""Methods that only some forges have (`sm.adapters.forge.protocol`): of the forge itself."""
OURS = "tracker."
"""Beginning of the names of the tracker's validators, and of none of the forge."""


class TrackedForge:
    """Issues of a tracker, and pull requests, reviews, checks and merges of a forge."""

    def __init__(self, forge: Forge, tracker: Tracker, settings: TrackerSettings) -> None:
        """Join both; the settings are the tracker's."""
        self._forge, self._tracker, self._people = forge, tracker, settings
        self.issues = TrackedIssues(tracker, settings)
        for name in ABILITIES:
            if ability := getattr(forge, name, None):
                setattr(self, name, ability)

    @property
    def pulls(self) -> Pulls:
        """Pull requests of the forge."""
        return self._forge.pulls

    @property
    def checks(self) -> Checks:
        """Results of CI of the forge."""
        return self._forge.checks

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Observe the issues of the tracker, and the pull requests of the forge."""
        before = self._part(since) if since else (None, None)
        theirs = self._forge.observe(before[0], start_checks=start_checks)
        ours = self._tracker.observe(before[1])
        issues, unusable = self.issues.take(ours.issues)
        return Batch(
            issues=tuple(issues),
            pulls=theirs.pulls,
            writers=(*theirs.writers, *map(self._people.call, ours.writers)),
            problems=(*theirs.problems, *ours.problems, *unusable),
            validators=theirs.validators
            | {f"{OURS}{name}": value for name, value in ours.validators.items()},
        )

    def is_stale(self, since: Batch) -> bool:
        """Whether either is known to have changed since."""
        theirs, ours = self._part(since)
        return self._forge.is_stale(theirs) or self._tracker.is_stale(ours)

    def pause_s(self, sharers: int = 1) -> float:
        """Return the longer of both pauses."""
        return max(self._forge.pause_s(sharers), self._tracker.pause_s(sharers))

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Return the `authors` who may push to the repository, or are members of the tracker."""
        named = {one: self._people.recall(one) for one in authors}
        there = [name for name, found in named.items() if not found]
        members = self._tracker.find_members(filter(None, named.values()))
        writers = self._forge.find_writers(there) if there else frozenset[str]()
        return writers | {self._people.call(one) for one in members}

    def is_pull(self, number: IssueId) -> bool:
        """Whether the id is a number: the issues have others."""
        return isinstance(number, int)

    def branch_head(self, branch: str) -> str:
        """Return the commit of a branch, '' if there is no such branch."""
        return self._forge.branch_head(branch)

    def signs(self) -> tuple[Path, ...]:
        """List the files of both that get a new time when something changes."""
        return (*list_signs(self._forge), *self._tracker.signs())

    def _part(self, since: Batch) -> tuple[Batch, Batch]:
        """Return the forge's part of the last observation, and the tracker's.

        The forge's part has no issues: those of the forge itself were not kept.
        """
        marks = since.validators
        own = {name: value for name, value in marks.items() if not name.startswith(OURS)}
        rest = {name.removeprefix(OURS): marks[name] for name in marks.keys() - own.keys()}
        issues = tuple(self.issues.give_back(one) for one in since.issues)
        members = tuple(filter(None, map(self._people.recall, since.writers)))
        return (
            Batch(pulls=since.pulls, writers=since.writers, validators=own),
            Batch(issues=issues, writers=members, validators=rest),
        )


class TrackedIssues:
    """Issues of a tracker, with its people as `sm` calls them, and only with ids that are ids."""

    def __init__(self, tracker: Tracker, people: TrackerSettings) -> None:
        """Ask that tracker, whose settings tell what its people are called."""
        self._tracker, self._people = tracker, people

    def take(self, found: Iterable[Issue]) -> tuple[list[Issue], list[str]]:
        """Return the issues as `sm` knows them, and what is wrong with the others."""
        taken, problems = list[Issue](), list[str]()
        for one in found:
            try:
                taken.append(self._take(one))
            except StateError as error:
                problems.append(error.message)
        return taken, problems

    def give_back(self, issue: Issue) -> Issue:
        """Return an issue as the tracker has told it."""
        return self._rename(issue, lambda name: self._people.recall(name) or name)

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """Find the issues in that state that have all `labels`, oldest first; and the problems."""
        found, problems = self._tracker.issues.find(state, labels)
        taken, unusable = self.take(found)
        return taken, [*problems, *unusable]

    def read(self, number: IssueId) -> Issue:
        """Read an issue with its texts."""
        return self._take(self._tracker.issues.read(_check(number)))

    def read_source(self, number: IssueId) -> SourcedText:
        """Return title and text of an issue with who saved them last."""
        found, call = self._tracker.issues.read_source(_check(number)), self._people.call

        def rename(saved: Saved) -> Saved:
            return structs.replace(saved, by=call(saved.by))

        return structs.replace(
            found,
            author=call(found.author),
            title_saved=rename(found.title_saved),
            body_saved=rename(found.body_saved),
            labelled={label: rename(saved) for label, saved in found.labelled.items()},
        )

    def read_comments(self, number: IssueId) -> tuple[Comment, ...]:
        """Read the comments on an issue."""
        said = self._tracker.issues.read_comments(_check(number))
        return tuple(_rename(one, self._people.call) for one in said)

    def comment(self, number: IssueId, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on an issue; False if a comment with `marker` is there already."""
        return self._tracker.issues.comment(_check(number), body, author=author, marker=marker)

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """File an issue."""
        return self._take(self._tracker.issues.add(title, body, labels, author=author))

    def edit(
        self,
        number: IssueId,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text; UsageError if its text is not `instead_of`."""
        issues = self._tracker.issues
        return self._take(
            issues.edit(_check(number), title=title, body=body, instead_of=instead_of)
        )

    def close(self, number: IssueId) -> Issue:
        """Close an issue."""
        return self._take(self._tracker.issues.close(_check(number)))

    def reopen(self, number: IssueId) -> Issue:
        """Open an issue again."""
        return self._take(self._tracker.issues.reopen(_check(number)))

    def list_labels(self) -> set[str]:
        """List every label that there is."""
        return self._tracker.issues.list_labels()

    def add_label(self, number: IssueId, label: str) -> Issue:
        """Give an issue a label, if it lacks it."""
        return self._take(self._tracker.issues.add_label(_check(number), label))

    def remove_label(self, number: IssueId, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        return self._take(self._tracker.issues.remove_label(_check(number), label))

    def _take(self, issue: Issue) -> Issue:
        """Return an issue with its people as `sm` calls them.

        Raises:
            StateError: its id would be none of `sm`.

        """
        if not isinstance(issue.number, str) or not is_id(issue.number):
            shown = repr(issue.number)[:50]
            raise StateError(f"{shown} of the tracker is no id such as ENG-123: passed over")
        return self._rename(issue, self._people.call)

    def _rename(self, issue: Issue, call: Callable[[str], str]) -> Issue:
        comments = tuple(_rename(one, call) for one in issue.comments)
        return structs.replace(issue, author=call(issue.author), comments=comments)


def _rename(comment: Comment, call: Callable[[str], str]) -> Comment:
    if comment.marker:  # it is ours, on any tracker
        return comment
    return structs.replace(comment, author=call(comment.author), editor=call(comment.editor))


def _check(number: IssueId) -> str:
    """Return the id of an issue of the tracker.

    Raises:
        NotFoundError: it is a number.

    """
    if isinstance(number, int):
        raise NotFoundError(f"there is no issue {number}: issues here have ids such as ENG-123")
    return number
