from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.base.errors import UsageError
from sm.store.paths import DEFAULT_ROOT, Root, SessionDir, StateEntry, check_name, name_session


def test_the_names_of_the_protocol_are_kept() -> None:
    root = Root(DEFAULT_ROOT)
    assert root.phase("harb", 42) == Path("/tmp/dev-session-harb-42.phase")
    assert root.ci_result("harb", 42) == Path("/tmp/ci-result-harb-42.txt")
    assert root.terminal_log("harb", 42) == Path("/tmp/dev-harb-42.log")
    assert root.renotify("harb", 42) == Path("/tmp/dev-renotify-harb-42")
    assert root.idle_marker("dev-harb-42") == Path("/tmp/claude-idle-dev-harb-42.ts")
    assert name_session("harb", 42) == "dev-harb-42"


def test_everything_else_is_in_one_private_directory() -> None:
    root = Root(Path("/state"))
    private = Path(f"/state/sm-{os.geteuid()}")
    for path in (root.journal, root.session("dev-a-1").plan, root.project("a").snapshot):
        assert private in path.parents


def test_no_two_facts_share_a_file() -> None:
    directory = SessionDir(Path("/s"))
    names = [name for name, value in vars(SessionDir).items() if isinstance(value, StateEntry)]
    assert "plan" in names
    paths = [getattr(directory, name) for name in names]
    assert len(set(paths)) == len(names)
    assert {path.parent for path in paths} == {directory.path}


def test_a_session_name_holds_nothing_that_tmux_reads() -> None:
    assert name_session("my.site", 3) == "dev-my_site-3"


@pytest.mark.parametrize("name", ["harb", "a", "_x", "A.b-c_9", "x" * 64])
def test_safe_names_pass(name: str) -> None:
    assert check_name(name, "project") == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".x", "-x", "a/b", "a b", "a\n", "a\x00", "ä", "a:b", "$(id)", "x" * 65],
)
def test_unsafe_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a file name"):
        check_name(name, "project")


@given(st.text(max_size=70))
def test_what_passes_stays_inside_its_directory(name: str) -> None:
    try:
        check_name(name, "project")
    except UsageError:
        return
    assert Root(Path("/state")).project(name).path.resolve().parent.name == "projects"
    assert "/" not in name_session(name, 1)
