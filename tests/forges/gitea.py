"""The dialect of Forgejo and Gitea of a stateful forge: as Forgejo's own description says.

What that leaves open is as their sources have it. The places are named: of both, if no other is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import BOT
from tests.forges.description import Description, describe
from tests.forges.github import RefusalError, knows, review_data, said_data, user
from tests.forges.server import Asked, Reply, Site
from tests.forges.state import Entry, Inline, Opinion, Pull, State, iso, page_of

MOST = 30
"""Entries of a page, whatever is asked for: a server may be set so."""
Handler = Callable[["Gitea", Asked, str, tuple[str, ...]], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []
EVENTS = ("APPROVED", "REQUEST_CHANGES", "COMMENT")
REMARK = "COMMENTED"
PAGE_OF_LOG = re.compile(r"/actions/runs/([0-9]+)/jobs/[0-9]+/logs")
ORG_LABEL = 900
"""Added to the place of a label of the organisation: its id."""
NOT_FOUND = {"gitea": "not found", "forgejo": "The target couldn't be found."}
"""What each says of what is missing (recorded)."""
NO_PAGE = Reply(404, raw=b"404 page not found\n", headers={"Content-Type": "text/plain"})
"""What a server answers to an address that it does not know (recorded)."""
WAYS = {
    "merge": "allow_merge_commits",
    "squash": "allow_squash_merge",
    "rebase": "allow_rebase",
    "rebase-merge": "allow_rebase_explicit",
    "fast-forward-only": "allow_fast_forward_only_merge",
}
"""The setting of the repository that allows each way to merge."""
TIMELINE = 3
"""Entries of a page of a timeline, whatever is asked for."""
CANCELLED = {"forgejo": "Has been cancelled", "gitea": "Canceled after 3s"}
"""What their Actions say of a cancelled job: `services/actions/commit_status.go`."""


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Answer requests to `path`, which begins behind the repository."""

    def keep(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(path), handler))
        return handler

    return keep


