"""GitHub's dialect of a stateful forge: REST as its description says, GraphQL, ETags, limits."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from sm.adapters.forge.local.repository import BareRepository
from tests.forges import github_graphql
from tests.forges.description import Description, describe
from tests.forges.server import Asked, Reply, Site
from tests.forges.state import Entry, Inline, Opinion, Pull, Run, State, iso, page_of

LIMIT = 5000
FORK = 999
"""The id of every fork."""
FORBIDDEN = "Resource not accessible by personal access token"
"""What a fine-grained token is told of what it may not read (cli/cli#8843)."""
Handler = Callable[["Github", Asked, str, tuple[str, ...]], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


class RefusalError(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        message: str | list[str] | dict[str, list[str]],
        errors: list[Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"message": message} | ({"errors": errors} if errors else {}))


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Answer requests to `path`, which begins behind the repository if it begins with `/`."""

    def keep(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(path), handler))
        return handler

    return keep


def describe_github() -> Description:
    """GitHub's own description, corrected where it is known to be wrong.

    `position` and `line` of a review comment are null once its code has changed:
    octokit/webhooks, payload-schemas/api.github.com/common/pull-request-review-comment.schema.json;
    google/go-github, github/pulls_comments.go (`*int`). It has some kinds of rules alone;
    `required_linear_history` is one more (google/go-github, github/rules.go).
    """
    found = describe("github.json")
    remark = found.data["components"]["schemas"]["pull-request-review-comment"]["properties"]
    remark |= {name: {"type": ["integer", "null"]} for name in ("position", "line")}
    rules = found.data["paths"]["/repos/{owner}/{repo}/rules/branches/{branch}"]["get"]
    shown = rules["responses"]["200"]["content"]["application/json"]["schema"]["items"]["anyOf"]
    linear = {"type": "string", "enum": ["required_linear_history"]}
    shown.append({"type": "object", "required": ["type"], "properties": {"type": linear}})
    return found


@dataclass
class Github:
    """The server's side. `problems` are exchanges that GitHub's description does not allow."""

    state: State
    description: Description = field(default_factory=describe_github)
    used: dict[str, int] = field(default_factory=dict)
    site: Site | None = None
    has_graphql: bool = True
    hides_checks: bool = False
    """The token is a fine-grained one, which cannot have the permission "Checks", and the
    repository is private (cli/cli#8843; orgs/community, discussion 179545).
    """
    hides_actions: bool = False
    """It was not given the permission "Actions" either."""
    hides_word: bool = False
    """GraphQL tells no word for all checks of a commit."""
    is_limited: bool = False
    """No points are left for GraphQL: that is an answer of 200 (yanyongyu/githubkit#271)."""
    scopes: str = ""
    """What the token is for, if it is a classic one (docs.github.com, "Scopes for OAuth apps")."""
    holes: bool = False
    """Lists of GraphQL have an element that is null: the schema has `nodes: [T]` everywhere
    (octokit/graphql-schema, schema.graphql).
    """
    transferred: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Issues that are in another repository now: its name, and their number there."""

    def respond(self, asked: Asked) -> Reply:
        """The answer to a request."""
        self.state.follow_branches()
        try:
            reply = self._respond(asked)
        except RefusalError as refusal:
            reply = refusal.reply
        if reply.status < 300 and reply.data is not None:
            path = self._canonical(asked.path)
            reply.data = self.description.complete(asked.method, path, reply.status, reply.data)
        return self._counted(asked, reply)

    def _respond(self, asked: Asked) -> Reply:
        who = self.state.tokens.get(asked.headers.get("authorization", "").removeprefix("Bearer "))
        if asked.path.startswith("/store/"):
            assert "authorization" not in asked.headers, "the token went elsewhere"
            return Reply(raw=self._log(int(asked.path.rpartition("/")[2])))
        if who is None:
            raise RefusalError(401, "Bad credentials")
        if asked.path == "/graphql":
            return github_graphql.answer(self, asked, who)
        if asked.path == "/user" and who.endswith("[bot]"):
            raise RefusalError(403, "Resource not accessible by integration")
        if asked.path == "/user":
            return Reply(data={"login": who, "id": 1})
        return self._in_repository(asked, who)

    def _in_repository(self, asked: Asked, who: str) -> Reply:
        for name in self.state.former:
            if asked.path.startswith(f"/repos/{name}"):
                rest = asked.path.removeprefix(f"/repos/{name}")
                query = f"?{urlencode(asked.query)}" if asked.query else ""
                where = f"{self._base(asked)}/repositories/{self.state.id}{rest}{query}"
                return Reply(301, {"message": "Moved"}, {"Location": where})
        if reply := self._elsewhere(asked):
            return reply
        path = self._canonical(asked.path)
        self.description.check_request(asked.method, path, asked.query, asked.data)
        below = path.removeprefix(f"/repos/{self.state.name}")
        if below == path:
            raise RefusalError(404, "Not Found")
        for method, pattern, handler in ROUTES:
            if method == asked.method and (found := pattern.fullmatch(below)):
                return handler(self, asked, who, tuple(map(unquote, found.groups())))
        raise RefusalError(404, "Not Found")

    def _elsewhere(self, asked: Asked) -> Reply | None:
        """A request for an issue that was transferred leads to it (GitHub's description: 301).

        So do recorded moves: PyGithub, tests/ReplayData/PullRequest2408.setUp.txt.
        """
        found = re.fullmatch(r"/repos/[^/]+/[^/]+/issues/([0-9]+)(/.*)?", asked.path)
        if found and int(found[1]) in self.transferred:
            name, number = self.transferred[int(found[1])]
            below = f"{number}{found[2] or ''}"
            where = f"{self._base(asked)}/repositories/{zlib.crc32(name.encode())}/issues/{below}"
            status = 301 if asked.method == "GET" else 307
            return Reply(status, {"message": "Moved Permanently"}, {"Location": where})
        for name, number in self.transferred.values():
            place = f"/repositories/{zlib.crc32(name.encode())}/issues/{number}"
            if asked.path == place:
                data = self.issue_data(Entry(number, "moved", "", "ada", 0.0, 0.0))
                data["repository_url"] = f"{self._base(asked)}/repos/{name}"
                return Reply(data=data)
            if asked.path.startswith(place):
                return Reply(data=[] if asked.method == "GET" else {})
        return None

    def _canonical(self, path: str) -> str:
        """The path with the repository's present name."""
        return path.replace(f"/repositories/{self.state.id}", f"/repos/{self.state.name}", 1)

    def _base(self, asked: Asked) -> str:
        return f"http://{asked.headers['host']}"

    def _counted(self, asked: Asked, reply: Reply) -> Reply:
        """With a validator and what is left of the limit; a 304 is free."""
        bucket = "graphql" if asked.path == "/graphql" else "core"
        if asked.method == "GET" and reply.status == 200 and reply.raw is None:
            token = asked.headers.get("authorization", "")
            etag = f'W/"{hashlib.sha256(token.encode() + reply.body).hexdigest()}"'
            reply.headers["ETag"] = etag
            if asked.headers.get("if-none-match") == etag:
                reply = Reply(304, headers={"ETag": etag})
        if reply.status != 304:
            self.used[bucket] = self.used.get(bucket, 0) + 1
        now = self.state.clock()
        reply.headers |= {
            "X-RateLimit-Limit": str(LIMIT),
            "X-RateLimit-Remaining": str(max(LIMIT - self.used.get(bucket, 0), 0)),
            "X-RateLimit-Reset": str(int(now) + 1800),
            "X-RateLimit-Resource": bucket,
        }
        return reply

    def _log(self, ident: int) -> bytes:
        log = next(run.log for run in self.state.runs if run.id == ident)
        stamp = "2026-01-02T03:04:05.1234567Z "
        return "".join(stamp + line for line in log.splitlines(keepends=True)).encode()

    # What the handlers share

    def entry(self, number: str, *, pull: bool = False) -> Entry:
        found = self.state.entries.get(int(number))
        if found is None or (pull and found.pull is None):
            raise RefusalError(404, "Not Found")
        return found

    def pull(self, number: str) -> tuple[Entry, Pull]:
        found = self.entry(number, pull=True)
        assert found.pull
        return found, found.pull

    def page(self, asked: Asked, items: list[Any]) -> Reply:
        shown, more = page_of(items, asked.query)
        query = asked.query | {"page": str(int(asked.query.get("page", "1")) + 1)}
        link = f'<{self._base(asked)}{asked.path}?{urlencode(query)}>; rel="next"'
        return Reply(data=shown, headers={"Link": link} if more else {})

    def issue_data(self, entry: Entry) -> dict[str, Any]:
        pull = entry.pull
        merged = {"merged_at": iso(pull.merged_at) if pull and pull.merged_at else None}
        return {
            "number": entry.number,
            "title": entry.title,
            "body": entry.body or None,
            "state": "open" if entry.is_open else "closed",
            "user": user(entry.author),
            "labels": [{"name": name} for name in entry.labels],
            "comments": len(entry.comments),
            "assignees": [user(login) for login in entry.assignees],
            "created_at": iso(entry.at),
            "updated_at": iso(entry.updated),
            "closed_at": iso(entry.closed_at) if entry.closed_at else None,
            "repository_url": f"https://api.github.com/repos/{self.state.name}",
            "issue_dependencies_summary": self._blockers(entry.number),
        } | ({"pull_request": merged} if pull else {})

    def count_lines(self, pull: Pull, path: str) -> int:
        """The lines of a file of a pull request: of one that it makes, its diff shows all."""
        git = self.state.repository
        found = git.git("show", f"{pull.head}:{path}", accept=(0, 128))
        return len(found.stdout.splitlines()) if found.code == 0 else 0

    def _blockers(self, number: int) -> dict[str, int]:
        """How many open issues block it: `issue-dependencies-summary` in the description."""
        named = self.state.blocked_by.get(number, [])
        still = [one for one in named if self.state.entries[one].is_open]
        told = {"blocked_by": len(still), "total_blocked_by": len(named)}
        return told | {"blocking": 0, "total_blocking": 0}

    def _merging(self, entry: Entry, *, mergeable: bool | None) -> dict[str, Any]:
        assert entry.pull
        state = github_graphql.merge_state(self.state, entry).lower()
        return {
            "merged": bool(entry.pull.merged_at),
            "mergeable": mergeable,
            "mergeable_state": "unknown" if self.state.unsure else state,
            "draft": entry.pull.is_draft,
            "node_id": f"PR_{entry.number}",
        }

    def pull_data(self, entry: Entry, *, whole: bool = False) -> dict[str, Any]:
        pull = entry.pull
        assert pull
        owner, _, name = self.state.name.partition("/")
        ours = {"id": self.state.id, "full_name": self.state.name}
        theirs = {"id": FORK, "full_name": f"{pull.fork}/{name}"} if pull.fork else ours
        sha = self.state.heads().get(pull.base, "")
        mergeable = None if self.state.unsure else not pull.conflicts
        found = self.issue_data(entry)
        for key in ("pull_request", "comments", "repository_url"):
            del found[key]
        head = {"ref": pull.branch, "sha": pull.head, "repo": theirs}
        return found | {
            "labels": [],
            "merged_at": iso(pull.merged_at) if pull.merged_at else None,
            "merge_commit_sha": pull.merged_as or None,
            "head": head | {"user": user(pull.fork or owner), "label": pull.branch},
            "base": {"ref": pull.base, "sha": sha, "repo": ours, "user": user(owner)},
            **(self._merging(entry, mergeable=mergeable) if whole else {}),
        }


def user(login: str) -> dict[str, Any]:
    return {"login": login, "id": 1}


def said_data(said: Any) -> dict[str, Any]:
    at = iso(said.at)
    return {"id": said.id, "user": user(said.author), "body": said.body} | {
        "created_at": at,
        "updated_at": at,
    }


def review_data(one: Opinion) -> dict[str, Any]:
    found = {"id": one.id, "user": user(one.author), "state": one.state, "body": one.body}
    return found | {"submitted_at": iso(one.at), "commit_id": one.head}


# The repository


@route("GET", "")
def repository(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    found = {"id": github.state.id, "full_name": github.state.name}
    found |= {"permissions": {"push": who in github.state.writers or who == "sm"}}
    scopes = {"X-OAuth-Scopes": github.scopes} if github.scopes else {}
    return Reply(data=found | github.state.flags, headers=scopes)


@route("GET", "/labels")
def labels(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    return github.page(asked, [{"name": name} for name in github.state.labels])


@route("POST", "/labels")
def make_label(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    if asked.data["name"].casefold() in {one.casefold() for one in github.state.labels}:
        said = [{"resource": "Label", "code": "already_exists", "field": "name"}]
        raise RefusalError(422, "Validation Failed", said)
    github.state.labels.append(asked.data["name"])
    return Reply(201, {"name": asked.data["name"], "id": 1})


@route("GET", "/collaborators")
def collaborators(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    return github.page(asked, [user(login) for login in sorted(github.state.writers)])


@route("GET", "/collaborators/([^/]+)/permission")
def permission(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return Reply(data={"permission": "write" if at[0] in github.state.writers else "read"})


@route("GET", "/branches/(.+)")
def branch(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    head = github.state.heads().get(at[0])
    if head is None:
        raise RefusalError(404, "Branch not found")
    required = github.state.protected if at[0] == "main" else []
    checks = [{"context": name, "app_id": None} for name in required]
    protection = {"required_status_checks": {"contexts": required, "checks": checks}}
    found = {"name": at[0], "commit": {"sha": head}}
    return Reply(data=found | ({"protection": protection} if required else {}))


@route("GET", "/rules/branches/(.+)")
def rules(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return github.page(asked, github.state.rules if at[0] == "main" else [])


def knows(git: BareRepository, commit: str) -> bool:
    return git.git("cat-file", "-e", commit, accept=(0, 1, 128)).code == 0


@route("GET", r"/compare/(.+)\.\.\.(.+)")
def compare(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    heads, git = github.state.heads(), github.state.repository
    base, head = (heads.get(name, name) for name in at)
    if not knows(git, base):
        raise RefusalError(404, "Not Found")
    count = git.count_between(base, head)
    files = [{"filename": name} for name in git.files_changed(base, head)] if count else []
    return Reply(data={"total_commits": count, "files": files})


# Issues


@route("GET", "/issues")
def issues(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    query = asked.query
    wanted = set(filter(None, query.get("labels", "").casefold().split(",")))
    state, since = query.get("state", "open"), query.get("since", "")
    found = [
        entry
        for entry in github.state.entries.values()
        if state in ("all", "open" if entry.is_open else "closed")
        and wanted <= {label.casefold() for label in entry.labels}
        and iso(entry.updated) >= since
    ]
    by = (lambda e: e.updated) if query.get("sort") == "updated" else (lambda e: e.at)
    found.sort(key=by, reverse=query.get("direction", "desc") == "desc")
    return github.page(asked, [github.issue_data(entry) for entry in found])


@route("POST", "/issues")
def add_issue(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    entry = github.state.add(asked.data["title"], asked.data.get("body", ""), who)
    github.state.label(entry, asked.data.get("labels", []), who)
    return Reply(201, github.issue_data(entry))


@route("GET", "/issues/([0-9]+)")
def issue(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return Reply(data=github.issue_data(github.entry(at[0])))


@route("PATCH", "/issues/([0-9]+)")
def edit_issue(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, data = github.entry(at[0]), asked.data
    github.state.edit(entry, who, data.get("title"), data.get("body"))
    if "state" in data:
        github.state.close(entry, is_open=data["state"] == "open")
    return Reply(data=github.issue_data(entry))


@route("POST", "/issues/([0-9]+)/labels")
def add_labels(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry = github.entry(at[0])
    github.state.label(entry, asked.data["labels"], who)
    return Reply(data=[{"name": name} for name in entry.labels])


@route("DELETE", "/issues/([0-9]+)/labels/(.+)")
def remove_label(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry = github.entry(at[0])
    if at[1] not in entry.labels:
        raise RefusalError(404, "Label does not exist")
    entry.labels.remove(at[1])
    github.state.touch(entry)
    return Reply(data=[{"name": name} for name in entry.labels])


@route("GET", "/issues/([0-9]+)/comments")
def comments(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return github.page(asked, [said_data(one) for one in github.entry(at[0]).comments])


@route("POST", "/issues/([0-9]+)/comments")
def comment(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    said = github.state.say(github.entry(at[0]), who, asked.data["body"])
    return Reply(201, said_data(said))


# Pull requests


@route("GET", "/pulls")
def pulls(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    query, owner = asked.query, github.state.name.partition("/")[0]
    state = query.get("state", "open")
    found = [
        entry
        for entry, pull in github.state.pulls()
        if state in ("all", "open" if entry.is_open else "closed")
        and query.get("head", "") in ("", f"{pull.fork or owner}:{pull.branch}")
    ]
    found.sort(key=lambda entry: entry.number, reverse=query.get("direction", "desc") == "desc")
    return github.page(asked, [github.pull_data(entry) for entry in found])


@route("POST", "/pulls")
def open_pull(github: Github, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    data, heads = asked.data, github.state.heads()
    head, base = data["head"], data["base"]
    if any(e.is_open and (p.branch, p.fork) == (head, "") for e, p in github.state.pulls()):
        message = f"A pull request already exists for {github.state.name.split('/')[0]}:{head}."
        raise RefusalError(422, "Validation Failed", [{"message": message}])
    if head not in heads or base not in heads:
        raise RefusalError(422, "Validation Failed", [{"field": "head", "code": "invalid"}])
    if github.state.repository.contains(heads[base], heads[head]):
        message = f"No commits between {base} and {head}"
        raise RefusalError(422, "Validation Failed", [{"message": message}])
    made = Pull(head, base, heads[head])
    entry = github.state.add(data["title"], data.get("body", ""), who, made)
    return Reply(201, github.pull_data(entry, whole=True))


@route("GET", "/pulls/([0-9]+)")
def pull(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, found = github.pull(at[0])
    if asked.headers.get("accept", "").endswith(".diff"):
        patch = github.state.repository.diff(f"refs/heads/{found.base}", found.head)
        return Reply(raw=patch)
    return Reply(data=github.pull_data(entry, whole=True))


@route("PATCH", "/pulls/([0-9]+)")
def edit_pull(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, found = github.pull(at[0])
    if found.merged_at and asked.data.get("state") == "open":
        raise RefusalError(422, "Validation Failed")
    github.state.close(entry, is_open=asked.data.get("state") == "open")
    return Reply(data=github.pull_data(entry, whole=True))


@route("GET", "/pulls/([0-9]+)/files")
def files(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    _, found = github.pull(at[0])
    git = github.state.repository
    names = git.files_changed(f"refs/heads/{found.base}", found.head)
    shown = [{"filename": name, "additions": 1, "deletions": 0} for name in names]
    return github.page(asked, shown)


@route("PUT", "/pulls/([0-9]+)/merge")
def merge(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, found = github.pull(at[0])
    if found.merged_at or not entry.is_open or found.conflicts:
        raise RefusalError(405, "Pull Request is not mergeable")
    if github.state.has_queue:
        raise RefusalError(405, "Changes must be made through the merge queue")
    if found.is_draft:
        raise RefusalError(405, "Pull Request is still a draft")
    if found.merge_state in ("BLOCKED", "BEHIND"):
        raise RefusalError(405, "At least 1 approving review is required by reviewers")
    if asked.data.get("sha", found.head) != found.head:
        raise RefusalError(409, "Head branch was modified. Review and try the merge again.")
    sha = github.state.merge(entry, asked.data.get("commit_title", "Merge"), who)
    return Reply(data={"merged": True, "sha": sha, "message": "Pull Request successfully merged"})


@route("GET", "/pulls/([0-9]+)/reviews")
def reviews(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return github.page(asked, [review_data(one) for one in github.pull(at[0])[1].reviews])


@route("POST", "/pulls/([0-9]+)/reviews")
def review(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, found = github.pull(at[0])
    data, words = asked.data, {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}
    if entry.author == who and data["event"] != "COMMENT":
        raise RefusalError(422, "Can not approve your own pull request")
    remarks = data.get("comments", ())
    lengths = {one["path"]: github.count_lines(found, one["path"]) for one in remarks}
    if any(one["line"] > lengths[one["path"]] for one in remarks):
        said = ["Pull request review thread line must be part of the diff"]
        raise RefusalError(422, "Unprocessable Entity", said)
    ident, state = github.state.next_id(), words.get(data["event"], "COMMENTED")
    head = data.get("commit_id", found.head)
    made = Opinion(ident, who, state, data.get("body", ""), head, github.state.clock())
    found.reviews.append(made)
    for one in data.get("comments", ()):
        made_id = github.state.next_id()
        remark = Inline(ident, one["path"], one["line"], one["body"], made_id, author=who)
        found.inline.append(remark)
    github.state.touch(entry)
    return Reply(200, review_data(made))


@route("GET", "/pulls/([0-9]+)/comments")
def inline(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return github.page(asked, list(map(inline_data, github.pull(at[0])[1].inline)))


def inline_data(one: Inline) -> dict[str, Any]:
    return {
        "id": one.id,
        "path": one.path,
        **dict.fromkeys(("line", "position"), None if one.outdated or one.on_file else one.line),
        "original_line": None if one.on_file else one.line,
        "original_position": one.line,
        "subject_type": "file" if one.on_file else "line",
        "body": one.body,
        "diff_hunk": f"@@ -0,0 +1 @@\n+line {one.line} of {one.path}",
        "pull_request_review_id": one.review,
        "user": user(one.author),
        "updated_at": iso(one.saved[0] if one.saved else 0),
    }


@route("GET", "/pulls/comments")
def all_inline(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """The remarks of all pull requests; those that were edited last come first."""
    assert asked.query["sort"] == "updated"
    shown = [inline_data(one) for _, pull in github.state.pulls() for one in pull.inline]
    return github.page(asked, sorted(shown, key=lambda one: str(one["updated_at"]), reverse=True))


# Checks


@route("GET", "/commits/([^/]+)/status")
def status(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    latest = {one.context: one for one in github.state.statuses if one.head == at[0]}
    found = [
        {"context": one.context, "state": one.word, "id": one.id, "updated_at": iso(one.at)}
        | {"description": one.text, "target_url": one.url}
        for one in latest.values()
    ]
    shown, more = page_of(found, asked.query)
    link = github.page(asked, found).headers if more else {}
    return Reply(data={"state": "pending", "sha": at[0], "statuses": shown}, headers=link)


@route("GET", "/commits/([^/]+)/check-runs")
def check_runs(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    if github.hides_checks:
        raise RefusalError(403, FORBIDDEN)
    found = [
        {
            "id": one.id,
            "name": one.name,
            "head_sha": one.head,
            "status": "completed" if one.word else "in_progress",
            "conclusion": one.word or None,
            "started_at": iso(one.at),
            "completed_at": iso(one.at) if one.word else None,
            "html_url": f"https://ci.example.com/{one.id}",
            "app": {"slug": one.app, "id": 1, "name": one.app},
            "check_suite": {"id": one.suite},
            "output": {"title": None, "summary": one.text, "text": None},
        }
        for one in github.state.runs
        if one.head == at[0] and not one.is_bare
    ]
    return listed(github, asked, "check_runs", found)


@route("GET", "/actions/jobs/([0-9]+)")
def job(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return Reply(data=job_data(next(one for one in github.state.runs if one.id == int(at[0]))))


def job_data(run: Run) -> dict[str, Any]:
    implied = [("Set up job", "success"), ("Run tests", run.word)]
    steps = implied if run.steps is None else run.steps
    shown = [
        {"name": name, "status": "completed", "conclusion": word, "number": number}
        for number, (name, word) in enumerate(steps, 1)
    ]
    return {
        "id": run.id,
        "run_id": run.id,
        "name": run.name,
        "status": "completed" if run.word else "in_progress",
        "conclusion": run.word or None,
        "started_at": iso(run.at),
        "completed_at": iso(run.at) if run.word else None,
        "html_url": f"https://ci.example.com/{run.id}",
        "steps": shown,
    }


@route("GET", "/check-runs/([0-9]+)/annotations")
def job_annotations(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    if github.hides_checks:
        raise RefusalError(403, FORBIDDEN)
    run = next(one for one in github.state.runs if one.id == int(at[0]))
    found = [
        {"path": ".github", "start_line": 1, "end_line": 1, "annotation_level": "failure"}
        | {"message": note, "title": None, "raw_details": None, "blob_href": ""}
        | {"start_column": None, "end_column": None}
        for note in run.notes
    ]
    return github.page(asked, found)


@route("GET", "/actions/jobs/([0-9]+)/logs")
def job_log(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    run = next(one for one in github.state.runs if one.id == int(at[0]))
    if not run.log:
        raise RefusalError(404, "Not Found")
    where = f"http://{asked.headers['host']}/store/{at[0]}"
    return Reply(302, headers={"Location": where})


@route("GET", "/actions/runs")
def workflow_runs(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """The runs on a commit, those for pull requests of forks among them.

    `head_repository` tells them apart (octokit/webhooks,
    payload-schemas/api.github.com/common/workflow-run.schema.json).
    """
    if github.hides_actions:
        raise RefusalError(403, FORBIDDEN)
    runs = [
        one
        for one in github.state.runs
        if one.head == asked.query.get("head_sha") and one.app == "github-actions"
    ]
    ours = {"id": github.state.id, "full_name": github.state.name}
    found = [
        {
            "id": one.id,
            "status": "completed" if one.word else "in_progress",
            "conclusion": one.word or None,
            "head_sha": one.head,
            "check_suite_id": one.suite,
            "workflow_id": zlib.crc32(one.workflow.encode()),
            "event": one.event,
            "name": one.workflow,
            "repository": ours,
            "head_repository": {"id": FORK, "full_name": "mallory/harb"} if one.of_fork else ours,
        }
        for one in runs
    ]
    return listed(github, asked, "workflow_runs", found)


def listed(github: Github, asked: Asked, name: str, items: list[Any]) -> Reply:
    """A page of a list that stands in an object, with the number of all."""
    reply = github.page(asked, items)
    reply.data = {"total_count": len(items), name: reply.data}
    return reply


@route("GET", "/actions/runs/([0-9]+)/jobs")
def run_jobs(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """The jobs of a run: each is the check run of its id (octokit/webhooks, `check_run_url`)."""
    run = next(one for one in github.state.runs if one.id == int(at[0]))
    return listed(github, asked, "jobs", [] if run.is_bare else [job_data(run)])


@route("POST", "/actions/runs/([0-9]+)/(rerun|rerun-failed-jobs)")
def rerun(github: Github, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    run = next(one for one in github.state.runs if one.id == int(at[0]))
    run.word, run.at = "", github.state.clock()
    github.state.reruns.append(at[1])
    return Reply(201, {})


def dump(reply: Reply) -> str:
    """For a failed test."""
    return json.dumps(reply.data, indent=1)
