"""GitHub's GraphQL interface over the same state: the types and fields that `sm` asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.forges import graphql
from tests.forges.server import Asked, Reply
from tests.forges.state import Entry, Inline, Pull, Run, State, Status, iso

WORDS = {"success": "SUCCESS", "failure": "FAILURE", "pending": "PENDING", "error": "ERROR"}


def answer(state: State, asked: Asked, who: str, is_there: bool) -> Reply:
    """The answer to a query; 502 while the interface is not to be had."""
    if not is_there:
        return Reply(502, {"message": "Something went wrong while executing your query."})
    assert asked.method == "POST"

    def repository(owner: str, name: str) -> dict[str, Any] | None:
        if f"{owner}/{name}" not in (state.name, *state.former):
            return None
        return {
            "__typename": "Repository",
            "pullRequest": lambda number: _pull(state, number, who),
            "issue": lambda number: _issue(state, number, who),
        }

    def enqueue(input: dict[str, str]) -> dict[str, Any]:  # GitHub's name
        return _enqueue(state, input["pullRequestId"], input["expectedHeadOid"])

    root = {"rateLimit": {"__typename": "RateLimit", "cost": 1}, "repository": repository}
    root |= {"enqueuePullRequest": enqueue}
    data = asked.data
    return Reply(data=graphql.run(data["query"], data.get("variables", {}), root))


def actor(login: str) -> dict[str, Any] | None:
    """An account; apps are called without their "[bot]"."""
    if not login:
        return None
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"__typename": kind, "login": login.removesuffix("[bot]")}


def _issue(state: State, number: int, who: str) -> dict[str, Any] | None:
    entry = state.entries.get(number)
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
        "timelineItems": lambda last, itemTypes: _timeline(entry, last, itemTypes),  # noqa: N803
        "comments": lambda last: _comments(entry, last, who),
    }


def _comments(entry: Entry, last: int, who: str) -> dict[str, Any]:
    return {
        "__typename": "IssueCommentConnection",
        "nodes": [
            {
                "__typename": "IssueComment",
                "body": one.body,
                "createdAt": iso(one.at),
                "viewerDidAuthor": one.author == who,
                "author": actor(one.author),
                "lastEditedAt": iso(one.at) if one.editor else None,
                "editor": actor(one.editor),
            }
            for one in entry.comments[-last:]
        ],
    }


def _timeline(entry: Entry, last: int, kinds: list[str]) -> dict[str, Any]:
    titled, labelled = entry.titled, entry.labelled
    found = {
        "RENAMED_TITLE_EVENT": [_done("RenamedTitleEvent", *titled)] if titled else [],
        "LABELED_EVENT": [
            _done("LabeledEvent", at, who) | {"label": {"__typename": "Label", "name": name}}
            for at, who, name in labelled
        ],
    }
    nodes = [node for kind in kinds for node in found[kind]]
    return {"__typename": "IssueTimelineItemsConnection", "nodes": nodes[-last:]}


def _done(kind: str, at: float, who: str) -> dict[str, Any]:
    return {"__typename": kind, "createdAt": iso(at), "actor": actor(who)}


def _pull(state: State, number: int, who: str) -> dict[str, Any] | None:
    entry = state.entries.get(number)
    if entry is None or entry.pull is None:
        return None
    pull, owner = entry.pull, state.name.partition("/")[0]
    closed = "MERGED" if pull.merged_at else "CLOSED"
    mergeable = "CONFLICTING" if pull.conflicts else "MERGEABLE"
    oid = {"__typename": "Commit", "oid": pull.merged_as}
    return {
        "__typename": "PullRequest",
        "number": number,
        "state": "OPEN" if entry.is_open else closed,
        "title": entry.title,
        "isCrossRepository": bool(pull.fork),
        "createdAt": iso(entry.at),
        "closedAt": iso(entry.closed_at) if entry.closed_at else None,
        "headRefName": pull.branch,
        "headRefOid": pull.head,
        "baseRefName": pull.base,
        "mergeable": "UNKNOWN" if state.unsure else mergeable,
        "author": actor(entry.author),
        "headRepositoryOwner": actor(pull.fork or owner),
        "mergeCommit": oid if pull.merged_as else None,
        "reviews": lambda last: _reviews(entry, last),
        "commits": lambda last: _commits(state, pull.head),
        "statusCheckRollup": _rollup_of(state, pull.head),
        "mergeStateStatus": "UNKNOWN" if state.unsure else merge_state(state, entry),
        "reviewDecision": pull.decision or None,
        "isInMergeQueue": bool(pull.place),
        "isMergeQueueEnabled": state.has_queue,
        "mergeQueueEntry": _queue_entry(pull),
        "id": f"PR_{number}",
        "timelineItems": lambda last, itemTypes: _dropped(pull),  # noqa: N803
        "reviewThreads": lambda first: _threads(pull),
        "comments": lambda last: _comments(entry, last, who),
    }


def merge_state(state: State, entry: Entry) -> str:
    """What GitHub would do if it were asked to merge."""
    pull = entry.pull
    assert pull
    if pull.conflicts:
        return "DIRTY"
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


def _dropped(pull: Pull) -> dict[str, Any]:
    node = {"__typename": "RemovedFromMergeQueueEvent", "reason": pull.dropped}
    nodes = [node] if pull.dropped else []
    return {"__typename": "PullRequestTimelineItemsConnection", "nodes": nodes}


def _threads(pull: Pull) -> dict[str, Any]:
    nodes = [
        {
            "__typename": "PullRequestReviewThread",
            "isResolved": one.resolved,
            "isOutdated": one.outdated,
            "path": one.path,
            "line": None if one.outdated else one.line,
            "originalLine": one.line,
            "comments": lambda first, one=one: {
                "__typename": "PullRequestReviewCommentConnection",
                "nodes": [_remark(one)],
            },
        }
        for one in pull.inline
    ]
    return {"__typename": "PullRequestReviewThreadConnection", "nodes": nodes}


def _saved(saved: tuple[float, str] | None) -> dict[str, Any]:
    at, who = saved or (0.0, "")
    return {"lastEditedAt": iso(at) if saved else None, "editor": actor(who)}


def _remark(one: Inline) -> dict[str, Any]:
    return _saved(one.saved) | {
        "__typename": "PullRequestReviewComment",
        "databaseId": one.id,
        "body": one.body,
        "diffHunk": f"@@ -0,0 +1 @@\n+line {one.line} of {one.path}",
        "author": actor(one.author),
        "pullRequestReview": {"__typename": "PullRequestReview", "databaseId": one.review},
    }


def _reviews(entry: Entry, last: int) -> dict[str, Any]:
    assert entry.pull
    nodes = [
        _saved(one.saved)
        | {
            "__typename": "PullRequestReview",
            "body": one.body,
            "databaseId": one.id,
            "state": one.state,
            "submittedAt": iso(one.at),
            "author": actor(one.author),
            "commit": {"__typename": "Commit", "oid": one.head},
        }
        for one in entry.pull.reviews[-last:]
    ]
    return {"__typename": "PullRequestReviewConnection", "nodes": nodes}


def _commits(state: State, head: str) -> dict[str, Any]:
    commit = {"__typename": "Commit", "oid": head, "statusCheckRollup": _rollup_of(state, head)}
    node = {"__typename": "PullRequestCommit", "commit": commit}
    return {"__typename": "PullRequestCommitConnection", "nodes": [node]}


def _rollup_of(state: State, head: str) -> dict[str, Any] | None:
    runs = [one for one in state.runs if one.head == head]
    statuses = list({one.context: one for one in state.statuses if one.head == head}.values())
    return _rollup(runs, statuses) if runs or statuses else None


def _count(kind: str, words: Iterable[str]) -> list[dict[str, Any]]:
    counts = Counter(words)
    return [{"__typename": kind, "state": word, "count": counts[word]} for word in counts]


def _rollup(runs: list[Run], statuses: list[Status]) -> dict[str, Any]:
    words = [one.word or "pending" for one in runs] + [one.word for one in statuses]
    bad = {"failure", "error", "cancelled", "timed_out"}
    state = "FAILURE" if bad & set(words) else "PENDING" if "pending" in words else "SUCCESS"
    nodes = [*map(_run, runs), *map(_status, statuses)]
    return {
        "__typename": "StatusCheckRollup",
        "state": state,
        "contexts": lambda first: {
            "__typename": "StatusCheckRollupContextConnection",
            "nodes": nodes[:first],
            "checkRunCountsByState": _count(
                "CheckRunStateCount", (one.word.upper() or "IN_PROGRESS" for one in runs)
            ),
            "statusContextCountsByState": _count(
                "StatusContextStateCount", (WORDS[one.word] for one in statuses)
            ),
            "pageInfo": {"__typename": "PageInfo", "hasNextPage": len(nodes) > first},
        },
    }


def _run(run: Run) -> dict[str, Any]:
    workflow = {"__typename": "Workflow", "name": run.workflow}
    of = {"__typename": "WorkflowRun", "event": "push", "workflow": workflow}
    app = {"__typename": "App", "slug": run.app}
    return {
        "__typename": "CheckRun",
        "name": run.name,
        "status": "COMPLETED" if run.word else "IN_PROGRESS",
        "conclusion": run.word.upper() or None,
        "detailsUrl": f"https://ci.example.com/{run.id}",
        "startedAt": iso(run.at),
        "completedAt": iso(run.at) if run.word else None,
        "checkSuite": {"__typename": "CheckSuite", "app": app, "workflowRun": of},
    }


def _status(one: Status) -> dict[str, Any]:
    return {
        "__typename": "StatusContext",
        "context": one.context,
        "state": WORDS[one.word],
        "targetUrl": one.url,
        "createdAt": iso(one.at),
    }
