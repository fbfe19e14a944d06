"""What a state means is said in one place."""

from __future__ import annotations

import re
from pathlib import Path

from sm.views.glossary import GLOSSARY, GROUPS, Group
from sm.views.states import ShownState

GUIDE = Path(__file__).parents[2] / "docs" / "GUIDE.md"
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def test_every_state_and_group_has_its_words() -> None:
    assert set(GLOSSARY) == set(ShownState)
    assert set(GROUPS) == set(Group)


def test_trouble_is_never_said_to_wait() -> None:
    trouble = {ShownState.CRASHED, ShownState.FAILED, ShownState.DAMAGED, ShownState.DEAD}
    assert {GLOSSARY[state].group for state in trouble} == {Group.TROUBLE}


def test_the_guide_says_the_same() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    told = {state: LINK.sub(r"\1", words) for state, words in rows}
    for state, meaning in GLOSSARY.items():
        assert told[state].startswith(meaning.tells), state
