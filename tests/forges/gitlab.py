"""GitLab's dialect of a stateful forge, as its documentation and its source describe version 4.

It has no description of its interface to hold exchanges against. So each route names the parameters
that are documented: another one is a problem, and so is a body without what is required (`!`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from zlib import crc32

from tests.forges.github import RefusalError, knows
from tests.forges.server import Asked, Reply, Site
from tests.forges.state import Entry, Pull, Run, Said, State

MOST = 20
"""Entries of a page, whatever is asked for."""
LIMIT = 2000
"""Requests in a minute."""
PAGES = "page per_page"
LISTS = f"state order_by sort updated_after labels scope {PAGES}"
WORDS = {"": "running", "failure": "failed", "cancelled": "canceled"}
SOURCES = {"ci": "push"}
EMPTY = "commits_status"
OVER = ("success", "failed", "canceled", "skipped")
COMMAND = re.compile(r"^[^\S\n]*/([a-z_]+)(?: ([^\n]*))?(?:\s*\n|$)", re.MULTILINE)
OWN, FORK = 4711, 999
"""The ids of the project, and of everybody's fork of it."""
DRAFT = re.compile(r"^(\[draft\]|\(draft\)|draft:)", re.IGNORECASE)
Handler = Callable[["Gitlab", Asked, str, tuple[str, ...]], Reply]


@dataclass(frozen=True)
class Route:
    """Requests of one kind, with the names of the parameters and of the body's keys."""

    method: str
    path: re.Pattern[str]
    known: frozenset[str]
    needed: frozenset[str]
    handler: Handler


ROUTES: list[Route] = []


def route(method: str, path: str, names: str = "") -> Callable[[Handler], Handler]:
    """Answer requests to `path`, which begins behind the project."""

    def keep(handler: Handler) -> Handler:
        known = frozenset(name.rstrip("!") for name in names.split())
        needed = frozenset(name[:-1] for name in names.split() if name.endswith("!"))
        ROUTES.append(Route(method, re.compile(path), known, needed, handler))
        return handler

    return keep


def stamp(at: float) -> str:
    """A moment as GitLab writes it: to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def since(text: str) -> float:
    """The moment that a parameter gives, 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def account(name: str) -> dict[str, Any]:
    """An account."""
    return {"id": crc32(name.encode()) % 10**6, "username": name, "name": name, "state": "active"}


@dataclass
class Talk:
    """A thread of a merge request; `position` is where in the diff it is."""

    id: str
    notes: list[Said]
    position: dict[str, Any] | None = None
    is_resolved: bool = False


@dataclass
class Request:
    """What GitLab keeps of a merge request beyond other forges.

    `fork_pipeline` has run in the fork that it is of.
    """

    approved_by: dict[str, float] = field(default_factory=dict)
    reviewers: dict[str, str] = field(default_factory=dict)
    told: list[Said] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    versions: list[tuple[str, float]] = field(default_factory=list)
    fork_pipeline: Pipe | None = None


@dataclass
class Pipe:
    """A pipeline: the jobs of one commit with one source, or what other programs say of it."""

    id: int
    sha: str
    source: str
    ref: str
    jobs: list[Run]
    head: str
    project: int = OWN

    @property
    def status(self) -> str:
        """What its jobs come to; those that may fail do not count."""
        counting = [job for job in self.jobs if not (job.may_fail or job.was_retried)]
        words = [WORDS.get(job.word, job.word) for job in counting]
        for word in ("running", "manual", "failed", "canceled", "skipped"):
            if word in words:
                return word
        return "success"


@dataclass
class Problems:
    """Exchanges that are not documented."""

    problems: list[str] = field(default_factory=list)


