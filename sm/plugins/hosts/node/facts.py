"""Facts of a node about a project, for who is about to have sessions run there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.protocol import Accounted
from sm.adapters.git import Git
from sm.base.errors import SmError
from sm.issues.look.look_share import describe_basis
from sm.issues.look.tick_record import read_polled, read_silence
from sm.plugins.hosts.node.model import STATUS, AgentTrouble, list_troubles
from sm.plugins.hosts.rules import MergeTerms, read_rules
from sm.sessions.project import Project

PROGRAM = Path(__file__).resolve().parents[4]
"""The folder that has `sm`: the clone, or where packages are."""


class NodeFacts(Struct, frozen=True, kw_only=True):
    """Facts about a project: `primary`, the commit of the remote's primary branch, or `unreadable`.

    `forge` is its kind and place, `account` whose token it is asked with, and `basis` a word for
    the settings on which a look at it depends. `troubles` is what keeps its agents from working
    there, as far as it `is_tried`: of most clients nobody knows how. `rules` are those by which it
    merges. `commit` is that of the clone from which its `sm` runs, '' if it is no clone. `polls`: a
    dev-poll runs there, by the last ticks.
    """

    primary: str = ""
    unreadable: str = ""
    forge: str = ""
    account: str = ""
    basis: str = ""
    agent: str = ""
    troubles: tuple[AgentTrouble, ...] = ()
    is_tried: bool = False
    rules: MergeTerms | None = None
    commit: str = ""
    polls: bool = False


def gather(project: Project) -> NodeFacts:
    """Return them; the remote, the model's API and the agent's client are asked."""
    primary, unreadable = "", ""
    try:
        primary = read_primary(project)
    except SmError as error:
        unreadable = error.message
    return NodeFacts(
        primary=primary,
        unreadable=unreadable,
        forge=name_forge(project),
        account=find_account(project),
        basis=describe_basis(project.settings),
        agent=project.profile.name,
        troubles=tuple(list_troubles(project)),
        is_tried=project.profile.name in STATUS,
        rules=read_rules(project.settings),
        commit=read_commit(),
        polls=is_polled(project),
    )


def is_polled(project: Project) -> bool:
    """Whether a dev-poll takes issues of the project up here; one tick by hand is none."""
    last = read_polled(project.directory)
    return last is not None and bool(last.gaps_s) and read_silence(project) is None


def read_commit() -> str:
    """Return the commit of the clone from which this `sm` runs; '' if it is no clone.

    Two clones have one version for months, and may not do the same.
    """
    with contextlib.suppress(SmError):
        return Git(PROGRAM).rev_parse("HEAD") or ""
    return ""


def read_primary(project: Project) -> str:
    """Return the commit of the primary branch on the remote; '' if there is no such branch."""
    ref = f"refs/heads/{project.settings.primary_branch}"
    return project.git.ls_remote(project.settings.remote, ref).get(ref, "")


def name_forge(project: Project) -> str:
    """Return the forge's kind, and where it is."""
    forge = project.settings.forge
    return f"{type(forge).__struct_config__.tag} {forge.place}"


def find_account(project: Project) -> str:
    """Return whose token the forge is asked with; '' for a forge without accounts, or none now."""
    try:
        return project.forge.find_account() if isinstance(project.forge, Accounted) else ""
    except SmError:
        return ""
