"""`sm init`: set a repository up."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from sm.config.check import check_path
from sm.config.convert import absolute
from sm.config.load import find, load, user_folder
from sm.errors import SmError, UsageError
from sm.output import ask, confirm, say
from sm.redact import redact
from sm.shellroot import spelled
from sm.workflow import discover, init
from sm.workflow.init import Setup

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--repo", type=PATH, help="The clone; default: the one around you.")
@click.option("--name", help="The project's name.")
@click.option("--remote", help="The remote that agents push to.")
@click.option("--primary-branch", metavar="BRANCH", help="What their work is merged into.")
@click.option("--agent", metavar="COMMAND", help="The agent's command line.")
@click.option("--ci", metavar="COMMAND", help="How a push is tested; 'none' for no CI.")
@click.option("--forge-path", type=PATH, help="The embedded forge's folder.")
@click.option("--output", type=PATH, help="The file to write; default: ~/.config/sm/NAME.yaml.")
@click.option("--toml", is_flag=True, help="Write TOML instead of YAML.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what was found.")
def command(
    repo: Path | None,
    forge_path: Path | None,
    output: Path | None,
    toml: bool,
    force: bool,
    yes: bool,
    **given: str | None,
) -> None:
    """Set a repository up: finds what it can and asks for the rest.

    Makes a bare repository and the embedded forge beside the clone where there are none, and
    writes a commented configuration. Your working tree is not touched. Run again, it goes on
    where it stopped.
    """
    cwd = Path.cwd()
    folder = absolute(cwd, str(repo)) if repo else cwd
    check_path(folder)
    clone = discover.repository(folder)
    check_path(clone)
    say(f"repository: {clone}")
    hub = init.choose_hub(clone, discover.remotes(clone), given["remote"])
    name = _answer("project name", given["name"], init.project_name(clone), yes)
    setup = Setup(
        name=name,
        repo=clone,
        hub=hub,
        primary=_answer(
            "primary branch", given["primary_branch"], init.primary_branch(clone, hub), yes
        ),
        agent=_answer("agent command", given["agent"], discover.agent_command(), yes),
        ci=_answer("CI command", given["ci"], discover.ci_command(clone) or init.NO_CI, yes),
        forge=absolute(cwd, str(forge_path)) if forge_path else init.hub_folder(clone) / "forge",
        output=_output(cwd, output, name, toml),
    )
    init.check(setup, force=force)
    _announce(setup)
    if not (yes or confirm("go ahead?")):
        raise SmError("nothing was changed")
    for line in init.carry_out(setup):
        say(line)
    _say_next(setup, cwd)


def _answer(question: str, given: str | None, found: str | None, yes: bool) -> str:
    """What was given as a flag, else what was found, confirmed by the person unless `yes`."""
    if given is not None:
        return given
    if not yes:
        return ask(question, found)
    if found is None:
        raise UsageError(f"found no {question}: give it as an option, see 'sm init --help'")
    return found


def _output(cwd: Path, output: Path | None, name: str, toml: bool) -> Path:
    if output is not None:
        return absolute(cwd, str(output))
    return user_folder(os.environ) / f"{name}{'.toml' if toml else '.yaml'}"


def _announce(setup: Setup) -> None:
    """What will be made of it, as far as the answers do not say so already."""
    hub = setup.hub
    if hub.beside is not None:
        say(
            f"'{hub.beside.name}' is at {redact(hub.beside.url)}, which the embedded forge cannot "
            f"merge into: agents push to a new remote '{hub.remote}', and you carry finished work "
            f"over with: git fetch {hub.remote} && git push {hub.beside.name} "
            f"{hub.remote}/{setup.primary}:{setup.primary}"
        )
    say(f"remote: {hub.remote} ({hub.bare}{', new' if hub.is_new else ''})")
    say(f"primary branch: {setup.primary}")
    say(f"forge: {setup.forge}")
    say(f"agent: {setup.command}")
    if not setup.profile.program:
        say(
            f"  sm does not know this program: if its input line does not begin with "
            f"'{setup.profile.glyph}', give it a profile (docs/PROFILES.md)"
        )
    say(f"CI: {setup.ci or init.NO_CI}")
    say(f"configuration: {setup.output}")


def _say_next(setup: Setup, cwd: Path) -> None:
    which = ""
    say("next:")
    found = find(None, os.environ, cwd)
    if found not in (setup.output, setup.output.parent):
        say(f"  export SM_CONFIG={shlex.quote(str(setup.output))}")
    elif len(load(found, os.environ, cwd).projects) > 1:
        which = f"--project {setup.name} "
    say(f'  {spelled("sm", cwd)} issue add {which}"…"')
    say(f"  {spelled('dev-poll', cwd)} --loop")
