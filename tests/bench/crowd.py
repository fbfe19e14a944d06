"""A project with many sessions, as a tick of dev-poll finds it: on disk, in git, on the forge."""

from __future__ import annotations

import subprocess
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from sm.adapters import procfs
from sm.adapters.forge.local.document import ForgeFile, render
from sm.adapters.forge.local.issues import make_front
from sm.adapters.forge.model import PullState
from sm.adapters.procfs import Process
from sm.issues.look.snapshot import last_snapshot
from sm.issues.work import claim
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import append_line, write_atomic, write_json
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git, put_session
from tests.hub import local_forge

FIRST_PULL = 100_000
"""Numbers of pull requests, out of the way of those of issues."""


@dataclass
class Crowd:
    """`count` sessions; those that await CI have a branch with a commit and an open pull request.

    Their monitors, and the runners of their CI, are locks that this process holds.
    """

    stage: Stage
    count: int
    held: ExitStack

    @property
    def project(self) -> Project:
        """The project as a process of its own would open it: nothing remembered."""
        return self.stage.project

    def age_snapshot(self) -> None:
        """Let the forge be due to be looked at."""
        directory = self.project.directory
        seen = last_snapshot(directory)
        if seen is not None:
            write_json(directory.snapshot, structs.replace(seen, taken_at=0.0))


def make_crowd(folder: Path, count: int, *, awaiting: bool) -> Crowd:
    """Put that many sessions on record, all idle, or all awaiting a check that is under way."""
    folder.mkdir()
    state = folder / "state"
    state.mkdir(mode=0o700)
    ci = {"command": "true", "poll": "5m"}
    settings: dict[str, object] = {"state_root": str(state), "max_sessions": count, "ci": ci}
    crowd = Crowd(make_stage(folder, auto=False, settings=settings), count, ExitStack())
    heads = _branches(crowd, awaiting=awaiting)
    project, agent = crowd.project, _agent(crowd)
    for issue, head in heads.items():
        _on_forge(project, issue, head if awaiting else "")
        phase = "PHASE:awaiting_ci\n" if awaiting else ""
        session = put_session(project, issue, phase=phase, alive=False)
        write_atomic(session.dir.agent_pid, f"{agent.pid} {agent.started}\n")
        crowd.held.enter_context(lock.try_hold(session.dir.monitor_lock))
        _worktree(session)
        if awaiting:
            crowd.held.enter_context(_check_under_way(project, head))
    return crowd


def _agent(crowd: Crowd) -> Process:
    """A process that stands in for every agent. Never this one: agents are killed now and then."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    crowd.held.callback(process.communicate)  # closes its input, at which it ends
    found = procfs.find(process.pid)
    assert found is not None
    return found


def _branches(crowd: Crowd, *, awaiting: bool) -> dict[int, str]:
    """A branch and a claim on the remote for each issue, and the branch in the clone."""
    project, repository = crowd.project, crowd.stage.repository
    main = git(repository.bare, "rev-parse", "main")
    heads = dict.fromkeys(range(1, crowd.count + 1), main)
    if awaiting:
        stream = "".join(_commit(project.settings.branch(issue), issue, main) for issue in heads)
        _feed(repository.bare, stream, "fast-import", "--quiet")
        git(repository.clone, "fetch", "-q", "origin")
        found = local_forge(project).repository.heads()
        heads = {n: found[project.settings.branch(n)] for n in heads}
    branches = {n: f"refs/heads/{project.settings.branch(n)}" for n in heads}
    claims = {n: claim.name_ref(n) for n in heads}
    for place, refs in (
        (repository.bare, branches),
        (repository.bare, claims),
        (repository.clone, branches),
    ):
        lines = "".join(f"update {refs[n]} {head}\n" for n, head in heads.items())
        _feed(place, lines, "update-ref", "--stdin")
    return heads


def _commit(branch: str, issue: int, base: str) -> str:
    who = "Ada Tester <ada@example.com> 1767322985 +0000"
    message, work = f"Do issue {issue}\n", f"work on issue {issue}\n"
    return (
        f"commit refs/heads/{branch}\ncommitter {who}\ndata {len(message)}\n{message}"
        f"from {base}\nM 100644 inline work-{issue}.txt\ndata {len(work)}\n{work}\n"
    )


def _feed(folder: Path, text: str, *command: str) -> None:
    subprocess.run(["git", "-C", str(folder), *command], input=text.encode(), check=True)


def _on_forge(project: Project, issue: int, head: str) -> None:
    folder = local_forge(project).folder
    front: dict[str, object] = make_front(f"Issue {issue}", "ada") | {"labels": ["in-progress"]}
    document = ForgeFile({"number": issue} | front, "Please.\n")
    folder.file("issues", issue).write_bytes(render(document))
    if head:
        front = make_front(f"Issue {issue}", "sm") | {"state": str(PullState.OPEN)}
        front |= {"branch": project.settings.branch(issue), "base": "main", "head": head}
        document = ForgeFile({"number": FIRST_PULL + issue} | front, f"Closes #{issue}")
        folder.file("pulls", FIRST_PULL + issue).write_bytes(render(document))


def _check_under_way(project: Project, head: str) -> AbstractContextManager[bool]:
    check = local_forge(project).checks.folder(head)
    check.path.mkdir()
    append_line(check.starts, b"1767322985.000")
    return lock.try_hold(check.lock)


def _worktree(session: IssueSession) -> None:
    """What `git worktree add` leaves (gitrepository-layout(5)), without the files of the tree."""
    record = session.record.repo / ".git" / "worktrees" / session.worktree.name
    session.worktree.mkdir(parents=True)
    record.mkdir(parents=True)
    (session.worktree / ".git").write_text(f"gitdir: {record}\n")
    (record / "gitdir").write_text(f"{session.worktree / '.git'}\n")
    (record / "commondir").write_text("../..\n")
    (record / "HEAD").write_text(f"ref: refs/heads/{session.record.branch}\n")
