"""Findings about a node from what it says of itself: version, clock, a project, its own doctor."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import DecodeError, Struct

from sm.base.decoder import decode
from sm.base.text import one_line
from sm.base.version import version
from sm.helper.lines import decode_line
from sm.issues.look.look_share import describe_basis
from sm.plugins.hosts.node.facts import (
    NodeFacts,
    find_account,
    name_forge,
    read_commit,
    read_primary,
)
from sm.plugins.hosts.rules import list_weaker, read_rules
from sm.sessions.project import Project
from sm.setup.finding import Finding, Level, fail, ok, warn

PROGRAMS = {
    "git": "install it there: apt-get install git, or what that system has",
    "tmux": "install it there: apt-get install tmux, or what that system has",
    "bash": "install it there: apt-get install bash, or what that system has",
    "python3": "install Python 3.11 or newer there",
}
"""Programs that sessions need on a node, and how to get them."""
SKEW_S = 5.0
"""A clock that is so far off makes ages wrong that people read."""

NOT_THERE = ("dev-poll has ", "no dev-poll has ")
"""Beginnings of what its doctor says of a dev-poll that does not run: on a node, none is to."""


class DoctorFinding(Struct, frozen=True):
    """A finding of the node's own doctor, as its `--json` has it."""

    level: Level
    what: str
    advice: str = ""
    where: str = ""


def compare(theirs: str, off_s: float) -> Iterator[Finding]:
    """Judge the version of the node's `sm`, and how far its clock is ahead of ours, in seconds."""
    ours, theirs = version(), one_line(theirs, 40)
    if theirs == ours:
        yield ok(f"sm {theirs} there, as here")
    else:
        yield warn(f"sm {theirs} there, and {ours} here", "install the same version on both")
    if abs(off_s) > SKEW_S:
        how = "ahead" if off_s > 0 else "behind"
        yield warn(f"its clock is {abs(off_s):.0f} s {how}", "have both synchronised: timedatectl")


def judge_project(project: Project, said: str, before: str) -> Iterator[Finding]:
    """Judge what `sm host facts` says there of a project.

    `before` is the primary branch as it was here before that: it may move at any moment.
    """
    facts, name = decode_line(said.encode(), NodeFacts), project.name
    if facts.unreadable:
        yield fail(f"'{name}': {one_line(facts.unreadable, 300)}", "let git there reach the remote")
    elif facts.primary not in (before, read_primary(project)):
        branch = project.settings.primary_branch
        yield fail(
            f"'{name}': the remote there has another '{branch}' than ours",
            "have both clones push to the same repository",
        )
    else:
        yield ok(f"'{name}': a clone there with the same remote")
    if facts.forge != name_forge(project):
        told = one_line(facts.forge, 200)
        yield fail(f"'{name}': its forge there is {told}", f"set it to {name_forge(project)} there")
    elif why := _find_own_looks(project, facts):
        yield warn(f"'{name}': the node looks at the forge by itself: {why}", "docs/HOSTS.md")
    yield from _judge_rules(project, facts)
    ours = read_commit()
    if ours and facts.commit and facts.commit != ours:
        theirs = one_line(facts.commit)[:12]
        yield warn(
            f"'{name}': sm there is of commit {theirs}, and {ours[:12]} here",
            "git pull in both clones of sm",
        )
    if facts.polls:
        yield fail(
            f"'{name}': a dev-poll runs there, and takes issues up for itself",
            "end it there: only the one at home is to run",
        )
    agent = one_line(facts.agent, 40)
    for one in facts.troubles:
        tell = fail if one.is_certain else warn
        yield tell(
            f"'{name}': agent '{agent}': {one_line(one.what, 300)}", one_line(one.advice, 300)
        )
    if not facts.troubles and facts.is_tried:
        yield ok(f"'{name}': agent '{agent}' is logged in there, and reaches its model's API")


def _judge_rules(project: Project, facts: NodeFacts) -> Iterator[Finding]:
    """Judge by which rules the node merges: its own configuration decides that."""
    if facts.rules is None:
        yield fail(
            f"'{project.name}': its sm does not say by which rules it merges",
            "install the same version there",
        )
        return
    weaker = [one_line(one, 200) for one in list_weaker(read_rules(project.settings), facts.rules)]
    for one in weaker:
        yield fail(
            f"'{project.name}': it merges by weaker rules than here: {one}",
            "set it there as it is here",
        )
    if not weaker:
        yield ok(f"'{project.name}': it merges by rules that are as strict as here")


def _find_own_looks(project: Project, facts: NodeFacts) -> str:
    """Return why a look that is taken here is of no use there; '' if it is, or nobody knows."""
    if facts.basis and facts.basis != describe_basis(project.settings):
        return "its labels or branches are configured otherwise"
    ours = find_account(project)
    if facts.account and ours and facts.account != ours:
        return f"it has the token of '{one_line(facts.account, 40)}', and not of '{ours}'"
    return ""


def judge_doctor(said: str) -> Iterator[Finding]:
    """Yield what the node's own doctor has to say, but for what is well."""
    try:
        found = decode(said.encode(), list[DoctorFinding])
    except DecodeError as error:
        told = one_line(str(error), 200)
        yield warn(f"its sm doctor says what nobody understands: {told}", "log in, and call it")
        return
    found = [one for one in found if not one.what.startswith(NOT_THERE)]
    for one in found:
        if one.level is not Level.OK:
            what = f"{one_line(one.where, 60)}: {one_line(one.what, 500)}"
            yield Finding(one.level, what, one_line(one.advice, 500))
    if all(one.level is Level.OK for one in found):
        yield ok(f"its own sm doctor: {len(found)} checks, all well")
