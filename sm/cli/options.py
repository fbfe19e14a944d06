"""Options that commands share, each defined once, and the loaded configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from sm.base.errors import UsageError
from sm.cli.invocation import Invocation, find_meant_project, find_project, list_names

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.sessions.machine import Machine
    from sm.sessions.project import Project

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def load_config(ctx: click.Context) -> Config:
    """Return the configuration of this run, read at the first call.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    return ctx.ensure_object(Invocation).load_config()


def pass_config(function: Callable[Concatenate[Config, P], R]) -> Callable[P, R]:
    """Give the command the loaded configuration as its first argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(load_config(click.get_current_context()), *args, **kwargs)

    return wrapper


def load_any_config(ctx: click.Context) -> Config:
    """Return the configuration of this run, also one without a project.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    return ctx.ensure_object(Invocation).load_any_config()


def load_machine(ctx: click.Context) -> Machine:
    """Return the machine's settings of this run; a configuration need not be there.

    Raises:
        UsageError: there is one, and it cannot be used.

    """
    from sm.sessions.machine import load_here

    invocation = ctx.ensure_object(Invocation)
    machine = load_here(invocation.explicit)
    invocation.tell_left_out()
    return machine


def pass_machine(function: Callable[Concatenate[Machine, P], R]) -> Callable[P, R]:
    """Give the command the machine's settings as its first argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(load_machine(click.get_current_context()), *args, **kwargs)

    return wrapper


NAMED_PROJECT = "sm.named_project"
"""Key under which a run keeps the project that an argument such as `shop#7` has named."""


def name_project(ctx: click.Context, name: str) -> None:
    """Have `project_option` mean this project, which an argument names; it is read after that."""
    ctx.meta[NAMED_PROJECT] = name


def _default_project(ctx: click.Context, _param: click.Parameter, name: str | None) -> Project:
    config, named = load_config(ctx), ctx.meta.get(NAMED_PROJECT)
    if name and named and name != named:
        raise UsageError(f"--project names '{name}', the argument '{named}': leave one of them out")
    if name := name or named:
        return find_project(config, name)
    if only := find_meant_project(config):
        return only
    there = list_names([project.name for project in config.projects])
    raise UsageError(
        f"which project? name one with --project, or be in its clone: there is {there}"
    )


def _projects(
    ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple[Project, ...]:
    from sm.sessions.project import Project

    config = load_config(ctx)
    named = tuple(find_project(config, name) for name in names)
    return named or tuple(Project(config, settings) for settings in config.projects)


def _known_projects(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> tuple[Project, ...]:
    from sm.config.load import NoConfigError

    try:
        return _projects(ctx, param, names)
    except NoConfigError:
        if names:
            raise
        return ()


json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""`as_json: bool`."""

watch_option: Decorator = click.option(
    "--watch", "-w", is_flag=True, help="Show it live, until Ctrl-C."
)
"""`watch: bool`."""


def make_lines_option(
    default: int, *, least: int = 1, what: str = "How many lines, counted from the end."
) -> Decorator:
    """Make the option `lines: int`."""
    return click.option(
        *("--lines", "-n"),
        metavar="LINES",
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        help=what,
    )


project_option: Decorator = click.option(
    "--project",
    metavar="NAME",
    callback=_default_project,
    help="The project; not needed where there is only one, or within its clone.",
)
"""`project: Project`."""


def _make_projects_option(callback: Callable[..., Any]) -> Decorator:
    return click.option(
        "--project",
        "projects",
        metavar="NAME",
        callback=callback,
        multiple=True,
        help="Only this project; may be given several times.",
    )


projects_option = _make_projects_option(_projects)
"""`projects: tuple[Project, ...]`, all of them where none is named."""


def list_named(ctx: click.Context, projects: tuple[Project, ...]) -> tuple[str, ...]:
    """Return the names of the projects that were chosen on the command line; none for all."""
    from click.core import ParameterSource

    is_named = ctx.get_parameter_source("projects") is ParameterSource.COMMANDLINE
    return tuple(one.name for one in projects) if is_named else ()


known_projects_option = _make_projects_option(_known_projects)
"""Projects that were chosen; none if there is no configuration."""
