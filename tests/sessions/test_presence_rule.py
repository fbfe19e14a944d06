"""The one rule for what waits for people at a terminal."""

from __future__ import annotations

import itertools

import pytest

from sm.base.refusal import Refusal
from sm.sessions.presence_rule import (
    GONE_S,
    KEYS_S,
    LOOK_S,
    NOBODY,
    SOON_S,
    TYPED_S,
    Disturbance,
    Hands,
    find_hindrance,
    find_next_look,
)

NOW = 1_000_000.0
PATIENT = [deed for deed in Disturbance if deed is not Disturbance.BRAKE]
NEVER, AWAY = (0.0, NOW - TYPED_S, NOW + 3600), (NOW - TYPED_S + 1, NOW - GONE_S)
LATELY = (NOW - GONE_S + 1, NOW, NOW + 1)
"""Moments of a last key: too long ago or none; too long ago for one who has left; lately."""


def test_of_people_at_the_terminal() -> None:
    moments = (*NEVER, *AWAY, *LATELY)
    for case in itertools.product(PATIENT, (False, True), moments, (False, True)):
        deed, draft, typed_at, attached = case
        found = find_hindrance(deed, Hands(draft, typed_at, attached), NOW)
        types = typed_at in LATELY or (attached and typed_at in AWAY)
        if draft:
            assert found is Refusal.DRAFT, case
        elif types:
            assert found is Refusal.TYPING, case
        else:
            assert found is (
                Refusal.ATTACHED if attached and deed is Disturbance.JUDGE else None
            ), case


@pytest.mark.parametrize("deed", Disturbance)
def test_nothing_waits_for_nobody(deed: Disturbance) -> None:
    assert find_hindrance(deed, NOBODY, NOW) is None


@pytest.mark.parametrize(("draft", "attached"), [*itertools.product((False, True), repeat=2)])
def test_a_limit_waits_only_for_a_hand_at_the_keys(draft: bool, attached: bool) -> None:
    for typed_ago_s, found in ((0.0, Refusal.CHANGED), (KEYS_S, None), (-3600.0, None)):
        hands = Hands(draft, NOW - typed_ago_s, attached)
        assert find_hindrance(Disturbance.BRAKE, hands, NOW) is found


def test_it_is_looked_again_when_the_person_may_be_done() -> None:
    typing = Hands(typed_at=NOW - TYPED_S + 1, attached=True)
    assert find_next_look(Refusal.TYPING, typing, NOW) == NOW + 1
    gone = Hands(typed_at=NOW)
    assert find_next_look(Refusal.TYPING, gone, NOW) == NOW + GONE_S
    assert find_next_look(Refusal.DRAFT, gone, NOW) == NOW + LOOK_S
    open_overnight = Hands(draft=True, typed_at=NOW - TYPED_S, attached=True)
    for refusal in (Refusal.DRAFT, Refusal.ATTACHED):
        assert find_next_look(refusal, open_overnight, NOW) == NOW + LOOK_S


@pytest.mark.parametrize("refusal", [Refusal.TYPING, Refusal.DRAFT])
def test_that_a_person_leaves_is_seen_within_seconds(refusal: Refusal) -> None:
    there = Hands(draft=refusal is Refusal.DRAFT, typed_at=NOW - 60, attached=True)
    assert find_next_look(refusal, there, NOW) == NOW + SOON_S
