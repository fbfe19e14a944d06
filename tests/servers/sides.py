"""The world around Gitea and Forgejo as their journeys want it: a real server's, and the fake's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import quote

from msgspec import structs

from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import BOT, CheckState
from sm.adapters.forge.protocol import Forge
from sm.config.forges import RemoteSettings
from sm.config.schema import ProjectSettings
from sm.testing.forge import ForgeSide
from tests.forges.gitea import WAYS, Gitea
from tests.forges.sides import SETTINGS, ManyHands, RemoteSide, remote_side
from tests.forges.state import Pull, Status
from tests.helpers import git, wait_for
from tests.hub import Hub, make_hub
from tests.servers.forge import OWNER, ForgeServer
from tests.servers.process import Process, RefusalError
from tests.servers.recorder import Book, recording

WORKFLOW = ".gitea/workflows/ci.yml"
"""Forgejo reads it there, too."""
JOB = """
name: CI
on: [push]
jobs:
  test:
    runs-on: here
    steps:
      - name: try it
        run: |
          echo {said}
          sleep 2
          exit {status}
"""
"""It lasts a while: the log of a job that ends at once was closed before its end was told, once."""
DRAFT = "WIP: half of it"
CONTEXT = "CI / test (push)"
SAID = "the tile is {}"
STATUSES = {
    CheckState.SUCCESS: "success",
    CheckState.FAILURE: "failure",
    CheckState.PENDING: "pending",
}


class World(ForgeSide, Protocol):
    """A server with the world around it: what others do there."""

    folder: Path
    hub: Hub

    @property
    def project(self) -> ProjectSettings:
        """The project as its configuration has it."""
        ...

    def open_as(self, author: str) -> Forge:
        """The forge with the account of `author` for everything."""
        ...

    def token_file(self, author: str) -> Path:
        """The file with the token of an account."""
        ...

    def protect(
        self, checks: Sequence[str] = (), approvals: int = 0, *, behind: bool = False
    ) -> None:
        """Protect `main`: `behind` means that nothing that is behind is merged."""
        ...

    def allow(self, *methods: str) -> None:
        """Let pull requests be merged in these ways alone."""
        ...

    def ask_review(self, number: int, author: str) -> None:
        """Ask somebody for a review again."""
        ...

    def make_draft(self, number: int) -> None:
        """Have a pull request be a draft."""
        ...

    def offer_from_fork(self, author: str, branch: str) -> int:
        """A pull request from the fork of `author`, with the commit of our branch."""
        ...

    def depend(self, number: int, on: int) -> None:
        """Have an issue or a pull request depend on another one."""
        ...

    def rename(self, name: str) -> None:
        """Give the repository another name."""
        ...

    def revoke(self, author: str) -> None:
        """Delete the tokens of an account."""
        ...

    def add_organisation_label(self, name: str) -> None:
        """Make a label of the organisation."""
        ...

    def run_ci(self, branch: str, *, passes: bool) -> str:
        """Push a commit on which the server's own CI comes to this end; the commit."""
        ...


def reopen(side: World, **settings: Any) -> Forge:
    """The forge of our account, with other settings."""
    project = side.project
    changed = structs.replace(cast("RemoteSettings", project.forge), **settings)
    return open_forge(structs.replace(project, forge=changed), None, side.folder)


