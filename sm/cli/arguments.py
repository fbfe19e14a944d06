"""Arguments that name a session, an issue or a pull request, each defined once."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sm.base.errors import SmError, StateError, UsageError
from sm.base.issue_id import NUMBER, IssueId, read_issue
from sm.cli.invocation import (
    ElsewhereError,
    find_meant_project,
    find_project,
    list_names,
)
from sm.cli.options import Decorator, load_config, load_machine

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession

ISSUE = re.compile(NUMBER)

# An issue or a pull request


def _find_issue(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[Project, IssueId]:
    name, number = _split_words(ctx, param, words)
    project = find_project(load_config(ctx), name) if name else _sole_project(ctx, number)
    return project, _issue(number, project)


def _split_words(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[str, str]:
    """Return the project's name, '' where it goes without saying, and the number."""
    from sm.sessions.address import read_address

    match words:
        case (word,) if found := read_address(word):
            return found[0], str(found[1])
        case (number,) if _names_issue(ctx, number):
            return "", number
        case (name, number):
            return name, number
    more = "".join(f", then {one.make_metavar(ctx)}" for one in _arguments_after(ctx, param))
    raise UsageError(f"expected a project and a number, such as 'harb 7' or 'harb#7'{more}")


def _arguments_after(ctx: click.Context, param: click.Parameter) -> list[click.Argument]:
    arguments = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    return arguments[arguments.index(param) + 1 :] if isinstance(param, click.Argument) else []


def _sole_project(ctx: click.Context, number: str) -> Project:
    """Return the project of a number that stands alone.

    Raises:
        UsageError: there are several, and we are in the clone of none.

    """
    config = load_config(ctx)
    if only := find_meant_project(config):
        return only
    names = [project.name for project in config.projects]
    raise UsageError(
        f"'{number}' of which project? there is {list_names(names)}: write '{names[0]}#{number}'"
    )


def _issue(text: str, project: Project) -> IssueId:
    """Return the id of an issue or a pull request of a project; only a tracker's have letters."""
    if ISSUE.fullmatch(text):
        return int(text)
    if project.settings.tracker is None:
        raise UsageError(f"'{text}' is no issue number: use a whole number from 1 up")
    if found := read_issue(text):
        return found
    raise UsageError(f"'{text}' is no issue: '{project.name}' has ids such as ENG-123")


def _names_issue(ctx: click.Context, text: str) -> bool:
    """Whether a word is an issue by itself: `7`, or `ENG-7` where a project has a tracker."""
    if ISSUE.fullmatch(text):
        return True
    if not isinstance(read_issue(text), str):
        return False
    with contextlib.suppress(SmError):  # without a configuration there is none
        return any(project.tracker for project in load_config(ctx).projects)
    return False


numbered_argument: Decorator = click.argument(
    "numbered", metavar="PROJECT ISSUE|PR", callback=_find_issue, nargs=-1
)
"""`numbered: tuple[Project, IssueId]`, an issue or a pull request.

Also as `PROJECT#NUMBER`, and as `NUMBER` where there is one project, or within its clone.
"""


