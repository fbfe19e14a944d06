"""What commands share: the loaded configuration, and each common option defined once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from sm.cli.invocation import ISSUE, Invocation, find_project, list_names
from sm.errors import UsageError

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.sessions.machine import Machine
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession

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


def load_any_config(ctx: click.Context) -> Config:
    """The configuration of this run, also one without a project.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    return ctx.ensure_object(Invocation).load_any_config()


def load_machine(ctx: click.Context) -> Machine:
    """The machine's settings of this run; a configuration need not be there.

    Raises:
        UsageError: there is one, and it cannot be used.

    """
    from sm.sessions.machine import load_here

    return load_here(ctx.ensure_object(Invocation).explicit)


def pass_machine(function: Callable[Concatenate[Machine, P], R]) -> Callable[P, R]:
    """Give the command the machine's settings as its first argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(load_machine(click.get_current_context()), *args, **kwargs)

    return wrapper


def only_project(config: Config) -> Project:
    """The one project that there is.

    Raises:
        UsageError: there are several, so one has to be named.

    """
    from sm.sessions.project import Project

    if len(config.projects) == 1:
        return Project(config, config.projects[0])
    names = [project.name for project in config.projects]
    raise UsageError(f"which project? name one with --project: there is {list_names(names)}")


def _project(ctx: click.Context, _param: click.Parameter, name: str) -> Project:
    return find_project(load_config(ctx), name)


NAMED_PROJECT = "sm.named_project"
"""Where a run keeps the project that an argument such as `shop#7` has named."""


def name_project(ctx: click.Context, name: str) -> None:
    """Have `project_option` mean this project, which an argument names; it is read after that."""
    ctx.meta[NAMED_PROJECT] = name


def _default_project(ctx: click.Context, _param: click.Parameter, name: str | None) -> Project:
    config, named = load_config(ctx), ctx.meta.get(NAMED_PROJECT)
    if name and named and name != named:
        raise UsageError(f"--project names '{name}', the argument '{named}': leave one of them out")
    name = name or named
    return only_project(config) if name is None else find_project(config, name)


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


def _numbered(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[Project, int]:
    name, number = _named(ctx, param, words)
    project = _project(ctx, param, name) if name else _sole_project(ctx, number)
    return project, _issue(ctx, param, number)


def _named(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, str]:
    """The project's name, '' where it goes without saying, and the number."""
    from sm.sessions.address import OF_ISSUE

    match words:
        case (word,) if found := OF_ISSUE.fullmatch(word):
            return found[1], found[2]
        case (number,) if ISSUE.fullmatch(number):
            return "", number
        case (name, number):
            return name, number
    more = "".join(f", then {one.make_metavar(ctx)}" for one in _arguments_after(ctx, param))
    raise UsageError(f"expected a project and a number, such as 'harb 7' or 'harb#7'{more}")


def _arguments_after(ctx: click.Context, param: click.Parameter) -> list[click.Argument]:
    arguments = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    return arguments[arguments.index(param) + 1 :] if isinstance(param, click.Argument) else []


def _about(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, int]:
    name, number = _named(ctx, param, words)
    return name or _sole_project(ctx, number).name, _issue(ctx, param, number)


about_argument: Decorator = click.argument(
    "about", metavar="PROJECT ISSUE", callback=_about, nargs=-1
)
"""`about: tuple[str, int]`: the same of a project that need not be configured here."""


def _sole_project(ctx: click.Context, number: str) -> Project:
    """The project that a number alone is of.

    Raises:
        UsageError: there are several.

    """
    from sm.sessions.project import Project

    config = load_config(ctx)
    if len(config.projects) == 1:
        return Project(config, config.projects[0])
    names = [project.name for project in config.projects]
    raise UsageError(
        f"'{number}' of which project? there is {list_names(names)}: write '{names[0]}#{number}'"
    )


numbered_argument: Decorator = click.argument(
    "numbered", metavar="PROJECT ISSUE|PR", callback=_numbered, nargs=-1
)
"""`numbered: tuple[Project, int]`, an issue or a pull request.

Also as `PROJECT#NUMBER`, and as `NUMBER` where there is one project.
"""


