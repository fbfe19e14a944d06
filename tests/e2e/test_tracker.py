"""Journeys of issues that are cards of a tracker, with pull requests and CI on the forge.

Everything is real: `sm` is that of an environment in which the noticeboard is installed.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from sm.adapters.forge.model import IssueState
from sm.adapters.tmux import Tmux
from sm.base import plugin
from sm.base.plugin import Registry
from sm.plugins import OURS
from sm.store import journal
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Env, Stage, kill
from tests.helpers import git, wait_for
from tests.plugins.environment import make_environment


@dataclass
class Hall(Stage):
    """A stage whose programs have the noticeboard."""

    python: Path = Path()

    def sm(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.python), "-Im", "sm", *args, check=check)

    def poll(
        self, *, check: bool = True, env: Env | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.python), "-Im", "sm", "poll", check=check, env=env)

    @property
    def environment(self) -> Env:
        return super().environment | {"SM_PYTHON": str(self.python)}

    def hang(self, title: str, body: str = "Please.", *labels: str) -> str:
        """Hang a card; return its id."""
        made = self.sm("issue", "add", title, "--body", body, "--label", "backlog", "--as", "ada")
        return made.stdout.strip().removeprefix("harb#")

    def is_closed(self, card: str) -> bool:
        return self.project.forge.issues.read(card).state is IssueState.CLOSED


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("tracker"))


@pytest.fixture
def hall(
    stage_of: MakeStage, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Hall:
    places = {**OURS, "noticeboard": "sm_noticeboard.plugin:PLUGIN"}
    monkeypatch.setattr(plugin, "_registry", Registry(places.items))
    cards = tmp_path / "cards"
    cards.mkdir(mode=0o700)
    tracker = {"kind": "cards", "folder": str(cards)}
    made = stage_of(auto=True, settings={"tracker": tracker, "merge": {"by": "agent"}})
    return Hall(made.folder, made.repository, made.config, python)


def test_a_card_becomes_a_merged_branch_and_the_one_that_waits_for_it_follows(hall: Hall) -> None:
    first = hall.hang("Sweep the hall")
    second = hall.hang("Polish it", f"Depends on: {first}")
    assert (first, second) == ("HALL-1", "HALL-2")
    said = hall.poll().stdout
    assert "HALL-1 Sweep the hall" in said
    shown = json.loads(hall.sm("status", "--json").stdout)
    print(shown)
    assert [one["issue"] for one in shown[0]["sessions"]] == [first]
    [waits] = shown[0]["waiting"]
    assert (waits["issue"], waits["why"]) == (second, f"depends on {first}")
    refs = git(hall.repository.bare, "for-each-ref", "--format=%(refname)").split()
    assert "refs/sm/claims/HALL_1" in refs
    session = hall.session(first)
    assert session.name == "dev-harb-HALL_1"
    assert session.worktree.name == "harb-HALL_1"
    hall.approve(first)
    wait_for(lambda: hall.is_closed(first) and not hall.sessions(), "the first card")
    pulls, _ = hall.project.forge.pulls.find()
    assert [(one.branch, one.body.strip()) for one in pulls] == [("fix/HALL-1", "Closes HALL-1")]
    assert "work-HALL-1.txt" in git(hall.repository.bare, "ls-tree", "--name-only", "main")
    assert hall.project.forge.issues.read(first).labels == ()
    hall.poll()
    hall.approve(second)
    wait_for(lambda: hall.is_closed(second) and not hall.sessions(), "the second card")
    wait_for(lambda: not list(hall.project.root.sessions.iterdir()), "the last remnant")
    assert Tmux(hall.project.config.tmux_socket).panes() == {}
    assert not hall.project.settings.worktrees.exists()
    refs = git(hall.repository.bare, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main"]
    assert list(hall.project.root.path.iterdir()) == [hall.project.root.private]
    told = hall.sm("trace", "harb", "hall-1").stdout
    assert "merged" in told


def test_a_card_is_named_as_any_issue_and_survives_its_agent(hall: Hall) -> None:
    hall.config.write_text(hall.config.read_text().replace("PUPPET_AUTO: '1'", "PUPPET_AUTO: '0'"))
    card = hall.hang("Sweep the hall")
    assert hall.sm("start-session", "harb", "hall-1").returncode == 0
    wait_for(hall.told, "the first prompt")
    assert "You work on issue HALL-1 of project harb" in hall.told()[0]
    for name in ("harb#HALL-1", "harb#hall-1", "hall-1", "dev-harb-HALL_1"):
        hall.sm("send", name, f"to {name}")
    wait_for(lambda: any("to dev-harb-HALL_1" in one for one in hall.told()), "the messages")
    assert [one for one in hall.told() if one.startswith("[sm] From")] == []
    kill(hall.agent_pid(card))
    wait_for(lambda: any("You take over issue HALL-1" in one for one in hall.told()), "another")
    hall.write_phase(card, "PHASE:escalate\nReason: which broom?")
    wait_for(
        lambda: any(one.marker for one in hall.project.forge.issues.read(card).comments),
        "the question on the card",
    )
    hall.sm("reply", "harb", "HALL-1", "the red one")
    wait_for(lambda: any("the red one" in one for one in hall.told()), "the answer")
    hall.project.root.session("dev-harb-HALL_1").identity.write_text("damaged")
    hall.poll(check=False)
    assert hall.session(card).issue == card
    hall.sm("kill", "harb#HALL-1")
    assert hall.sessions() == []
    assert "blocked" in hall.project.forge.issues.read(card).labels
    assert hall.project.git.ls_remote("origin", "refs/sm/claims/*") == {}
    assert journal.find_latest(hall.project.root.journal, {"dev-harb-HALL_1"}, "forget") is not None


def test_what_is_no_card_is_refused_in_words(hall: Hall) -> None:
    hall.hang("Sweep the hall")
    for words, why in (
        (
            ("start-session", "harb", "12"),
            "there is no issue 12: issues here have ids such as ENG-123",
        ),
        (("start-session", "harb", "HALL-9"), "there is no issue 9"),
        (("start-session", "harb", "BAR-9"), "there is no card BAR-9"),
        (("start-session", "harb", "../x"), "'../x' is no issue: 'harb' has ids such as ENG-123"),
        (
            ("start-session", "harb", "H" * 300 + "-1"),
            "is no issue: 'harb' has ids such as ENG-123",
        ),
        (("pr", "show", "HALL-1"), "'HALL-1' is an issue: a pull request has a number"),
    ):
        done = hall.sm(*words, check=False)
        assert done.returncode in (2, 3, 4), done
        assert why in done.stderr


def test_a_project_with_a_tracker_has_its_sessions_here(hall: Hall) -> None:
    sound = hall.config.read_text()
    hall.config.write_text(f"{sound}runner: noticeboard\n")
    done = hall.sm("config", "check", check=False)
    hall.config.write_text(sound)
    assert done.returncode == 2
    assert "its sessions can run only here: leave out 'runner'" in done.stderr


def test_the_doctor_says_where_issues_are_from(hall: Hall) -> None:
    found = json.loads(hall.sm("doctor", "--json", check=False).stdout)
    assert any(one["what"].startswith("issues are from cards") for one in found)
