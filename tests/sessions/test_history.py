from __future__ import annotations

from msgspec import structs

from sm.sessions.history import UNASKED, Count, LastAnswer, Receipt, StepVerb, fold
from sm.sessions.plan import Plan, PlannedStep


def carried_out(
    row: str,
    *verbs: StepVerb,
    write: str = "w1",
    at: float = 1.0,
    counts: Count = Count.NONE,
    provisional: bool = False,
    trouble: str = "",
) -> list[Receipt]:
    """The receipts of a whole plan; `trouble` befell each of its steps."""
    steps = tuple(PlannedStep(verb) for verb in verbs)
    plan = Plan(f"{row}:{write}", row, write, at, steps, counts, provisional)
    done = [plan.receipt(number, trouble=trouble) for number in range(len(steps))]
    return [structs.replace(r, at=at) for r in (*done, plan.receipt(len(steps)))]


def test_a_reaction_is_done_when_its_plan_is_closed() -> None:
    receipts = carried_out("ci-passed", StepVerb.WRITE_CI_RESULT, StepVerb.INJECT)
    assert not fold(receipts[:-1]).has("ci-passed:w1")
    assert fold(receipts).has("ci-passed:w1")


def test_a_message_answers_the_write_it_is_about() -> None:
    history = fold(carried_out("ci-passed", StepVerb.INJECT, at=5.0))
    assert history.answer == LastAnswer("w1", "ci-passed", 5.0, provisional=False)
    assert history.answered == {"w1"}


def test_what_was_answered_stays_answered_when_another_write_is() -> None:
    first = carried_out("not-merged", StepVerb.INJECT, write="w1")
    assert fold(first + carried_out("ci-none", StepVerb.INJECT, write="w2")).answered == {
        "w1",
        "w2",
    }


def test_a_provisional_answer_leaves_the_write_open_and_its_question_asked() -> None:
    timeout = carried_out("ci-timeout", StepVerb.INJECT, StepVerb.NOTIFY, at=5.0, provisional=True)
    history = fold(timeout)
    assert history.answer == LastAnswer("w1", "ci-timeout", 5.0, provisional=True)
    assert not history.answered
    assert history.escalations["w1"].at == 5.0
    late = fold(timeout + carried_out("ci-passed", StepVerb.INJECT, at=9.0))
    assert late.answered == {"w1"}
    assert not late.escalations


def test_a_reminder_answers_nothing_and_is_counted_until_the_next_answer() -> None:
    told = carried_out("ci-passed", StepVerb.INJECT, at=5.0)
    nudges = carried_out("resume", StepVerb.INJECT, at=6.0, counts=Count.RESUME, write="w2")
    nudges += carried_out("reminder", StepVerb.INJECT, at=7.0, counts=Count.REMINDER, write="w2")
    history = fold(told + nudges)
    assert history.answer == LastAnswer("w1", "ci-passed", 5.0, provisional=False)
    assert history.answered == {"w1"}
    assert (history.reminders, history.nudged_at) == (1, 7.0)
    assert fold(told + nudges + carried_out("ci-none", StepVerb.INJECT, write="w2")).reminders == 0
    assert fold(told + nudges + carried_out("recover", StepVerb.RECOVER, write="w2")).reminders == 0


def test_an_agent_in_a_new_context_has_not_been_reminded_yet() -> None:
    nudges = carried_out("reminder", StepVerb.INJECT, at=7.0, counts=Count.REMINDER)
    begun = Receipt(8.0, "context:r1", "context", counts=Count.NEW_CONTEXT)
    history = fold([*nudges, begun])
    assert (history.reminders, history.nudged_at) == (0, 7.0)
    assert fold([begun, *nudges]).reminders == 1


def test_a_message_that_was_refused_answers_and_counts_nothing() -> None:
    refused = carried_out("ci-failed", StepVerb.INJECT, counts=Count.FIX, trouble="no")
    history = fold(refused)
    assert history.answer is None
    assert history.fixes == 0
    assert history.troubles == ("ci-failed:w1",)


def test_failures_and_rounds_are_counted_apart() -> None:
    receipts = (
        carried_out("ci-failed", StepVerb.WRITE_CI_RESULT, StepVerb.INJECT, counts=Count.FIX)
        + carried_out("review-changes", StepVerb.INJECT, write="w2", counts=Count.ROUND)
        + carried_out("ci-failed", StepVerb.INJECT, write="w3", counts=Count.FIX)
    )
    history = fold(receipts)
    assert (history.fixes, history.rounds) == (2, 1)
    passed = carried_out("ci-passed", StepVerb.INJECT, write="w4", counts=Count.RESET_FIXES)
    history = fold(receipts + passed)
    assert (history.fixes, history.rounds) == (0, 1)
    reply = carried_out("reply", StepVerb.INJECT, write="w5", counts=Count.RESET_ALL)
    history = fold(receipts + reply)
    assert (history.fixes, history.rounds) == (0, 0)


