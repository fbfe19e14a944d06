"""What plugins add to the server is answered and described as its own endpoints are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from sm.base import plugin
from sm.base.plugin import Plugin, Registry
from sm.config.schema import MachineSettings
from sm.plugins.http.app import make_application
from sm.sessions.machine import Machine
from sm.store.paths import Root
from sm.web.endpoint import Call, Endpoint
from sm.web.guard import GuardRules


class Bell(Struct, frozen=True):
    """How often it has rung."""

    rings: int


def ring(_call: Call[Any]) -> Bell:
    return Bell(3)


BELL = Endpoint("GET", "/bell", ring, "The bell at the door.", Bell)
DOOR = Plugin(routes={"bell": f"{__name__}:BELL", "gone": "no.such.module:GONE"})


def test_an_endpoint_of_a_plugin_is_among_ours(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [("door", f"{__name__}:DOOR")]))
    machine = Machine(MachineSettings(state_root=root.path))
    app = make_application(machine, "1", GuardRules(), {})
    paths = [getattr(route, "path", "") for route in app.routes]
    assert "/bell" in paths
    assert "/sessions" in paths