def project_issue(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments PROJECT ISSUE, in any of these ways: `project: Project, issue: IssueId`."""

    @click.argument("numbered", metavar="PROJECT ISSUE", callback=_find_issue, nargs=-1)
    @functools.wraps(function)
    def wrapper(*args: Any, numbered: tuple[Project, IssueId], **kwargs: Any) -> Any:
        leave_to_node(*numbered)
        return function(*args, project=numbered[0], issue=numbered[1], **kwargs)

    return wrapper


def issue_and_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments PROJECT ISSUE and a text, in one word or several.

    The text arrives as `text: tuple[str, ...]`.
    """

    @click.argument("given", metavar="PROJECT ISSUE TEXT...", callback=_find_text, nargs=-1)
    @functools.wraps(function)
    def wrapper(*args: Any, given: tuple[Project, IssueId, tuple[str, ...]], **kwargs: Any) -> Any:
        project, issue, text = given
        leave_to_node(project, issue)
        return function(*args, project=project, issue=issue, text=text, **kwargs)

    return wrapper


def _find_text(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[Project, IssueId, tuple[str, ...]]:
    count = 1 if words and _stands_alone(ctx, words) else 2
    if not (text := words[count:]):
        if count == 1 or (len(words) == 2 and _names_issue(ctx, words[1])):
            _find_issue(ctx, param, words)  # an error in the words themselves comes first
            called = f"{ctx.command_path} {' '.join(words)}"
            raise UsageError(
                f"the text is missing: {called} TEXT; '-' reads it from standard input"
            )
        raise UsageError("expected a project and a number, such as 'harb 7' or 'harb#7', then TEXT")
    return *_find_issue(ctx, param, words[:count]), text


def _stands_alone(ctx: click.Context, words: tuple[str, ...]) -> bool:
    """Whether the first of the words names an issue by itself; a project may be called `7`."""
    from sm.sessions.address import read_address

    if not _names_issue(ctx, words[0]):
        return read_address(words[0]) is not None
    may_be_project = len(words) > 2 and _names_issue(ctx, words[1])
    names = (project.name for project in load_config(ctx).projects) if may_be_project else ()
    return words[0] not in names


def _parse_about(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[str, IssueId]:
    name, number = _split_words(ctx, param, words)
    if not name:
        project = _sole_project(ctx, number)
        return project.name, _issue(number, project)
    if found := read_issue(number):
        return name, found
    raise UsageError(f"'{number}' is no issue number: use a whole number from 1 up")


about_argument: Decorator = click.argument(
    "about", metavar="PROJECT ISSUE", callback=_parse_about, nargs=-1
)
"""`about: tuple[str, IssueId]`: a project's name, which need not be configured, and an issue."""


# A session that runs elsewhere


def leave_to_node(project: Project, issue: IssueId) -> None:
    """End the command here if the issue is worked on elsewhere, and no session here works on it.

    Raises:
        ElsewhereError: the node's own `sm` is to do it.

    """
    from sm.store.paths import name_session
    from sm.views.place import find_remote

    if project.root.session(name_session(project.name, issue)).identity.exists():
        return
    if there := find_remote(project, issue):
        raise ElsewhereError(there)


def leave_named_to_node(ctx: click.Context, text: str) -> None:
    """Leave the command to the node of a named session that is not on record here."""
    from sm.config.load import NoConfigError
    from sm.views.place import find_meant_issue, find_remote

    try:
        config = load_config(ctx)
    except NoConfigError:
        return
    meant = find_meant_issue(config, text)
    if meant and (there := find_remote(*meant)):
        raise ElsewhereError(there)


# A session


def find_session(ctx: click.Context, name: str) -> AnySession:
    """Return the session of this machine that has this name.

    Raises:
        UsageError: there is none, or there are several.
        ElsewhereError: the node's own `sm` is to do it.

    """
    from sm.sessions.address import find

    try:
        return find(load_machine(ctx).root, name)
    except UsageError:
        leave_named_to_node(ctx, name)
        raise


def _target(
    ctx: click.Context, _param: click.Parameter, words: str | tuple[str, ...]
) -> AnySession | None:
    given = (words,) if isinstance(words, str) else words
    return find_session(ctx, name_target(ctx, given)) if given else None


def name_target(ctx: click.Context, words: tuple[str, ...]) -> str:
    """Spell the name of a session, from `TARGET` or `PROJECT ISSUE`; '' for no words.

    Raises:
        UsageError: it is neither.

    """
    match words:
        case ():
            return ""
        case (text,):
            return spell_in_full(ctx, text)
        case (project, issue) if _names_issue(ctx, issue):
            return f"{project}#{read_issue(issue)}"
    raise UsageError("expected a session, or a project and an issue, such as 'harb 7'")


def spell_in_full(ctx: click.Context, text: str) -> str:
    """Spell `7` as `PROJECT#7`, unless a session has that name; any other text as it is."""
    from sm.config.load import NoConfigError
    from sm.sessions import registry

    if not _names_issue(ctx, text):
        return text
    if any(one.address == text for one in registry.list_all(load_machine(ctx).root)):
        return text
    try:
        return f"{_sole_project(ctx, text).name}#{read_issue(text)}"
    except NoConfigError:
        return text


target_argument: Decorator = click.argument(
    "session", metavar="TARGET | PROJECT ISSUE", callback=_target, nargs=-1, required=True
)
"""`session: AnySession`, by id, name, project and issue, or the start of an id.

Where there is one project, the number of the issue is enough.
"""


target_in_one_word: Decorator = click.argument("session", metavar="TARGET", callback=_target)
"""A session, or an issue as `PROJECT#ISSUE`: one word, because others follow."""


optional_target: Decorator = click.argument(
    "session", metavar="[TARGET | PROJECT ISSUE]", callback=_target, nargs=-1
)
"""`session: AnySession | None`."""


def _target_name(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    name = name_target(ctx, words)
    if name:
        with contextlib.suppress(UsageError, StateError):  # it may be over
            find_session(ctx, name)
    return name


optional_target_name: Decorator = click.argument(
    "target", metavar="[TARGET | PROJECT ISSUE]", callback=_target_name, nargs=-1
)
"""`target: str`, the name of a session, which may be over; '' for none."""


# Any of these, also a past session


def find_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, IssueId]:
    """Return a session by its name, or a project and an issue.

    Raises:
        UsageError: there is no such thing.

    """
    if len(words) == 1:
        if _names_issue(ctx, words[0]) and spell_in_full(ctx, words[0]) != words[0]:
            found_issue = _find_issue(ctx, param, words)
            leave_to_node(*found_issue)
            return found_issue
        found = _target(ctx, param, words[0])
        assert found is not None
        return found
    if len(words) != 2:
        raise UsageError("expected a session, or a project and an issue, such as 'harb 7'")
    project = find_project(load_config(ctx), words[0])
    issue = _issue(words[1], project)
    leave_to_node(project, issue)
    return project, issue


place_argument: Decorator = click.argument(
    "place", metavar="TARGET | PROJECT ISSUE", callback=find_place, nargs=-1, required=True
)
"""`place: AnySession | tuple[Project, IssueId]`: a session, or an issue that may have none."""


def _find_past_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, IssueId] | str:
    """Return what the words name, or the id of a session that is over, if the journal knows it."""
    try:
        return find_place(ctx, param, words)
    except UsageError:
        if len(words) == 1 and (name := _find_past_id(ctx, words[0])):
            return name
        raise


def _find_past_id(ctx: click.Context, text: str) -> str:
    from sm.sessions.address import resolve_id
    from sm.store import journal

    name = resolve_id(text)
    known = name and next(iter(journal.read(load_machine(ctx).root.journal, name)), None)
    return name if known else ""


past_place_argument: Decorator = click.argument(
    "place",
    metavar="TARGET | PROJECT ISSUE",
    callback=_find_past_place,
    nargs=-1,
    required=True,
)
"""`place: AnySession | tuple[Project, IssueId] | str`: as `place_argument`, or a past id."""


def _find_past_name(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> str:
    from sm.store.paths import name_session

    if not words:
        return ""
    place = _find_past_place(ctx, param, words)
    if isinstance(place, tuple):
        return name_session(place[0].name, place[1])
    return place if isinstance(place, str) else place.name


optional_past_name: Decorator = click.argument(
    "name", metavar="[TARGET | PROJECT ISSUE]", callback=_find_past_name, nargs=-1
)
"""`name: str`, the id of any session, also of one that is over or is to come; '' for none."""