def test_people_asked_after_a_session_are_asked_the_same_question() -> None:
    """Else the session's answer was lost that came just as people were asked."""
    asked, told, undone = (
        carried_out("first-escalate", StepVerb.CONSULT, at=1.0),
        carried_out("escalate", StepVerb.NOTIFY, at=600.0),
        carried_out("first-escalate", StepVerb.CONSULT, trouble="no"),
    )
    asked = [structs.replace(one, detail="gardener") for one in asked]
    first = fold(asked).escalations["w1"]
    assert (first.row, first.first, first.since) == ("escalate", "gardener", 1.0)
    then = fold(asked + told).escalations["w1"]
    assert (then.row, then.first, then.at, then.since) == ("escalate", "", 600.0, 1.0)
    could_not = [structs.replace(one, detail=f"{UNASKED}: gone") for one in asked]
    assert not fold(could_not).escalations
    assert not fold(undone).escalations
    assert not fold(undone).troubles


def test_reminders_belong_to_their_question() -> None:
    receipts = carried_out("escalate", StepVerb.NOTIFY, at=1.0)
    receipts += carried_out("remind", StepVerb.REMIND, at=7.0)
    receipts += carried_out("remind", StepVerb.REMIND, write="w9", at=8.0)
    question = fold(receipts).escalations["w1"]
    assert (question.at, question.told_at, question.reminders) == (1.0, 7.0, 1)


def test_an_answer_ends_the_question_about_its_write_and_the_one_from_before() -> None:
    asked = carried_out("trouble", StepVerb.NOTIFY, write="")
    asked += carried_out("escalate", StepVerb.NOTIFY, write="w1")
    asked += carried_out("trouble", StepVerb.NOTIFY, write="w2")
    assert set(fold(asked).escalations) == {"", "w1", "w2"}
    assert set(fold(asked + carried_out("reply", StepVerb.INJECT)).escalations) == {"w2"}


def test_a_question_that_cannot_be_asked_is_no_new_trouble() -> None:
    receipts = carried_out("escalate", StepVerb.NOTIFY, trouble="no")
    receipts += carried_out("remind", StepVerb.REMIND, trouble="no")
    history = fold(receipts)
    assert not history.troubles
    assert history.escalations["w1"].reminders == 1


def test_a_trouble_outside_a_plan_is_noted() -> None:
    history = fold([Receipt(1.0, "phase-file:ab", "phase-file", trouble="it is a link")])
    assert history.troubles == ("phase-file:ab",)


def test_restarts_count_until_the_agent_has_moved_on() -> None:
    died = [
        *carried_out("recover", StepVerb.KILL, StepVerb.RECOVER, write="w1", at=10.0),
        *carried_out("recover", StepVerb.KILL, StepVerb.RECOVER, write="w1", at=20.0),
    ]
    history = fold(died)
    assert (history.recoveries, history.recoveries_ever, history.started_at) == (2, 2, 20.0)
    same = fold(died + carried_out("ci-passed", StepVerb.INJECT, write="w1"))
    assert same.recoveries == 2
    moved = fold(died + carried_out("ci-passed", StepVerb.INJECT, write="w2"))
    assert (moved.recoveries, moved.recoveries_ever) == (0, 2)


def test_a_start_is_a_sign_of_life() -> None:
    assert fold(carried_out("start", StepVerb.START, write="", at=3.0)).started_at == 3.0


def test_the_history_of_nothing_is_empty() -> None:
    history = fold([])
    assert not history.done
    assert history.answer is None


def test_answer_to_another_matter_than_a_phase_proves_no_progress() -> None:
    """An agent that a person had answered about its terminal was restarted once too often."""
    restarted = carried_out("recover", StepVerb.RECOVER, write="", at=10.0)
    for matter in ("failure:1.000", "dialog:1.000", "ci:w1:1.000"):
        assert fold(restarted + carried_out("reply", StepVerb.INJECT, write=matter)).recoveries == 1


def test_what_a_person_could_not_be_told_is_no_trouble_of_its_own() -> None:
    for verb in (StepVerb.COMMENT, StepVerb.REMIND, StepVerb.NOTIFY):
        assert fold(carried_out("remark", verb, trouble="the forge is full")).troubles == ()


def test_question_says_where_it_could_not_be_asked() -> None:
    asked = carried_out("escalate", StepVerb.NOTIFY, trouble="the question is not in the vault")
    assert fold(asked).escalations["w1"].missed == "the question is not in the vault"


def test_a_failed_run_is_kept_with_its_receipt() -> None:
    receipts = [Receipt(1.0, "k", "ci-failed", write="w1", verb=StepVerb.INJECT, run="abc@1.000")]
    assert fold(receipts).runs == {"abc@1.000"}
