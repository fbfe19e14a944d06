"""Codes of a rotation's end, for scripts: words for people may change, these do not. Pure."""

from __future__ import annotations

from enum import StrEnum


class CheckResult(StrEnum):
    """Result of a health check, as the document of the automated cycle calls it."""

    OK = "ok"
    CRITICAL = "critical"


OTHER = "handoff_failed"

CODES = {
    "it has written no document": "handoff_timeout",
    "it could not be asked for a document": "request_failed",
    "its document is gone": "document_unreadable",
    "its context was summed up": "compacted",
    "its context could not be cleared": "clear_failed",
    "a person has cleared": "cleared_by_person",
    "its agent was started anew": "agent_restarted",
    "its new context has not got its prompt": "resume_failed",
    "nothing shows that it goes on": "no_sign_of_life",
    "it has not named": "task_not_named",
}
"""Codes by the beginnings of the words."""


def find_code(error: str) -> str:
    """Return the code of an error, '' for none."""
    if not error:
        return ""
    return next((code for words, code in CODES.items() if error.startswith(words)), OTHER)


def judge(error: str) -> CheckResult:
    """Return CRITICAL if a person has to see to the error."""
    return CheckResult.CRITICAL if error else CheckResult.OK
