"""One project on GitLab: its address, its lists, and a merge request in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar
from urllib.parse import quote

from sm.base.foreign import read_number
from sm.plugins.forges.gitlab.convert import make_user
from sm.plugins.forges.gitlab.shapes import (
    AccountJson,
    BridgeJson,
    Diff,
    IssueJson,
    JobJson,
    Member,
    MergeRequest,
    Note,
    ThreadJson,
)
from sm.plugins.forges.rest.convert import read_login
from sm.plugins.forges.rest.reader import READ, RestReader
from sm.plugins.forges.web.client import ForgeClient

NEXT_PAGE = "x-next-page"


class GitlabProject(RestReader):
    """A project, `GROUP/SUBGROUP/NAME`, as far as reviews and CI need it to be read."""

    apart: ClassVar[frozenset[type]] = frozenset(
        {IssueJson, MergeRequest, Note, ThreadJson, JobJson, BridgeJson, Member, Diff}
    )
    """A verdict is neither in notes nor in jobs alone: who reviews and how a pipeline has ended is
    asked for besides. So of them one that cannot be read is passed over, too.
    """

    def __init__(self, web: ForgeClient, repository: str) -> None:
        """`repository` is its present name."""
        super().__init__(web, repository)
        self.at = f"/projects/{quote(repository, safe='')}"

    @cached_property
    def account(self) -> str:
        """Our account: what it has written may bear our marks."""
        return read_login(make_user(self.web.get("/user", READ).read(AccountJson)))

    def tells_more(self, headers: Mapping[str, str], seen: int) -> bool:
        """Whether an answer with these headers has another page behind it."""
        return read_number(headers.get(NEXT_PAGE, "")) is not None

    def request(self, number: int, purpose: str = READ) -> MergeRequest:
        """A merge request with its pipeline. To ask makes GitLab look whether it conflicts."""
        what = f"pull request {number}"
        return self.ask(f"/merge_requests/{number}", MergeRequest, what, purpose=purpose)
