"""How long the demo leaves what needs a person to the person."""

from __future__ import annotations

import os
import pty
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import pytest

from tests.helpers import REPOSITORY

sys.path.append(str(REPOSITORY / "demo"))
Patience = import_module("patience").Patience


def test_without_a_page_nothing_waits() -> None:
    assert Patience(clock=lambda: 50.0).find_end("a") == 50.0


def test_nobody_is_waited_for_once_and_who_has_come_at_each_need() -> None:
    now, people = 100.0, list[str]()
    patience = Patience(60.0, lambda: bool(people), lambda: now)
    assert patience.find_end("a") == 160.0
    now = 150.0
    assert patience.find_end("b") == 160.0, "of nobody is not known that they come"
    people.append("ada")
    assert patience.find_end("a") == patience.find_end("b") == 210.0, "from when they came"
    now = 200.0
    assert patience.find_end("c") == 260.0
    assert patience.find_end("b") == 210.0
    patience.forget_others(["c"])
    assert patience.find_end("b") == 260.0, "it is another one"


def test_the_page_ends_by_itself_or_at_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    said, linger = list[str](), import_module("demo").linger
    view = SimpleNamespace(keep=said.append)
    with os.fdopen(terminal) as stdin, os.fdopen(keyboard, "wb", buffering=0) as keys:
        monkeypatch.setattr(sys, "stdin", stdin)
        linger(view, 0.01)
        assert "or until you press Enter here" in said[0]
        keys.write(b"\n")
        began = time.monotonic()
        linger(view, 600)
        assert time.monotonic() - began < 300
