"""Needs of hosts: what keeps them from having sessions, and messages that came to nothing there."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.base.act import run
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.text import one_line
from sm.issues import runners
from sm.issues.placements import list_placements
from sm.issues.runners import Hindrance, Watcher
from sm.plugins.hosts.messages import lost
from sm.sessions.project import Project
from sm.store.paths import find_issue_id
from sm.views.open_need import OpenNeed

TEXT_LIMIT = 500


def list_host_needs(project: Project) -> Iterator[OpenNeed]:
    """Yield what keeps hosts of the project from sessions, or sessions from messages, by files."""
    for one in list_hindrances(project):
        yield OpenNeed(
            key=one.key,
            kind=NeedKind.HOST,
            project=project.name,
            since=one.since,
            text=one_line(one.text, TEXT_LIMIT),
            act=run(one.command),
        )
    yield from _list_lost_messages(project, time.time())


def _list_lost_messages(project: Project, now: float) -> Iterator[OpenNeed]:
    """Yield the messages for sessions elsewhere that came to nothing, from a file alone."""
    directory = project.root.project(project.name)
    for one in lost.list_recent(directory, now):
        name = f"{project.name}#{find_issue_id(project.name, one.session)}"
        yield OpenNeed(
            key=f"message:{one.id}",
            kind=NeedKind.HOST,
            project=project.name,
            since=one.at,
            text=one_line(
                f"A message for {name} was not taken, and is gone: {one.why}", TEXT_LIMIT
            ),
            act=run(f"sm trace {name}"),
        )


def list_hindrances(project: Project) -> Iterator[Hindrance]:
    """Yield the hindrances of all runners that the project names or uses; mostly none."""
    placed = list_placements(project.root.project(project.name))
    named = (*runners.list_runners(project.settings), *(one.runner for one in placed))
    for name in dict.fromkeys(named):
        try:
            runner = runners.load_runner(name)
            if isinstance(runner, Watcher):
                yield from runner.list_hindrances(project)
        except SmError:  # a tick says what is wrong with it
            continue
