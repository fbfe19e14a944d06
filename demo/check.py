"""What has to be true at the end, asked of git, tmux and the kernel rather than of sm."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping

from cast import NAME, PARTS, Journey, Part
from person import People
from progress import Progress
from stage import SOCKET, DemoError, Stage

from sm.adapters.forge.model import IssueState
from sm.sessions.project import Project
from sm.views.states import ShownState
from sm.views.trace import Summary


def problems(stage: Stage, progress: Progress, people: People) -> Iterator[str]:
    """What is not as it should be; nothing where all is well.

    The way that an issue takes is for an agent of the person's own to choose, and for a person who
    answers on the page. Of one that was given up, sm keeps branch and worktree.
    """
    if not stage.agent.own:
        yield from _journeys(progress, people)
    given_up = [row for row in progress.over.values() if row.state is ShownState.FAILED]
    for row in given_up:
        yield f"#{row.issue} was not merged: {row.reason or row.event}"
    failed = {row.issue for row in given_up}
    yield from _merged(
        stage, {n: part for n, part in enumerate(PARTS, 1) if n not in failed}, people
    )
    if not given_up:
        yield from _left_behind(stage)


TAKEN: dict[Journey, Callable[[Summary], bool]] = {
    Journey.CI_FAILS: lambda told: told.fixes > 0,
    Journey.CHANGES: lambda told: told.rounds > 0,
    Journey.KILLED: lambda told: told.recoveries > 0,
}
"""How the story of an issue shows that it went the way that it was to go."""


def went(number: int, part: Part, progress: Progress, people: People) -> bool:
    """Whether the issue has shown what it was to show."""
    if part.journey is Journey.ASKS:
        return people.has_answered(number)
    taken = TAKEN.get(part.journey)
    return taken is None or taken(progress.summary(number))


def _journeys(progress: Progress, people: People) -> Iterator[str]:
    for number, part in enumerate(PARTS, 1):
        if number not in people.by_hand and not went(number, part, progress, people):
            yield f"#{number} was not what it should show: {part.journey.value}"


def _merged(stage: Stage, parts: Mapping[int, Part], people: People) -> Iterator[str]:
    clone = stage.path / "check"
    stage.run("git", "clone", "--quiet", str(stage.hub), str(clone))
    for number, part in parts.items():
        line = f"from {NAME}.{part.module} import {part.function}"
        if number not in people.by_hand:
            line += f"; assert {part.example}"
        try:
            stage.run("python3", "-c", line, cwd=clone)
        except DemoError as error:
            yield f"main of '{stage.hub}' has no {part.function}() that works: {error}"
    try:
        stage.run("python3", "-m", "unittest", "-q", cwd=clone)
    except DemoError as error:
        yield f"the test suite fails at the head of main: {error}"
    merges = stage.git("rev-list", "--count", "--merges", "main", folder=stage.hub)
    if merges != str(len(parts)):
        yield f"main has {merges} merge commits, not {len(parts)}"


def _left_behind(stage: Stage) -> Iterator[str]:
    project = stage.project
    for issue in project.forge.issues.find(IssueState.OPEN)[0]:
        yield f"issue #{issue.number} is still open"
    for line in stage.git("for-each-ref", "--format=%(refname)", folder=stage.hub).splitlines():
        if line != "refs/heads/main":
            yield f"the hub still has {line}"
    for one in stage.projects:
        yield from _worktrees_left_behind(stage, one)
        yield from _state_left_behind(one)
    for process in stage.processes():
        yield f"process {process.pid} still runs"


def _worktrees_left_behind(stage: Stage, project: Project) -> Iterator[str]:
    clone = project.settings.repo
    for line in stage.git("worktree", "list", "--porcelain", folder=clone).splitlines():
        if line.startswith("worktree ") and line != f"worktree {clone}":
            yield f"git still has the {line}"
    for path in project.settings.worktrees.glob("*"):
        yield f"the worktree '{path}' is still there"


def _state_left_behind(project: Project) -> Iterator[str]:
    root = project.root
    for path in (*root.path.iterdir(), *root.sessions.glob("*")):
        if path != root.private:
            yield f"the state file '{path}' is still there"
    sessions = subprocess.run(
        ["tmux", "-L", SOCKET, "list-sessions"], capture_output=True, text=True, check=False
    )
    if sessions.returncode == 0:
        yield f"tmux still has sessions: {sessions.stdout.strip()}"
