"""`sm init`: set a repository up."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from sm.base.errors import SmError, UsageError
from sm.base.output import ask, confirm, say, say_text, warn
from sm.cli.init_report import announce, tell_next
from sm.cli.invocation import find_project
from sm.config.check import check_path, find_ref_problem
from sm.config.convert import make_absolute
from sm.config.forges import ForgeSettings, LocalSettings
from sm.config.load import find_user_folder, load
from sm.setup import discover, init, remote_forge
from sm.setup.existing import find_existing, find_other
from sm.setup.hub import Hub, choose_hub, choose_primary_branch, find_source, locate_hub
from sm.setup.init import Setup
from sm.setup.remote_forge import ForgeChoice, list_kinds
from sm.setup.repository import find_branch_prefix, list_troubles
from sm.setup.variables import Variables, recall
from sm.shell_root import spell_command

PATH = click.Path(path_type=Path)
DEFAULT = click.core.ParameterSource.DEFAULT


@click.command()
@click.option("--repo", type=PATH, help="The clone; default: the one around you.")
@click.option("--name", help="The project's name.")
@click.option("--remote", help="The remote that agents push to.")
@click.option("--primary-branch", metavar="BRANCH", help="What their work is merged into.")
@click.option("--agent", metavar="COMMAND", help="The agent's command line.")
@click.option(
    "--pass-env",
    metavar="VARIABLE",
    multiple=True,
    help="A variable of your environment that agents may see; may be given several times.",
)
@click.option("--ci", metavar="COMMAND", help="How a push is tested; 'none' for no CI.")
@click.option("--setup", metavar="COMMAND", help="Run in each new worktree; 'none' for nothing.")
@click.option(
    "--copy",
    metavar="FILE",
    multiple=True,
    help="An ignored file that each new worktree gets a copy of; may be given several times.",
)
@click.option("--try-ci/--no-try-ci", default=None, help="Run the CI command once; default: ask.")
@click.option("--forge-path", type=PATH, help="The embedded forge's folder.")
@click.option(
    "--forge",
    "kind",
    type=click.Choice(list_kinds()),
    default="local",
    show_default=True,
    help="Where the issues are; 'local': a forge of your own beside the clone.",
)
@click.option(
    "--forge-url", metavar="URL", help="The server's address; default: that of the remote."
)
@click.option(
    "--repository", metavar="OWNER/NAME", help="The repository there; default: that of the remote."
)
@click.option("--token-file", type=PATH, help="A file with the token for it (0600).")
@click.option("--token-command", metavar="COMMAND", help="Prints the token.")
@click.option("--token-env", metavar="VARIABLE", help="A variable with the token.")
@click.option("--output", type=PATH, help="The file to write; default: ~/.config/sm/NAME.yaml.")
@click.option("--toml", is_flag=True, help="Write TOML instead of YAML.")
@click.option("--force", is_flag=True, help="Ask all again; replace the file if it is there.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: take what was found.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    repo: Path | None,
    forge_path: Path | None,
    kind: str,
    token_file: Path | None,
    output: Path | None,
    pass_env: tuple[str, ...],
    copy: tuple[str, ...],
    try_ci: bool | None,
    toml: bool,
    force: bool,
    yes: bool,
    **given: str | None,
) -> None:
    """Set a repository up: finds what it can and asks for the rest.

    At the end it offers to run the CI command once on the primary branch, in a clean checkout.

    It makes a bare repository and the embedded forge beside the clone if they are missing, and
    writes a commented configuration. With --forge it uses a forge that is there: docs/FORGES.md.
    Your working tree is not touched. If you run it again, it makes what is missing, and leaves the
    configuration as it is.
    """
    cwd = Path.cwd()
    folder = make_absolute(cwd, str(repo)) if repo else cwd
    check_path(folder)
    clone = discover.find_repository(folder)
    check_path(clone)
    say(f"repository: {clone}")
    setup = None if force or _wants_new_values(ctx) else _complete(clone, given, output, cwd)
    if setup is None:
        hub, forge = _choose_forge(clone, kind, forge_path, token_file, given)
        owner = None if output or force else clone
        name = _name(
            given,
            init.name_project(clone),
            yes,
            owner,
            lambda name: _output(cwd, output, name, toml),
        )
        file = _output(cwd, output, name, toml)
        primary = _primary(clone, hub, given, yes)
        agent = _agent(given, yes)
        setup = Setup(
            name=name,
            repo=clone,
            hub=hub,
            primary=primary,
            agent=agent,
            variables=_variables(recall(file, name, pass_env), agent, yes),
            ci=_ci(clone, given, yes) if kind == "local" else init.NO_CI,
            forge=forge,
            output=file,
            branch_prefix=find_branch_prefix(clone, hub.remote, init.DEFAULT_PREFIX),
            worktree_setup=_worktree_setup(clone, given, yes),
            worktree_copy=copy or _worktree_copy(clone, yes),
        )
    init.check(setup, force=force)
    announce(setup)
    if not (yes or confirm("go ahead?")):
        raise SmError("nothing was changed")
    added = 0
    for line in init.carry_out(setup):
        added += 1
        say(line)
    if not added:
        say("nothing was missing")
    for trouble in list_troubles(setup.project):
        warn(f"{trouble.what}: {trouble.advice}")
    if setup.existing is None or try_ci is not None:
        _offer_ci(setup, cwd, try_ci, yes)
    tell_next(setup, cwd)


OF_THE_RUN = frozenset({"repo", "name", "output", "yes", "try_ci", "force"})
"""Options that say nothing of what the configuration is to be."""


def _wants_new_values(ctx: click.Context) -> bool:
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is not DEFAULT}
    return bool(given - OF_THE_RUN)


def _complete(
    clone: Path, given: Mapping[str, str | None], output: Path | None, cwd: Path
) -> Setup | None:
    """A setup that adds what a project lacks; None if the configuration has none of this clone."""
    file = make_absolute(cwd, str(output)) if output else None
    found = find_existing(clone, given["name"], file, cwd)
    if found is None:
        return None
    project, remotes = found.project, discover.list_remotes(clone)
    if isinstance(project.forge, LocalSettings):
        hub = choose_hub(clone, remotes, project.remote)
    else:
        hub, _ = remote_forge.choose_remote(clone, remotes, project.remote)
    say(
        f"project '{project.name}' is in '{found.file}' already: that stays as it is, and what is "
        "missing is added; --force asks all again"
    )
    return Setup(
        name=project.name,
        repo=clone,
        hub=hub,
        primary=project.primary_branch,
        agent=found.command,
        ci=project.ci.command or init.NO_CI,
        forge=project.forge,
        output=found.file,
        existing=found,
    )


def _choose_forge(
    clone: Path,
    kind: str,
    forge_path: Path | None,
    token_file: Path | None,
    given: Mapping[str, str | None],
) -> tuple[Hub, ForgeSettings]:
    """Where the issues are, and where agents push."""
    remotes = discover.list_remotes(clone)
    if kind == "local":
        hub = choose_hub(clone, remotes, given["remote"])
        place = make_absolute(Path.cwd(), str(forge_path)) if forge_path else None
        return hub, LocalSettings(path=place or locate_hub(clone) / "forge")
    hub, url = remote_forge.choose_remote(clone, remotes, given["remote"])
    if given["ci"] not in (None, init.NO_CI):
        raise UsageError(f"the forge runs CI, not sm: leave out --ci, or say --ci {init.NO_CI}")
    choice = ForgeChoice(
        kind=kind,
        url=given["forge_url"] or "",
        repository=given["repository"] or "",
        token_command=given["token_command"] or "",
        token_file=make_absolute(Path.cwd(), str(token_file)) if token_file else None,
        token_env=given["token_env"] or "",
        has_ci=given["ci"] is None,
    )
    return hub, remote_forge.choose_forge(choice, url)


def _name(
    given: Mapping[str, str | None],
    found: str,
    yes: bool,
    clone: Path | None,
    locate: Callable[[str], Path],
) -> str:
    """The project's name; a person is asked until it is free. `locate` returns the file for it.

    That file may hold a project of `clone` alone; None if it may be replaced.
    """

    def check(name: str) -> None:
        file = locate(name)
        init.check_name_is_free(name, file)
        if clone and (other := find_other(file, clone)):
            raise UsageError(
                f"'{file}' has project '{other.name}' of '{other.repo}': choose another --name, "
                "or --force to replace it"
            )

    return _answer("project name", "name", given, found, yes, check)


def _primary(clone: Path, hub: Hub, given: Mapping[str, str | None], yes: bool) -> str:
    def check(branch: str) -> None:
        if problem := find_ref_problem(branch):
            raise UsageError(problem)
        if hub.is_new:
            find_source(clone, hub, branch)

    found = choose_primary_branch(clone, hub)
    return _answer("primary branch", "primary_branch", given, found, yes, check)


def _agent(given: Mapping[str, str | None], yes: bool) -> str:
    """The agent's command line, or its name."""
    found = discover.find_agent_command()
    if not (found or yes or given["agent"]):
        say(f"found none of {', '.join(discover.list_agents())} on PATH: install one, or name")
        say("the command line of your agent; without an answer nothing is changed")
    return _answer("agent command", "agent", given, found, yes)