@dataclass
class Gitlab:
    """The server's side.

    `commanded` has the quick actions that texts of ours have begun, each with its account.
    `standing` is GitLab's word for every merge request while it is none of its own finding.
    """

    state: State
    description: Problems = field(default_factory=Problems)
    site: Site | None = None
    requests: dict[int, Request] = field(default_factory=dict)
    commanded: list[tuple[str, str]] = field(default_factory=list)
    standing: str = ""
    asked_until_sure: int = 0
    has_approval_times: bool = True
    may_merge: bool = True
    must_pass: bool = False
    merge_method: str = "merge"
    merged_results: dict[str, str] = field(default_factory=dict)
    late_pipeline: Pipe | None = None
    scopes: list[str] = field(default_factory=lambda: ["api"])
    used: int = 0

    def __post_init__(self) -> None:
        self.state.apart = True

    def respond(self, asked: Asked) -> Reply:
        """The answer to a request."""
        self.state.follow_branches()
        self.follow_versions()
        try:
            reply = self._respond(asked)
        except RefusalError as refusal:
            reply = refusal.reply
        self.used += 1
        reply.headers |= {
            "RateLimit-Limit": str(LIMIT),
            "RateLimit-Remaining": str(max(LIMIT - self.used, 0)),
            "RateLimit-Reset": str(int(self.state.clock()) + 60),
        }
        return reply

    def _respond(self, asked: Asked) -> Reply:
        secret = asked.headers.get("authorization", "").removeprefix("Bearer ")
        who = self.state.tokens.get(secret)
        if who is None:
            raise RefusalError(401, "401 Unauthorized")
        path = asked.path.removeprefix("/api/v4")
        if path == "/user":
            return Reply(data=account(who))
        if path == "/personal_access_tokens/self":
            return Reply(data={"scopes": self.scopes, "active": True})
        return self._in_project(asked, path, who)

    def _in_project(self, asked: Asked, path: str, who: str) -> Reply:
        found = re.fullmatch(r"/projects/([^/]+)(/.*)?", path)
        named = unquote(found[1]) if found else ""
        if found is None or named not in (self.state.name, str(self.state.id)):
            raise RefusalError(404, "404 Project Not Found")
        below = found[2] or ""
        for one in ROUTES:
            if one.method == asked.method and (at := one.path.fullmatch(below)):
                self._check(one, asked, below)
                return one.handler(self, asked, who, tuple(map(unquote, at.groups())))
        raise RefusalError(404, "404 Not Found")

    def _check(self, known: Route, asked: Asked, below: str) -> None:
        names = set(asked.query) | set(asked.data)
        what = f"{asked.method} {below}"
        for name in sorted(names - known.known):
            self.description.problems.append(f"{what} has no parameter '{name}'")
        for name in sorted(known.needed - names):
            self.description.problems.append(f"{what} needs '{name}'")

    # What it keeps

    def follow_versions(self) -> None:
        """Each push makes a version."""
        for entry, pull in self.state.pulls():
            versions = self.request(entry).versions
            if not versions or versions[-1][0] != pull.head:
                versions.append((pull.head, self.state.clock()))

    def request(self, entry: Entry) -> Request:
        """What it keeps of a merge request."""
        return self.requests.setdefault(entry.number, Request())

    def issue(self, number: str) -> Entry:
        found = self.state.entries.get(int(number))
        if found is None:
            raise RefusalError(404, "404 Not found")
        return found

    def pull(self, number: str) -> tuple[Entry, Pull]:
        found = self.state.entries.get(-int(number))
        if found is None or found.pull is None:
            raise RefusalError(404, "404 Not found")
        return found, found.pull

    def tell(self, entry: Entry, who: str, words: str) -> None:
        """A note of GitLab's own."""
        said = Said(self.state.next_id(), who, words, self.state.clock())
        self.request(entry).told.append(said)
        self.state.touch(entry)

    def edit_note(self, entry: Entry, old: str, new: str) -> None:
        """Save another text of a comment, or of one on a line. GitLab does not tell who did."""
        talks = self.request(entry).talks
        for said in [*entry.comments, *(one for talk in talks for one in talk.notes)]:
            if said.body == old:
                said.body = new
        self.state.touch(entry)

    def obey(self, entry: Entry, who: str, text: str) -> str:
        """Do what the commands in a text say; the rest of it.

        Carriage returns are removed before (`Gitlab::QuickActions::Extractor`).
        """
        text = text.replace("\r", "")
        for found in COMMAND.finditer(text):
            self.commanded.append((who, found[0].strip()))
            if not entry.pull:
                continue
            known, name, value = self.request(entry), found[1], found[2] or ""
            if name == "assign_reviewer" and value == "me":
                known.reviewers.setdefault(who, "unreviewed")
            if name == "submit_review" and value == "requested_changes" and who in known.reviewers:
                known.reviewers[who] = value
                known.approved_by.pop(who, None)
                self.tell(entry, who, "requested changes")
        return COMMAND.sub("", text).rstrip()

    def pipelines(self) -> list[Pipe]:
        """Every pipeline, oldest first."""
        groups: dict[tuple[str, str], list[Run]] = {}
        for run in self.state.runs:
            source = SOURCES.get(run.workflow, run.workflow)
            groups.setdefault((run.head, source), []).append(run)
        found = [self._pipe(head, source, jobs) for (head, source), jobs in groups.items()]
        for one in self.state.statuses:
            job = Run(one.id, one.head, one.context, one.word, one.at, text=one.text)
            ref = self.branch_of(one.head)
            found.append(Pipe(9000 + one.id, one.head, "external", ref, [job], one.head))
        return sorted(found, key=lambda one: one.id)

    def _pipe(self, head: str, source: str, jobs: list[Run]) -> Pipe:
        """The pipeline of these jobs.

        A `source` that ends in a number is of that merge request: a member has it run here, though
        the branch may be one of a fork (`Ci::CreatePipelineService` in the parent project).
        """
        ref, sha = self.branch_of(head), head
        source, _, number = source.partition(" ")
        if source == "merge_request_event":
            sha = self.merged_results.get(head, head)
            ref = f"refs/merge-requests/{number or 1}/{'head' if sha == head else 'merge'}"
        return Pipe(5000 + jobs[0].id, sha, source, ref, jobs, head)

    def branch_of(self, head: str) -> str:
        return next((p.branch for _, p in self.state.pulls() if p.head == head), "main")

    def head_pipeline(self, entry: Entry, pull: Pull) -> Pipe | None:
        """The one by which it merges: that of the merge request, else the newest of the branch."""
        if self.late_pipeline:
            return self.late_pipeline
        if pull.fork:
            return self.request(entry).fork_pipeline
        own = [one for one in self.pipelines() if one.head == pull.head]
        refs = f"refs/merge-requests/{entry.number}/"
        of_request = [one for one in own if one.ref.startswith(refs)]
        of_branch = [one for one in own if one.source == "push"] or own
        return next(reversed(of_request or of_branch), None)

    # What it shows

    def page(self, asked: Asked, items: list[Any]) -> Reply:
        """A page. Its link leads to the address that the server believes to have."""
        size = min(int(asked.query.get("per_page", "20")), MOST)
        at = int(asked.query.get("page", "1"))
        shown, more = items[(at - 1) * size : at * size], at * size < len(items)
        headers = {"X-Next-Page": str(at + 1) if more else "", "X-Total": str(len(items))}
        if more:
            headers["Link"] = '<https://inner.example.com/next>; rel="next"'
        return Reply(data=shown, headers=headers)

    def listed(self, asked: Asked, entries: list[Entry]) -> list[Entry]:
        """The entries in the order and the state that were asked for."""
        query, state = asked.query, asked.query.get("state", "all")
        wanted = set(filter(None, query.get("labels", "").split(",")))
        after = since(query.get("updated_after", ""))
        by_change = query.get("order_by") == "updated_at"
        found = [
            entry
            for entry in entries
            if state in ("all", state_of(entry))
            and wanted <= set(entry.labels)
            and entry.updated >= after
        ]
        found.sort(key=lambda entry: entry.updated if by_change else entry.at)
        return found if query.get("sort") == "asc" else found[::-1]

    def basic(self, entry: Entry) -> dict[str, Any]:
        """What issues and merge requests have alike."""
        return {
            "id": 70_000 + entry.number,
            "iid": entry.number,
            "project_id": self.state.id,
            "title": entry.title,
            "description": entry.body,
            "state": state_of(entry),
            "author": account(entry.author),
            "assignees": [account(login) for login in entry.assignees],
            "labels": list(entry.labels),
            "user_notes_count": len(entry.comments),
            "created_at": stamp(entry.at),
            "updated_at": stamp(entry.updated),
            "closed_at": stamp(entry.closed_at) if entry.closed_at else None,
        }

    def request_data(self, entry: Entry, *, single: bool = False) -> dict[str, Any]:
        pull = entry.pull
        assert pull
        head, own = self.head_pipeline(entry, pull), self.state.id
        found = self.basic(entry) | {
            "source_branch": pull.branch,
            "target_branch": pull.base,
            "source_project_id": FORK if pull.fork else own,
            "target_project_id": own,
            "sha": pull.head,
            "merge_commit_sha": pull.merged_as or None,
            "squash_commit_sha": None,
            "merged_at": stamp(pull.merged_at) if pull.merged_at else None,
            "draft": bool(DRAFT.match(entry.title)),
            # With no commits it says so as well: traffic of gitlab.com in Forgejo's testdata.
            "has_conflicts": (pull.conflicts and not self.is_unsure()) or self.standing == EMPTY,
            "detailed_merge_status": self.word(entry, pull),
            "merge_when_pipeline_succeeds": bool(pull.place),
        }
        if single:
            base = self.state.heads().get(pull.base)
            refs = {"base_sha": base, "start_sha": base, "head_sha": pull.head}
            found |= {"head_pipeline": pipe_data(head) if head else None, "diff_refs": refs}
        return found

    def is_unsure(self) -> bool:
        return self.state.unsure or self.asked_until_sure > 0

    def word(self, entry: Entry, pull: Pull) -> str:
        """Whether it can be merged: the first thing that is in the way."""
        if self.is_unsure():
            return "checking"
        if not entry.is_open:
            return "not_open"
        if DRAFT.match(entry.title):
            return "draft_status"
        head = self.head_pipeline(entry, pull)
        if self.must_pass and (head is None or head.status != "success"):
            return "ci_still_running" if head and head.status not in OVER else "ci_must_pass"
        if pull.conflicts:
            return "conflict"
        return "need_rebase" if self.is_behind(pull) else self.standing or "mergeable"

    def is_behind(self, pull: Pull) -> bool:
        """Whether a semi-linear or fast-forward merge lacks the last commit of the target."""
        if self.merge_method == "merge":
            return False
        base = self.state.repository.heads()[pull.base]
        return not self.state.repository.contains(pull.head, base)


