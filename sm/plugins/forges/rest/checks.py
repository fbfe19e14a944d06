"""Checks of a commit, and what the forge asks for before a merge into a branch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Generic

from msgspec import structs

from sm.adapters.forge.errors import UnreachableError
from sm.adapters.forge.model import Check, CheckState, PullRequest, PullState
from sm.base.errors import SmError
from sm.plugins.forges.rest.convert import is_of_fork
from sm.plugins.forges.rest.failed_job import Report, clean_log, trim_log
from sm.plugins.forges.rest.protection import BranchRules, RuleSource
from sm.plugins.forges.rest.reader import OBSERVE
from sm.plugins.forges.rest.shapes import FAST_FORWARD
from sm.plugins.forges.rest.site import ForgeSite, R
from sm.plugins.forges.rest.status import StatusPart, combine, find_failed
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import LimitedError

if TYPE_CHECKING:
    from sm.plugins.forges.rest.woodpecker import Woodpecker

LOGS = 3
"""Failed jobs whose logs are read."""
LOG_S = 600.0
"""Time after a failure in which a forge that does not give its log is asked again, in seconds."""


class RestChecks(ABC, Generic[R]):
    """The checks of a repository."""

    def __init__(self, site: ForgeSite[R], woodpecker: Woodpecker | None = None) -> None:
        """Ask nothing yet; `woodpecker` is the repository's CI, if it is one."""
        self.site, self.woodpecker = site, woodpecker

    @property
    def reader(self) -> R:
        """The reader of the repository."""
        return self.site.reader

    def rules(self, base: str, *, anew: bool = False) -> BranchRules:
        """Return what the forge asks for before a merge into `base`: as read last, or `anew`."""
        kept = self.site.files.read_rules()
        known = kept.find(base)
        if known is not None and not anew:
            return self._add_strict(known, base)
        paths = self.reader.rule_paths(base)
        found = read_sources(self.reader.web, paths, kept.branches.get(base, {}), OBSERVE)
        kept = kept.put(base, found)
        self.site.files.keep_rules(kept)
        return self._add_strict(kept.find(base) or BranchRules(), base)

    def _add_strict(self, rules: BranchRules, base: str) -> BranchRules:
        """Add what a refusal has told, where the forge does not tell it before.

        What is only fast-forwarded must have all of its base, whatever the rules.
        """
        is_forwarded = self.site.settings.merge_method == FAST_FORWARD
        is_strict = rules.strict or is_forwarded or self.site.files.is_strict(base)
        return structs.replace(rules, strict=is_strict)

    def remember_rules(self, *, anew: bool) -> Callable[[str], BranchRules]:
        """Gives the rules of a branch; within one observation each is read once."""
        return cache(lambda base: self.rules(base, anew=anew))

    def read(self, head: str, base: str = "") -> Check:
        """Return what CI says of a commit that is to be merged into `base`, with its log."""
        required = self.rules(base or self.site.settings.base).checks
        parts = self._parts(head)
        found = self._combine(parts, head, required)
        if found.state not in (CheckState.FAILURE, CheckState.BROKEN):
            return found
        failed = find_failed(parts, required)[:LOGS]
        told = [self._report(part, head) for part in failed]
        steps = [one.step for one in told if one.step]
        return structs.replace(
            found,
            step=": ".join(filter(None, [found.step, ", ".join(dict.fromkeys(steps))])),
            log=_join(failed, [trim_log(one.log, self.site.settings.log_lines) for one in told]),
            file=self.site.files.keep_log(head, _join(failed, [one.log for one in told])),
            outage="; ".join(filter(None, (one.outage for one in told))),
        )

    def read_short(self, head: str, base: str) -> Check:
        """Return what CI says of `head`, without a log."""
        required = self.rules(base).checks
        return self._combine(self._parts(head), head, required)

    def _parts(self, head: str) -> list[StatusPart]:
        """Return what all programs say of a commit."""
        found = self.reader.parts(head)
        if found or self.woodpecker is None:
            return found
        part = self.woodpecker.list_unbegun().get(head)
        return [part] if part else []

    def add_unbegun(self, pulls: Iterable[PullRequest]) -> tuple[PullRequest, ...]:
        """The pull requests; of those that nothing has checked, with what could not even begin."""
        found = tuple(pulls)
        if self.woodpecker is None or not any(map(is_bare, found)):
            return found
        told = self.woodpecker.list_unbegun()

        def add(pull: PullRequest) -> PullRequest:
            part = told.get(pull.head) if is_bare(pull) else None
            if part is None:
                return pull
            check = self._combine([part], pull.head, self.rules(pull.base).checks)
            return structs.replace(pull, check=check)

        return tuple(map(add, found))

    def _combine(self, parts: list[StatusPart], head: str, required: tuple[str, ...]) -> Check:
        return combine(parts, head, expected=self.site.settings.has_ci, required=required)

    def _report(self, part: StatusPart, head: str) -> Report:
        """Report on a failed part. A log that is not to be had hides nothing else."""
        known, lost = Report(), ""
        try:
            if self.woodpecker and self.woodpecker.find_pipeline(part):
                known = self.woodpecker.read_report(part)
            else:
                known = self.read_report(part, head)
            if log := known.read_log() if known.read_log else "":
                return structs.replace(known, log=log)
        except SmError as error:
            if (
                isinstance(error, (UnreachableError, LimitedError))
                and time.time() - part.at < LOG_S
            ):
                raise
            lost = f"cannot read the log: {error.message}"
        said = known.log or part.text or f"no log is to be had here: see {part.url}"
        lines = "\n".join(filter(None, [said, lost]))
        return structs.replace(known, log=clean_log(lines.encode()))

    @abstractmethod
    def read_report(self, part: StatusPart, head: str) -> Report:
        """Report on one failed part of the commit `head`, with its whole log."""

    def rerun(self, head: str) -> None:
        """Have CI run on a commit again: Woodpecker, if that has run on it, else the forge's own.

        Raises:
            AtWorkError: it is at work on the commit.
            UsageError: it cannot be run again from here.

        """
        woodpecker = self.woodpecker
        if woodpecker and self.site.write(lambda: woodpecker.rerun(self.reader.parts(head))):
            return
        self.rerun_jobs(head)

    @abstractmethod
    def rerun_jobs(self, head: str) -> None:
        """Have the forge's own CI run on a commit again."""