def _variables(known: Variables, agent: str, yes: bool) -> Variables:
    """Which variables agents may see; a person is asked once of each."""
    names = known.list_open(discover.find_agent(agent)[0])
    if yes or not names:
        return known
    may_see = confirm(
        f"agents do not see these variables of your environment: {', '.join(names)}; let them?"
    )
    return known.settle(names, may_see=may_see)


def _ci(clone: Path, given: Mapping[str, str | None], yes: bool) -> str:
    """How a push is tested, if the forge does not know that itself."""
    found = discover.guess_ci_command(clone) or init.NO_CI
    return _answer("CI command", "ci", given, found, yes)


def _worktree_setup(clone: Path, given: Mapping[str, str | None], yes: bool) -> str:
    """What is run in each new worktree; asked only if the clone has lock files."""
    found = discover.guess_setup(clone)
    return _answer("setup of each new worktree", "setup", given, found, yes or not found)


def _worktree_copy(clone: Path, yes: bool) -> tuple[str, ...]:
    """The ignored files that each new worktree gets a copy of; asked only if there are some."""
    found = discover.find_ignored(clone)
    if yes or not found:
        return found
    said = ask("ignored files that each new worktree gets", shlex.join(found))
    return () if said == init.NO_CI else tuple(shlex.split(said))