@dataclass
class ServerSide:
    """A repository of a real server. Checks are statuses, which the side writes itself."""

    hub: Hub
    server: ForgeServer
    repository: str
    folder: Path
    runner: Callable[[], Process] | None = None
    configured: str = ""
    protected: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Which server it is."""
        return self.server.kind

    @property
    def project(self) -> ProjectSettings:
        """The project as its configuration has it, with our account's token."""
        return self.project_of(BOT)

    def project_of(self, author: str) -> ProjectSettings:
        """The same with somebody's own token."""
        settings = SETTINGS[self.kind](
            repository=self.configured or self.repository,
            url=self.server.url,
            token_file=self.token_file(author),
        )
        return structs.replace(self.hub.project, forge=settings)

    def token_file(self, author: str) -> Path:
        """The file with the token of an account, which is made with it."""
        self.server.add_account(author)
        file = self.folder / f"token-{author}"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(self.server.tokens[author])
        return file

    def open(self, author: str = BOT) -> Forge:
        """The forge, as a process of its own would open it; each `author` with their account."""
        return cast("Forge", ManyHands(self.open_as, self.open_as(BOT)))

    def open_as(self, author: str) -> Forge:
        """The same with the account of `author` for everything."""
        return open_forge(self.project_of(author), None, self.folder)

    def ask(self, method: str, path: str, body: object = None, author: str = BOT) -> Any:
        """A request for something in the repository, beside `sm`."""
        return self.server.ask(method, f"/repos/{self.repository}{path}", body, author)

    def admit(self, *authors: str) -> None:
        """Let these people push."""
        for author in authors:
            self.server.add_account(author)
            self.ask("PUT", f"/collaborators/{author}", {"permission": "write"})

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        """Commit on `branch` and push; CI is at work on the commit."""
        head = self.push_without_ci(branch, name, content)
        self._say(head, "build", CheckState.PENDING)
        return head

    def push_without_ci(
        self, branch: str, name: str = "work.txt", content: str = "work\n", author: str = BOT
    ) -> str:
        """Commit on `branch` and push."""
        place = self.server.git_url(self.repository, author)
        git(self.hub.repository.bare, "fetch", "-q", place, "+refs/heads/*:refs/heads/*")
        head = self.hub.push(branch, name, content)
        git(self.hub.repository.bare, "push", "-q", place, f"{branch}:{branch}")
        return head

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        """CI has come to this result."""
        if step not in ("", "build"):
            self._say(head, "build", CheckState.SUCCESS)
        self._say(head, step or "build", state, log)

    def _say(self, head: str, context: str, state: CheckState, log: str = "") -> None:
        said = {"state": STATUSES[state], "context": context, "description": log}
        said["target_url"] = "https://ci.example.com/1"
        self.ask("POST", f"/statuses/{head}", said)

    # What else others do

    def protect(
        self, checks: Sequence[str] = (), approvals: int = 0, *, behind: bool = False
    ) -> None:
        """Protect `main`."""
        rule = {
            "enable_status_check": bool(checks),
            "status_check_contexts": list(checks),
            "required_approvals": approvals,
            "block_on_outdated_branch": behind,
            "enable_push": True,
        }
        if self.protected:
            self.ask("PATCH", "/branch_protections/main", rule)
        else:
            self.ask("POST", "/branch_protections", rule | {"rule_name": "main"})
        self.protected = rule

    def allow(self, *methods: str) -> None:
        """Let pull requests be merged in these ways alone."""
        said = {setting: way in methods for way, setting in WAYS.items()}
        said["has_pull_requests"] = True  # without it the others are passed over
        self.ask("PATCH", "", said | {"default_merge_style": methods[0]})

    def ask_review(self, number: int, author: str) -> None:
        """Ask somebody for a review again."""
        self.ask("POST", f"/pulls/{number}/requested_reviewers", {"reviewers": [author]})

    def make_draft(self, number: int) -> None:
        """Have a pull request be a draft."""
        self.ask("PATCH", f"/pulls/{number}", {"title": DRAFT})

    def offer_from_fork(self, author: str, branch: str) -> int:
        """A pull request from the fork of `author`, with the commit of our branch."""
        self.server.add_account(author)
        name = self.repository.partition("/")[2]
        self.ask("POST", "/forks", {}, author)
        theirs = f"{author}/{name}"
        wait_for(lambda: self._has_branch(theirs, branch), f"'{branch}' in '{theirs}'")
        data = {"title": "Mine", "head": f"{author}:{branch}", "base": "main"}
        return int(self.ask("POST", "/pulls", data, author)["number"])

    def _has_branch(self, repository: str, branch: str) -> bool:
        try:
            self.server.ask("GET", f"/repos/{repository}/branches/{quote(branch, safe='')}")
        except RefusalError:
            return False
        return True

    def depend(self, number: int, on: int) -> None:
        """Have an issue or a pull request depend on another one."""
        owner, _, name = self.repository.partition("/")
        self.ask(
            "POST", f"/issues/{number}/dependencies", {"owner": owner, "repo": name, "index": on}
        )

    def rename(self, name: str) -> None:
        """Give the repository another name; the configuration goes on to have the old one."""
        self.configured = self.configured or self.repository
        self.ask("PATCH", "", {"name": f"{self.configured.partition('/')[2]}-{name}"})
        self.repository = f"{self.configured}-{name}"

    def revoke(self, author: str) -> None:
        """Delete the tokens of an account."""
        self.server.revoke_tokens(author)

    def add_organisation_label(self, name: str) -> None:
        """Make a label of the organisation; there may be one of that name already."""
        known = self.server.ask("GET", f"/orgs/{OWNER}/labels", author=BOT)
        if name not in {one["name"] for one in known}:
            self.server.ask(
                "POST", f"/orgs/{OWNER}/labels", {"name": name, "color": "#8c8c8c"}, BOT
            )

    def run_ci(self, branch: str, *, passes: bool) -> str:
        """Push a workflow that comes to this end, and wait for the runner to run it."""
        assert self.runner
        self.runner()
        word = "whole" if passes else "broken"
        job = JOB.format(said=SAID.format(word), status=0 if passes else 3)
        head = self.push_without_ci(branch, WORKFLOW, job)
        wanted = "success" if passes else "failure"

        def has_ended() -> bool:
            found = self.ask("GET", f"/commits/{head}/statuses")
            return any(one["context"] == CONTEXT and one["status"] == wanted for one in found)

        wait_for(has_ended, "the runner", every_s=0.3)
        return head


