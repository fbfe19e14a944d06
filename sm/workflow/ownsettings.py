"""What holds for the context of one session alone, and how that is changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from sm.errors import StateError, UsageError
from sm.session import registry
from sm.session.registry import AnySession
from sm.workflow import host, policy
from sm.workflow.policy import Settings

PARTS = {
    "warning_percentage": "monitor",
    "critical_percentage": "monitor",
    "cycle_percentage": "cycle",
}
"""What a threshold is of, which is switched on with it."""


def switch(session: AnySession, *, on: bool, values: Mapping[str, object]) -> None:
    """Switch monitor and cycle on or off; with `values`, by keys of `Settings`, only what is named.

    Raises:
        UsageError: a warning would come too late to be one.

    """
    try:
        before = policy.settings(session.dir)
    except StateError:
        before = Settings()  # it is damaged, and is written anew
    if values and on:
        switched = {PARTS[key]: True for key in values if key in PARTS}
    else:
        switched = dict.fromkeys(("monitor", "cycle"), on)
    after = structs.replace(before, **(switched | dict(values)))
    _check(session, after)
    policy.save_settings(session.dir, after)
    registry.poke(session.dir)


def _check(session: AnySession, after: Settings) -> None:
    base = host.policy_of(session).monitor
    warning = after.warning_percentage or base.warning_percentage
    critical = after.critical_percentage or base.critical_percentage
    if warning > critical:
        raise UsageError(
            f"a warning at {warning}% would come after what is critical at {critical}%: "
            "set both, with --warning and --critical"
        )
