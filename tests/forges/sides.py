"""Each stateful forge with the world around it, as the tests of all forges want it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from msgspec import structs

from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import BOT, Batch, CheckState
from sm.adapters.forge.protocol import Forge
from sm.config.forges import RemoteSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.gitea import reader as gitea_reader
from sm.plugins.forges.gitlab import forge as gitlab_forge
from sm.plugins.forges.settings import (
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)
from sm.plugins.forges.web import request
from tests.forges.gitea import Gitea
from tests.forges.github import Github
from tests.forges.gitlab import Gitlab
from tests.forges.hook import Hook
from tests.forges.server import LOOPBACK, Site, serving
from tests.forges.state import State
from tests.hub import Hub

SETTINGS: dict[str, Callable[..., RemoteSettings]] = {
    "github": GithubSettings,
    "forgejo": ForgejoSettings,
    "gitea": GiteaSettings,
    "gitlab": GitlabSettings,
}
DIALECTS: dict[str, Callable[[State], Github | Gitea | Gitlab]] = {
    "github": Github,
    "forgejo": lambda state: Gitea(state, "forgejo"),
    "gitea": lambda state: Gitea(state, "gitea"),
    "gitlab": Gitlab,
}
KINDS = tuple(SETTINGS)
"""The kinds of forges over HTTP."""
WORDS = {CheckState.SUCCESS: "success", CheckState.FAILURE: "failure", CheckState.PENDING: ""}


PARTS = ("issues", "pulls", "checks")


class ManyHands:
    """A forge on which each `author` writes with an account of their own, as people do.

    Or a `part` of it.
    """

    def __init__(self, open_as: Callable[[str], Forge], ours: Forge, part: str = "") -> None:
        self._open_as, self._ours, self._part = open_as, ours, part

    def __getattr__(self, name: str) -> object:
        if name in PARTS and not self._part:
            return ManyHands(self._open_as, self._ours, name)
        if not hasattr(self._pick(self._ours), name):
            raise AttributeError(name)

        def call(*args: object, **kwargs: object) -> object:
            author = str(kwargs.get("author", BOT))
            forge = self._ours if author == BOT else self._open_as(author)
            return getattr(self._pick(forge), name)(*args, **kwargs)

        return call

    def _pick(self, forge: Forge) -> object:
        return getattr(forge, self._part) if self._part else forge


@dataclass
class RemoteSide:
    """A forge over HTTP. CI is at work on what is pushed, until `finish`; `hook` tells of both."""

    hub: Hub
    state: State
    site: Site
    dialect: Github | Gitea | Gitlab
    folder: Path
    kind: str = "github"
    hook: Hook | None = None
    configured: str = ""
    """The name of the repository in the configuration, if it is not the present one."""

    @property
    def project(self) -> ProjectSettings:
        """The project as its configuration has it, with our account's token."""
        return self.project_of(BOT)

    def project_of(self, author: str) -> ProjectSettings:
        """The same with somebody's own token."""
        settings = SETTINGS[self.kind](
            repository=self.configured or self.state.name,
            url=self.site.url,
            token_file=self.token_file(author),
        )
        return structs.replace(self.hub.project, forge=settings)

    def token_file(self, author: str) -> Path:
        """The file with the token of an account, which is made with it."""
        file = self.folder / f"token-{author}"
        if not file.exists():
            token = f"secret-of-{author}-4f1d"
            self.state.tokens[token] = author
            file.touch(mode=0o600)
            file.write_text(token)
        return file

    def open(self, author: str = BOT) -> Forge:
        """The forge, as a process of its own would open it."""
        return cast("Forge", ManyHands(self.open_as, self.open_as(BOT)))

    def open_as(self, author: str) -> Forge:
        """The same with the account of `author` for everything."""
        return open_forge(self.project_of(author), None, self.folder)

    def admit(self, *authors: str) -> None:
        """Let these people push."""
        self.state.writers |= set(authors)

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        """Commit on `branch` and push."""
        head = self.hub.push(branch, name, content)
        self.begin(head)
        return head

    def begin(self, head: str) -> None:
        """CI is at work on a commit."""
        self.state.run_of(head, "build")
        self.tell_of_check(head)

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        """CI has come to this result."""
        run = self.state.run_of(head, "build")
        run.name, run.word, run.log, run.at = step or "build", WORDS[state], log, time.time()
        self.tell_of_check(head)

    def tell_of_check(self, head: str) -> None:
        """Deliver what CI has to say, if there is a webhook."""
        said = {"id": self.state.next_id(), "created_at": self.state.clock()}  # no two are the same
        if self.hook and self.kind == "github":
            self.hook.deliver("check_run", {"check_run": {"head_sha": head, **said}})
        elif self.hook:
            self.hook.deliver("status", {"sha": head, **said})


@contextmanager
def remote_side(
    kind: str, hub: Hub, folder: Path, address: str = LOOPBACK, certificate: Path | None = None
) -> Iterator[RemoteSide]:
    """A forge until the end of the block; no exchange may be one that it does not describe.

    Until then this process tries and asks again almost without a pause.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    state = State(BareRepository(hub.repository.bare))
    dialect = DIALECTS[kind](state)
    with (
        serving(dialect.respond, address, certificate) as site,
        pytest.MonkeyPatch.context() as environment,
    ):
        # No certificate is trusted there: all servers are on loopback, and to load those of the
        # machine takes longer than most requests.
        environment.setenv("SSL_CERT_DIR", str(folder))
        environment.setattr(request, "FIRST_PAUSE_S", 0.001)
        environment.setattr(request, "LONGEST_PAUSE_S", 0.002)
        environment.setattr(gitea_reader, "UNCERTAIN_S", 0.0)
        environment.setattr(gitlab_forge, "UNSURE_S", 0.0)
        site.clock = lambda: state.clock()
        yield RemoteSide(hub, state, site, dialect, folder, kind)
    if dialect.description.problems:
        pytest.fail("\n".join(dialect.description.problems[:20]))


def age(side: RemoteSide, seconds: float = 60) -> None:
    """Let time pass on the forge."""
    ahead = side.state.clock() - time.time() + seconds
    side.state.clock = lambda: time.time() + ahead


def asked_for(side: RemoteSide, since: Batch | None) -> tuple[Batch, list[str]]:
    """An observation, and the requests that it took, below the repository."""
    before = len(side.site.asked)
    seen = side.open().observe(since)
    places = [f"/repos/{side.state.name}", f"/projects/{quote(side.state.name, safe='')}"]
    lines = [line.replace("/api/v1", "").replace("/api/v4", "") for line in side.site.lines(before)]
    return seen, [line.replace(places[0], "").replace(places[1], "") for line in lines]


def opened(side: RemoteSide, branch: str = "fix/1") -> tuple[int, str]:
    """A pull request of that branch, with its number and commit."""
    head = side.push(branch, f"{branch.replace('/', '-')}.txt")
    return side.open().pulls.open(branch, "main", "a", author=BOT).number, head


def github_of(side: RemoteSide) -> Github:
    """The server of a side that is GitHub's."""
    assert isinstance(side.dialect, Github)
    return side.dialect
