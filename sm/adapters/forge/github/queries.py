"""The GraphQL queries: one request for many pull requests or issues, each under an alias. Pure.

Only numbers go into the text of a query; names are variables.
"""

from __future__ import annotations

from collections.abc import Iterable

STATES = 100
"""Pull requests in a query for their states alone, which is short."""
ALIASES = 40
"""Things in one query, so that it stays below 12,000 characters and is answered within seconds."""

ACTOR = "{ __typename login }"
ROLLUP = """\
statusCheckRollup { state contexts(first: 100) { ...counts pageInfo { hasNextPage } nodes { \
__typename ... on CheckRun { name status conclusion detailsUrl startedAt completedAt \
checkSuite { app { slug } workflowRun { event workflow { name } } } } \
... on StatusContext { context state targetUrl createdAt } } } }"""
COUNTS = """\
fragment counts on StatusCheckRollupContextConnection { checkRunCountsByState { state count } \
statusContextCountsByState { state count } }"""
MERGING = """\
mergeStateStatus reviewDecision isInMergeQueue mergeQueueEntry { position state }"""
BRIEF = f"""\
fragment brief on PullRequest {{ number state title isCrossRepository createdAt closedAt \
headRefName headRefOid baseRefName mergeable {MERGING} author {ACTOR} headRepositoryOwner {ACTOR} \
mergeCommit {{ oid }} }}"""
WHOLE = f"""\
fragment whole on PullRequest {{ ...brief reviews(last: 100) {{ nodes {{ databaseId state \
submittedAt lastEditedAt author {ACTOR} commit {{ oid }} }} }} \
commits(last: 1) {{ nodes {{ commit {{ oid {ROLLUP} }} }} }} }}"""
SHORT = f"""\
fragment short on PullRequest {{ number state headRefOid mergeable {MERGING} \
statusCheckRollup {{ state contexts(first: 1) {{ ...counts }} }} }}"""
"""One connection for each pull request, so that a hundred of them cost one point."""
EDITED = f"lastEditedAt editor {ACTOR}"
REVIEWED = f"""\
fragment reviewed on PullRequest {{ number state reviews(last: 100) {{ nodes {{ databaseId state \
submittedAt author {ACTOR} commit {{ oid }} body {EDITED} }} }} \
reviewThreads(first: 100) {{ nodes {{ isResolved isOutdated path line originalLine \
comments(first: 100) {{ nodes {{ databaseId body diffHunk author {ACTOR} {EDITED} \
pullRequestReview {{ databaseId }} }} }} }} }} }}"""
ONE = f"""\
fragment one on PullRequest {{ id headRefOid mergeable isMergeQueueEnabled {MERGING} ...reviewed \
timelineItems(last: 1, itemTypes: [REMOVED_FROM_MERGE_QUEUE_EVENT]) {{ nodes {{ __typename \
... on RemovedFromMergeQueueEvent {{ reason }} }} }} }}"""
COMMENTS = f"""\
{{ number comments(last: 100) {{ nodes {{ body createdAt viewerDidAuthor \
author {ACTOR} lastEditedAt editor {ACTOR} }} }} }}"""
LABELLINGS = 100
"""Times that an issue was given a label which are read: the last ones."""
SOURCE = f"""\
fragment source on Issue {{ number title body createdAt author {ACTOR} \
lastEditedAt editor {ACTOR} \
renamed: timelineItems(last: 1, itemTypes: [RENAMED_TITLE_EVENT]) {{ nodes {{ __typename \
... on RenamedTitleEvent {{ createdAt actor {ACTOR} }} }} }} \
labelled: timelineItems(last: {LABELLINGS}, itemTypes: [LABELED_EVENT]) {{ nodes {{ __typename \
... on LabeledEvent {{ createdAt actor {ACTOR} label {{ name }} }} }} }} }}"""


def ask_pulls(whole: Iterable[int], brief: Iterable[int] = ()) -> str:
    """These pull requests with reviews and checks, the `brief` ones without."""
    aliases = [*_aliases("whole", whole), *_aliases("brief", brief)]
    used = [BRIEF, *([WHOLE, COUNTS] if any("...whole" in one for one in aliases) else [])]
    return _query(aliases, used)


def ask_states(numbers: Iterable[int]) -> str:
    """Of these pull requests only what changes without a trace in any list."""
    return _query(_aliases("short", numbers), [SHORT, COUNTS])


def ask_comments(numbers: Iterable[int]) -> str:
    """The last comments on these issues."""
    aliases = [f"i{number}: issue(number: {number}) {{ ...said }}" for number in numbers]
    return _query(aliases, [f"fragment said on Issue {COMMENTS}"])


def ask_pull_comments(number: int) -> str:
    """The last comments on a pull request."""
    return _query(_aliases("said", [number]), [f"fragment said on PullRequest {COMMENTS}"])


def ask_source(number: int) -> str:
    """Title and text of an issue, who has saved them last, and who has set its labels."""
    return _query([f"i{number}: issue(number: {number}) {{ ...source }}"], [SOURCE])


def ask_one(number: int) -> str:
    """Of one pull request: its merge queue, and its reviews with their texts."""
    return _query([f"p{number}: pullRequest(number: {number}) {{ ...one }}"], [ONE, REVIEWED])


def ask_reviews(number: int) -> str:
    """The reviews of one pull request with their texts, and who has edited these."""
    return _query([f"p{number}: pullRequest(number: {number}) {{ ...reviewed }}"], [REVIEWED])


ENQUEUE = """\
mutation($input: EnqueuePullRequestInput!) { enqueuePullRequest(input: $input) \
{ mergeQueueEntry { position state } } }"""


def _aliases(fragment: str, numbers: Iterable[int]) -> list[str]:
    return [f"p{n}: pullRequest(number: {n}) {{ ...{fragment} }}" for n in numbers]


def _query(aliases: Iterable[str], fragments: Iterable[str]) -> str:
    inner = "\n".join(aliases)
    head = "query($owner: String!, $name: String!) { rateLimit { cost }"
    body = f"{head}\nrepository(owner: $owner, name: $name) {{\n{inner}\n}} }}"
    return "\n".join([body, *fragments])
