"""A forge holds an approved pull request back: a person is asked, and merges it by a key."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.adapters.forge.model import PullState, ReviewState
from sm.base.act import ActKind
from sm.base.errors import SmError
from sm.plugins.top import acts
from sm.plugins.top.feed import Feed
from sm.plugins.top.listing import ListEntry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.views.projects import ProjectsReader
from tests.e2e.play import Play, seen_anew
from tests.forges.sides import RemoteSide
from tests.helpers import wait_for

SOON = {"by": "agent", "remind_s": 1.0}


def look(play: Play) -> tuple[Feed, ListEntry | None]:
    """What `sm top` shows of the one session, with its need; None without one."""
    fresh = play.anew()
    feed = Feed(fresh.machine, ProjectsReader(Machine(fresh.config), [fresh]))
    seen = feed.read()
    [row] = seen.rows
    need = next((one for one in seen.needs if one.session == row.id), None)
    return feed, ListEntry(row.id, row, need) if need else None


@pytest.mark.parametrize("play", ["forgejo"], indirect=True)
def test_it_is_merged_once_as_soon_as_the_forge_lets_it(play: Play) -> None:
    assert isinstance(play.side, RemoteSide)
    settings = play.project.settings
    merge = structs.replace(settings.merge, **SOON)
    play.project = Project(play.project.config, structs.replace(settings, merge=merge))
    play.side.state.approvals = 2
    play.side.admit("otto")
    issue = play.start()
    play.check(play.push(issue, "work\n", "PHASE:awaiting_ci"))
    play.hears(issue, "CI passed for")
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    pulls, number = play.side.open().pulls, play.pull_of(issue).number
    pulls.review(number, ReviewState.APPROVED, author="rita")
    seen_anew(play)

    def is_asked() -> bool:
        play.react(issue)
        return "merge-held" in play.decided(issue)

    wait_for(is_asked, "the question to a person")
    feed, entry = look(play)
    assert entry
    assert entry.need
    assert "wants 2, and 1 are there" in entry.need.text
    assert acts.choose_answer(entry) is ActKind.MERGE
    plan = acts.plan(feed.root, ActKind.MERGE, entry, feed.projects)
    with pytest.raises(SmError, match="enough approvals"):
        acts.carry_out(feed.root, plan, projects=feed.projects)
    assert pulls.read(number).state is PullState.OPEN
    pulls.review(number, ReviewState.APPROVED, author="otto")
    assert acts.carry_out(feed.root, plan, projects=feed.projects)[0].startswith("merged #")
    seen_anew(play)
    play.wait_for_end(issue)
    assert pulls.read(number).state is PullState.MERGED
    merges = [line for line in play.side.site.lines() if line.endswith(f"/pulls/{number}/merge")]
    assert len([line for line in merges if line.startswith("POST")]) == 2
