"""`sm host`: other machines on which sessions run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError, UsageError
from sm.base.issue_id import IssueId
from sm.base.output import Styled, say, say_lines, say_text, warn
from sm.base.text import one_line
from sm.cli.invocation import Invocation, find_project
from sm.cli.options import json_option, load_any_config, load_config, pass_config
from sm.cli.words import print_json
from sm.config.schema import Config, ProjectSettings
from sm.plugins.hosts.slurm.settings import KEEP_S
from sm.sessions.project import Project
from sm.store.paths import Root, check_name
from sm.views.times import format_age

if TYPE_CHECKING:
    from sm.plugins.hosts.overview import HostRow
    from sm.plugins.hosts.ssh.client import SshNode
    from sm.setup.finding import Finding


@click.group("host")
def command() -> None:
    """Add, list, check and remove other machines on which sessions run.

    A whole sm runs there; docs/HOSTS.md says how to set one up.
    """


@command.command("add")
@click.argument("address")
@click.option("--name", help="What it is called here; by default the first part of its address.")
@click.option(
    "--sessions",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How many sessions it has room for.",
)
@click.option("--sm", "program", default="", help="Path of sm there, if it is not on its PATH.")
@click.option(
    "--option", "-o", "options", multiple=True, help="Option of ssh, such as 'Port=2222'."
)
@click.option("--anyway", is_flag=True, help="Add it even if something is missing there.")
@click.pass_context
def add(
    ctx: click.Context,
    address: str,
    name: str | None,
    sessions: int,
    program: str,
    options: tuple[str, ...],
    anyway: bool,
) -> None:
    """Check the machine at ADDRESS, as ssh has it, and add it.

    It says what is missing there, and how to get it; then nothing is added. The login has to work
    without a question.
    """
    from sm.plugins.hosts import inventory
    from sm.plugins.hosts.ssh.client import SshNode

    config = load_config(ctx)
    called = check_name(name or name_host(address), "host")
    values = {"address": address, "sessions": sessions, "sm": program, "options": options}
    host = inventory.make_host(values)
    if not _check(config, SshNode(Root(config.state_root), called, host)) and not anyway:
        raise SmError("not added: mend that, then call it again")
    path = inventory.find_file(config.source)
    if path is None:
        say("add this to your configuration:", err=True)
        shown = {"address": address, "sessions": sessions, "sm": program, "options": [*options]}
        kept = {key: value for key, value in shown.items() if value}
        say_text(inventory.format_hosts({"ssh": {called: kept}}), nl=False)
        return
    inventory.add(path, called, host)
    say(f"added '{called}' to '{path}': projects with 'runner: ssh' have sessions there")


def name_host(address: str) -> str:
    """Return the first part of the host's name, without the user."""
    return address.rpartition("@")[2].strip("[]").replace(":", "-").partition(".")[0]


def _check(config: Config, node: SshNode) -> bool:
    """Tell what is found on the host; say whether nothing is broken. Then it is used again."""
    from sm.plugins.hosts import health
    from sm.plugins.hosts.ssh.check import examine
    from sm.plugins.hosts.ssh.node import list_nodes

    elsewhere = [one for one in config.projects if one.forge.is_elsewhere]
    meant = [one for one in config.projects if names_runner(one)] or elsewhere
    projects = [Project(config, one) for one in meant]
    others = list(takewhile(lambda one: one.name != node.name, list_nodes(config)))
    whole = _tell(node.name, lambda: examine(node, projects, others))
    for one in meant if whole else ():
        health.end_refusal(node.folder, one.name)
    return whole


def _check_slurm(project: Project) -> bool:
    """Tell what is found of the cluster, and on a node; say whether nothing is broken."""
    from sm.plugins.hosts.slurm.check import examine, examine_node

    called = f"slurm, {project.name}"
    return _tell(called, lambda: examine(project)) and _tell(called, lambda: examine_node(project))


def _tell(called: str, check: Callable[[], Iterable[Finding]]) -> bool:
    from sm.setup.finding import Level, guard

    whole = True
    for finding in guard(check):
        say(
            Styled(f"{finding.level:5}", COLOURS[finding.level]),
            f" {called}: {one_line(finding.what)}",
        )
        if finding.advice:
            say(f"      {one_line(finding.advice)}")
        whole &= finding.level is not Level.FAIL
    return whole


def names_runner(settings: ProjectSettings, runner: str = "ssh") -> bool:
    """Whether sessions of the project may run on hosts, or in jobs."""
    return runner in (settings.runner, *settings.runners.values())