def state_of(entry: Entry) -> str:
    """GitLab's word for the state."""
    if entry.pull and entry.pull.merged_at:
        return "merged"
    return "opened" if entry.is_open else "closed"


def note_data(said: Said, talk: Talk | None = None, *, system: bool = False) -> dict[str, Any]:
    """A note."""
    found = {
        "id": said.id,
        "body": said.body,
        "author": account(said.author),
        "created_at": stamp(said.at),
        "updated_at": stamp(said.at),
        "system": system,
        "resolvable": talk is not None,
    }
    if talk and talk.position:
        found |= {"type": "DiffNote", "position": talk.position}
    return found | ({"resolved": talk.is_resolved} if talk else {})


def pipe_data(pipe: Pipe) -> dict[str, Any]:
    """A pipeline."""
    return {
        "id": pipe.id,
        "project_id": pipe.project,
        "sha": pipe.sha,
        "ref": pipe.ref,
        "source": pipe.source,
        "status": pipe.status,
        "web_url": f"https://gitlab.example.com/harbor/harb/-/pipelines/{pipe.id}",
        "updated_at": stamp(max(job.at for job in pipe.jobs)),
    }


def job_data(job: Run) -> dict[str, Any]:
    """A job."""
    failed = {"failure_reason": job.reason or "script_failure"} if job.word == "failure" else {}
    return failed | {
        "id": job.id,
        "name": job.name,
        "status": WORDS.get(job.word, job.word),
        "allow_failure": job.may_fail,
        "web_url": f"https://gitlab.example.com/harbor/harb/-/jobs/{job.id}",
        "finished_at": stamp(job.at) if job.word else None,
    }