@dataclass
class Gitea:
    """The server's side; `kind` is `forgejo` or `gitea`."""

    state: State
    kind: str = "forgejo"
    description: Description = field(default_factory=lambda: describe("forgejo.json"))
    site: Site | None = None
    is_old: bool = False
    """Whether it is as those that were recorded, which are older: Forgejo 12, Gitea of 2025."""
    is_public: bool = False
    """Whether everybody may see its pages."""
    tells_runs: bool = True
    """Whether our account owns the repository: Gitea lists runs to no other."""
    asked_until_sure: int = 0
    """So often a pull request is not mergeable, as the forge is finding out whether it is."""
    is_organised: bool = True
    """Whether an organisation owns the repository, and no person."""
    org_labels: list[str] = field(default_factory=list)
    """Labels of the organisation that owns the repository."""
    asked_again: dict[int, list[str]] = field(default_factory=dict)
    """Whose review is asked for, of each pull request; '' is a team."""
    waits_for: dict[int, list[int]] = field(default_factory=dict)
    """What each issue or pull request depends on."""
    may_merge: bool = True
    """Whether the accounts may merge into the protected base (`services/convert/convert.go`)."""
    is_strict: bool = False
    """The base takes nothing that lacks commits of it: `block_on_outdated_branch`."""
    begun_by: dict[int, int] = field(default_factory=dict)
    """Which pull request has begun each run; others were begun by a push."""

    def respond(self, asked: Asked) -> Reply:
        """The answer to a request; there are no validators."""
        self.state.follow_branches()
        path = asked.path.removeprefix("/api/v1")
        path = path.replace(f"/repositories/{self.state.id}", f"/repos/{self.state.name}", 1)
        for name in self.state.former:
            if f"{path}/".startswith(f"/repos/{name}/"):
                below = path.removeprefix(f"/repos/{name}")
                moved = f"/api/v1/repos/{self.state.name}{below}"
                return Reply(301, headers={"Location": moved})
        try:
            reply = self._respond(asked, path)
        except RefusalError as refusal:
            reply = refusal.reply
        if reply.status < 300 and reply.data is not None:
            reply.data = self.description.complete(asked.method, path, reply.status, reply.data)
        return reply

    def _respond(self, asked: Asked, path: str) -> Reply:
        who = self.state.tokens.get(asked.headers.get("authorization", "").removeprefix("token "))
        if found := PAGE_OF_LOG.fullmatch(path.removeprefix(f"/{self.state.name}")):
            return self._show_log(int(found[1]))
        if who is None:
            raise RefusalError(401, "user does not exist [uid: 0, name: ]")
        if path == "/user":
            return Reply(data=user(who))
        self.description.check_request(asked.method, path, asked.query, asked.data)
        if path == f"/orgs/{self.state.name.partition('/')[0]}/labels" and self.is_organised:
            return self.page(asked, [self.label_data(name) for name in self.org_labels])
        below = path.removeprefix(f"/repos/{self.state.name}")
        for method, pattern, handler in ROUTES if below != path else ():
            if method == asked.method and (found := pattern.fullmatch(below)):
                return handler(self, asked, who, tuple(map(unquote, found.groups())))
        raise self.refuse_missing()

    def _show_log(self, number: int) -> Reply:
        """The page of a log: of a private repository there is none, with a token neither."""
        if not self.is_public:
            raise RefusalError(404, "Not found.")
        log = next(one.log for one in self.state.runs if one.id == number)
        return Reply(raw=log.encode(), headers={"Content-Type": "text/plain"})

    def refuse_missing(self) -> RefusalError:
        """The refusal of what is missing."""
        return RefusalError(404, NOT_FOUND[self.kind])

    def entry(self, number: str, *, pull: bool = False) -> Entry:
        found = self.state.entries.get(int(number))
        if found is None or (pull and found.pull is None):
            raise self.refuse_missing()
        return found

    def pull(self, number: str) -> tuple[Entry, Pull]:
        found = self.entry(number, pull=True)
        assert found.pull
        return found, found.pull

    def page(self, asked: Asked, items: list[Any]) -> Reply:
        """A page. Its link leads to the address that the server believes to have."""
        shown, more = page_of(items, asked.query, MOST)
        link = {"Link": '<https://inner.example.com/next>; rel="next"'} if more else {}
        return Reply(data=shown, headers=link | {"X-Total-Count": str(len(items))})

    def label_data(self, name: str) -> dict[str, Any]:
        """A label of the repository, or of the organisation."""
        if name in self.state.labels:
            return {"name": name, "id": self.state.labels.index(name) + 1}
        return {"name": name, "id": ORG_LABEL + self.org_labels.index(name)}

    def label_name(self, ident: int) -> str:
        """The label with that id: `GetLabelInRepoOrOrgByID`."""
        if ident >= ORG_LABEL:
            return self.org_labels[ident - ORG_LABEL]
        return self.state.labels[ident - 1]

    def give(self, entry: Entry, names: list[str]) -> None:
        """Give labels, which are there."""
        known = list(self.state.labels)
        self.state.label(entry, names)
        self.state.labels = known

    def is_official(self, number: int, author: str) -> bool:
        """Whether an approval counts: to ask for another review takes that away.

        `IsOfficialReviewer` and `AddReviewRequest` in `models/issues/review.go`.
        """
        return author in self.state.writers and author not in self.asked_again.get(number, ())

    def find_missing(self, entry: Entry, pull: Pull) -> str:
        """What the protection of the base asks for besides: `CheckPullBranchProtections`."""
        last = {one["context"]: one["status"] for one in list_statuses(self, pull.head)[::-1]}
        agreed = {
            one.author
            for one in pull.reviews
            if one.state == "APPROVED" and self.is_official(entry.number, one.author)
        }
        why = ""
        if any(last.get(name) != "success" for name in self.state.protected):
            why = "Not all required status checks successful"
        elif len(agreed) < self.state.approvals:
            why = "Does not have enough approvals"
        elif self.is_strict and self.is_behind(pull):
            why = "The head branch is behind the base branch"
        return why

    def issue_data(self, entry: Entry) -> dict[str, Any]:
        pull = entry.pull
        merged_at = iso(pull.merged_at) if pull and pull.merged_at else None
        merged = {"merged": merged_at is not None, "merged_at": merged_at}
        return {
            "number": entry.number,
            "title": entry.title,
            "body": entry.body,
            "state": "open" if entry.is_open else "closed",
            "user": user(entry.author),
            "labels": [self.label_data(name) for name in entry.labels],
            "comments": len(entry.comments),
            "assignees": [user(login) for login in entry.assignees] or None,
            "created_at": iso(entry.at),
            "updated_at": iso(entry.updated),
            "closed_at": iso(entry.closed_at) if entry.closed_at else None,
            "pull_request": merged if pull else None,
        }

    def pull_data(self, entry: Entry, *, is_listed: bool = False) -> dict[str, Any]:
        """A pull request.

        One that was pushed to `refs/for/main` is in the repository itself, and has no label. In a
        list its ref is that of a branch of ours, if there is one of that name: `ToAPIPullRequest`,
        and in Gitea `ToAPIPullRequests`, in `services/convert/pull.go`.
        """
        pull = entry.pull
        assert pull
        name = self.state.name.partition("/")[2]
        ours = {"id": self.state.id, "full_name": self.state.name, "permissions": {"push": True}}
        theirs = ours | {"id": 999, "full_name": f"{pull.fork}/{name}"} if pull.fork else ours
        heads = self.state.heads()
        is_there = bool(pull.fork) or pull.branch in heads
        if pull.is_agit:
            is_there = is_there and is_listed and self.kind == "gitea"
        ref = pull.branch if is_there else f"refs/pull/{entry.number}/head"
        label = "" if pull.is_agit else pull.branch
        head = {"label": label, "ref": ref, "sha": pull.head, "repo": theirs}
        found = self.issue_data(entry)
        del found["pull_request"]
        return found | {
            "merged": bool(pull.merged_at),
            "merged_at": iso(pull.merged_at) if pull.merged_at else None,
            "merge_commit_sha": pull.merged_as or None,
            "mergeable": entry.is_open
            and not (pull.conflicts or is_draft(entry) or self.asked_until_sure),
            "draft": is_draft(entry),
            "merge_base": "b" * 40 if self.is_behind(pull) else heads.get(pull.base, ""),
            "head": head,
            "base": {
                "label": pull.base,
                "ref": pull.base,
                "sha": heads.get(pull.base),
                "repo": ours,
            },
        }

    def is_behind(self, pull: Pull) -> bool:
        """Whether it lacks commits of its base."""
        base = self.state.heads().get(pull.base, "")
        return not self.state.repository.contains(pull.head, base)


