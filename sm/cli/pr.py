"""`sm pr`: list, show, compare and merge pull requests."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.acts.permission import find_author_name, leave_to_others
from sm.base.output import Styled, pass_on, say
from sm.base.text import one_line
from sm.cli.agent_forge import ask_for, find_agent, find_seen_trust, list_pulls
from sm.cli.forges import (
    author_option,
    end_with,
    head_option,
    make_state_option,
    number_argument,
    print_remarks,
    print_table,
    print_text,
)
from sm.cli.issue import make_comment
from sm.cli.options import json_option, project_option
from sm.cli.words import print_json
from sm.sessions.project import Project

if TYPE_CHECKING:
    from sm.adapters.forge.model import Check, PullRequest
    from sm.adapters.forge.trust import Trust

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
HEADS = ("diff ", "index ", "--- ", "+++ ")
STAT = re.compile(r"(.*\| +\d+ )(\+*)(-*)")


@click.group()
def command() -> None:
    """List, show, compare, check out, merge and close pull requests."""


@command.command("list")
@make_state_option("open", "merged", "closed")
@json_option
@project_option
def list_(project: Project, state: str, as_json: bool) -> None:
    """List pull requests, oldest first."""
    from sm.adapters.forge.model import PullState
    from sm.adapters.forge.trust import Trust

    wanted = None if state == "all" else PullState(state)
    if agent := find_agent(project):
        found, problems = list_pulls(agent, wanted)
        trust = find_seen_trust(agent)
    else:
        forge = project.forge
        found, problems = forge.pulls.find(wanted)
        reviewers = {review.author for pull in found for review in pull.reviews}
        trust = Trust(project.settings.trusted, forge.find_writers(reviewers))
    if as_json:
        print_json(found)
    else:
        print_table(
            ("#", "Title", "State", "Branch", "Into", "Head", "CI", "Review", "Merges"),
            [
                (
                    str(pull.number),
                    pull.title,
                    pull.state,
                    pull.branch,
                    pull.base,
                    pull.head[:12],
                    pull.check.state,
                    _verdict(pull, trust),
                    "conflicts" if pull.conflicts else "",
                )
                for pull in found
            ],
            empty="no pull requests" if state == "all" else f"no {state} pull requests",
        )
    end_with(problems)


def _verdict(pull: PullRequest, trust: Trust) -> str:
    """Return the reviewers' verdict, in the words of `sm status`; '' for none yet."""
    from sm.adapters.forge.trust import verdict
    from sm.views.session_row import VERDICTS

    found = verdict(pull.reviews, pull.head, trust)
    return VERDICTS.get(found.state, "") if found else ""


@command.command()
@number_argument
@json_option
@project_option
def show(project: Project, number: int, as_json: bool) -> None:
    """Show a pull request with its checks, the failing log, reviews and comments.

    To an agent it shows only what trusted people have written.
    """
    from sm.adapters.forge.model import PullRequest
    from sm.issues.act.forge_requests import ForgeVerb
    from sm.views.times import format_moment

    if agent := find_agent(project):
        pull = ask_for(agent, ForgeVerb.PULL, number, PullRequest)
    else:
        pull = project.forge.pulls.read(number)
    if as_json:
        print_json(pull)
        return
    say(Styled(f"{pull.name} {one_line(pull.title)}", bold=True))
    conflicts = " · conflicts" if pull.conflicts else ""
    say(f"{pull.state} · {one_line(pull.author)}, {format_moment(pull.at)}{conflicts}")
    say(f"{one_line(pull.branch)} at {pull.head[:12]} into {one_line(pull.base)}")
    _say_check(pull.check)
    if pull.held:
        say(f"held by the forge: {one_line(pull.held)}")
    if pull.merged_as:
        say(f"merged as {pull.merged_as[:12]}")
    print_text(pull.body)
    print_remarks([*pull.comments, *pull.reviews])


