"""The GraphQL queries: one request for many pull requests or issues, each under an alias. Pure.

Only numbers go into the text of a query; names are variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

STATES = 100
"""Pull requests in a query for their states alone, which is short."""
ALIASES = 40
"""Things in one query, so that it stays below 12,000 characters and is answered within seconds."""

ACTOR = "{ __typename login }"
ROLLUP = """\
statusCheckRollup { state contexts(first: 100) { ...counts pageInfo { hasNextPage } nodes { \
__typename ... on CheckRun { name status conclusion detailsUrl startedAt completedAt \
checkSuite { app { slug } workflowRun { event workflow { id } } } } \
... on StatusContext { context state targetUrl createdAt } } } }"""
SUITES = """\
checkSuites(first: 50) { nodes { status conclusion updatedAt app { slug } \
workflowRun { event url workflow { id name } } } }"""
"""The check suites: a workflow whose file is wrong has one that failed, and no check run."""
COUNTS = """\
fragment counts on StatusCheckRollupContextConnection { checkRunCountsByState { state count } \
statusContextCountsByState { state count } }"""
MERGING = """\
isDraft mergeStateStatus reviewDecision isInMergeQueue mergeQueueEntry { position state }"""
BRIEF = f"""\
fragment brief on PullRequest {{ number state title isCrossRepository createdAt closedAt updatedAt \
headRefName headRefOid baseRefName mergeable {MERGING} author {ACTOR} headRepositoryOwner {ACTOR} \
mergeCommit {{ oid }} }}"""
BEFORE = "pageInfo { hasPreviousPage startCursor }"
AFTER = "pageInfo { hasNextPage endCursor }"
EDITED = f"lastEditedAt editor {ACTOR}"
JUDGED = f"""\
{{ {BEFORE} nodes {{ id fullDatabaseId state submittedAt author {ACTOR} \
authorCanPushToRepository commit {{ oid }} {EDITED} }} }}"""
"""Reviews without their texts: whoever may write there can make these too long for an answer."""
WHOLE = f"""\
fragment whole on PullRequest {{ ...brief reviews(last: 100) {JUDGED} \
commits(last: 1) {{ nodes {{ commit {{ oid {ROLLUP} {SUITES} }} }} }} }}"""
SHORT = f"""\
fragment short on PullRequest {{ number state headRefOid mergeable {MERGING} \
statusCheckRollup {{ state contexts(first: 1) {{ ...counts }} }} }}"""
"""One connection for each pull request, so that a hundred of them cost one point."""
BARE = f"""\
fragment bare on PullRequest {{ ...short \
commits(last: 1) {{ nodes {{ commit {{ oid {SUITES} }} }} }} }}"""
"""Fields of a pull request that nothing has checked yet."""
SETTLED = f"""\
{{ {AFTER} nodes {{ isResolved comments(first: 1) {{ nodes {{ fullDatabaseId }} }} }} }}"""
"""Threads by their first remarks: those that answer it name it."""
REMARKS = f"""\
{{ {AFTER} nodes {{ fullDatabaseId path line originalLine outdated body diffHunk {EDITED} \
replyTo {{ fullDatabaseId }} }} }}"""
QUEUEING = f"""\
fragment queueing on PullRequest {{ id number state headRefOid mergeable isMergeQueueEnabled \
{MERGING} timelineItems(last: 1, itemTypes: [REMOVED_FROM_MERGE_QUEUE_EVENT]) {{ nodes {{ \
__typename ... on RemovedFromMergeQueueEvent {{ reason }} }} }} }}"""
KINDS = {"Issue": "issue", "PullRequest": "pullRequest"}
"""The types that have comments, and their fields."""
COMMENTS = f"""\
{{ {BEFORE} nodes {{ body createdAt viewerDidAuthor author {ACTOR} {EDITED} }} }}"""
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
    """Ask for these pull requests with reviews and checks, the `brief` ones without."""
    aliases = [*_aliases("whole", whole), *_aliases("brief", brief)]
    used = [BRIEF, *([WHOLE, COUNTS] if any("...whole" in one for one in aliases) else [])]
    return _query(aliases, used)


def ask_states(numbers: Iterable[int], bare: Collection[int] = ()) -> str:
    """Ask for what changes of these pull requests without a trace in any list.

    Of the `bare` ones nothing was checked when they were looked at last.
    """
    asked = sorted(set(numbers) - set(bare)), sorted(set(numbers) & set(bare))
    aliases = [*_aliases("short", asked[0]), *_aliases("bare", asked[1])]
    return _query(aliases, [SHORT, COUNTS, *([BARE] if asked[1] else [])])


def ask_comments(kind: str, numbers: Iterable[int], size: int = 100) -> str:
    """The last comments on these issues or pull requests, so many of each; `kind` says which."""
    field = KINDS[kind]
    aliases = [f"i{number}: {field}(number: {number}) {{ ...said }}" for number in numbers]
    said = f"fragment said on {kind} {{ number comments(last: {size}) {COMMENTS} }}"
    return _query(aliases, [said])


def ask_comments_before(kind: str, number: int, size: int) -> str:
    """The comments on one of them before the variable `cursor`."""
    found = f"comments(last: {size}, before: $cursor) {COMMENTS}"
    aliases = [f"i{number}: {KINDS[kind]}(number: {number}) {{ number {found} }}"]
    return _query(aliases, [], "cursor")


def ask_rollup() -> str:
    """The word for all checks of the commit in the variable `head`."""
    found = "object(oid: $head) { __typename ... on Commit { statusCheckRollup { state } } }"
    return (
        "query($owner: String!, $name: String!, $head: GitObjectID) { rateLimit { cost } "
        f"repository(owner: $owner, name: $name) {{ {found} }} }}"
    )


def ask_source(number: int) -> str:
    """Title and text of an issue, who has saved them last, and who has set its labels."""
    return _query([f"i{number}: issue(number: {number}) {{ ...source }}"], [SOURCE])


def ask_queueing(number: int) -> str:
    """Ask for the place of a pull request in its merge queue."""
    return _query(_aliases("queueing", [number]), [QUEUEING])


def ask_reviews(number: int) -> str:
    """The last reviews of one pull request, and the first threads, without texts."""
    found = f"reviews(last: 100) {JUDGED} reviewThreads(first: 100) {SETTLED}"
    return _query([f"p{number}: pullRequest(number: {number}) {{ number state {found} }}"], [])


def ask_reviews_before(number: int) -> str:
    """Its reviews before the variable `cursor`."""
    found = f"reviews(last: 100, before: $cursor) {JUDGED}"
    aliases = [f"p{number}: pullRequest(number: {number}) {{ number state {found} }}"]
    return _query(aliases, [], "cursor")


def ask_threads_after(number: int) -> str:
    """Its threads after the variable `cursor`."""
    found = f"reviewThreads(first: 100, after: $cursor) {SETTLED}"
    aliases = [f"p{number}: pullRequest(number: {number}) {{ number state {found} }}"]
    return _query(aliases, [], "cursor")


ASK_TEXTS = f"""\
query($ids: [ID!]!) {{ rateLimit {{ cost }} nodes(ids: $ids) {{ __typename \
... on PullRequestReview {{ id state body {EDITED} comments(first: 100) {REMARKS} }} }} }}"""
"""The texts of reviews: their own, and their remarks on lines. No other person adds to these."""
ASK_REMARKS_AFTER = f"""\
query($ids: [ID!]!, $cursor: String) {{ rateLimit {{ cost }} nodes(ids: $ids) {{ __typename \
... on PullRequestReview {{ id state comments(first: 100, after: $cursor) {REMARKS} }} }} }}"""
ASK_VIEWER = "query { viewer { login } }"
ENQUEUE = """\
mutation($input: EnqueuePullRequestInput!) { enqueuePullRequest(input: $input) \
{ mergeQueueEntry { position state } } }"""


def _aliases(fragment: str, numbers: Iterable[int]) -> list[str]:
    return [f"p{n}: pullRequest(number: {n}) {{ ...{fragment} }}" for n in numbers]


def _query(aliases: Iterable[str], fragments: Iterable[str], *cursors: str) -> str:
    inner = "\n".join(aliases)
    more = "".join(f", ${name}: String" for name in cursors)
    head = f"query($owner: String!, $name: String!{more}) {{ rateLimit {{ cost }}"
    body = f"{head}\nrepository(owner: $owner, name: $name) {{\n{inner}\n}} }}"
    return "\n".join([body, *fragments])
