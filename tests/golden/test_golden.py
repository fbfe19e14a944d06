"""What each face says of the made states is what the golden files have, byte for byte.

`SM_WRITE_GOLDEN=1 bin/test tests/golden` writes down what is said now; `git diff` then shows what
has changed.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sm.cli.root import cli
from sm.plugins.http.app import load_added
from sm.plugins.http.routes import ENDPOINTS
from sm.plugins.page.app import WAYS
from sm.web.sites import load_sites
from tests.cli.test_hostile_output import has_json, leaves
from tests.golden.acts import ACTS
from tests.golden.calls import GETS, LEFT_OUT, LEFT_OUT_PATHS, PAGES, READS
from tests.helpers import HANG_S, REPOSITORY

EXPECTED = Path(__file__).parent / "expected"
WRITES = os.environ.get("SM_WRITE_GOLDEN") == "1"
SHOWN = 60
"""Lines of a file's difference that are shown."""


@pytest.mark.long_lived
def test_each_face_says_what_it_has_always_said(tmp_path: Path) -> None:
    said = tmp_path / "said"
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.walk", str(said)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    if WRITES:
        shutil.rmtree(EXPECTED, ignore_errors=True)
        shutil.copytree(said, EXPECTED)
    changed = "".join(_compare(said))
    hint = "\nTo take that over: SM_WRITE_GOLDEN=1 bin/test tests/golden"
    assert not changed, f"\n{changed}{hint}"


def _compare(said: Path) -> Iterator[str]:
    """The differences, file by file."""
    for name in sorted({*_list_files(EXPECTED), *_list_files(said)}):
        before, now = (_read(folder / name) for folder in (EXPECTED, said))
        if before == now:
            continue
        lines = list(difflib.unified_diff(before, now, f"expected/{name}", f"said/{name}", n=2))
        yield from (f"{line.rstrip(chr(10))[:500]}\n" for line in lines[:SHOWN])
        if len(lines) > SHOWN:
            yield f"… and {len(lines) - SHOWN} more lines\n"


def _list_files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*.txt")]


def _read(path: Path) -> list[str]:
    """Its lines, each with its own end; none if it is not there."""
    return path.read_bytes().decode().split("\n") if path.exists() else []


def _find_acts() -> dict[str, list[str]]:
    """The lines of `ACTS` by their verbs."""
    found: dict[str, list[str]] = {}
    verbs = sorted((path for path, _ in leaves(cli)), key=len, reverse=True)
    for line in ACTS:
        words = " ".join(shlex.split(line)[:2])
        verb = next((one for one in verbs if f"{words} ".startswith(f"{one} ")), "")
        found.setdefault(verb, []).append(line)
    return found


def test_each_verb_is_called_or_left_out_for_a_reason() -> None:
    called = {*READS, *_find_acts()} - {""}
    verbs = {path for path, _ in leaves(cli)}
    assert verbs == called | set(LEFT_OUT)
    assert not called & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_each_verb_that_prints_json_is_called_for_it() -> None:
    acts = {verb for verb, lines in _find_acts().items() if any("--json" in one for one in lines)}
    verbs = {path for path, command in leaves(cli) if has_json(command)}
    assert verbs - set(READS) - set(LEFT_OUT) == acts


def test_each_path_that_is_read_over_http_is_called_or_left_out_for_a_reason() -> None:
    paths = {one.path for one in (*ENDPOINTS, *load_added()) if one.method == "GET"}
    paths |= {way.path for way in WAYS if "GET" in getattr(way, "methods", ("GET",))}
    paths |= {path for site in load_sites() for path in site.paths if not path.endswith("/")}
    called = [path.partition("?")[0] for one in (GETS, PAGES) for path in _flatten(one.values())]
    missed = {path for path in paths if not any(_fits(path, one) for one in called)}
    assert missed == set(LEFT_OUT_PATHS)
    assert all(LEFT_OUT_PATHS.values())


def _flatten(many: Iterable[Iterable[str]]) -> Iterator[str]:
    for one in many:
        yield from one


def _fits(path: str, called: str) -> bool:
    """Whether that path of the table answers what is called."""
    return re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", path), called) is not None
