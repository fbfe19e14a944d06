from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.forge.local import entry
from sm.adapters.forge.local.forge import create
from sm.base.errors import SmError
from sm.config.forges import LocalSettings
from tests.helpers import git, make_repository
from tests.hub import Hub, make_hub


def hook_of(hub: Hub) -> Path:
    return hub.repository.bare / "hooks" / "post-receive"


def push_wakes(hub: Hub) -> bool:
    os.utime(hub.folder / "stamp", (1, 1))
    branch = f"b{len(git(hub.repository.bare, 'branch'))}"
    git(hub.repository.clone, "push", "-q", "origin", f"main:refs/heads/{branch}")
    return (hub.folder / "stamp").stat().st_mtime > 1


def test_setting_up_again_changes_nothing(hub: Hub) -> None:
    hub.open().issues.add("a", author="x")
    before = hook_of(hub).read_text()
    assert create(hub.folder, hub.repository.bare)
    assert hook_of(hub).read_text() == before
    assert hub.open().issues.read(1).title == "a"


def test_push_touches_the_stamp(hub: Hub) -> None:
    assert push_wakes(hub)


def test_hook_that_is_there_runs_as_well(hub: Hub, tmp_path: Path) -> None:
    hook = hook_of(hub)
    hook.write_text(f"#!/usr/bin/env bash\ncat >'{tmp_path}/seen'\nexit 0\n")
    assert create(hub.folder, hub.repository.bare)
    assert push_wakes(hub)
    assert "refs/heads/" in (tmp_path / "seen").read_text()


def test_hook_that_is_no_shell_script_is_left_alone(hub: Hub) -> None:
    hook_of(hub).write_text("#!/usr/bin/python3\nimport sys\n")
    before = hub.open().stamp()
    assert not create(hub.folder, hub.repository.bare)
    assert hook_of(hub).read_text() == "#!/usr/bin/python3\nimport sys\n"
    hook_of(hub).chmod(0o644)
    hub.push("topic")
    assert hub.open().stamp() != before


def test_hooks_shared_with_other_repositories_are_left_alone(hub: Hub, tmp_path: Path) -> None:
    shared = tmp_path / "hooks"
    shared.mkdir()
    git(hub.repository.bare, "config", "core.hooksPath", str(shared))
    assert not create(hub.folder, hub.repository.bare)
    assert not list(shared.iterdir())


def test_hub_can_be_moved_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    hub = make_hub(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    (tmp_path / "old").symlink_to("new")
    assert hub.open().issues.add("a", author="x").number == 1
    assert push_wakes(hub)


def test_branches_that_move_change_the_stamp_without_a_hook(hub: Hub) -> None:
    hook_of(hub).unlink()
    forge = hub.open()
    before = forge.stamp()
    assert forge.stamp() == before
    hub.push("topic")
    after = forge.stamp()
    assert after != before
    hub.push("topic", content="more\n")
    assert forge.stamp() != after


def test_forge_of_another_repository_is_refused(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = make_repository(tmp_path / "other")
    with pytest.raises(SmError, match="is the forge of another repository"):
        create(hub.folder, other.bare)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (None, "there is no forge in"),
        ("format: 2\nrepository: ../hub.git\n", "a format other than 1"),
        ("format: 1\n", "names no repository"),
        ("format: [\n", "is no YAML"),
        ("format: 1\nrepository: ../gone.git\n", "there is no bare repository"),
    ],
)
def test_damaged_settings_are_named(hub: Hub, settings: str | None, said: str) -> None:
    path = hub.folder / "forge.yaml"
    if settings is None:
        path.unlink()
    else:
        path.write_text(settings)
    with pytest.raises(SmError, match=said):
        hub.open()


def test_folder_that_vanishes_is_told_whatever_is_asked(hub: Hub) -> None:
    forge = hub.open()
    shutil.rmtree(hub.folder)
    asks: list[Callable[[], object]] = [
        forge.stamp,
        forge.observe,
        lambda: forge.issues.add("a", author="x"),
        lambda: forge.issues.comment(1, "x", author="x"),
        lambda: forge.issues.close(1),
    ]
    for ask in asks:
        with pytest.raises(SmError):
            ask()


def test_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SmError, match="cannot set up the forge"):
        create(tmp_path / "file" / "forge", make_repository(tmp_path).bare)


def test_a_forge_is_made_whether_or_not_anybody_reads_what_was_made(
    tmp_path: Path,
) -> None:
    repository = make_repository(tmp_path)
    settings = LocalSettings(path=tmp_path / "forge")
    entry.prepare(settings, repository.bare)
    assert settings.path.is_dir()
    assert entry.prepare(settings, repository.bare) == []
