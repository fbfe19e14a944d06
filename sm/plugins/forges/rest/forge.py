"""A forge with a REST interface like GitHub's; each kind adds what is its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Generic, Protocol

from msgspec import structs

from sm.adapters.forge.model import Batch
from sm.base.errors import SmError
from sm.plugins.forges.rest import people
from sm.plugins.forges.rest.checks import RestChecks
from sm.plugins.forges.rest.issues import RestIssues
from sm.plugins.forges.rest.observation import CURSOR
from sm.plugins.forges.rest.pulls import RestPulls
from sm.plugins.forges.rest.shapes import IssueShape
from sm.plugins.forges.rest.site import ForgeSite, R
from sm.plugins.forges.rest.state import KeptAccount
from sm.plugins.forges.web.limits import CORE, find_pause

PROBLEMS = 100
"""Most problems of an observation that are told."""


class ForgeObserver(Protocol):
    """Makes one observation."""

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        ...

    def go_on(self, since: Batch, *, is_written: bool) -> Batch:
        """Return what has changed, and the rest as it was; `is_written`: by `sm` itself, too."""
        ...


class RestForge(ABC, Generic[R]):
    """One repository elsewhere."""

    looked_by: ClassVar[tuple[str, ...]] = (CORE,)
    """The limits that the requests of a look count against."""

    def __init__(
        self, site: ForgeSite[R], issues: RestIssues[R], pulls: RestPulls[R], checks: RestChecks[R]
    ) -> None:
        """Ask nothing yet; the parts are all of `site`."""
        self.site, self.issues, self.pulls, self.checks = site, issues, pulls, checks

    @property
    def reader(self) -> R:
        """The reader of the repository."""
        return self.site.reader

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Everything that is open and what was closed within a month, or what has changed.

        The forge runs CI itself, so there is none to start. A branch of a fork is called
        `OWNER:BRANCH`.
        """
        written = self.site.files.written()  # what is written while we read counts as changed since
        problems = list[str]()
        if since is None or CURSOR not in since.validators:
            problems += self.site.find_again()
            found = self.make_observer(anew=True).read_all()
        else:
            is_written = self.is_stale(since)
            found = self.make_observer(anew=False).go_on(since, is_written=is_written)
            problems += since.problems  # what was passed over is not in sight until it changes
        validators = found.validators | {"written": written}
        try:
            pulls = self.checks.add_unbegun(found.pulls)
        except SmError as error:  # of Woodpecker: what the forge says is known all the same
            pulls = found.pulls
            problems.append(error.message)
        told = tuple(dict.fromkeys((*problems, *found.problems)))[:PROBLEMS]
        return structs.replace(found, pulls=pulls, problems=told, validators=validators)

    @abstractmethod
    def make_observer(self, *, anew: bool) -> ForgeObserver:
        """Return what makes one observation of the repository; `anew`: also of the rules."""

    def is_stale(self, since: Batch) -> bool:
        """Whether something was written through `sm` on this machine since."""
        return since.validators.get("written", "") != self.site.files.written()

    def signs(self) -> tuple[Path, ...]:
        """The file that gets a new time with everything that is written through `sm`."""
        return (self.site.files.sign,) if self.site.files.sign else ()

    def pause_s(self, sharers: int = 1) -> float:
        """Return the pause between observations of `sharers` that lets the limits last."""
        import time

        book = self.site.web.ledger.read()
        limits = [limit for limit in book.limits.values() if limit.bucket in self.looked_by]
        reserve, blocked_until = self.site.settings.reserve, book.blocked_until
        pause = find_pause(limits, reserve, blocked_until, time.time(), sharers)
        # The token is read only if it matters: that may start a program.
        return pause if pause and self.site.web.is_limited_by(book) else 0.0

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Return those of `authors` who may push to the repository."""
        return people.find_writers(self.reader, authors)

    def find_account(self) -> str:
        """The name of the account whose token we have."""
        fingerprint = self.site.web.token.fingerprint
        known = self.site.files.read_account()
        if known is None or known.fingerprint != fingerprint:
            known = KeptAccount(fingerprint, self.reader.account)
            self.site.files.keep_account(known)
        return known.name

    def is_pull(self, number: int) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither."""
        found = self.reader.ask(f"/issues/{number}", IssueShape, f"issue or pull request {number}")
        return found.pull_request is not None

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' if there is no such branch."""
        return self.reader.branch_head(branch)
