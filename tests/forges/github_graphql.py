"""GitHub's GraphQL interface over the same state: the types and fields that `sm` asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.forges import graphql
from tests.forges.server import Asked, Reply
from tests.forges.state import Entry, Inline, Opinion, Pull, Run, State, Status, iso

if TYPE_CHECKING:
    from tests.forges.github import Github

WORDS = {"success": "SUCCESS", "failure": "FAILURE", "pending": "PENDING", "error": "ERROR"}


def answer(github: Github, asked: Asked, who: str) -> Reply:
    """The answer to a query; 502 while the interface is not to be had."""
    state = github.state
    if not github.has_graphql:
        return Reply(502, {"message": "Something went wrong while executing your query."})
    if github.is_limited:
        message = "API rate limit already exceeded for user ID 1."
        fault = {"type": "RATE_LIMIT", "code": "graphql_rate_limit", "message": message}
        return Reply(data={"errors": [fault]})
    assert asked.method == "POST"
    view = View(github, who)

    def repository(owner: str, name: str) -> dict[str, Any] | None:
        if f"{owner}/{name}" not in (state.name, *state.former):
            return None
        return {
            "__typename": "Repository",
            "pullRequest": view.pull,
            "issue": view.issue,
            "object": view.commit,
        }

    def enqueue(input: dict[str, str]) -> dict[str, Any]:  # GitHub's name
        return _enqueue(state, input["pullRequestId"], input["expectedHeadOid"])

    root = {"rateLimit": {"__typename": "RateLimit", "cost": 1}, "repository": repository}
    root |= {"enqueuePullRequest": enqueue, "nodes": view.nodes}
    root |= {"viewer": {"__typename": "User", "login": who}}  # an app's, too: fullsend#1953
    data = asked.data
    return Reply(data=graphql.run(data["query"], data.get("variables", {}), root))


def connect(
    kind: str,
    nodes: list[Any],
    *,
    holes: bool = False,
    first: int = 0,
    last: int = 0,
    after: str = "",
    before: str = "",
) -> dict[str, Any]:
    """A page of a connection. A cursor is the place of an element.

    With `holes`, an element is null, as the schema allows.
    """
    assert bool(first) is not bool(last), "GitHub asks for exactly one of them"
    assert max(first, last) <= 100, "GitHub refuses more"
    begin = int(after) + 1 if after else 0
    end = int(before) if before else len(nodes)
    if first:
        end = min(end, begin + first)
    else:
        begin = max(begin, end - last)
    info = {
        "__typename": "PageInfo",
        "hasNextPage": end < len(nodes),
        "hasPreviousPage": begin > 0,
        "startCursor": str(begin) if end > begin else None,
        "endCursor": str(end - 1) if end > begin else None,
    }
    shown = [*nodes[begin:end], *([None] if holes else [])]
    return {"__typename": kind, "nodes": shown, "pageInfo": info}


def actor(login: str) -> dict[str, Any] | None:
    """An account; apps are called without their "[bot]"."""
    if not login:
        return None
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"__typename": kind, "login": login.removesuffix("[bot]")}


ROLLUP = "statusCheckRollup"


@dataclass
class View:
    """What an account sees of the repository."""

    github: Github
    who: str

    @property
    def state(self) -> State:
        return self.github.state

    def _connection(self, kind: str, nodes: list[Any]) -> Callable[..., dict[str, Any]]:
        """A connection, whose pages are asked for by arguments."""
        return partial(connect, kind, nodes, holes=self.github.holes)

    def commit(self, oid: str) -> dict[str, Any]:
        runs = [one for one in self.state.runs if one.head == oid]
        suites = {one.suite: _suite(one) for one in runs}  # what it is in last
        return {
            "__typename": "Commit",
            "oid": oid,
            ROLLUP: self._rollup_of(oid),
            "checkSuites": self._connection("CheckSuiteConnection", list(suites.values())),
        }

    def nodes(self, ids: list[str]) -> list[Any]:
        """Reviews by their ids."""
        assert len(ids) <= 100, "GitHub refuses more"
        found: dict[str, Any] = {}
        for _, pull in self.state.pulls():
            found |= {f"PRR_{one.id}": self._review(pull, one) for one in pull.reviews}
        return [found.get(ident) for ident in ids]

    def issue(self, number: int) -> dict[str, Any] | None:
        entry = self.state.entries.get(number)
        if entry is None or entry.pull:
            return None
        return {
            "__typename": "Issue",
            "number": number,
            "title": entry.title,
            "body": entry.body,
            "createdAt": iso(entry.at),
            "author": actor(entry.author),
            "lastEditedAt": iso(entry.written[0]) if entry.written else None,
            "editor": actor(entry.written[1]) if entry.written else None,
            "timelineItems": lambda itemTypes, **page: self._timeline(  # noqa: N803
                entry, itemTypes, page
            ),
            "comments": self._comments(entry),
        }

    def _comments(self, entry: Entry) -> Callable[..., dict[str, Any]]:
        nodes = [
            {
                "__typename": "IssueComment",
                "body": one.body,
                "createdAt": iso(one.at),
                "viewerDidAuthor": one.author == self.who,
                "author": actor(one.author),
                "lastEditedAt": iso(one.at) if one.editor else None,
                "editor": actor(one.editor),
            }
            for one in entry.comments
        ]
        return self._connection("IssueCommentConnection", nodes)

    def _timeline(self, entry: Entry, kinds: list[str], page: dict[str, Any]) -> dict[str, Any]:
        titled, labelled = entry.titled, entry.labelled
        found = {
            "RENAMED_TITLE_EVENT": [_done("RenamedTitleEvent", *titled)] if titled else [],
            "LABELED_EVENT": [
                _done("LabeledEvent", at, who) | {"label": {"__typename": "Label", "name": name}}
                for at, who, name in labelled
            ],
        }
        nodes = [node for kind in kinds for node in found[kind]]
        return connect("IssueTimelineItemsConnection", nodes, holes=self.github.holes, **page)

    def pull(self, number: int) -> dict[str, Any] | None:
        state, entry = self.state, self.state.entries.get(number)
        if entry is None or entry.pull is None:
            return None
        pull, owner = entry.pull, state.name.partition("/")[0]
        closed = "MERGED" if pull.merged_at else "CLOSED"
        mergeable = "CONFLICTING" if pull.conflicts else "MERGEABLE"
        oid = {"__typename": "Commit", "oid": pull.merged_as}
        commit = {"__typename": "PullRequestCommit", "commit": self.commit(pull.head)}
        reviews = [self._review(pull, one) for one in pull.reviews]
        dropped = {"__typename": "RemovedFromMergeQueueEvent", "reason": pull.dropped}
        return {
            "__typename": "PullRequest",
            "number": number,
            "state": "OPEN" if entry.is_open else closed,
            "title": entry.title,
            "isCrossRepository": bool(pull.fork),
            "createdAt": iso(entry.at),
            "closedAt": iso(entry.closed_at) if entry.closed_at else None,
            "updatedAt": iso(entry.updated),
            "headRefName": pull.branch,
            "headRefOid": pull.head,
            "baseRefName": pull.base,
            "mergeable": "UNKNOWN" if state.unsure else mergeable,
            "author": actor(entry.author),
            "headRepositoryOwner": actor(pull.fork or owner),
            "mergeCommit": oid if pull.merged_as else None,
            "reviews": self._connection("PullRequestReviewConnection", reviews),
            "commits": self._connection("PullRequestCommitConnection", [commit]),
            ROLLUP: self._rollup_of(pull.head),
            "mergeStateStatus": "UNKNOWN" if state.unsure else merge_state(state, entry),
            "isDraft": pull.is_draft,
            "reviewDecision": pull.decision or None,
            "isInMergeQueue": bool(pull.place),
            "isMergeQueueEnabled": state.has_queue,
            "mergeQueueEntry": _queue_entry(pull),
            "id": f"PR_{number}",
            "timelineItems": lambda itemTypes, **page: connect(  # noqa: N803
                "PullRequestTimelineItemsConnection",
                [dropped] if pull.dropped else [],
                holes=self.github.holes,
                **page,
            ),
            "reviewThreads": self._threads(pull),
            "comments": self._comments(entry),
        }

    # Reviews

    def _review(self, pull: Pull, one: Opinion) -> dict[str, Any]:
        remarks = [self._remark(each) for each in pull.inline if each.review == one.id]
        return _saved(one.saved) | {
            "__typename": "PullRequestReview",
            "id": f"PRR_{one.id}",
            "body": one.body,
            "fullDatabaseId": str(one.id),
            "state": one.state,
            "submittedAt": iso(one.at),
            "author": actor(one.author),
            "authorCanPushToRepository": one.author in self.state.writers,
            "commit": {"__typename": "Commit", "oid": one.head},
            "comments": self._connection("PullRequestReviewCommentConnection", remarks),
        }

    def _threads(self, pull: Pull) -> Callable[..., dict[str, Any]]:
        nodes = [
            {
                "__typename": "PullRequestReviewThread",
                "isResolved": first.resolved,
                "comments": self._connection(
                    "PullRequestReviewCommentConnection",
                    [self._remark(one) for one in pull.inline if first.id in (one.id, one.answers)],
                ),
            }
            for first in pull.inline
            if not first.answers
        ]
        return self._connection("PullRequestReviewThreadConnection", nodes)

    def _remark(self, one: Inline) -> dict[str, Any]:
        first = {"__typename": "PullRequestReviewComment", "fullDatabaseId": str(one.answers)}
        return _saved(one.saved) | {
            "__typename": "PullRequestReviewComment",
            "fullDatabaseId": str(one.id),
            "path": one.path,
            "line": None if one.outdated or one.on_file else one.line,
            "originalLine": None if one.on_file else one.line,
            "outdated": one.outdated,
            "body": one.body,
            "diffHunk": f"@@ -0,0 +1 @@\n+line {one.line} of {one.path}",
            "author": actor(one.author),
            "replyTo": first if one.answers else None,
        }

    # Checks

    def _rollup_of(self, head: str) -> dict[str, Any] | None:
        runs = [one for one in self.state.runs if one.head == head and not one.is_bare]
        statuses = {one.context: one for one in self.state.statuses if one.head == head}
        if self.github.hides_word or not (runs or statuses):
            return None
        return self._rollup(runs, list(statuses.values()))

    def _rollup(self, runs: list[Run], statuses: list[Status]) -> dict[str, Any]:
        words = [one.word or "pending" for one in runs] + [one.word for one in statuses]
        bad = {"failure", "error", "cancelled", "timed_out", "action_required"}
        state = "FAILURE" if bad & set(words) else "PENDING" if "pending" in words else "SUCCESS"
        nodes: list[Any] = [
            graphql.Refused() if self.github.hides_checks else _run(one) for one in runs
        ]
        nodes += map(_status, statuses)
        counts = {
            "checkRunCountsByState": None
            if self.github.hides_checks
            else _count("CheckRunStateCount", (one.word.upper() or "IN_PROGRESS" for one in runs)),
            "statusContextCountsByState": _count(
                "StatusContextStateCount", (WORDS[one.word] for one in statuses)
            ),
        }
        kind = "StatusCheckRollupContextConnection"
        contexts = self._connection(kind, nodes)
        return {
            "__typename": "StatusCheckRollup",
            "state": state,
            "contexts": lambda **page: contexts(**page) | counts,
        }


def merge_state(state: State, entry: Entry) -> str:
    """What GitHub would do if it were asked to merge."""
    pull = entry.pull
    assert pull
    if pull.conflicts:
        return "DIRTY"
    if pull.is_draft:
        return "DRAFT"
    if pull.merge_state:
        return pull.merge_state
    runs = [one for one in state.runs if one.head == pull.head]
    bad = [one for one in runs if one.word not in ("success", "skipped", "neutral")]
    return "UNSTABLE" if bad else "CLEAN"


def _enqueue(state: State, ident: str, head: str) -> dict[str, Any]:
    entry = state.entries[int(ident.removeprefix("PR_"))]
    assert entry.pull
    if entry.pull.head != head:
        raise graphql.GraphqlError("Expected head oid does not match")
    if entry.pull.merge_state == "BLOCKED":
        raise graphql.GraphqlError("Pull request is not mergeable")
    entry.pull.place = entry.pull.place or 1
    entry.pull.dropped = ""
    return {"__typename": "Payload", "mergeQueueEntry": _queue_entry(entry.pull)}


def _queue_entry(pull: Pull) -> dict[str, Any] | None:
    if not pull.place:
        return None
    entry = {"__typename": "MergeQueueEntry", "position": pull.place}
    return entry | {"state": "AWAITING_CHECKS"}


def _done(kind: str, at: float, who: str) -> dict[str, Any]:
    return {"__typename": kind, "createdAt": iso(at), "actor": actor(who)}


def _saved(saved: tuple[float, str] | None) -> dict[str, Any]:
    at, who = saved or (0.0, "")
    return {"lastEditedAt": iso(at) if saved else None, "editor": actor(who)}


def _count(kind: str, words: Iterable[str]) -> list[dict[str, Any]]:
    counts = Counter(words)
    return [{"__typename": kind, "state": word, "count": counts[word]} for word in counts]


def _suite(run: Run) -> dict[str, Any]:
    """Where a check run is; octokit/graphql-schema, `CheckSuite`, `WorkflowRun`."""
    workflow = {"__typename": "Workflow", "id": f"W_{run.workflow}", "name": run.workflow}
    of = {"__typename": "WorkflowRun", "event": run.event, "workflow": workflow}
    of["url"] = f"https://ci.example.com/runs/{run.id}"
    return {
        "__typename": "CheckSuite",
        "app": {"__typename": "App", "slug": run.app},
        "workflowRun": of if run.app == "github-actions" else None,
        "status": "COMPLETED" if run.word else "IN_PROGRESS",
        "conclusion": run.word.upper() or None,
        "updatedAt": iso(run.at),
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "__typename": "CheckRun",
        "name": run.name,
        "status": "COMPLETED" if run.word else "IN_PROGRESS",
        "conclusion": run.word.upper() or None,
        "detailsUrl": f"https://ci.example.com/{run.id}",
        "startedAt": iso(run.at),
        "completedAt": iso(run.at) if run.word else None,
        "checkSuite": _suite(run),
    }


def _status(one: Status) -> dict[str, Any]:
    return {
        "__typename": "StatusContext",
        "context": one.context,
        "state": WORDS[one.word],
        "targetUrl": one.url,
        "createdAt": iso(one.at),
    }
