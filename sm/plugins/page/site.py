"""Site of the page in `sm serve`. Its libraries are loaded when it is first asked for."""

from __future__ import annotations

from starlette.types import ASGIApp

from sm.plugins.page.paths import BELOW, LOGIN, ROOT
from sm.sessions.machine import Machine
from sm.web.sites import Entrance, Site


def make(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the page over the sessions of this machine."""
    from sm.plugins.page.app import make_page

    return make_page(machine, entrance)


SITE = Site((ROOT, BELOW), make, door=f"{LOGIN}?key=", logs_in=True, sockets=True)
