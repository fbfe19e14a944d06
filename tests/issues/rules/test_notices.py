from __future__ import annotations

from sm.issues.rules.notices import tell_need
from tests.issues.rules.test_prompts import material


def test_why_a_person_is_needed_is_one_sentence_without_the_command() -> None:
    said = [
        tell_need(name, material(row=name, asked_row="merge-stuck"))
        for name in ("escalate", "review-waits", "reminder", "failed")
    ]
    assert said == [
        "The agent asks for a person (words)",
        "The pull request waits for a review (#4)",
        "Approved and green, reminded, and still not merged (#4: words)",
        "The issue is blocked: the agent gave up (words)",
    ]


def test_what_needs_nobody_says_not_why() -> None:
    assert not any(map(tell_need, ("parked", "remark", "stopped"), [material()] * 3))