def is_draft(entry: Entry) -> bool:
    """Whether a pull request is one: by its title."""
    return entry.title.upper().startswith(("WIP:", "[WIP]"))


@route("GET", "")
def repository(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    found = {"id": gitea.state.id, "full_name": gitea.state.name, "archived": False}
    found |= dict.fromkeys(WAYS.values(), True)
    return Reply(data=found | {"permissions": {"push": True}} | gitea.state.flags)


@route("GET", "/labels")
def labels(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Those of the repository alone: `GetLabelsByRepoID` in `routers/api/v1/repo/label.go`."""
    return gitea.page(asked, list(map(gitea.label_data, gitea.state.labels)))


@route("POST", "/labels")
def make_label(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    gitea.state.labels.append(asked.data["name"])
    return Reply(201, gitea.label_data(asked.data["name"]))


@route("GET", "/collaborators")
def collaborators(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Without the owner and the teams of an organisation, who may push all the same."""
    return gitea.page(asked, [])


@route("GET", "/collaborators/([^/]+)/permission")
def permission(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Our account owns the organisation."""
    word = "owner" if at[0] == BOT else "write" if at[0] in gitea.state.writers else "read"
    return Reply(data={"permission": word})


@route("GET", "/branches/(.+)")
def branch(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    head = gitea.state.heads().get(at[0])
    if head is None:
        raise gitea.refuse_missing()
    found: dict[str, Any] = {"name": at[0], "commit": {"id": head}, "user_can_merge": True}
    found |= {"enable_status_check": False, "status_check_contexts": []}
    found |= {"required_approvals": 0, "protected": False}
    if at[0] == "main":
        required = gitea.state.protected
        found |= {"enable_status_check": bool(required), "status_check_contexts": required}
        found |= {"required_approvals": gitea.state.approvals, "protected": bool(required)}
        found |= {"user_can_merge": gitea.may_merge}
    return Reply(data=found)


@route("GET", r"/compare/(.+)\.\.\.(.+)")
def compare(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    heads, git = gitea.state.heads(), gitea.state.repository
    base, head = (heads.get(name, name) for name in at)
    if not knows(git, base):
        said = NOT_FOUND["gitea"] if gitea.kind == "gitea" else "BaseNotExist"
        raise RefusalError(404, said)
    count = git.count_between(base, head)
    files = [{"filename": name} for name in git.files_changed(base, head)] if count else []
    commits = [{"files": files if number == 0 else []} for number in range(count)]
    whole = {"total_commits": count, "commits": commits}
    if gitea.kind == "forgejo":  # only it has them together, too
        whole["files"] = files
    return Reply(data=whole)


@route("GET", "/issues")
def issues(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Labels mean any of them, and one that is unknown is dropped."""
    query = asked.query
    wanted = set(filter(None, query.get("labels", "").split(","))) & set(gitea.state.labels)
    state, since = query.get("state", "open"), query.get("since", "")
    found = [
        gitea.issue_data(entry)
        for entry in gitea.state.entries.values()
        if state in ("all", "open" if entry.is_open else "closed")
        and (not wanted or wanted & set(entry.labels))
        and iso(entry.updated) >= since
    ]
    return gitea.page(asked, found if query.get("sort") == "oldest" else found[::-1])


@route("POST", "/issues")
def add_issue(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    entry = gitea.state.add(asked.data["title"], asked.data.get("body", ""), who)
    gitea.give(entry, list(map(gitea.label_name, asked.data.get("labels", []))))
    return Reply(201, gitea.issue_data(entry))


@route("GET", "/issues/([0-9]+)")
def issue(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return Reply(data=gitea.issue_data(gitea.entry(at[0])))


@route("PATCH", "/issues/([0-9]+)")
def edit_issue(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """An open dependency keeps an issue open: `EditIssue` in `routers/api/v1/repo/issue.go`."""
    entry, data = gitea.entry(at[0]), asked.data
    needed = [gitea.entry(str(one)) for one in gitea.waits_for.get(entry.number, ())]
    if data.get("state") == "closed" and any(one.is_open for one in needed):
        what = "issue or pull request" if gitea.kind == "gitea" else "issue"
        said = f"cannot close this {what} because it still has open dependencies"
        raise RefusalError(412, said)
    gitea.state.edit(entry, who, data.get("title"), data.get("body"))
    if "state" in data:
        gitea.state.close(entry, is_open=data["state"] == "open")
    return Reply(201, gitea.issue_data(entry))


@route("POST", "/issues/([0-9]+)/labels")
def add_labels(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """By ids, also of the organisation's: `prepareForReplaceOrAdd` in `issue_label.go`."""
    entry = gitea.entry(at[0])
    gitea.give(entry, list(map(gitea.label_name, asked.data["labels"])))
    return Reply(data=list(map(gitea.label_data, entry.labels)))


@route("DELETE", "/issues/([0-9]+)/labels/(.+)")
def remove_label(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry = gitea.entry(at[0])
    if not at[1].isdigit():  # Forgejo takes a name as well, Gitea does not
        raise RefusalError(422, "no such label")
    name = gitea.label_name(int(at[1]))
    if name in entry.labels:
        entry.labels.remove(name)
        gitea.state.touch(entry)
    return Reply(204)


def find_thread(gitea: Gitea, number: str) -> Entry:
    """What the comments are on. Of one that is missing Gitea says nothing (recorded)."""
    found = gitea.state.entries.get(int(number))
    if found is None and gitea.kind == "gitea":
        raise RefusalError(500, "")
    if found is None:
        raise RefusalError(404, "IsErrIssueNotExist")
    return found


@route("GET", "/issues/([0-9]+)/comments")
def comments(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """All at once, and with their number: `ListIssueComments` in `issue_comment.go`."""
    found = [said_data(one) for one in find_thread(gitea, at[0]).comments]
    return Reply(data=found, headers={"X-Total-Count": str(len(found))})


@route("POST", "/issues/([0-9]+)/comments")
def comment(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    said = gitea.state.say(find_thread(gitea, at[0]), who, asked.data["body"])
    return Reply(201, said_data(said))


@route("GET", "/pulls")
def pulls(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    state = asked.query.get("state", "open")
    found = [
        gitea.pull_data(entry, is_listed=True)
        for entry, _ in gitea.state.pulls()
        if state in ("all", "open" if entry.is_open else "closed")
    ]
    return gitea.page(asked, found if asked.query.get("sort") == "oldest" else found[::-1])


@route("POST", "/pulls")
def open_pull(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Also without a change: only one name for both is refused (`routers/api/v1/repo/pull.go`).

    An open one that was pushed to `refs/for/main` is no other one of the branch.
    """
    data, heads = asked.data, gitea.state.heads()
    head, base = data["head"], data["base"]
    if head == base:
        raise RefusalError(422, "There are no changes between the head and the base")
    ours = [(e, p) for e, p in gitea.state.pulls() if not (p.fork or p.is_agit)]
    if any(e.is_open and p.branch == head for e, p in ours):
        raise RefusalError(409, "pull request already exists for these targets")
    if head not in heads or base not in heads:
        raise gitea.refuse_missing()
    made = Pull(head, base, heads[head])
    return Reply(201, gitea.pull_data(gitea.state.add(data["title"], data["body"], who, made)))


@route("GET", r"/pulls/([0-9]+)\.diff")
def diff(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    _, found = gitea.pull(at[0])
    patch = gitea.state.repository.diff(f"refs/heads/{found.base}", found.head)
    return Reply(raw=patch, headers={"Content-Type": "text/plain"})


@route("GET", "/pulls/([0-9]+)")
def pull(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    shown = gitea.pull_data(gitea.pull(at[0])[0])
    gitea.asked_until_sure = max(gitea.asked_until_sure - 1, 0)
    return Reply(data=shown)


@route("PATCH", "/pulls/([0-9]+)")
def edit_pull(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, _ = gitea.pull(at[0])
    gitea.state.close(entry, is_open=asked.data.get("state") == "open")
    return Reply(201, gitea.pull_data(entry))


@route("GET", "/pulls/([0-9]+)/files")
def files(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    _, found = gitea.pull(at[0])
    git = gitea.state.repository
    names = git.files_changed(f"refs/heads/{found.base}", found.head)
    found_ones = [{"filename": name, "additions": 1, "deletions": 0} for name in names]
    return gitea.page(asked, found_ones)


@route("POST", "/pulls/([0-9]+)/merge")
def merge(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Merge it, or say the first thing that is in the way: `MergePullRequest`, in its order."""
    entry, found = gitea.pull(at[0])
    if found.merged_at:
        raise RefusalError(405, "The PR is already merged")
    if not entry.is_open:
        raise gitea.refuse_missing()
    if said := find_refusal(gitea, entry, found):
        raise RefusalError(405, said)
    if any(gitea.entry(str(one)).is_open for one in gitea.waits_for.get(entry.number, ())):
        # `ErrDependenciesLeft` is no error that the handler knows; the words are an admin's alone.
        raise RefusalError(500, "")
    way = asked.data["Do"]
    if gitea.state.flags.get(WAYS[way]) is False:
        said = f"{way} is not allowed an allowed merge style for this repository"
        raise RefusalError(405, said)
    if asked.data.get("head_commit_id", found.head) != found.head:
        raise RefusalError(409, "head out of date")
    git, base = gitea.state.repository, gitea.state.heads()[found.base]
    if way == "fast-forward-only" and not git.contains(found.head, base):
        # `ErrMergeDivergingFastForwardOnly` is none that the handler knows either (recorded).
        raise RefusalError(500, "")
    if way.startswith("rebase") and has_conflict_within(git, base, found.head):
        # `ErrRebaseConflicts` as JSON: it has no `message` (recorded).
        return Reply(409, data={"Style": way, "CommitSHA": found.head})
    usual = f"Merge pull request '{entry.title}' (#{entry.number}) from {found.branch}"
    forwards = way in ("rebase", "fast-forward-only") and git.contains(found.head, base)
    gitea.state.merge(entry, asked.data.get("MergeTitleField", usual), who, forwards=forwards)
    return Reply(200)


def find_refusal(gitea: Gitea, entry: Entry, found: Pull) -> str:
    """What a merge of an open pull request is refused for, in the order of `CheckPullMergeable`."""
    if not gitea.may_merge:
        return "User not allowed to merge PR"
    if is_draft(entry):
        return "Work in progress PRs cannot be merged"
    if not gitea.pull_data(entry)["mergeable"]:
        return "Please try again later"
    why = gitea.find_missing(entry, found)
    return f"not allowed to merge [reason: {why}]" if why and gitea.kind != "gitea" else why


def has_conflict_within(git: BareRepository, base: str, head: str) -> bool:
    """Whether one of the commits of a branch conflicts with the base, whatever becomes of them."""
    commits = git.git("rev-list", f"{base}..{head}").stdout.split()
    return any(git.try_merge(base, one).conflicts for one in commits)


@route("GET", "/pulls/([0-9]+)/reviews")
def reviews(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """With the texts that they had first: an edit changes only what the page shows.

    A review that is asked for is in the list as well; of a team it has no user
    (`services/convert/pull_review.go`).
    """
    number, more = int(at[0]), {"dismissed": False, "stale": False}
    given = gitea.pull(at[0])[1].reviews
    # Of one reviewer only the last verdict stands (asked of Gitea 1.26.0-dev).
    last = {one.author: one.id for one in given if one.state != REMARK}
    found = []
    for one in given:
        is_over = one.state != REMARK and last[one.author] != one.id
        found.append(
            review_data(one)
            | more
            | {"body": one.body if one.filed is None else one.filed}
            | {"official": gitea.is_official(number, one.author) and not is_over}
            | {"dismissed": is_over}
        )
    for place, name in enumerate(gitea.asked_again.get(number, ())):
        asked_for = {"id": 80_000 + place, "state": "REQUEST_REVIEW", "commit_id": "", "body": ""}
        asked_for |= {"user": user(name) if name else None, "submitted_at": iso(0)}
        found.append(asked_for | more | {"official": True})
    return gitea.page(asked, found)


@route("GET", "/issues/([0-9]+)/dependencies")
def dependencies(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    found = [gitea.entry(str(one)) for one in gitea.waits_for.get(int(at[0]), ())]
    here = {"repository": {"full_name": gitea.state.name}}
    return Reply(data=[gitea.issue_data(one) | here for one in found])


@route("GET", "/issues/([0-9]+)/timeline")
def timeline(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """All that has happened. A page is without its remarks on lines, and counts only itself.

    `ListIssueCommentsAndTimeline` in `routers/api/v1/repo/issue_comment.go`.
    """
    entry, found = gitea.pull(at[0])
    said: list[Any] = [None] * len(found.inline)
    said += [{"type": "pull_push", "review_id": 0, "body": "{}"}] * found.pushes
    said += [said_data(one) | {"type": "comment", "review_id": 0} for one in entry.comments]
    for one in found.reviews:
        shown = {"id": 90_000 + one.id, "type": "review", "review_id": one.id, "body": one.body}
        said.append(shown | {"user": user(one.author), "created_at": iso(one.at)})
    whole, _ = page_of(said, asked.query, TIMELINE)
    shown_ones = [one for one in whole if one]
    total = {"X-Total-Count": str(len(shown_ones))}
    return Reply(raw=json.dumps(shown_ones or None).encode(), headers=total)


@route("POST", "/pulls/([0-9]+)/reviews")
def review(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    entry, found = gitea.pull(at[0])
    data = asked.data
    if entry.author == who and data["event"] != "COMMENT":
        raise RefusalError(422, "approve your own pull is not allowed")
    state = data["event"] if data["event"] in EVENTS else "PENDING"
    if state in EVENTS[:2] and who in gitea.asked_again.get(entry.number, ()):
        gitea.asked_again[entry.number].remove(who)
    ident = gitea.state.next_id()
    made = Opinion(ident, who, state, data["body"], data["commit_id"], gitea.state.clock())
    found.reviews.append(made)
    for one in data.get("comments", ()):
        made_id = gitea.state.next_id()
        remark = Inline(ident, one["path"], one["new_position"], one["body"], made_id, author=who)
        found.inline.append(remark)
    official = gitea.is_official(entry.number, who)
    return Reply(200, review_data(made) | {"official": official, "dismissed": False})


@route("GET", "/pulls/([0-9]+)/reviews/([0-9]+)/comments")
def inline(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """`position` is a line of the new side, `original_position` one of the old side.

    Nothing says that the code has changed: `services/convert/pull_review.go`.
    """
    shown = [
        {
            "id": one.id,
            "pull_request_review_id": one.review,
            "path": one.path,
            "position": 0 if one.is_old_side else one.line,
            "original_position": one.line if one.is_old_side else 0,
            "body": one.body,
            "diff_hunk": f"@@ -0,0 +1 @@\n+line {one.line} of {one.path}",
            "resolver": user("rita") if one.resolved else None,
            "user": user(one.author),
        }
        for one in gitea.pull(at[0])[1].inline
        if one.review == int(at[1])
    ]
    return Reply(data=shown)


def list_statuses(gitea: Gitea, head: str) -> list[dict[str, Any]]:
    """All that were ever written, the last one first. An address of its own Actions is relative."""
    found = [
        {
            "context": one.name,
            "status": "failure" if one.word == "cancelled" else one.word or "pending",
            "id": one.id,
            "updated_at": iso(one.at),
            "description": CANCELLED[gitea.kind] if one.word == "cancelled" else one.text,
            "target_url": f"/{gitea.state.name}/actions/runs/{one.id}/jobs/0",
        }
        for one in gitea.state.runs
        if one.head == head
    ]
    found += [
        {
            "context": one.context,
            "status": one.word,
            "id": one.id,
            "updated_at": iso(one.at),
            "description": one.text,
            "target_url": one.url,
        }
        for one in gitea.state.statuses
        if one.head == head
    ]
    return sorted(found, key=lambda one: -one["id"])


@route("GET", "/commits/([^/]+)/statuses")
def statuses(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    return gitea.page(asked, list_statuses(gitea, at[0]))


@route("GET", "/commits/([^/]+)/status")
def status(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """A page of the last status of each context, and of each workflow file in newer ones of Gitea.

    `total_count` is that of the page (`services/convert/status.go`), the whole is in the header
    (`routers/api/v1/repo/status.go`). Whose pull request has begun a run makes no difference.
    """
    files = {one.id: one.workflow for one in gitea.state.runs}
    latest: dict[tuple[Any, str], dict[str, Any]] = {}
    for one in list_statuses(gitea, at[0]):
        latest.setdefault((one["context"], files.get(one["id"], "")), one)
    found = list(latest.values())
    shown, _ = page_of(found, asked.query, MOST)
    whole = {"state": "pending", "sha": at[0], "total_count": len(shown)}
    total = {"X-Total-Count": str(len(found))} if shown else {}
    return Reply(data=whole | {"statuses": shown or None}, headers=total)


@route("GET", "/actions/runs")
def runs(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Gitea's `path` ends in the ref (`services/convert/action.go`).

    Forgejo's `prettyref` is the number of a pull request (`models/actions/run.go`). One that was
    pushed to `refs/for/main` is one of a fork for both (`services/actions/notifier_helper.go`).
    """
    head = asked.query.get("head_sha")
    if not gitea.tells_runs:  # routers/api/v1/api.go: addActionsRoutes(m, reqOwner(), …)
        raise RefusalError(403, "user should be the owner of the repo")
    found = []
    for one in gitea.state.runs:
        if one.head != head:
            continue
        number = gitea.begun_by.get(one.id, 0)
        pull = gitea.entry(str(number)).pull if number else None
        place = f"{gitea.state.name}/actions/runs/{one.id}"
        shown: dict[str, Any] = {"id": 1000 + one.id, "head_branch": "main"}
        shown |= {"html_url": f"https://inner.example.com/{place}"}
        shown |= {"url": f"https://inner.example.com/api/v1/repos/{place}"}
        if gitea.kind == "forgejo" and gitea.is_old:
            branch = f"#{number}" if number else "main"
            url = f"https://inner.example.com/{place}"
            shown = {"id": 1000 + one.id, "status": one.word, "head_branch": branch, "url": url}
        elif gitea.kind == "forgejo":
            shown |= {"status": one.word, "prettyref": f"#{number}" if number else "main"}
            shown |= {"is_fork_pull_request": bool(pull and (pull.fork or pull.is_agit))}
        else:
            ref = f"refs/pull/{number}/head" if number else "refs/heads/main"
            shown |= {"status": "completed" if one.word else "in_progress"}
            shown |= {"conclusion": one.word or None, "path": f"ci.yml@{ref}"}
        found.append(shown)
    shown_ones, _more = page_of(found, asked.query, MOST)
    return Reply(data={"total_count": len(found), "workflow_runs": shown_ones})


@route("GET", "/actions/tasks")
def tasks(gitea: Gitea, asked: Asked, who: str, _: tuple[str, ...]) -> Reply:
    """Recorded from Gitea 1.26.0-dev: a run's number in its address, no id, the last one first."""
    found = []
    for one in reversed(gitea.state.runs):
        number = gitea.begun_by.get(one.id, 0)
        found.append(
            {
                "id": 2000 + one.id,
                "name": one.job or one.name,
                "head_branch": f"#{number}" if number else "main",
                "head_sha": one.head,
                "run_number": one.id,
                "status": one.word or "running",
                "url": f"https://inner.example.com/{gitea.state.name}/actions/runs/{one.id}",
            }
        )
    shown, _more = page_of(found, asked.query, MOST)
    total = {"X-Total-Count": str(len(found))}
    return Reply(data={"workflow_runs": shown, "total_count": len(found)}, headers=total)


@route("POST", "/actions/runs/([0-9]+)/(rerun|rerun-failed-jobs)")
def rerun(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Gitea has it since 1.26, Forgejo since 17, and only for whole runs."""
    if gitea.is_old or (gitea.kind == "forgejo" and at[1] != "rerun"):
        return NO_PAGE
    run = next(one for one in gitea.state.runs if 1000 + one.id == int(at[0]))
    run.word, run.at = "", gitea.state.clock()
    gitea.state.reruns.append(at[1])
    return Reply(201)


@route("GET", "/actions/runs/([0-9]+)/jobs")
def jobs(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    """Forgejo answers with a list, Gitea with the list in an object, and a conclusion.

    Older ones of Forgejo have no such page (recorded).
    """
    if gitea.kind == "forgejo" and gitea.is_old:
        return NO_PAGE
    found = [
        {"id": one.id, "name": one.job or one.name, "status": one.word, "run_id": int(at[0])}
        for one in gitea.state.runs
        if 1000 + one.id == int(at[0])
    ]
    if gitea.kind == "forgejo":
        return Reply(data=found)
    more = {"status": "completed", "steps": None}
    shown = [one | more | {"conclusion": one["status"]} for one in found]
    return Reply(raw=Reply(data={"total_count": len(shown), "jobs": shown}).body)


@route("GET", "/actions/jobs/([0-9]+)/logs")
def job_log(gitea: Gitea, asked: Asked, who: str, at: tuple[str, ...]) -> Reply:
    log = next(one.log for one in gitea.state.runs if one.id == int(at[0]))
    return Reply(raw=log.encode(), headers={"Content-Type": "text/plain"})
