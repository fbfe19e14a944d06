"""The reaction matrix as the Markdown table of docs/PROTOCOL.md. Run it to print the table."""

from __future__ import annotations

from collections.abc import Iterator

from sm.issues.rules.matrix import ROWS
from sm.issues.rules.rows import Row
from sm.views.row_words import word_limit
from tests.policy import POLICY

BEYOND_SOURCE = frozenset(
    {
        *("first-escalate", "first-question"),
        *("overtaken", "merge-seen", "merged-early"),
        *("issue-closed", "pull-closed", "given-back", "blocked"),
        *("recovery-pause", "recovery-exhausted", "reply", "trouble", "remark"),
        *("phase-lost", "unknown-sentinel", "outrun", "nothing-pushed", "open-pull"),
        *("ci-none", "ci-broken", "ci-exhausted", "review-exhausted", "conflict", "review-red"),
        *("approved-merge", "merge-reminder", "merge-stuck", "merge-held", "merge-queued"),
        *("ci-rerun", "ci-rerunning", "ci-late", "ci-unapproved", "behind", "queue-dropped"),
        *("dialog", "dialog-open", "context-refused", "turn-failed", "login-again"),
        *("park", "parked-long", "resume", "parked"),
        *("edited", "review-edited", "pull-comment", "protocol-reminder"),
        *("question", "watched", "review-waits", "silent"),
        *("limit-stop", "limit-handoff", "limit-asked", "limit-held", "limit-held-long"),
        *("limit-runs-on", "limit-near", "limit-over", "limit-gone", "limit-wait-long"),
    }
)
"""Rows that the protocol as it was first written does not have."""


def matrix_table() -> str:
    """One line a row, in the order in which they are tried."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| row | phase | fact | what sm does |"
    yield "|---|---|---|---|"
    for row in ROWS:
        beyond = " +" if row.name in BEYOND_SOURCE else ""
        does = "; ".join(map(str, row.steps)) or "look again later"
        yield f"| {row.name}{beyond} | {row.said} | {_fact(row)} | {does} |"


def _fact(row: Row) -> str:
    limit = word_limit(row.name, row.list_limits(POLICY))
    return f"{row.fact} ({limit})" if limit else row.fact


if __name__ == "__main__":
    print(matrix_table())
