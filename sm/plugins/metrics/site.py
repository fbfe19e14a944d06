"""Site of the metrics in `sm serve`. Their library is loaded when they are first asked for."""

from __future__ import annotations

from starlette.types import ASGIApp

from sm.sessions.machine import Machine
from sm.web.sites import Entrance, Site

PATH = "/metrics"


def make(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the application that answers with the metrics of this machine."""
    from sm.plugins.metrics.collector import make_app

    return make_app(machine, entrance)


SITE = Site((PATH,), make, acts=False)
