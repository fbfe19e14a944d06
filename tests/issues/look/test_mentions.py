"""Whom a question on the forge names."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.adapters.forge.model import Issue, IssueState
from sm.config.forges import LocalSettings
from sm.config.schema import EscalationSettings, ProjectSettings
from sm.issues.look.escalation import list_asked
from sm.issues.look.snapshot import Snapshot
from sm.plugins.forges.settings import GithubSettings

ISSUE = Issue(7, "Mend it", IssueState.OPEN, "ada", 1.0)


def asked(
    project: ProjectSettings, *, writers: tuple[str, ...] = ("ada",), **fields: object
) -> str:
    seen = Snapshot(1.0, issues=(structs.replace(ISSUE, **fields),), writers=writers)
    return " ".join(list_asked(project, seen, 7))


@pytest.fixture
def project(project: ProjectSettings) -> ProjectSettings:
    return structs.replace(project, forge=GithubSettings(repository="harbor/harb"))


def test_those_whom_the_configuration_names_are_asked(project: ProjectSettings) -> None:
    named = structs.replace(project, escalation=EscalationSettings(mention=("rita", "harbor/ops")))
    assert asked(named, assignees=("eve",)) == "rita harbor/ops"


def test_else_the_assignees_else_the_author_who_is_trusted(project: ProjectSettings) -> None:
    assert asked(project, assignees=("eve", "rita")) == "eve rita"
    assert asked(project) == "ada"
    assert asked(project, author="mallory") == ""
    assert asked(structs.replace(project, trusted=("rita",))) == ""


@pytest.mark.parametrize("name", ["helper[bot]", "ada rita", "@all", "ada\n", "", "-x"])
def test_what_is_no_name_of_a_person_is_not_written(name: str, project: ProjectSettings) -> None:
    assert asked(project, assignees=(name,)) == ""


def test_a_folder_has_no_accounts_to_tell(project: ProjectSettings) -> None:
    local = structs.replace(project, forge=LocalSettings(path=project.repo))
    assert asked(local, assignees=("eve",)) == ""
    assert list_asked(project, None, 7) == ()