def project_issue(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments PROJECT ISSUE, in any of these ways: `project: Project, issue: int`."""

    @click.argument("numbered", metavar="PROJECT ISSUE", callback=_numbered, nargs=-1)
    @functools.wraps(function)
    def wrapper(*args: Any, numbered: tuple[Project, int], **kwargs: Any) -> Any:
        return function(*args, project=numbered[0], issue=numbered[1], **kwargs)

    return wrapper


def _target(
    ctx: click.Context, _param: click.Parameter, words: str | tuple[str, ...]
) -> AnySession | None:
    from sm.sessions.address import find

    given = (words,) if isinstance(words, str) else words
    return find(load_machine(ctx).root, name_target(ctx, given)) if given else None


def name_target(ctx: click.Context, words: tuple[str, ...]) -> str:
    """What a session is called, from `TARGET` or `PROJECT ISSUE`; '' for no words.

    Raises:
        UsageError: it is neither.

    """
    match words:
        case ():
            return ""
        case (text,):
            return _in_full(ctx, text)
        case (project, issue) if ISSUE.fullmatch(issue):
            return f"{project}#{issue}"
    raise UsageError("expected a session, or a project and an issue, such as 'harb 7'")


def _in_full(ctx: click.Context, text: str) -> str:
    """`7` as `PROJECT#7`, unless a session has that name; any other text as it is."""
    from sm.config.load import NoConfigError
    from sm.sessions import registry

    if not ISSUE.fullmatch(text):
        return text
    if any(one.address == text for one in registry.list_all(load_machine(ctx).root)):
        return text
    try:
        return f"{_sole_project(ctx, text).name}#{text}"
    except NoConfigError:
        return text


target_argument: Decorator = click.argument(
    "session", metavar="TARGET | PROJECT ISSUE", callback=_target, nargs=-1, required=True
)
"""`session: AnySession`, by id, name, project and issue, or the start of an id.

Where there is one project, the number of the issue is enough.
"""

target_in_one_word: Decorator = click.argument("session", metavar="TARGET", callback=_target)
"""The same, but the issue is `PROJECT#ISSUE`: other words follow."""

optional_target: Decorator = click.argument(
    "session", metavar="[TARGET | PROJECT ISSUE]", callback=_target, nargs=-1
)
"""`session: AnySession | None`."""


def _target_name(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    return name_target(ctx, words)


optional_target_name: Decorator = click.argument(
    "target", metavar="[TARGET | PROJECT ISSUE]", callback=_target_name, nargs=-1
)
"""`target: str`, what a session is called, which may be over; '' for none."""


def find_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, int]:
    """A session by what it is called, or a project and an issue.

    Raises:
        UsageError: there is no such thing.

    """
    if len(words) == 1:
        if ISSUE.fullmatch(words[0]) and _in_full(ctx, words[0]) != words[0]:
            return _numbered(ctx, param, words)
        found = _target(ctx, param, words[0])
        assert found is not None
        return found
    if len(words) != 2:
        raise UsageError("expected a session, or a project and an issue, such as 'harb 7'")
    return _project(ctx, param, words[0]), _issue(ctx, param, words[1])


place_argument: Decorator = click.argument(
    "place", metavar="TARGET | PROJECT ISSUE", callback=find_place, nargs=-1, required=True
)
"""`place: AnySession | tuple[Project, int]`: a session, or an issue that may have none."""


def _past_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, int] | str:
    """As any command has it; else the id of a session that is over, if the journal knows it."""
    try:
        return find_place(ctx, param, words)
    except UsageError:
        if len(words) == 1 and (name := _past(ctx, words[0])):
            return name
        raise


def _past(ctx: click.Context, text: str) -> str:
    from sm.sessions.address import resolve_id
    from sm.store import journal

    name = resolve_id(text)
    known = name and next(iter(journal.read(load_machine(ctx).root.journal, name)), None)
    return name if known else ""


past_place_argument: Decorator = click.argument(
    "place",
    metavar="TARGET | PROJECT ISSUE",
    callback=_past_place,
    nargs=-1,
    required=True,
)
"""`place: AnySession | tuple[Project, int] | str`: the same, or the id of a past one."""


def _past_name(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> str:
    from sm.store.paths import name_session

    if not words:
        return ""
    place = _past_place(ctx, param, words)
    if isinstance(place, tuple):
        return name_session(place[0].name, place[1])
    return place if isinstance(place, str) else place.name


optional_past_name: Decorator = click.argument(
    "name", metavar="[TARGET | PROJECT ISSUE]", callback=_past_name, nargs=-1
)
"""`name: str`, the id of any session, also of one that is over or is to come; '' for none."""
