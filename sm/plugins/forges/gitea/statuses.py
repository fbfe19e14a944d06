"""Statuses of a commit on Forgejo and Gitea; their own CI writes those, too.

A workflow that a pull request has begun writes to the commit in this repository, also if that is
one of a fork, and under the same name as one of ours. Whoever can read the repository can offer our
commit from a fork. So what was begun by pull requests of others says nothing, and ours counts as it
was before.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Raw, structs

from sm.plugins.forges.gitea.shapes import ActionRun, ActionRuns, ActionTasks, GiteaStatusList
from sm.plugins.forges.rest.convert import make_status_part
from sm.plugins.forges.rest.reader import GONE, RestReader
from sm.plugins.forges.rest.shapes import StatusShape
from sm.plugins.forges.rest.status import FAILED, StatusPart
from sm.plugins.forges.web.answer import read_part
from sm.plugins.forges.web.errors import BadShapeError
from sm.plugins.forges.web.request import Params

SIZE, STATUS_PAGES, TASK_PAGES = 50, 20, 4
OF_PULL = re.compile(r" \(pull_request[a-z_]{0,40}\)\Z")
"""End of the name of a status that a workflow for a pull request has written."""
PLACE = re.compile(r"(.*/actions/runs/[0-9]{1,18})(?:/|\Z)")
NOT_TOLD = (400, 403, *GONE)
"""Older servers do not list what has run."""
CANCELLED = (
    *("has been cancelled", "canceled after "),  # Forgejo; Gitea: services/actions/commit_status.go
    *("pipeline was canceled", "pipeline was rejected", "unknown status"),
)
"""Beginning of the description of a status that is a failure, but of nobody's code.

The last ones are Woodpecker's of pipelines that were killed, declined, or cancelled before they
began: `server/forge/common/status.go`.
"""
UNREAD, KILLED = "unread", "killed"
"""Words of a part: nothing is known of it, which keeps a commit from having passed; CI itself has
ended it.
"""
ACTIONS = "/actions/runs/"
"""Part of the address of what their own CI has run."""


class RunReader(RestReader, ABC):
    """A reader that can tell for whom something has run."""

    @abstractmethod
    def is_foreign(self, run: ActionRun) -> bool:
        """Whether a run was begun by a pull request whose branch is not one of ours."""


def read_statuses(reader: RunReader, head: str, purpose: str) -> list[StatusPart]:
    """Read the last status of each context, without those of others' pull requests."""
    found = list(_read_latest(reader, head, purpose))
    if not any(part.has_log and OF_PULL.search(part.name) for part in found):
        return found
    listed = list_runs(reader, head, purpose, NOT_TOLD) or list_begun(reader, head, purpose)
    runs = {run.place: run for run in listed}

    def is_foreign(part: StatusPart) -> bool:
        run = runs.get(_find_place(part))
        return run is not None and reader.is_foreign(run)

    lost = {part.name for part in found if is_foreign(part)}
    if not lost:
        return found
    kept = {part.key: part for part in found if not is_foreign(part)}
    for part in _read_all(reader, head, purpose):  # the last one first
        if part.name in lost and part.key not in kept and not is_foreign(part):
            kept[part.key] = part
            lost.discard(part.name)
    return list(kept.values())


def list_runs(
    reader: RestReader, head: str, purpose: str, accept: tuple[int, ...] = ()
) -> list[ActionRun]:
    """List what their own CI has run on a commit, for whomever; nothing if it does not say so."""
    found, path = list[ActionRun](), f"{reader.at}/actions/runs"
    for page in range(1, STATUS_PAGES + 1):
        asked: Params = {"head_sha": head, "limit": SIZE, "page": page}
        answer = reader.web.get(path, purpose, asked, accept=accept)
        if answer.status in accept:
            return found
        read = answer.read(ActionRuns)
        found += read.workflow_runs or []
        if not read.workflow_runs or len(found) >= (read.total_count or 0):
            break
    return found


def list_begun(reader: RestReader, head: str, purpose: str) -> list[ActionRun]:
    """The runs on a commit of which a job has begun lately, without their ids.

    Gitea lists runs to the owner of the repository alone, and tasks to all who may read
    (`routers/api/v1/api.go`; asked of 1.26.0-dev), but not by commit.
    """
    found, seen, path = list[ActionRun](), 0, f"{reader.at}/actions/tasks"
    for page in range(1, TASK_PAGES + 1):
        asked: Params = {"limit": SIZE, "page": page}
        answer = reader.web.get(path, purpose, asked, accept=NOT_TOLD)
        shown = [] if answer.status in NOT_TOLD else answer.read(ActionTasks).workflow_runs or []
        found += [one.run for one in shown if one.head_sha == head]
        seen += len(shown)
        if not shown or not reader.tells_more(answer.headers, seen):
            break
    return found


def _read_latest(reader: RestReader, head: str, purpose: str) -> Iterator[StatusPart]:
    """The last status of each context.

    `total_count` is that of the page. Each has an id of its own, and there is none of an earlier
    run: two workflow files may write the same context.
    """
    seen, known = 0, set[str]()
    for page in range(1, STATUS_PAGES + 1):
        asked = {"limit": SIZE, "page": page}
        path = f"{reader.at}/commits/{head}/status"
        answer = reader.web.get(path, purpose, asked, accept=GONE)
        shown = [] if answer.status in GONE else answer.read(GiteaStatusList).statuses or []
        for part in (_make_part(reader, data) for data in shown):
            if part.key not in known:
                known.add(part.key)
                yield part
        seen += len(shown)
        if not shown or not reader.tells_more(answer.headers, seen):
            return
    yield StatusPart(f"statuses beyond the first {seen}", UNREAD)


def _read_all(reader: RestReader, head: str, purpose: str) -> list[StatusPart]:
    """Every status that the commit ever had, the last one first."""
    found, seen = list[StatusPart](), 0
    for page in range(1, STATUS_PAGES + 1):
        asked = {"limit": SIZE, "page": page}
        path = f"{reader.at}/commits/{head}/statuses"
        answer = reader.web.get(path, purpose, asked, accept=GONE)
        shown = [] if answer.status in GONE else answer.read(list[Raw])
        found += [_make_part(reader, data) for data in shown]
        seen += len(shown)
        if not shown or not reader.tells_more(answer.headers, seen):
            break
    return sorted(found, key=lambda part: part.id, reverse=True)


def _make_part(reader: RestReader, data: Raw) -> StatusPart:
    """A status as a part. Of one that cannot be read nothing is known yet."""
    try:
        part = make_status_part(read_part(data, StatusShape, "of the statuses"))
    except BadShapeError as error:
        key = f"unread {hash(bytes(data))}"
        return StatusPart("a status that cannot be read", UNREAD, key=key, text=error.message)
    is_cancelled = part.word in FAILED and part.text.strip().lower().startswith(CANCELLED)
    return structs.replace(
        part,
        word=KILLED if is_cancelled else part.word,
        key=f"{part.key} {part.id}",
        url=_absolute(reader.web.base, part.url),
        has_log=ACTIONS in part.url,
    )


def _absolute(base: str, url: str) -> str:
    """An address as a whole: of their own CI they give only the path."""
    return urlsplit(base)._replace(path=url).geturl() if url.startswith("/") else url


def _find_place(part: StatusPart) -> str:
    """The path of the page of the run that a status links to, '' if it is none of theirs."""
    found = PLACE.match(urlsplit(part.url).path)
    return found[1] if found else ""
