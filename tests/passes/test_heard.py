"""What a monitor hears of the server of passes, however it comes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.shell import bash

ASK = """
dir=$1 ident=12.345 _AWAIT_S=5
mkfifo "$dir/passes" "$dir/answer"
exec {_ask}<>"$dir/passes" {answer}<>"$dir/answer"
printf '%s' "$2" >&"$answer"
{ sleep 1.1; printf '%s' "$3" >&"$answer"; } &
_await_server && echo "taken up"
printf '%s\\n' "$ident 7" >&"$answer"
_read_answer && echo "ended with $code"
"""


@pytest.mark.parametrize(
    ("first", "rest"),
    [("12", ".345\n"), ("12.345", "\n"), ("11.1 0\n12.3", "45\n"), ("12.345\n", "")],
)
def test_an_answer_that_is_read_by_halves_is_heard(tmp_path: Path, first: str, rest: str) -> None:
    folder = tmp_path / f"sm-{os.geteuid()}"
    folder.mkdir()
    found = bash(ASK, folder, first, rest, sources=["passes"])
    assert found.stdout == "taken up\nended with 7\n", found.stderr
