"""One project on GitLab: its address, its lists, and a merge request in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, TypeVar
from urllib.parse import quote

from sm.adapters.forge.gitlab.convert import make_user
from sm.adapters.forge.gitlab.shapes import Account, IssueJson, MergeRequest
from sm.adapters.forge.rest.convert import read_login
from sm.adapters.forge.rest.reader import PAGE, READ, Reader
from sm.adapters.forge.web.answer import Answer
from sm.adapters.forge.web.client import PAGES, Client, Params
from sm.foreign import read_number

T = TypeVar("T")

NEXT_PAGE = "x-next-page"


class GitlabProject(Reader):
    """A project, `GROUP/SUBGROUP/NAME`, as far as reviews and CI need it to be read."""

    apart: ClassVar[frozenset[type]] = frozenset({IssueJson, MergeRequest})

    def __init__(self, web: Client, repository: str) -> None:
        """`repository` is its present name."""
        super().__init__(web, repository)
        self.at = f"/projects/{quote(repository, safe='')}"

    @cached_property
    def account(self) -> str:
        """Who we are: what this account has written may bear our marks."""
        return read_login(make_user(self.web.get("/user", READ).read(Account)))

    def entries(
        self, path: str, shape: type[T], params: Params | None = None, purpose: str = READ
    ) -> Iterator[T]:
        """Every entry of a list, by page numbers: its links may name another address."""
        for answer in self.numbered_pages(path, purpose, params or {}):
            yield from self.read_page(answer, shape).found

    def numbered_pages(self, path: str, purpose: str, params: Params) -> Iterator[Answer]:
        """Every page of a list, until the forge names no next one."""
        page = "1"
        for _ in range(PAGES):
            asked = {"per_page": PAGE, "page": page, **params}
            answer = self.web.get(f"{self.at}{path}", purpose, asked)
            yield answer
            page = answer.headers.get(NEXT_PAGE, "")
            if read_number(page) is None:
                return

    def request(self, number: int, purpose: str = READ) -> MergeRequest:
        """A merge request with its pipeline. To ask makes GitLab look whether it conflicts."""
        what = f"pull request {number}"
        return self.ask(f"/merge_requests/{number}", MergeRequest, what, purpose=purpose)