# Project, people, labels


@route("GET", "")
def project(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    access = {"project_access": {"access_level": 40}, "group_access": None}
    found = {"id": gitlab.state.id, "path_with_namespace": gitlab.state.name}
    found |= {"merge_method": gitlab.merge_method, "merge_trains_enabled": gitlab.state.has_queue}
    return Reply(data=found | {"permissions": access} | gitlab.state.flags)


@route("GET", "/members/all", f"query {PAGES}")
def members(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """With those of the groups above. The query finds a part of a name."""
    levels = dict.fromkeys(sorted(gitlab.state.writers), 30) | {"reporter": 20, BOT_TOKEN: 40}
    found = [
        account(name) | {"access_level": level, "membership_state": "active"}
        for name, level in levels.items()
        if asked.query.get("query", "") in name
    ]
    return gitlab.page(asked, found)


BOT_TOKEN = "sm"
"""The account of our own token may push."""


@route("GET", "/labels", PAGES)
def labels(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    found = [{"id": at, "name": name} for at, name in enumerate(gitlab.state.labels, 1)]
    return gitlab.page(asked, found)


@route("POST", "/labels", "name! color!")
def make_label(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    gitlab.state.labels.append(asked.data["name"])
    return Reply(201, {"id": len(gitlab.state.labels), "name": asked.data["name"]})


# Issues


@route("GET", "/issues", LISTS)
def issues(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    found = [entry for entry in gitlab.state.entries.values() if entry.pull is None]
    return gitlab.page(asked, list(map(gitlab.basic, gitlab.listed(asked, found))))


@route("POST", "/issues", "title! description labels")
def add_issue(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    check_title(asked.data["title"])
    entry = gitlab.state.add(asked.data["title"], "", who)
    entry.body = gitlab.obey(entry, who, asked.data.get("description", ""))
    gitlab.state.label(entry, list(filter(None, asked.data.get("labels", "").split(","))))
    return Reply(201, gitlab.basic(entry))


def check_title(title: str) -> None:
    if len(title) > 255:
        raise RefusalError(400, {"title": ["is too long (maximum is 255 characters)"]})


@route("GET", "/issues/([0-9]+)")
def issue(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return Reply(data=gitlab.basic(gitlab.issue(at[0])))


@route("PUT", "/issues/([0-9]+)", "title description state_event add_labels remove_labels")
def edit_issue(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, data = gitlab.issue(at[0]), asked.data
    check_title(data.get("title", ""))
    entry.title = data.get("title", entry.title)
    entry.body = gitlab.obey(entry, who, data.get("description", entry.body))
    gone = data.get("remove_labels", "").split(",")
    entry.labels = [name for name in entry.labels if name not in gone]
    gitlab.state.label(entry, list(filter(None, data.get("add_labels", "").split(","))))
    if "state_event" in data:
        gitlab.state.close(entry, is_open=data["state_event"] == "reopen")
    return Reply(data=gitlab.basic(entry))


@route("GET", "/(issues|merge_requests)/([0-9]+)/notes", f"sort order_by {PAGES}")
def notes(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry = gitlab.issue(at[1]) if at[0] == "issues" else gitlab.pull(at[1])[0]
    said = [note_data(one) for one in entry.comments]
    if entry.pull:
        known = gitlab.request(entry)
        said += [note_data(one, system=True) for one in known.told]
        said += [note_data(one, talk) for talk in known.talks for one in talk.notes]
    elif entry.comments:
        said.insert(0, note_data(Said(1, who, "added ~3 label", entry.at), system=True))
    said.sort(key=lambda one: one["id"])
    return gitlab.page(asked, said if asked.query.get("sort") == "asc" else said[::-1])


@route("POST", "/(issues|merge_requests)/([0-9]+)/notes", "body!")
def comment(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry = gitlab.issue(at[1]) if at[0] == "issues" else gitlab.pull(at[1])[0]
    text = gitlab.obey(entry, who, asked.data["body"])
    if not text:
        return Reply(202, {"commands_changes": {}, "summary": ["Done."]})
    return Reply(201, note_data(gitlab.state.say(entry, who, text)))


# Merge requests


@route("GET", "/merge_requests", f"{LISTS} source_branch")
def merge_requests(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    branch = asked.query.get("source_branch")
    found = [entry for entry, pull in gitlab.state.pulls() if branch in (None, pull.branch)]
    return gitlab.page(asked, list(map(gitlab.request_data, gitlab.listed(asked, found))))


@route("POST", "/merge_requests", "title! description source_branch! target_branch!")
def open_pull(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Also one without commits, which other forges refuse."""
    data, heads = asked.data, gitlab.state.heads()
    check_title(data["title"])
    branch = data["source_branch"]
    for entry, one in gitlab.state.pulls():
        if entry.is_open and (one.branch, one.fork) == (branch, ""):
            said = (
                f"Another open merge request already exists for this source branch: !{entry.number}"
            )
            raise RefusalError(409, [said])
    made = Pull(branch, data["target_branch"], heads[branch])
    entry = gitlab.state.add(data["title"], "", who, made)
    entry.body = gitlab.obey(entry, who, data.get("description", ""))
    gitlab.follow_versions()
    return Reply(201, gitlab.request_data(entry, single=True))


@route("GET", "/merge_requests/([0-9]+)")
def merge_request(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    shown = gitlab.request_data(gitlab.pull(at[0])[0], single=True)
    gitlab.asked_until_sure = max(gitlab.asked_until_sure - 1, 0)
    return Reply(data=shown)


@route("PUT", "/merge_requests/([0-9]+)", "title description state_event")
def edit_pull(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, _ = gitlab.pull(at[0])
    gitlab.state.close(entry, is_open=asked.data.get("state_event") == "reopen")
    return Reply(data=gitlab.request_data(entry, single=True))


MERGE = "sha squash merge_commit_message squash_commit_message should_remove_source_branch"


@route("PUT", "/merge_requests/([0-9]+)/merge", f"{MERGE} auto_merge")
def merge(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """In the order in which GitLab looks: the right, the state, the conflict, the commit."""
    entry, pull = gitlab.pull(at[0])
    if not gitlab.may_merge:
        raise RefusalError(401, "401 Unauthorized")
    word = gitlab.word(entry, pull)
    if word not in ("mergeable", "conflict"):
        raise RefusalError(405, "405 Method Not Allowed")
    if word == "conflict":
        raise RefusalError(422, "Branch cannot be merged")
    if asked.data.get("sha", pull.head) != pull.head:
        raise RefusalError(409, f"SHA does not match HEAD of source branch: {pull.head}")
    gitlab.state.merge(entry, asked.data.get("merge_commit_message", "Merge"), who)
    return Reply(data=gitlab.request_data(entry, single=True))


@route("POST", "/merge_trains/merge_requests/([0-9]+)", "auto_merge sha squash")
def join_train(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Only once: a second try is refused. Without `sha` GitLab would throw it out of the train."""
    entry, pull = gitlab.pull(at[0])
    if not gitlab.state.has_queue:
        raise RefusalError(403, "403 Forbidden")
    if asked.data["sha"] != pull.head:
        raise RefusalError(409, f"SHA does not match HEAD of source branch: {pull.head}")
    if gitlab.word(entry, pull) != "mergeable" or pull.place:
        raise RefusalError(400, "Failed to merge")
    pull.place = 1
    gitlab.tell(entry, who, "started a merge train")
    return Reply(201, [{"id": 1, "status": "idle", "target_branch": pull.base}])


def leave_train(gitlab: Gitlab, number: int, reason: str) -> None:
    """Have GitLab take it out of the train."""
    entry, pull = gitlab.pull(str(number))
    pull.place = 0
    words = f"removed this merge request from the merge train because {reason}"
    gitlab.tell(entry, "sm", words)


@route("GET", "/merge_requests/([0-9]+)/approvals")
def approvals(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    known = gitlab.request(gitlab.pull(at[0])[0]).approved_by
    found = [
        {"user": account(name)}
        | ({"approved_at": stamp(when)} if gitlab.has_approval_times else {})
        for name, when in known.items()
    ]
    return Reply(data={"approved": bool(found), "approved_by": found})


@route("POST", "/merge_requests/([0-9]+)/approve", "sha")
def approve(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, pull = gitlab.pull(at[0])
    known = gitlab.request(entry)
    if asked.data.get("sha", pull.head) != pull.head:
        raise RefusalError(409, f"SHA does not match HEAD of source branch: {pull.head}")
    if who in known.approved_by or who == entry.author:
        raise RefusalError(401, "401 Unauthorized")
    known.approved_by[who] = gitlab.state.clock()
    if who in known.reviewers:
        known.reviewers[who] = "approved"
    gitlab.tell(entry, who, "approved this merge request")
    return Reply(201, approvals(gitlab, asked, who, at).data)


@route("GET", "/merge_requests/([0-9]+)/reviewers", PAGES)
def reviewers(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    known = gitlab.request(gitlab.pull(at[0])[0]).reviewers
    return gitlab.page(asked, [{"user": account(one), "state": s} for one, s in known.items()])


@route("GET", "/merge_requests/([0-9]+)/versions", PAGES)
def versions(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    known = gitlab.request(gitlab.pull(at[0])[0]).versions
    found = [{"head_commit_sha": head, "created_at": stamp(when)} for head, when in known]
    return gitlab.page(asked, found[::-1])


@route("GET", "/merge_requests/([0-9]+)/discussions", PAGES)
def discussions(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, _ = gitlab.pull(at[0])
    known = gitlab.request(entry)
    alone = [(one.id, [note_data(one)], True) for one in entry.comments]
    alone += [(one.id, [note_data(one, system=True)], True) for one in known.told]
    for talk in known.talks:
        alone.append((talk.notes[0].id, [note_data(one, talk) for one in talk.notes], False))
    alone.sort(key=lambda one: one[0])
    return gitlab.page(
        asked, [{"id": f"d{i}", "notes": said, "individual_note": a} for i, said, a in alone]
    )


@route("POST", "/merge_requests/([0-9]+)/discussions", "body! position")
def begin(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """A position must be on a line that the merge request adds."""
    entry, pull = gitlab.pull(at[0])
    position = asked.data.get("position")
    if position:
        text = gitlab.state.repository.diff(f"refs/heads/{pull.base}", pull.head).decode()
        added = sum(
            line.startswith("+") and not line.startswith("+++") for line in text.split("\n")
        )
        if position["new_line"] > added or f"b/{position['new_path']}" not in text:
            raise RefusalError(400, '400 Bad request - Note {:line_code=>["can\'t be blank"]}')
    text = gitlab.obey(entry, who, asked.data["body"])
    said = Said(gitlab.state.next_id(), who, text, gitlab.state.clock())
    talk = Talk(f"d{said.id}", [said], position)
    gitlab.request(entry).talks.append(talk)
    gitlab.state.touch(entry)
    return Reply(201, {"id": talk.id, "notes": [note_data(said, talk)], "individual_note": False})


@route("GET", "/merge_requests/([0-9]+)/diffs", PAGES)
def diffs(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    _, pull = gitlab.pull(at[0])
    return gitlab.page(asked, changed(gitlab, f"refs/heads/{pull.base}", pull.head))


@route("GET", "/merge_requests/([0-9]+)/raw_diffs")
def raw_diffs(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    _, pull = gitlab.pull(at[0])
    patch = gitlab.state.repository.diff(f"refs/heads/{pull.base}", pull.head)
    return Reply(raw=patch, headers={"Content-Type": "text/plain"})


def changed(gitlab: Gitlab, base: str, head: str) -> list[dict[str, Any]]:
    names = gitlab.state.repository.files_changed(base, head)
    patch = {"new_file": True, "deleted_file": False, "diff": "@@ -0,0 +1 @@\n+x\n"}
    return [{"new_path": name, "old_path": name} | patch for name in names]


# The repository


@route("GET", "/repository/branches/([^/]+)")
def branch(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    head = gitlab.state.heads().get(at[0])
    if head is None:
        raise RefusalError(404, "404 Branch Not Found")
    return Reply(data={"name": at[0], "commit": {"id": head}})


@route("GET", "/repository/compare", "from! to! straight")
def compare(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    heads, git = gitlab.state.heads(), gitlab.state.repository
    base, head = (heads.get(asked.query[name], asked.query[name]) for name in ("from", "to"))
    if not knows(git, base):
        raise RefusalError(404, "404 Ref Not Found")
    commits = [{"id": head, "parent_ids": []}] * git.count_between(base, head)
    return Reply(data={"commits": commits, "diffs": changed(gitlab, base, head) if commits else []})


@route("GET", "/repository/commits/([0-9a-f]+)")
def commit(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    for head, merged in gitlab.merged_results.items():
        if merged == at[0]:
            main = gitlab.state.heads()["main"]
            return Reply(data={"id": merged, "parent_ids": [main, head]})
    raise RefusalError(404, "404 Commit Not Found")


@route("GET", "/repository/commits/([0-9a-f]+)/merge_requests", PAGES)
def of_commit(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Those that are to be merged into this project, from wherever they come.

    That is what `MergeRequestsFinder` selects for `API::Commits`.
    """
    found = [entry for entry, pull in gitlab.state.pulls() if pull.head == at[0]]
    return gitlab.page(asked, list(map(gitlab.request_data, found)))


@route("GET", "/repository/commits/([0-9a-f]+)/statuses", f"pipeline_id all ref {PAGES}")
def statuses(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    of = int(asked.query.get("pipeline_id", "0"))
    found = [
        job_data(job)
        | {"target_url": "https://ci.example.com/1", "description": job.text, "web_url": None}
        for pipe in gitlab.pipelines()
        if pipe.sha == at[0] and of in (0, pipe.id)
        for job in pipe.jobs
    ]
    return gitlab.page(asked, found)


# CI


@route("GET", "/pipelines", f"sha ref status source order_by sort {PAGES}")
def pipelines(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    sha = asked.query.get("sha")
    found = [pipe_data(one) for one in gitlab.pipelines() if sha in (None, one.sha)]
    return gitlab.page(asked, found[::-1])


def find_pipe(gitlab: Gitlab, ident: str) -> Pipe:
    found = next((one for one in gitlab.pipelines() if one.id == int(ident)), None)
    if found is None:
        raise RefusalError(404, "404 Not found")
    return found


@route("GET", "/pipelines/([0-9]+)")
def pipeline(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    found = find_pipe(gitlab, at[0])
    return Reply(data=pipe_data(found) | {"yaml_errors": found.jobs[0].text or None})


@route("GET", "/pipelines/([0-9]+)/(jobs|bridges)", rf"scope[] include_retried {PAGES}")
def jobs(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Jobs without a name are none: the pipeline could not be made.

    A job that has begun another pipeline is listed apart.
    """
    pipe, scope = find_pipe(gitlab, at[0]), asked.query.get("scope[]")
    of_kind = [one for one in pipe.jobs if bool(one.child) is (at[1] == "bridges")]
    last = [one for one in of_kind if one.name and not one.was_retried]
    found = [bridge_data(gitlab, one) if one.child else job_data(one) for one in last]
    if pipe.source == "external":
        found = []
    return gitlab.page(asked, [one for one in found if scope in (None, one["status"])])


def bridge_data(gitlab: Gitlab, job: Run) -> dict[str, Any]:
    """A trigger job; the pipeline of another project has its number there."""
    if job.child == "elsewhere":
        child: dict[str, Any] = {"id": 1, "sha": "0" * 40, "status": "failed", "project_id": FORK}
        child |= {"web_url": "https://gitlab.example.com/other/-/pipelines/1"}
    else:
        pipes = gitlab.pipelines()
        found = next(one for one in pipes if (one.head, one.source) == (job.head, job.child))
        child = pipe_data(found)
    return job_data(job) | {"downstream_pipeline": child}


@route("GET", "/jobs/([0-9]+)/trace")
def trace(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    log = next(one.log for one in gitlab.state.runs if one.id == int(at[0]))
    return Reply(raw=log.encode(), headers={"Content-Type": "text/plain"})


@route("POST", "/pipelines/([0-9]+)/retry")
def retry(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Only what has failed runs again."""
    pipe = find_pipe(gitlab, at[0])
    for job in pipe.jobs:
        if job.word in ("failure", "cancelled"):
            job.word, job.at = "", gitlab.state.clock()
    gitlab.state.reruns.append("retry")
    return Reply(201, pipe_data(pipe))


@route("POST", "/pipeline", "ref!")
def new_pipeline(gitlab: Gitlab, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    gitlab.state.reruns.append(f"pipeline of {asked.query['ref']}")
    return Reply(201, {"id": 1})


@route("POST", "/merge_requests/([0-9]+)/pipelines")
def new_request_pipeline(gitlab: Gitlab, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    gitlab.state.reruns.append(f"pipeline of !{at[0]}")
    return Reply(200, {"id": 1})
