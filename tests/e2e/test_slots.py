"""A session that waits for CI or people costs no slot; one that has work again gets the next."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.forge.model import PullState
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.e2e.test_polling import RARELY, looping
from tests.helpers import wait_for

ONE: dict[str, object] = {"max_sessions": 1}


def pulls(stage: Stage) -> list[str]:
    """The branches with an open pull request."""
    found = stage.project.forge.observe(None, start_checks=False).pulls
    return sorted(pull.branch for pull in found if pull.state is PullState.OPEN)


def states(stage: Stage) -> str:
    return stage.sm("status").stdout


def test_a_night_goes_on_although_nobody_reviews(stage_of: MakeStage) -> None:
    """Two unreviewed pull requests held both slots until the morning."""
    stage = stage_of(auto=True, settings=ONE | RARELY)
    for _ in range(3):
        stage.file_issue()
    with looping(stage):
        wait_for(
            lambda: (
                pulls(stage) == ["fix/1", "fix/2", "fix/3"]
                and states(stage).count("awaiting review") == 3
            ),
            "each issue to have its pull request",
        )
    assert [session.issue for session in stage.sessions()] == [1, 2, 3]


def test_work_waits_for_a_slot_and_a_persons_answer_does_not(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    """The first issue has its CI result while the second one is at work."""
    opened = tmp_path / "open"
    gate = f"until test -e '{opened}'; do sleep 0.1; done"
    stage = stage_of(settings=ONE | {"ci": {"command": gate, "poll": "1s"}})
    first, second = stage.file_issue(), stage.file_issue()
    stage.poll()
    assert [session.issue for session in stage.sessions()] == [first]
    stage.push_work(first)
    stage.write_phase(first, "PHASE:awaiting_ci")
    wait_for(lambda: stage.poll() and len(stage.sessions()) == 2, "the slot to be free")
    opened.touch()
    waits = f"for a free slot, with work for its agent: #{first}"
    wait_for(lambda: waits in states(stage), "the result to wait")
    assert not [text for text in stage.told() if "[sm] CI passed" in text]

    stage.write_phase(second, "PHASE:escalate\nwhich colour?")
    told = f"dev-harb-{first}"
    wait_for(lambda: [t for t in stage.told(session=told) if "[sm] CI passed" in t], "the result")
    assert waits not in states(stage)
    stage.sm("reply", "harb", str(second), "Blue.")
    told = f"dev-harb-{second}"
    wait_for(lambda: [t for t in stage.told(session=told) if "Blue." in t], "the answer")

    stage.file_issue()
    stage.write_phase(first, "PHASE:escalate\nand now?")
    wait_for(lambda: "and now?" in states(stage), "the first to wait")
    stage.poll()
    assert len(stage.sessions()) == 2  # the second has the only slot, which it did not wait for