SLURM = "slurm"


COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@command.command("check")
@click.argument("name", required=False)
@pass_config
@click.pass_context
def check(ctx: click.Context, config: Config, name: str | None) -> None:
    """Say what is missing on a host, or on all, and how to get it; exit code 1 if anything is.

    The NAME 'slurm' means the cluster: a short job there looks at a node.
    """
    from sm.plugins.hosts.ssh.node import find_node, list_nodes

    in_jobs = [Project(config, one) for one in config.projects if names_runner(one, SLURM)]
    if name == SLURM and not in_jobs:
        raise UsageError("no project has 'runner: slurm': docs/HOSTS.md")
    if name == SLURM:
        nodes = []
    elif name:
        nodes, in_jobs = [find_node(config, name)], []
    else:
        nodes = list_nodes(config)
    if not nodes and not in_jobs:
        say("there is no host: sm host add user@host", err=True)
    whole = True
    for node in nodes:
        whole &= _check(config, node)
    for project in in_jobs:
        whole &= _check_slurm(project)
    if not whole:
        ctx.exit(1)


@command.command("list")
@json_option
@pass_config
def list_hosts(config: Config, as_json: bool) -> None:
    """Show every host: whether it answers, and how many places are free."""
    from sm.plugins.hosts.overview import list_rows

    rows = list_rows(config)
    if as_json:
        print_json(rows)
    elif rows:
        say_lines(format_rows(rows))
    else:
        say("there is no host: sm host add user@host", err=True)


def format_rows(rows: Sequence[HostRow]) -> list[str]:
    """Return the rows as a table of plain text."""
    head = ("HOST", "ADDRESS", "SESSIONS", "FREE", "HEARD", "")
    lines = [head, *(_format_row(row) for row in rows)]
    wide = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
        for line in lines
    ]


def _format_row(row: HostRow) -> tuple[str, ...]:
    heard = (
        "now" if not row.trouble else format_age(row.age_s) + " ago" if row.known_at else "never"
    )
    free = "" if row.trouble else "0" if row.short else str(max(0, row.room - row.sessions))
    counted = f"{row.sessions} of {row.room}"
    return row.name, row.address, counted, free, heard, row.trouble or one_line(row.short)


@command.command("remove")
@click.argument("name")
@pass_config
def remove(config: Config, name: str) -> None:
    """Remove a host on which no session runs; nothing is changed there."""
    from sm.plugins.hosts import inventory
    from sm.plugins.hosts.overview import list_rows
    from sm.plugins.hosts.ssh import master
    from sm.plugins.hosts.ssh.node import find_node

    node = find_node(config, name)
    busy = next((row.issues for row in list_rows(config, ask=False) if row.name == name), ())
    if busy:
        raise SmError(f"'{name}' has sessions: {', '.join(busy)}: sm kill each of them first")
    path = inventory.find_file(config.source)
    if path is None or not inventory.remove(path, name):
        raise UsageError(
            f"'{name}' is not in '{inventory.FILE}': take it out of your configuration"
        )
    master.end(node.folder)
    say(f"removed '{name}' from '{path}'")


# What programs call
#
# On a node, most are called by the installation that places sessions there.


@command.command("begin", hidden=True)
@click.argument("project")
@click.argument("issue", type=click.IntRange(min=1))
@click.option("--attempt", type=click.IntRange(min=1), required=True)
@click.option("--claim", required=True)
@click.option("--rules", default="", help="By which it is merged where it was claimed, as JSON.")
@click.pass_context
def begin(
    ctx: click.Context, project: str, issue: IssueId, attempt: int, claim: str, rules: str
) -> None:
    """Begin the session of an attempt here; print its id."""
    from sm.issues.look.issue_text import UntrustedTextError
    from sm.issues.start import SettledError, TakenError
    from sm.plugins.hosts import wire
    from sm.plugins.hosts.node.attempts import begin

    try:
        say(begin(find_project(load_config(ctx), project), issue, attempt, claim, rules))
    except (SettledError, TakenError, UntrustedTextError) as error:
        warn(error.message)
        ctx.exit(wire.OF_ISSUE if isinstance(error, UntrustedTextError) else wire.SETTLED)


