"""Variables of a person's environment that agents may see, as they were decided on once."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.config.load import load_any
from sm.config.schema import AgentSettings
from sm.sessions.hidden_variables import list_hidden


class Variables(Struct, frozen=True):
    """Variables that agents may see, and variables that they are not to have."""

    passed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()

    def list_open(self, command: str) -> list[str]:
        """Return the variables that agents with this command line lack, and that are undecided."""
        return list_hidden(
            AgentSettings(command=command, pass_env=self.passed, withheld_env=self.withheld)
        )

    def settle(self, names: list[str], *, may_see: bool) -> Variables:
        """Return the variables with these decided on."""
        if may_see:
            return Variables((*self.passed, *names), self.withheld)
        return Variables(self.passed, (*self.withheld, *names))


def recall(output: Path, project: str, given: tuple[str, ...]) -> Variables:
    """Return what an earlier run has written to `output`, and what is `given` now."""
    try:
        found = load_any(output, {}, output.parent).project(project)
    except SmError:
        found = None  # there is none, or it is refused later
    agent = found.agent if found else AgentSettings()
    passed = tuple(dict.fromkeys((*given, *agent.pass_env)))
    return Variables(passed, tuple(name for name in agent.withheld_env if name not in passed))
