"""What commands share: the loaded configuration, and each common option defined once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from sm.cli.invocation import ISSUE, Invocation, find_project, list_names
from sm.errors import UsageError

if TYPE_CHECKING:
    from sm.config.schema import Config, Project
    from sm.session.registry import AnySession
    from sm.workflow.host import Host

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def load_config(ctx: click.Context) -> Config:
    """The configuration of this run, read at the first call.

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


def load_host(ctx: click.Context) -> Host:
    """The machine's settings of this run; a configuration need not be there.

    Raises:
        UsageError: there is one, and it cannot be used.

    """
    from sm.workflow.host import here

    return here(ctx.ensure_object(Invocation).explicit)


def pass_host(function: Callable[Concatenate[Host, P], R]) -> Callable[P, R]:
    """Give the command the machine's settings as its first argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(load_host(click.get_current_context()), *args, **kwargs)

    return wrapper


def only_project(config: Config) -> Project:
    """The one project that there is.

    Raises:
        UsageError: there are several, so one has to be named.

    """
    if len(config.projects) == 1:
        return config.projects[0]
    names = [project.name for project in config.projects]
    raise UsageError(f"which project? name one with --project: there is {list_names(names)}")


def _project(ctx: click.Context, _param: click.Parameter, name: str) -> Project:
    return find_project(load_config(ctx), name)


def _default_project(ctx: click.Context, _param: click.Parameter, name: str | None) -> Project:
    config = load_config(ctx)
    return only_project(config) if name is None else find_project(config, name)


def _projects(
    ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> tuple[Project, ...]:
    config = load_config(ctx)
    return tuple(find_project(config, name) for name in names) or config.projects


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


def _issue(_ctx: click.Context, _param: click.Parameter, text: str) -> int:
    if not ISSUE.fullmatch(text):
        raise UsageError(f"'{text}' is no issue number: use a whole number from 1 up")
    return int(text)


json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""`as_json: bool`."""

project_option: Decorator = click.option(
    "--project",
    metavar="NAME",
    callback=_default_project,
    help="The project; not needed where there is only one.",
)
"""`project: Project`."""

projects_option: Decorator = click.option(
    "--project",
    "projects",
    metavar="NAME",
    callback=_projects,
    multiple=True,
    help="Only this project; may be given several times.",
)
"""`projects: tuple[Project, ...]`, all of them where none is named."""

known_projects_option: Decorator = click.option(
    "--project",
    "projects",
    metavar="NAME",
    callback=_known_projects,
    multiple=True,
    help="Only this project; may be given several times.",
)
"""The same, none where there is no configuration."""

project_argument: Decorator = click.argument("project", callback=_project)
"""`project: Project`."""

issue_argument: Decorator = click.argument("issue", callback=_issue)
"""`issue: int`."""


def project_issue(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments PROJECT ISSUE: `project: Project, issue: int`, both valid."""
    return project_argument(issue_argument(function))


def _numbered(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[Project, int]:
    from sm.session.targets import OF_ISSUE

    if len(words) == 1 and (found := OF_ISSUE.fullmatch(words[0])):
        words = (found[1], found[2])
    if len(words) != 2:
        raise UsageError("expected a project and a number, such as 'harb 7' or 'harb#7'")
    return _project(ctx, param, words[0]), _issue(ctx, param, words[1])


numbered_argument: Decorator = click.argument(
    "numbered",
    metavar="PROJECT ISSUE|PR",
    callback=_numbered,
    nargs=-1,
    required=True,
)
"""`numbered: tuple[Project, int]`, an issue or a pull request, also as `PROJECT#NUMBER`."""


def _target(ctx: click.Context, _param: click.Parameter, text: str | None) -> AnySession | None:
    from sm.session.targets import find

    return None if text is None else find(load_host(ctx).root, text)


target_argument: Decorator = click.argument("session", metavar="TARGET", callback=_target)
"""`session: AnySession`, by id, name, `PROJECT#ISSUE` or the start of an id."""

optional_target: Decorator = click.argument(
    "session", metavar="[TARGET]", callback=_target, required=False
)
"""`session: AnySession | None`."""


def find_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, int]:
    """A session by what it is called, or a project and an issue.

    Raises:
        UsageError: there is no such thing.

    """
    if len(words) == 1:
        found = _target(ctx, param, words[0])
        assert found is not None
        return found
    if len(words) != 2:
        raise UsageError("expected a session, or a project and an issue, such as 'harb 7'")
    return _project(ctx, param, words[0]), _issue(ctx, param, words[1])


place_argument: Decorator = click.argument(
    "place", metavar="TARGET | PROJECT ISSUE", callback=find_place, nargs=-1, required=True
)
"""`place: AnySession | tuple[Project, int]`: any session, or an issue that may have none."""
