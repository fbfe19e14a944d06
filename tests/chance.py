"""Chance in tests: the same at every run, so that who changed nothing has nothing to fear.

`bin/soak` gives another seed, and searches for what no run has met yet.
"""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, settings

SEED = int(os.environ.get("SM_SOAK_SEED", "0"))
EXAMPLES = int(os.environ.get("SM_SOAK_EXAMPLES", "20000"))

REPEATABLE, SEARCH = "repeatable", "search"


def register_profiles() -> None:
    """Have hypothesis try the same examples each time, and only with `search` others, and more.

    No example is kept from one run for the next: a clone that was tested before would know more
    than a fresh one. What a search has found is printed, and becomes an `@example`.
    """
    usual = settings(
        derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile(REPEATABLE, usual)
    settings.register_profile(
        SEARCH, usual, derandomize=False, print_blob=True, max_examples=EXAMPLES
    )
    settings.load_profile(REPEATABLE)


def walks(examples: int, steps: int) -> settings:
    """How a machine with states is walked: so often, when no search wants more, and so far."""
    return settings(
        max_examples=max(examples, settings().max_examples),
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
    )


def tries(examples: int) -> settings:
    """How often a property is tried whose examples are costly, when no search wants more."""
    usual = settings()
    return settings(
        max_examples=examples if usual.derandomize else usual.max_examples,
        suppress_health_check=list(HealthCheck),
    )


def dice(number: int) -> random.Random:
    """Dice that fall as the `number` says; a failed test shows how they began."""
    seed = number + SEED
    print(f"dice: random.Random({seed})")
    return random.Random(seed)