@command.command("job", hidden=True)
@click.argument("project")
@click.argument("issue", type=click.IntRange(min=1))
@click.option("--attempt", type=click.IntRange(min=1), required=True)
@click.option("--claim", required=True)
@click.option("--notice", type=click.FloatRange(min=0), default=300.0)
@click.option("--keep", type=click.FloatRange(min=0), default=KEEP_S)
@click.option("--rules", default="")
@click.pass_context
def job(
    ctx: click.Context,
    project: str,
    issue: IssueId,
    attempt: int,
    claim: str,
    notice: float,
    keep: float,
    rules: str,
) -> None:
    """Run the session of an attempt to its end; a job of Slurm is that."""
    from sm.plugins.hosts.node.job import JobOrder
    from sm.plugins.hosts.slurm.job import run_job

    order = JobOrder(issue, attempt, claim, notice, rules)
    say(run_job(find_project(load_config(ctx), project), order, keep))


@command.command("look", hidden=True)
@click.argument("project")
@click.pass_context
def look(ctx: click.Context, project: str) -> None:
    """Ask the jobs of a project how their sessions stand; who shows that starts it."""
    from sm.plugins.hosts.slurm.poller import look
    from sm.plugins.hosts.slurm.runner import RUNNER

    look(find_project(load_config(ctx), project), RUNNER)


@command.command("carry", hidden=True)
@click.argument("project")
@click.pass_context
def carry(ctx: click.Context, project: str) -> None:
    """Bring jobs of a project what was seen of the forge; the tick starts it."""
    from sm.plugins.hosts.slurm.carrier import carry

    carry(find_project(load_config(ctx), project))


@command.command("report", hidden=True)
@click.argument("project")
@click.pass_context
def report(ctx: click.Context, project: str) -> None:
    """Say how the sessions stand that stdin names, if any, and have what is here looked after."""
    from sm.plugins.hosts.node.attempts import keep_alive
    from sm.plugins.hosts.node.report import read_asked, report

    here, asked = find_project(load_config(ctx), project), read_asked(sys.stdin.read())
    said = report(here, asked)
    print_json(said)
    if asked or said.strays:
        keep_alive(here)


@command.command("adopt", hidden=True)
@click.argument("project")
@click.option("--age", type=click.FloatRange(min=0), help="Seconds since the look, at the most.")
@click.pass_context
def adopt(ctx: click.Context, project: str, age: float | None) -> None:
    """Take what stdin has seen of the forge for a look of our own, for a while."""
    from sm.plugins.hosts.node.adoption import adopt, read_share

    share = read_share(sys.stdin.read(), age)
    adopt(find_project(load_config(ctx), project), share)


@command.command("wishes", hidden=True)
@click.pass_context
def wishes(ctx: click.Context) -> None:
    """Wait until sessions wish for a newer look at the forge; print their projects."""
    from sm.plugins.hosts.node.adoption import hear

    root = Root(load_any_config(ctx).state_root)
    print_json(hear(root, os.getppid()))


@command.command("facts", hidden=True)
@click.argument("project")
@click.pass_context
def facts(ctx: click.Context, project: str) -> None:
    """Say what is known of a project here."""
    from sm.plugins.hosts.node.facts import gather

    print_json(gather(find_project(load_config(ctx), project)))


@command.command("link", hidden=True)
@click.argument("root", type=click.Path(path_type=Path))
def link(root: Path) -> None:
    """Keep channels open to hosts, for all commands; a command that needs one starts it."""
    from sm.plugins.hosts.ssh.links import serve
    from sm.store.paths import Root
    from sm.store.root_check import check_root

    serve(check_root(Root(root)))


@command.command("serve", hidden=True)
@click.pass_context
def serve(ctx: click.Context) -> None:
    """Answer what comes on stdin, on a node; the other end of the channel starts it."""
    from sm.base.version import version
    from sm.issues.look.wishes import Ear
    from sm.plugins.hosts.folder import read_ident
    from sm.plugins.hosts.node.serve import Server
    from sm.store.root_check import check_root

    invocation = ctx.ensure_object(Invocation)
    if invocation.again is None:
        raise UsageError("it is called by 'sm' alone")

    def find_folder(project: str) -> str:
        try:
            found = load_any_config(ctx).project(project)
        except SmError:
            return ""
        return str(found.repo) if found and found.repo.is_dir() else ""

    def open_ear() -> Ear | None:
        try:
            return Ear(check_root(Root(load_any_config(ctx).state_root)))
        except (SmError, OSError):
            return None  # then each session looks at the forge by itself

    def find_ident() -> str:
        try:
            return read_ident(check_root(Root(load_any_config(ctx).state_root)))
        except (SmError, OSError):
            return ""  # then nobody can tell it from another

    Server(invocation.again, find_folder, version(), open_ear, find_ident()).serve()
