"""What each answer of the fakes rests on: a recording, a description, a document, or a source.

Where none is named, an answer is unproven. `UNPROVEN` lists those, so that a new answer without a
source is noticed, and so is one that has got its source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from tests.forges.answers import Given, list_answers
from tests.forges.description import Description, describe
from tests.forges.woodpecker import REPOSITORY
from tests.servers import recorder

FAKES = {"gitea": "Gitea and Forgejo", "github": "GitHub", "gitlab": "GitLab"}
FAKES |= {"woodpecker": "Woodpecker"}
DESCRIPTIONS = {
    "gitea": ("forgejo.json", "/repos/harbor/harb"),
    "github": ("github.json", "/repos/harbor/harb"),
    "woodpecker": ("woodpecker.json", ""),
}
"""The descriptions that servers give of themselves, and where the addresses of routes begin."""
RECORDED, DESCRIBED, NAMED, UNPROVEN_WORD = "recorded", "described", "named", "unproven"

DOCUMENTS = {
    "github": {
        r"GET 200": "docs.github.com/rest/repos/repos",
        r"(GET|POST) /labels \d+": "docs.github.com/rest/issues/labels",
        r"DELETE /issues/.*/labels/.* 404": "docs.github.com/rest/issues/labels",
        r"GET /collaborators.* 200": "docs.github.com/rest/collaborators/collaborators",
        r"GET /compare/.*": "docs.github.com/rest/commits/commits",
        r"GET /branches/.* 404": "docs.github.com/rest/branches/branches",
        r"GET /pulls/\(\[0-9\]\+\)/files 200": "docs.github.com/rest/pulls/pulls",
        r"(POST|PATCH) /pulls.* 422": "docs.github.com/rest/pulls/pulls",
        r"PUT /pulls/.*/merge (405|409)": "docs.github.com/rest/pulls/pulls",
        r"GET /actions/runs/.*/jobs 200": "docs.github.com/rest/actions/workflow-jobs",
        r"POST /pulls/.*/reviews 422": "hubtty/hubtty#33",
        r"GET /(commits/.*/check-runs|check-runs/.*|actions/runs) 403": "cli/cli#8843",
        r"GET /actions/jobs/.*/logs 302": "google/go-github: github/actions_workflow_jobs.go",
        r"_elsewhere\(\) 200": "google/go-github: github/actions_workflow_jobs.go",
        r"_in_repository\(\) 301": "PyGithub/PyGithub: PullRequest2408.setUp.txt",
        r"_counted\(\) 304": "PyGithub/PyGithub: ConditionalRequestUpdate.*.txt",
        r"page\(\) 200": "PyGithub/PyGithub: PaginatedList.*.txt",
        r"_respond\(\) (200|401)": "docs.github.com/rest/users/users",
        r"(_in_repository|entry)\(\) 404": "docs.github.com/rest/issues/issues",
        r"answer\(\) 200": "octokit/graphql-schema: schema.graphql",
    },
    "gitlab": {
        r"GET 200": "docs.gitlab.com/api/projects",
        r"GET /members/all 200": "docs.gitlab.com/api/members",
        r"(GET|POST) /labels \d+": "docs.gitlab.com/api/labels",
        r"(GET|POST|PUT) /issues\S* 20\d": "docs.gitlab.com/api/issues",
        r"(GET|POST) /\(issues\|merge_requests\)\S*/notes 20[01]": "docs.gitlab.com/api/notes",
        r"(GET|POST|PUT) /merge_requests(/\(\[0-9\]\+\))?(/(merge|reviewers|raw_diffs|diffs|"
        r"versions|pipelines))? 20\d": "docs.gitlab.com/api/merge_requests",
        r"PUT /merge_requests/\S*/merge (401|405|409|422)": "docs.gitlab.com/api/merge_requests",
        r"POST /merge_trains\S* 20[01]": "docs.gitlab.com/api/merge_trains",
        r"\w+ /merge_requests/\S*/(approvals|approve) 20[01]": (
            "docs.gitlab.com/api/merge_request_approvals"
        ),
        r"POST /merge_requests/\S*/approve (401|409)": (
            "gitlabhq/gitlabhq: lib/api/merge_request_approvals.rb"
        ),
        r"\w+ /merge_requests/\S*/discussions 20[01]": "docs.gitlab.com/api/discussions",
        r"GET /repository/branches\S* (200|404)": "docs.gitlab.com/api/branches",
        r"GET /repository/compare (200|404)": "docs.gitlab.com/api/repositories",
        r"GET /repository/commits\S* (200|404)": "docs.gitlab.com/api/commits",
        r"(GET|POST) /pipelines?(/\S*)? 20[01]": "docs.gitlab.com/api/pipelines",
        r"GET /pipelines/\S*/\(jobs\|bridges\) 200": "docs.gitlab.com/api/jobs",
        r"GET /jobs/\S*/trace 200": "docs.gitlab.com/api/jobs",
        r"_respond\(\) (200|401)": "docs.gitlab.com/api/rest/authentication",
        r"(_in_project|issue|pull)\(\) 404": "docs.gitlab.com/api/rest/troubleshooting",
        r"page\(\) 200": "gitlabhq/gitlabhq: Gitlab::Pagination::OffsetHeaderBuilder",
    },
    "gitea": {
        r"POST /pulls (404|409|422)": "routers/api/v1/repo/pull.go: CreatePullRequest",
        r"POST /pulls/.*/merge (404|405|409)": "routers/api/v1/repo/pull.go: MergePullRequest",
        r"PATCH /issues/.* 412": "routers/api/v1/repo/issue.go: closeOrReopenIssue",
        r"POST /pulls/.*/merge 500": "services/pull/check.go: ErrDependenciesLeft",
        r"DELETE /issues/.*/labels/.* 422": "routers/api/v1/repo/issue_label.go: DeleteIssueLabel",
        r"GET /commits/.*/statuses 200": "routers/api/v1/repo/status.go: GetCommitStatuses",
        r"GET /actions/runs 403": "routers/api/v1/api.go: addActionsRoutes",
        r"GET /actions/tasks 200": "routers/api/v1/repo/action.go: ListActionTasks",
        r"respond\(\) 301": "recorded: test_a_repository_that_was_renamed_is_followed",
        r"_respond\(\) 200": "recorded: GET /user, GET /orgs/OWNER/labels",
        r"_respond\(\) 401": "recorded: GET /repositories/N with a token that was deleted",
        r"(_respond|entry|refuse_missing)\(\) 404": "recorded: GET /issues/N of what is missing",
        r"find_thread\(\) (404|500)": "recorded: GET and POST /issues/N/comments",
        r"page\(\) 200": "recorded: x-total-count of GET /issues",
        r"_show_log\(\) 200": "recorded of Forgejo 12: test_ci_fails_with_its_log_and_then_passes",
        r"_show_log\(\) 404": "routers/web/web.go: the pages of a private repository",
    },
    "woodpecker": {
        r"GET /repos/lookup/.* 404": "server/router/middleware/session/repo.go: SetRepo",
        r"POST /repos/.*/pipelines/.* 404": "server/router/middleware/session/repo.go: MustPush",
        r"GET /repos/.*/logs/.* 404": "server/api/pipeline.go: GetStepLogs",
        r"respond\(\) 200": "server/web/web.go",
        r"respond\(\) 401": "server/router/middleware/session/user.go",
    },
}
"""The documents and sources, by patterns of answers. Paths without a repository are the server's.

