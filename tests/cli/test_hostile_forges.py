"""The same for forges over HTTP: what stands in each field there harms no terminal and no agent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from sm.__main__ import run
from sm.adapters.forge.model import CheckState, ReviewState
from sm.base.foreign import tidy_name
from sm.base.text import normalise
from sm.config.load import load
from sm.issues.act.compose import gather
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import snapshot
from sm.issues.rules.material import GitState
from sm.issues.rules.prompts import PROMPTS, write_prompt
from sm.sessions.project import Project
from sm.store import lock
from sm.store.paths import Root
from tests.forges.gitlab import Gitlab, Talk
from tests.forges.sides import KINDS, RemoteSide, remote_side
from tests.forges.state import Inline, Pull, Said, Status
from tests.helpers import put_session
from tests.hostileworld import HOSTILE, LONG, unsafe
from tests.hub import make_hub
from tests.issues.test_fences import NONCE, outside

COMMANDS = (
    *("issue list", "issue list --state all", "issue show 1", "pr list", "pr diff {pull} --stat"),
    *("pr show {pull}", "pr checks {pull}", "pr view {pull}", "poll --dry-run", "status", "doctor"),
)
FORGED = "sm: forged line"
"""The second line of the hostile words."""


@pytest.fixture(params=KINDS)
def side(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    root: Root,
    tmux_socket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RemoteSide]:
    hub = make_hub(tmp_path)
    config = load(hub.config, os.environ, tmp_path)
    folder = Project(config, config.projects[0]).directory.path
    with remote_side(request.param, hub, folder) as side:
        fill(side)
        settings = {"kind": side.kind, "url": side.site.url, "repository": side.state.name}
        settings["token_file"] = str(side.token_file("sm"))
        known = yaml.safe_load(hub.config.read_text())
        hub.config.write_text(yaml.safe_dump(known | {"forge": settings}))
        monkeypatch.setenv("SM_CONFIG", str(hub.config))
        monkeypatch.chdir(tmp_path)
        yield side


def fill(side: RemoteSide) -> None:
    """Hostile words in each field of an issue, a pull request, a review, a check."""
    state = side.state
    issue = state.add(HOSTILE, LONG[:100_000], HOSTILE)
    state.label(issue, ["backlog", HOSTILE], HOSTILE)
    state.say(issue, HOSTILE, HOSTILE)
    issue.assignees = [HOSTILE]
    head = side.push("fix/1", "1.txt")
    opened = state.add(HOSTILE, HOSTILE, HOSTILE, Pull("fix/1", "main", head))
    state.say(opened, HOSTILE, HOSTILE)
    state.add(HOSTILE, HOSTILE, HOSTILE, Pull(HOSTILE, "main", head, fork=HOSTILE))
    side.admit("rita", tidy_name(HOSTILE))
    side.open().pulls.review(opened.number, ReviewState.CHANGES_REQUESTED, HOSTILE, author="rita")
    put_remark(side, opened.number)
    side.finish(head, CheckState.FAILURE, HOSTILE, HOSTILE)
    state.runs[-1].text = HOSTILE
    state.runs[-1].notes = [HOSTILE]
    if side.kind in ("github", "gitlab"):
        state.statuses.append(
            Status(state.next_id(), head, HOSTILE, "failure", time.time(), HOSTILE, HOSTILE)
        )


def put_remark(side: RemoteSide, number: int) -> None:
    """A remark on a line whose path is hostile, too."""
    dialect = side.dialect
    if isinstance(dialect, Gitlab):
        said = Said(side.state.next_id(), "rita", HOSTILE, side.state.clock())
        position = {"new_path": HOSTILE, "old_path": HOSTILE, "new_line": 1, "head_sha": HOSTILE}
        dialect.requests[number].talks.append(Talk(f"d{said.id}", [said], position))
        return
    pull = side.state.entries[number].pull
    assert pull
    ident = side.state.next_id()
    pull.inline.append(Inline(pull.reviews[-1].id, HOSTILE, 1, HOSTILE, ident, author="rita"))


def test_no_field_of_a_forge_harms_a_terminal_or_leaves_its_fence(
    side: RemoteSide, capfd: pytest.CaptureFixture[str]
) -> None:
    config = load(side.hub.config, os.environ, Path.cwd())
    project = Project(config, config.projects[0])
    # Not this process: it calls as a person.
    session = put_session(project, 1, title=HOSTILE, phase="PHASE:awaiting_review\n", alive=False)
    wrong, shown = list[str](), ""
    pull = 1 if side.kind == "gitlab" else 2
    with lock.hold(session.dir.monitor_lock):
        seen = snapshot(project)
        for command in COMMANDS:
            code = run(command.format(pull=pull).split())
            out, err = capfd.readouterr()
            wrong += [f"sm {command}: {one}" for one in unsafe(out + err)]
            wrong += [f"sm {command}: {err[-2000:]}"] * (code == 3)
            shown += out
        assert wrong == []
        assert shown.count("evil") > 10, shown
        material = gather(session, recall(session, seen), GitState())
    assert material.review
    assert material.review.comments[0].path.startswith("evil")
    material = structs.replace(material, nonce=NONCE)
    texts = [normalise(write_prompt(name, material)) for name in PROMPTS]
    for text in texts:
        assert unsafe(text) == []
        assert not [line for line in outside(text) if FORGED in line]
    assert any(FORGED in text for text in texts)
