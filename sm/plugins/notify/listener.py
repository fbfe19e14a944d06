"""Listeners to completed ticks. They are asked in each of them, so this imports little."""

from __future__ import annotations

from sm.config.shapes import read_section
from sm.issues.runners import list_runners
from sm.issues.ticks import Listener, Tick
from sm.plugins.notify.settings import Notify
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.place import list_remote_issues


def list_addresses(tick: Tick) -> dict[str, tuple[str, ...]]:
    """Return the addresses that get a heartbeat, and the projects that each is about."""
    found: dict[str, tuple[str, ...]] = {}
    for project in tick.config.projects:
        url = read_section(project, Notify).heartbeat_url
        if url and (project.name in tick.projects or project.name in tick.errors):
            found[url.text] = (*found.get(url.text, ()), project.name)
    return found


def is_wanted(tick: Tick) -> bool:
    """Whether there is an address."""
    return bool(list_addresses(tick))


def hear(root: Root, tick: Tick) -> None:
    """Send the heartbeat."""
    from sm.plugins.notify.heartbeat import beat

    beat(root, tick, list_addresses(tick))


def list_projects_there(tick: Tick) -> list[Project]:
    """Return those of which something runs elsewhere, or did at the last look."""
    return [
        Project(tick.config, one)
        for one in tick.config.projects
        if one.name in tick.projects and list_remote_issues(Project(tick.config, one))
    ]


def is_wanted_there(tick: Tick) -> bool:
    """Whether anything runs elsewhere, or may, and people are told by a service or a command."""
    config = tick.config
    if not config.notify_command and not any(
        read_section(one, Notify).channels for one in config.projects
    ):
        return False
    return any(map(list_runners, config.projects)) or bool(list_projects_there(tick))


def hear_there(root: Root, tick: Tick) -> None:
    """Tell what sessions elsewhere need."""
    from sm.plugins.notify.remote_needs import tell

    tell(root, tick.config, list_projects_there(tick))


THERE = Listener(hear=hear_there, wants=is_wanted_there)
LISTENER = Listener(hear=hear, wants=is_wanted)