A document of a vendor says which statuses there are; what else is in an answer is held against a
description where there is one.
"""


def sample(path: str) -> str:
    """An address that a route takes."""
    for group, part in (("([0-9]+)", "7"), ("([0-9a-f]+)", "7"), ("([^/]+)", "x"), ("(.+)", "x")):
        path = path.replace(group, part)
    return re.sub(r"\(([^)|]+)\|[^)]*\)", r"\1", path).replace("\\", "")


def is_described(fake: str, answer: Given) -> bool:
    """Whether the server's own description has the answer."""
    if fake not in DESCRIPTIONS or not answer.method:
        return False
    file, begin = DESCRIPTIONS[fake]
    found = _describe(file).find(answer.method, begin + sample(answer.path))
    return found is not None and str(answer.status) in found[1]["responses"]


@cache
def _describe(file: str) -> Description:
    return describe(file)


def is_recorded(fake: str, answer: Given) -> bool:
    """Whether a server was recorded to answer so."""
    begin = {"gitea": "/repos/harbor/harb", "woodpecker": "/api"}.get(fake)
    if begin is None or not answer.method:
        return False
    route = re.compile(begin + answer.path.replace(f"/{REPOSITORY}/", "/[0-9]+/"))
    return any(
        (one.method, one.status) == (answer.method, answer.status) and route.fullmatch(one.path)
        for one in _read_recordings(fake)
    )


@cache
def _read_recordings(fake: str) -> list[recorder.Exchange]:
    kinds = {"gitea": ("gitea", "forgejo"), "woodpecker": ("woodpecker",)}[fake]
    files = [file for kind in kinds for file in recorder.FOLDER.glob(f"{kind}-*.jsonl")]
    return [one for file in files for one in recorder.read(file)]


def find_document(fake: str, answer: Given) -> str:
    """The document or source that says so, '' for none."""
    found = (said for known, said in DOCUMENTS[fake].items() if re.fullmatch(known, str(answer)))
    return next(found, "")


PROOFS: dict[str, Callable[[str, Given], object]] = {
    RECORDED: is_recorded,
    DESCRIBED: is_described,
    NAMED: find_document,
}
"""The kinds of proofs, the best one first."""


def prove(fake: str) -> Iterator[tuple[Given, str]]:
    """Each answer of a fake with the kind of its best proof."""
    for answer in list_answers(fake):
        yield (
            answer,
            next((kind for kind, has in PROOFS.items() if has(fake, answer)), UNPROVEN_WORD),
        )


def list_unproven(fake: str) -> list[str]:
    """The answers that rest on nothing."""
    return [str(answer) for answer, kind in prove(fake) if kind == UNPROVEN_WORD]


def format_table() -> str:
    """How many answers rest on what, as Markdown, for docs/FORGES.md."""
    kinds = (*PROOFS, UNPROVEN_WORD)
    lines = ["| fake of | answers | recorded | described | document or source | unproven |"]
    lines.append("|---|---|---|---|---|---|")
    for fake, name in FAKES.items():
        found = [kind for _, kind in prove(fake)]
        counts = " | ".join(str(found.count(kind)) for kind in kinds)
        lines.append(f"| {name} | {len(found)} | {counts} |")
    return "\n".join(lines)