def _offer_ci(setup: Setup, cwd: Path, wanted: bool | None, yes: bool) -> None:
    """Try the CI command if the person wants that; `--yes` skips it and asks nothing."""
    if setup.ci in ("", init.NO_CI):
        return
    if wanted is None and not yes:
        wanted = _agrees(f"run the CI command once now, on '{setup.primary}', to see it pass?")
    if wanted:
        try:
            _try_ci(setup, cwd)
        except SmError as error:  # all is set up
            warn(f"CI was not tried: {error.message}")
    else:
        say(f"CI was not tried: {spell_command('sm', cwd)} doctor --ci runs it once")


def _agrees(question: str) -> bool:
    """A person's answer; input that has ended is a no, as all is set up by then."""
    try:
        return confirm(question)
    except click.Abort as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):
            return False
        raise


def _try_ci(setup: Setup, cwd: Path) -> None:
    from sm.setup.trial import try_ci

    config = load(setup.output, os.environ, cwd)
    project = find_project(config, setup.name)
    limit = project.settings.ci.timeout_s
    say(f"CI runs in a clean checkout of '{setup.primary}', for {limit:g} s at most …")
    found = try_ci(project)
    if found.passed:
        say(f"CI passes, in {found.took_s:.1f} s")
        return
    say_text(found.log, err=True)
    say(
        f"CI: {found.state} on '{setup.primary}' ({found.step}): mend 'ci.command' in "
        f"'{setup.output}', or the branch: every issue would fail by it, and spend its attempts",
        err=True,
    )


def _answer(
    question: str,
    name: str,
    given: Mapping[str, str | None],
    found: str | None,
    yes: bool,
    check: Callable[[str], None] = lambda _: None,
) -> str:
    """The option `name` if it was given, else what was found; the person confirms it unless `yes`.

    `check` raises a UsageError for what cannot be used: it is said at once, and asked again.

    Raises:
        UsageError: nothing was found, and the person is not to be asked, or does not know.

    """
    while True:
        answer = given[name]
        is_asked = answer is None and not yes
        if answer is None:
            answer = (ask(question, found) if is_asked else "") or found
        if answer is None:
            raise UsageError(f"found no {question}: give it by --{name.replace('_', '-')}")
        try:
            check(answer)
        except UsageError as error:
            if not is_asked:
                raise
            warn(error.message)
        else:
            return answer


def _output(cwd: Path, output: Path | None, name: str, toml: bool) -> Path:
    if output is not None:
        return make_absolute(cwd, str(output))
    return find_user_folder(os.environ) / f"{name}{'.toml' if toml else '.yaml'}"
