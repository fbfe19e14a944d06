"""Junk in every field of the forge: what reads it goes on, names what is bad, and is soon done."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sm.adapters.forge.model import CheckState
from sm.base.errors import SmError
from sm.config.load import load
from sm.issues.look.snapshot import look
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.paths import Root
from tests.chance import tries
from tests.helpers import put_session
from tests.hub import Hub, make_hub
from tests.junk import junk, numbers, read_all, values

LONGEST_S = 1.0
"""Processor time that all reading of one example may take."""


def _front(fields: dict[str, str], extra: str) -> str:
    return "".join(f"{key}: {value}\n" for key, value in fields.items()) + extra


titles = values("Mend it", "'a: b'")
times = values("2026-01-02T03:04:05Z")
states = values("open", "closed")
issue_fronts = st.builds(
    _front,
    st.fixed_dictionaries(
        {"title": titles, "state": states},
        optional={
            "number": numbers,
            "author": junk,
            "created": times,
            "labels": values("[backlog]", "backlog, x"),
        },
    ),
    st.one_of(st.just(""), junk),
)
pull_fronts = st.builds(
    _front,
    st.fixed_dictionaries(
        {"title": titles, "state": values("open", "merged"), "branch": values("fix/7", "fix/8")},
        optional={
            "base": values("main"),
            "head": values("a" * 40, "HEAD"),
            "merged": values("b" * 40),
            "created": times,
        },
    ),
    st.one_of(st.just(""), junk),
)
sections = st.one_of(
    st.builds("## Comment by {}, {}\n\n{}\n".format, junk, times, junk),
    st.builds("## Comment by {}\n{}\n".format, junk, junk),
    st.builds(
        "## Review by {}, {}: {}\n<!-- sm: id={} head={} -->\n\n{}\n\n### On {}:{}\n\n{}\n".format,
        *(junk, times, values("approved", "commented"), junk, junk, junk, junk, numbers, junk),
    ),
)


def files(fronts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(sections, max_size=3).map("\n".join)
    whole = st.builds("---\n{}---\n{}\n\n{}".format, fronts, junk, bodies)
    return st.one_of(whole, whole, whole, junk)


checks = st.one_of(
    junk,
    st.builds(
        '{{"state": "failure", "step": "{}", "code": {}, "at": {}, "took_s": {}}}'.format,
        *(junk, numbers, numbers, numbers),
    ),
)


@dataclass(frozen=True)
class World:
    """A project with a session on its issue 7, whose branch is on the forge."""

    hub: Hub
    project: Project
    session: IssueSession
    head: str

    def put(self, name: str, text: str) -> None:
        path = self.hub.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            text.encode("utf-8", "surrogateescape" if "\ud800" not in text else "replace")
        )


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> World:
    hub = make_hub(tmp_path, ci="true")
    hub.open().issues.add("a good one", labels=["backlog"], author="x")
    head = hub.push("fix/7")
    config = load(hub.config, os.environ, tmp_path)
    project = Project(config, config.projects[0])
    session = put_session(project, 7, phase="PHASE:awaiting_ci\n")
    project.record(events.Problem(session=session.name, text="something to tell of"))
    return World(hub, project, session, head)


def soon(world: World) -> list[str]:
    began = time.process_time()
    problems = read_all(Project(world.project.config, world.project.settings), world.session)
    assert time.process_time() - began < LONGEST_S
    assert all(len(problem) < 2000 for problem in problems)
    return problems


HUNG = "---\ntitle: t\nstate: open\n---\n"


@given(issue=files(issue_fronts))
@example(issue=HUNG + "a" + "\n" * 6000 + "b")
@example(issue=HUNG + "Depends on #" + "9" * 4301)
@example(issue=HUNG + "\n## Comment by x, 9999-12-31T23:59:59-12:00\n\nHi.\n")
@example(issue="---\ntitle: \udc80x\nstate: open\n---\n")
@example(issue='---\ntitle: "\\x80\\e]52;c;AAAA\\a\\0"\nstate: open\n---\n')
@example(issue=f"---\ntitle: {'[' * 900}\nstate: open\n---\n")
@example(issue=f"---\ntitle: {'[' * 100_000}\nstate: open\n---\n")
@example(issue="---\ntitle: t\nx: &a [1]\n" + "y: [*a, *a, *a]\n" * 9 + "---\n")
@tries(60)
def test_junk_in_an_issue_stops_nobody(world: World, issue: str) -> None:
    world.put("issues/0007.md", issue)
    soon(world)


@given(pull=files(pull_fronts), check=checks, log=junk)
@example(
    pull="---\ntitle: t\nstate: open\nbranch: fix/7\nbase: main\nhead: --help\n---\n",
    check="",
    log="",
)
@example(
    pull="---\ntitle: t\nstate: open\nbranch: x\nbase: main\nhead: main\n---\n", check="", log=""
)
@example(pull="", check="[" * 100_000, log="")
@tries(40)
def test_junk_in_a_pull_request_and_its_check_stops_nobody(
    world: World, pull: str, check: str, log: str
) -> None:
    world.put("issues/0007.md", "---\ntitle: t\nstate: open\nlabels: [backlog]\n---\n")
    world.put("pulls/0008.md", pull)
    world.put(f"checks/{world.head}/result.json", check)
    world.put(f"checks/{world.head}/log", f"step: {log}\n{log}")
    soon(world)


@given(
    issue=junk, text=st.one_of(junk, st.builds("format: {}\nrepository: {}\n".format, junk, junk))
)
@example(issue="", text="[" * 900)
@example(issue="", text="[" * 100_000)
@example(issue="", text="format: 1\nrepository: " + "x" * 5000)
@example(issue="", text='format: 1\nrepository: "\\0"')
@tries(60)
def test_junk_in_the_settings_of_the_forge_is_an_error_in_words(
    world: World, issue: str, text: str
) -> None:
    world.put("issues/0007.md", issue)
    world.put("forge.yaml", text)
    began = time.process_time()
    with contextlib.suppress(SmError):
        world.hub.open().observe(start_checks=False)
    assert time.process_time() - began < LONGEST_S


@given(title=junk, author=junk, label=junk, body=junk)
@example(title="\udc80x", author="\udc80", label="\ud800", body="\ud800")
@example(title="x" * 100_000, author="x", label="x", body="")
@tries(40)
def test_what_may_be_filed_can_be_read(
    world: World, title: str, author: str, label: str, body: str
) -> None:
    world.put("issues/0007.md", "---\ntitle: t\nstate: open\n---\n")
    forge = world.hub.open()
    with contextlib.suppress(SmError):
        number = forge.issues.add(title, body, [label], author=author).number
        with contextlib.suppress(SmError):
            forge.issues.comment(number, body, author=title, marker=label)
        found = world.hub.open()
        problems = found.issues.find()[1]
        assert problems == [] or "depends on" in problems[0]
        for path in (world.hub.folder / "issues").glob("*.md"):
            if path.stem not in ("0001", "0007"):
                path.unlink()


def test_check_that_has_run_is_seen(world: World) -> None:
    """The fuzzed files are those that are read."""
    pull = "---\ntitle: t\nstate: open\nbranch: fix/7\nbase: main\n---\n"
    world.put("issues/0007.md", "---\ntitle: t\nstate: open\nlabels: [backlog]\n---\n")
    world.put("pulls/0008.md", pull)
    world.put(
        f"checks/{world.head}/result.json", '{"state": "failure", "step": "x", "code": 1, "at": 1}'
    )
    seen = look(world.project)
    assert [pull.check.state for pull in seen.pulls] == [CheckState.FAILURE]
    assert soon(world) == []