def is_bare(pull: PullRequest) -> bool:
    """Whether nothing has checked an open pull request of ours yet."""
    is_ours = pull.state is PullState.OPEN and not is_of_fork(pull)
    return is_ours and pull.check.state is CheckState.PENDING and not pull.check.at


def _join(parts: list[StatusPart], texts: list[str]) -> str:
    """Join what the failed parts say, each under its name if there are several."""
    if len(parts) == 1:
        return texts[0]
    named = zip(parts, texts, strict=True)
    return "\n".join(f"== {part.name}\n{text.rstrip()}\n" for part, text in named)


NOT_TOLD = (403, 404, 410)
"""A token that may not read the rules goes without them, as a branch does that has none."""


def read_sources(
    web: ForgeClient,
    paths: Mapping[str, Callable[[HttpAnswer], BranchRules]],
    known: Mapping[str, RuleSource],
    purpose: str,
) -> dict[str, RuleSource]:
    """Ask each address for the rules, unless its validator says that they are as `known`.

    The rules change without a trace in any list. So they are asked for when all is read anew, with
    the validator of the last answer, which costs nothing on GitHub as long as they stay the same.
    """
    token = web.token.fingerprint
    found: dict[str, RuleSource] = {}
    for path, read in paths.items():
        last = known.get(path, RuleSource())
        etag = last.etag if last.token == token else ""
        answer = web.get(path, purpose, etag=etag, accept=NOT_TOLD)
        if answer.is_unchanged:
            found[path] = last
        elif answer.status in NOT_TOLD:
            found[path] = RuleSource()
        else:
            found[path] = RuleSource(read(answer), answer.etag, token)
    return found