def _say_check(check: Check) -> None:
    """Print the state of CI, with its log where it failed."""
    step = f" ({one_line(check.step)})" if check.step else ""
    say(f"CI: {check.state}{step} {one_line(check.url)}".rstrip())
    for what, names in (
        ("required, and not begun", check.missing),
        ("failed, but not required", check.optional),
        ("the whole log", (check.file,) if check.file else ()),
    ):
        if names:
            say(f"{what}: {', '.join(map(one_line, names))}")
    print_text(check.log)


command.add_command(show, "view")  # as gh calls it
command.add_command(make_comment(on_pull=True))


@command.command()
@number_argument
@project_option
def checks(project: Project, number: int) -> None:
    """Show what CI says of a pull request; if it failed, with the log, and exit code 1.

    An agent gets what was seen last; `ci.poll` says how old that may be.
    """
    from sm.adapters.forge.model import Check, CheckState
    from sm.issues.act.forge_requests import ForgeVerb

    forge = project.forge
    if agent := find_agent(project):
        found = ask_for(agent, ForgeVerb.CHECK, number, Check)
    else:
        found = forge.checks.read(forge.pulls.read(number).head)
    _say_check(found)
    if found.state in (CheckState.FAILURE, CheckState.BROKEN):
        click.get_current_context().exit(1)


@command.command()
@number_argument
@project_option
def close(project: Project, number: int) -> None:
    """Close a pull request unmerged; a session that works on its issue is stopped."""
    leave_to_others(project, "close it", pull=number)
    project.forge.pulls.close(number)
    say(f"closed #{number}")


@command.command()
@number_argument
@click.option("--stat", is_flag=True, help="Only the files and how much changes in them.")
@project_option
def diff(project: Project, number: int, stat: bool) -> None:
    """Show what a pull request changes; in a pipe it is the patch as it is.

    On a terminal the commit that it is of stands below it.
    """
    from sm.issues.act.forge_requests import ForgeVerb
    from sm.issues.review import read_change

    head = ""
    if agent := find_agent(project):
        found = ask_for(agent, ForgeVerb.DIFF, number, bytes, text="--stat" if stat else "")
    elif stat:
        found = project.forge.pulls.diff(number, stat=True)
    else:
        change = read_change(project, number)
        head, found = change.head, change.patch
    if not sys.stdout.isatty():
        pass_on(found)
        return
    for line in found.decode("utf-8", "replace").splitlines():
        say(*_coloured(line))
    if head:
        say(f"that is {head[:12]}: sm review {number} --approve --head {head[:12]}")


def _coloured(line: str) -> tuple[str | Styled, ...]:
    """Return a line of a patch, or of the overview with `--stat`, in git's colours."""
    if overview := STAT.fullmatch(line):
        return overview[1], Styled(overview[2], "green"), Styled(overview[3], "red")
    if line.startswith(HEADS):
        return (Styled(line, bold=True),)
    return (Styled(line, COLOURS.get(line[:1])),)


@command.command()
@number_argument
@project_option
def checkout(project: Project, number: int) -> None:
    """Check a pull request out in the clone that you are in, to look at it and try it.

    It is the last commit without the branch: that one is the agent's, in a worktree of its own.
    'git switch -' goes back.
    """
    from sm.issues.review import check_out

    pull = check_out(project, number, Path.cwd())
    say(f"at {pull.head[:12]}, the last commit of #{number}; git switch - goes back")


@command.command()
@number_argument
@head_option
@click.option("-m", "--message", metavar="TEXT", default="", help="The merge commit's message.")
@author_option
@project_option
def merge(
    project: Project,
    number: int,
    head: str,
    message: str,
    author: str | None,
) -> None:
    """Merge a pull request on the forge.

    It is refused if it conflicts, if CI has not passed on the branch's last commit, if that commit
    is not approved although the project wants reviews, or if it is not the one that --head names.
    An agent may merge the pull request of its own branch if merge.by is 'agent'.
    """
    from sm.adapters.forge.model import PullRequest
    from sm.issues import review
    from sm.issues.act.forge_requests import ForgeVerb

    if agent := find_agent(project):
        pull = ask_for(agent, ForgeVerb.MERGE, number, PullRequest, text=message, head=head)
    else:
        name = find_author_name(project, author)
        pull = review.merge(project, number, head=head, message=message, author=name)
    say(review.tell_merge(pull))
