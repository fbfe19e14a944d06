"""Lets plugins add variables to the environment of an agent that is about to start.

A plugin has a function among its parts of the kind `variables`. It is asked at each launch, with
the environment as it is without the plugin, and never overrides what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sm.adapters.agent.profile import Profile
from sm.base import plugin
from sm.config.check import find_variable_problem
from sm.helper.plugin_call import note_failure
from sm.sessions.session import Session

Variables = Callable[[Session, Profile, Mapping[str, str]], Mapping[str, str]]
WHAT = "could not add variables to an agent's environment"


def add_variables(
    session: Session, profile: Profile, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with what the plugins add to it."""
    found = dict(environment)
    for part in plugin.list_parts("variables").values():
        try:
            make: Variables = plugin.load_entry(part)
            added = make(session, profile, found)
            found = {
                name: value for name, value in added.items() if not find_variable_problem(name)
            } | found
        except Exception as error:  # whatever is wrong with a plugin, the agent starts
            note_failure(session.root, part, WHAT, error)
    return found
