"""Contract of agent CLIs: a test inherits `AgentContract`, and writes the pytest fixture `side`.

What only the real client can show, `sm doctor --probe` tries with it on each machine. The contract
does the same with a program that behaves as the client does. `ProfileContract` needs none.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from sm.adapters.agent import profiles, screen
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.prompt import Prompt
from sm.config.schema import AgentSettings
from sm.plugins.doctor.probe import probe
from sm.setup.finding import Finding, Level
from sm.store.paths import Root

PLACES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("{prompt}",),
    "system_prompt": ("{file}", "{text}"),
    "settings": ("{file}", "{hooks}"),
    "resume": ("{context}",),
}
"""Fields that hold arguments, and the words of which one stands in each that is not empty."""


class AgentSide:
    """An agent CLI: its profile, and a program that behaves as it does. `folder` is for files."""

    command = ""
    """Command line of the program."""
    idle: tuple[str, ...] = ()
    """Screens (`tmux capture-pane -e -p`) on which it waits for a prompt, with none typed yet."""
    busy: tuple[str, ...] = ()
    """Screens on which it works."""
    dialogs: tuple[str, ...] = ()
    """Screens on which it asks a person."""

    def __init__(self, profile: Profile, folder: Path) -> None:
        self.profile, self.folder = profile, folder

    def probe(self) -> list[Finding]:
        """What `sm doctor --probe` says of the program, on a tmux server of its own."""
        state = self.folder / "probed"
        state.mkdir(mode=0o700)
        settings = AgentSettings(command=self.command, profile=self.profile.name)
        return [*probe(Root(state), settings, self.profile, full=False)]


class ProfileContract:
    """Found, written down, taken as a model."""

    def test_it_is_found_by_its_name_and_by_its_program(self, side: AgentSide) -> None:
        profile = side.profile
        assert profiles.find(profile.name, {}) == profile
        if profile.program:
            assert profiles.find_by_command(f"/opt/bin/{profile.program} -x", {}) == profile

    def test_its_own_command_runs_its_program(self, side: AgentSide) -> None:
        profile = side.profile
        if words := shlex.split(profile.command):
            assert Path(words[0]).name == profile.program

    def test_it_can_stand_in_a_configuration_and_be_a_model(self, side: AgentSide) -> None:
        data: dict[str, Any] = structs.asdict(side.profile)
        del data["name"]
        lists = {key: [*one] if isinstance(one, tuple) else one for key, one in data.items()}
        assert profiles.find(side.profile.name, {side.profile.name: lists}) == side.profile
        own = profiles.find("mine", {"mine": {"like": side.profile.name, "program": "mine"}})
        assert own == structs.replace(side.profile, name="mine", program="mine")

    def test_each_argument_that_is_filled_in_has_its_place(self, side: AgentSide) -> None:
        for field, words in PLACES.items():
            arguments: tuple[str, ...] = getattr(side.profile, field)
            assert not arguments or any(word in one for one in arguments for word in words), field


class AgentContract(ProfileContract):
    """Also read, started, typed to and ended."""

    def test_its_screens_are_read(self, side: AgentSide) -> None:
        for prompt, shown in (
            (Prompt.IDLE, side.idle),
            (Prompt.BUSY, side.busy),
            (Prompt.DIALOG, side.dialogs),
        ):
            assert shown, f"no screen of it {prompt} is known"
            for one in shown:
                found = screen.read(side.profile, one)
                assert (found.prompt, found.draft) == (prompt, ""), one
                assert bool(found.question) is (prompt is Prompt.DIALOG), one

    def test_it_is_started_typed_to_and_ended(self, side: AgentSide) -> None:
        found = side.probe()
        assert [one for one in found if one.level is not Level.OK] == []
        assert len(found) > 2, "it was tried"
