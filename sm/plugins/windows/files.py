"""Files that the usage windows leave on a machine, for `sm uninstall`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sm.plugins.windows.figures import locate
from sm.sessions.machine import Machine
from sm.setup.uninstall import Remainder


def list_figures(_machine: Machine, _env: Mapping[str, str]) -> Iterator[Remainder]:
    """List the last figures of each account: the next answer of any agent tells them again."""
    for path in (locate(), locate().with_suffix(".lock")):
        if path.is_file():
            yield Remainder(f"how much of usage windows is used: {path}", remove=path.unlink)
