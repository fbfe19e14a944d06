"""What an answer looks like to `sm`, and whether a fake answers as a server was recorded to.

Compared are the status, the headers that `sm` reads, and of the body the fields that it reads:
which of them are there, of which types, and of some the very words. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec.inspect as mi
from msgspec import Struct

from sm.plugins.forges.gitea.shapes import ActionRuns, ActionTasks, Compared, Needed
from sm.plugins.forges.rest.shapes import (
    Branch,
    CommentShape,
    File,
    InlineShape,
    IssueShape,
    Jobs,
    JobShape,
    Label,
    Permission,
    PullShape,
    Repository,
    ReviewShape,
    StatusShape,
    TimelineShape,
    User,
)
from sm.plugins.forges.rest.woodpecker import LogEntry, Repo, WoodpeckerPipeline
from tests.servers.recorder import Exchange

HOOK = "HOOK"
"""The method of a webhook in a recording; its path is the event."""


class Statuses(Struct, frozen=True):
    """A page of statuses: `sm` reads each for itself."""

    statuses: list[StatusShape] | None = None


class Words(Struct, frozen=True):
    """What a refusal says."""

    message: str = ""


TEMPLATES = (
    (r"/lookup/.+", "/lookup/OWNER/NAME"),
    (r"^/repos/[^/]+/[^/]+", "/repos/OWNER/NAME"),
    (r"^/[^/]+/[^/]+(?=/actions/runs/)", "/OWNER/NAME"),
    (r"^/orgs/[^/]+", "/orgs/OWNER"),
    (r"/collaborators/[^/]+", "/collaborators/LOGIN"),
    (r"/branches/.+", "/branches/BRANCH"),
    (r"/compare/.+", "/compare/BASE...HEAD"),
    (r"/commits/[^/]+", "/commits/SHA"),
    (r"/labels/[^/]+$", "/labels/LABEL"),
    (r"/\d+(?=/|\.|$)", "/N"),
)
"""How an address becomes that of a kind of requests, in this order."""
AT = "/repos/OWNER/NAME"
SHAPES: dict[tuple[str, str], Any] = {
    ("GET", "/user"): User,
    ("GET", "/repositories/N"): Repository,
    ("GET", "/orgs/OWNER/labels"): list[Label],
    ("GET", AT): Repository,
    ("GET", f"{AT}/labels"): list[Label],
    ("POST", f"{AT}/labels"): Label,
    ("GET", f"{AT}/collaborators/LOGIN/permission"): Permission,
    ("GET", f"{AT}/branches/BRANCH"): Branch,
    ("GET", f"{AT}/compare/BASE...HEAD"): Compared,
    ("GET", f"{AT}/issues"): list[IssueShape],
    ("POST", f"{AT}/issues"): IssueShape,
    ("GET", f"{AT}/issues/N"): IssueShape,
    ("PATCH", f"{AT}/issues/N"): IssueShape,
    ("POST", f"{AT}/issues/N/labels"): list[Label],
    ("DELETE", f"{AT}/issues/N/labels/LABEL"): None,
    ("GET", f"{AT}/issues/N/comments"): list[CommentShape],
    ("POST", f"{AT}/issues/N/comments"): CommentShape,
    ("GET", f"{AT}/issues/N/timeline"): list[TimelineShape] | None,
    ("GET", f"{AT}/issues/N/dependencies"): list[Needed],
    ("GET", f"{AT}/pulls"): list[PullShape],
    ("POST", f"{AT}/pulls"): PullShape,
    ("GET", f"{AT}/pulls/N"): PullShape,
    ("PATCH", f"{AT}/pulls/N"): PullShape,
    ("GET", f"{AT}/pulls/N.diff"): str,
    ("GET", f"{AT}/pulls/N/files"): list[File],
    ("POST", f"{AT}/pulls/N/merge"): None,
    ("GET", f"{AT}/pulls/N/reviews"): list[ReviewShape],
    ("POST", f"{AT}/pulls/N/reviews"): ReviewShape,
    ("GET", f"{AT}/pulls/N/reviews/N/comments"): list[InlineShape],
    ("GET", f"{AT}/commits/SHA/status"): Statuses,
    ("GET", f"{AT}/commits/SHA/statuses"): list[StatusShape],
    ("GET", f"{AT}/actions/runs"): ActionRuns,
    ("GET", f"{AT}/actions/tasks"): ActionTasks,
    ("GET", f"{AT}/actions/runs/N/jobs"): Jobs | list[JobShape],
    ("GET", f"{AT}/actions/jobs/N/logs"): str,
    ("POST", f"{AT}/actions/runs/N/rerun"): None,
    ("POST", f"{AT}/actions/runs/N/rerun-failed-jobs"): None,
    ("GET", "/OWNER/NAME/actions/runs/N/jobs/N/logs"): str,
    ("GET", "/api/repos/lookup/OWNER/NAME"): Repo,
    ("GET", "/api/repos/N/pipelines"): list[WoodpeckerPipeline],
    ("GET", "/api/repos/N/pipelines/N"): WoodpeckerPipeline,
    ("POST", "/api/repos/N/pipelines/N"): WoodpeckerPipeline,
    ("GET", "/api/repos/N/logs/N/N"): list[LogEntry | None] | None,
}
"""What `sm` reads the answer to each kind of request as; None if it does not read it."""
VERBATIM = re.compile(
    r"state|status|conclusion|type|draft|merged|official|dismissed|enable_status_check|"
    r"is_fork_pull_request|message|permission"
)
"""Fields of which the words count, not only their types."""
UNSURE = re.compile(r"\.mergeable |Please try again later|\.status is '(?:pending|running)'")
"""What depends on the moment: the server was finding out, or had just begun."""


def template(path: str) -> str:
    """The kind of an address."""
    for pattern, shown in TEMPLATES:
        path = re.sub(pattern, shown, path)
    return path


def key_of(one: Exchange) -> str:
    """The kind of an exchange: what was asked for, and the status of the answer."""
    return f"{one.method} {template(one.path)} {one.status}"


def picture(one: Exchange) -> set[str]:
    """What an answer looks like: a line for each thing that `sm` may notice of it.

    Of a webhook (`HOOK`) these are the headers and the places in the payload.
    """
    if one.method == HOOK:
        return {*(f"header {name}" for name in one.headers), *(f"has {at}" for at in one.body)}
    shown = {f"header {name}" for name in one.headers if name != "content-type"}
    media = one.headers.get("content-type", "").partition(";")[0]
    if one.status >= 400:
        return shown | set(_draw(mi.type_info(Words), one.body or {}))
    shape = SHAPES[one.method, template(one.path)]
    if shape is None or one.body is None or one.status >= 300:
        return shown
    if shape is str:
        return shown | {f"media {media}"}
    return shown | set(_draw(mi.type_info(shape), one.body))


def _draw(kind: mi.Type, value: Any, at: str = "") -> Iterator[str]:
    """The lines of a value that is read as `kind`."""
    if isinstance(kind, mi.UnionType):
        chosen = [one for one in kind.types if _fits(one, value)]
        kind = chosen[0] if chosen else kind
    if isinstance(kind, mi.StructType) and isinstance(value, dict):
        for one in kind.fields:
            yield from _draw_field(one, value, at)
    elif isinstance(kind, mi.ListType) and isinstance(value, list):
        yield f"{at} is a list"
        for item in value:
            yield from _draw(kind.item_type, item, f"{at}[]")
    else:
        name = at.rpartition(".")[2]
        is_word = VERBATIM.fullmatch(name) and not isinstance(value, dict | list)
        yield f"{at} is {value!r}" if is_word else f"{at} is {_name(value)}"


def _draw_field(one: mi.Field, value: dict[str, Any], at: str) -> Iterator[str]:
    name = one.encode_name
    if name in value:
        yield from _draw(one.type, value[name], f"{at}.{name}")
    else:
        yield f"{at}.{name} is missing"


def _fits(kind: mi.Type, value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(kind, mi.StructType | mi.DictType)
    if isinstance(value, list):
        return isinstance(kind, mi.ListType)
    if value is None:
        return isinstance(kind, mi.NoneType)
    return isinstance(kind, mi.BoolType | mi.IntType | mi.StrType | mi.BytesType | mi.RawType)


def _name(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    if value is None:
        return "null"
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")


def choose(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """One exchange of each kind: of the same request and status, with the same picture."""
    found: dict[tuple[str, frozenset[str]], Exchange] = {}
    seen: dict[str, set[str]] = {}
    for one in exchanges:
        key, shown = key_of(one), picture(one)
        known = seen.setdefault(key, set())
        if shown - known or key not in {name for name, _ in found}:
            found[key, frozenset(shown)] = one
            known |= shown
    return list(found.values())


def find_differences(
    fake: Iterable[Exchange], recorded: Iterable[Exchange], journey: str
) -> list[str]:
    """What a fake does in a journey that the server was not recorded to do, and the other way.

    The server may have done it in another journey; but what was recorded in this one, the fake
    must do in it.
    """
    theirs = dict[str, set[str]]()
    ours = dict[str, set[str]]()
    for one in fake:
        ours.setdefault(key_of(one), set()).update(picture(one))
    here = dict[str, set[str]]()
    for one in recorded:
        theirs.setdefault(key_of(one), set()).update(picture(one))
        if one.journey == journey:
            here.setdefault(key_of(one), set()).update(picture(one))
    said = [f"{key}: never recorded" for key in ours if key not in theirs]
    for key, shown in ours.items():
        said += [f"{key}: only the fake: {one}" for one in shown - theirs.get(key, shown)]
    for key, shown in here.items():
        if key not in ours:
            said.append(f"{key}: never done by the fake")
            continue
        said += [f"{key}: only the server: {one}" for one in shown - ours[key]]
    return sorted(one for one in said if not UNSURE.search(one))