@contextmanager
def server_side(
    server: ForgeServer, name: str, folder: Path, runner: Callable[[], Process] | None = None
) -> Iterator[ServerSide]:
    """A new repository of a server, with the branch `main`."""
    hub = make_hub(folder)
    kept = folder / "kept"
    kept.mkdir(mode=0o700)
    side = ServerSide(hub, server, server.add_repository(name), kept, runner)
    place = server.git_url(side.repository, BOT)
    git(hub.repository.bare, "push", "-q", place, "main:main")
    # A repository has no pull requests until the server has noticed the push.
    wait_for(lambda: not side.ask("GET", "")["empty"], "the branch 'main'")
    yield side


class FakeSide(RemoteSide):
    """The same of a fake of ours."""

    @property
    def gitea(self) -> Gitea:
        """The fake."""
        assert isinstance(self.dialect, Gitea)
        return self.dialect

    def begin(self, head: str) -> None:
        """CI is at work on a commit."""
        self._say(head, "build", CheckState.PENDING)

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        """CI has come to this result."""
        if step not in ("", "build"):
            self._say(head, "build", CheckState.SUCCESS)
        self._say(head, step or "build", state, log)

    def _say(self, head: str, context: str, state: CheckState, log: str = "") -> None:
        said = Status(self.state.next_id(), head, context, STATUSES[state], time.time(), log)
        self.state.statuses.append(said)

    def protect(
        self, checks: Sequence[str] = (), approvals: int = 0, *, behind: bool = False
    ) -> None:
        """Protect `main`."""
        self.state.protected, self.state.approvals = list(checks), approvals
        self.gitea.is_strict = behind

    def allow(self, *methods: str) -> None:
        """Let pull requests be merged in these ways alone."""
        self.state.flags |= {setting: way in methods for way, setting in WAYS.items()}

    def ask_review(self, number: int, author: str) -> None:
        """Ask somebody for a review again."""
        self.gitea.asked_again.setdefault(number, []).append(author)

    def make_draft(self, number: int) -> None:
        """Have a pull request be a draft."""
        self.state.edit(self.state.entries[number], BOT, DRAFT, None)

    def offer_from_fork(self, author: str, branch: str) -> int:
        """A pull request from the fork of `author`, with the commit of our branch."""
        head = self.state.heads()[branch]
        return self.state.add("Mine", "", author, Pull(branch, "main", head, author)).number

    def depend(self, number: int, on: int) -> None:
        """Have an issue or a pull request depend on another one."""
        self.gitea.waits_for.setdefault(number, []).append(on)

    def rename(self, name: str) -> None:
        """Give the repository another name; the configuration goes on to have the old one."""
        self.configured = self.configured or self.state.name
        self.state.former.append(self.state.name)
        self.state.name = f"{self.configured}-{name}"

    def revoke(self, author: str) -> None:
        """Delete the tokens of an account."""
        tokens = self.state.tokens
        self.state.tokens = {one: who for one, who in tokens.items() if who != author}

    def add_organisation_label(self, name: str) -> None:
        """Make a label of the organisation."""
        self.gitea.org_labels.append(name)

    def run_ci(self, branch: str, *, passes: bool) -> str:
        """Push a commit, and have CI come to this end."""
        head = self.hub.push(branch, WORKFLOW, f"passes: {passes}\n")
        run = self.state.run_of(head, CONTEXT)
        run.job, run.at = "test", time.time()
        run.word = "success" if passes else "failure"
        run.log = SAID.format("whole" if passes else "broken") + "\n"
        return head


@contextmanager
def fake_side(kind: str, folder: Path) -> Iterator[FakeSide]:
    """The fake until the end of the block."""
    with remote_side(kind, make_hub(folder), folder / "kept") as made:
        side = FakeSide(**made.__dict__)
        side.gitea.is_old = side.gitea.is_public = True  # as those that were recorded
        yield side


@contextmanager
def noting(side: ServerSide | FakeSide, journey: str) -> Iterator[Book]:
    """Note what `sm` is answered until the end of the block."""
    base = side.server.url if isinstance(side, ServerSide) else side.site.url
    name = side.repository if isinstance(side, ServerSide) else side.state.name
    with recording(Book(base, name, journey)) as book:
        yield book
