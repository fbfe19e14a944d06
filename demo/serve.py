"""`sm serve` for the demo: beside each session that waits, the page says when the script answers.

That is a plugin, as anybody can write one: docs/PLUGINS.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sm.base import plugin
from sm.base.plugin import Plugin
from sm.config.schema import MachineSettings
from sm.plugins import find_plugins
from sm.views.figures import Figure, Figures, Subject

WAITS = "SM_DEMO_WAITS"
"""The variable that names the file with what is left to a person, and until when."""


def read_waits(_settings: MachineSettings, subjects: Sequence[Subject]) -> Mapping[str, Figure]:
    """Until when each session is left to the person, by the file that the demo writes."""
    try:
        waits = json.loads(Path(os.environ[WAITS]).read_text())
    except OSError:
        return {}
    there = {one.session for one in subjects}
    return {name: Figure(at) for name, at in waits.items() if name in there}


FIGURES = Figures("the script answers at", read_waits, lambda _settings, _subject: ())
PLUGIN = Plugin(figures={"demo": "serve:FIGURES"})


def main() -> None:
    """Serve, with that plugin beside all others."""
    from sm.cli.invocation import Invocation
    from sm.cli.root import cli

    plugin.use(lambda: [*find_plugins(), ("demo", "serve:PLUGIN")])
    cli.main(prog_name="sm", obj=Invocation())


if __name__ == "__main__":
    main()
