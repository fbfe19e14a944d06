"""What `sm top` says where it cannot be shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.plugins.top.verb import FEW_SIGNS, PLAIN, is_plain
from tests.helpers import make_repository, sm_yaml


class Terminal:
    """Says that it is one."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_it_names_the_verb_that_needs_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["top"]) == 2
    assert "top needs a terminal: sm status shows the same once" in capsys.readouterr().err


def test_without_the_library_it_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(sm_yaml(tmp_path)))
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    for name in [one for one in sys.modules if one.startswith("sm.plugins.top.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    assert run(["top"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("sm: sm top needs textual, which is not installed: pipx inject")


@pytest.mark.parametrize(
    ("kind", "is_without_colours", "has_few_signs"),
    [
        ("xterm-256color", False, False),
        ("screen", False, False),
        ("linux", False, True),
        ("vt100", True, True),
        ("dumb", True, True),
        ("", True, True),
    ],
)
def test_what_a_terminal_can_is_known_by_its_kind(
    kind: str, is_without_colours: bool, has_few_signs: bool
) -> None:
    assert is_plain(kind, PLAIN) is is_without_colours
    assert is_plain(kind, FEW_SIGNS) is has_few_signs
