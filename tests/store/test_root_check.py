"""A state root in which others could put files of theirs is refused, whoever wants to use it."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.forge.local import forge
from sm.base.errors import StateError
from sm.store import root_check
from sm.store.paths import Root
from sm.store.root_check import check_root, find_root_fault
from tests.helpers import Repository, sm_yaml

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


def open_to_all(root: Root) -> None:
    root.path.chmod(0o777)


def open_to_the_group(root: Root) -> None:
    root.path.chmod(0o770)


def sticky_of_another(root: Root) -> None:
    root.path.chmod(0o1777)
    os.chown(root.path, NOBODY, NOBODY)


def of_another(root: Root) -> None:
    root.path.chmod(0o755)
    os.chown(root.path, NOBODY, NOBODY)


def within_an_open_one(root: Root) -> None:
    root.path.parent.chmod(0o777)


def within_one_of_another(root: Root) -> None:
    os.chown(root.path.parent, NOBODY, NOBODY)


def private_of_another(root: Root) -> None:
    root.private.mkdir(mode=0o700)
    os.chown(root.private, NOBODY, NOBODY)


def private_open(root: Root) -> None:
    root.private.mkdir()
    root.private.chmod(0o755)


def private_closed(root: Root) -> None:
    root.private.mkdir(mode=0o500)


def private_link(root: Root) -> None:
    root.private.symlink_to("/")


def file_in_its_place(root: Root) -> None:
    root.path.rmdir()
    root.path.touch()


UNSAFE = [
    (open_to_all, "others may replace files in the state root '{0}': run chmod go-w '{0}'"),
    (open_to_the_group, "others may replace files in the state root '{0}': run chmod go-w '{0}'"),
    (
        within_an_open_one,
        "others may replace the state root '{0}', as '{2}' is open to them: set 'state_root' to a "
        "folder of your own",
    ),
    pytest.param(
        within_one_of_another,
        "others may replace the state root '{0}', as '{2}' is open to them: set 'state_root' to a "
        "folder of your own",
        marks=AS_ROOT,
    ),
    (private_open, "'{1}' is open to other users: run chmod 700 '{1}'"),
    (private_closed, "'{1}' has mode 500: run chmod 700 '{1}'"),
    (private_link, "'{1}' is not a directory: remove it, or move the state root"),
    (file_in_its_place, "the state root '{0}' is no directory: remove it, or set 'state_root'"),
    pytest.param(
        sticky_of_another,
        "the state root '{0}' is another user's, who may replace files: set 'state_root' to a "
        "folder of your own",
        marks=AS_ROOT,
    ),
    pytest.param(
        of_another,
        "the state root '{0}' is another user's, who may replace files: set 'state_root' to a "
        "folder of your own",
        marks=AS_ROOT,
    ),
    pytest.param(
        private_of_another,
        "'{1}' is not owned by you: remove it, or move the state root",
        marks=AS_ROOT,
    ),
]

COMMANDS = (
    "status",
    "children",
    "context",
    "health",
    "trace harb 1",
    "trace s-00000001",
    "logs harb 1",
    "queue s-00000001",
    "send s-00000001 x",
    "wait s-00000001",
    "tail s-00000001",
    "cycle s-00000001",
    "kill s-00000001",
    "kill harb 1",
    "attach s-00000001",
    "whoami",
    "new -- true",
    "reply harb 1 x",
    "recover harb 1",
    "poll",
    "poll --dry-run",
    "start-session harb 1",
    "react s-00000001",
    "rotate s-00000001",
    "serve",
)
"""Those that read or write what is in the state root."""


@pytest.fixture(autouse=True)
def _configured(
    tmp_path: Path, root: Root, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge.create(tmp_path / "forge", repository.bare)
    path = sm_yaml(tmp_path, repo=str(repository.clone))
    monkeypatch.setenv("SM_CONFIG", str(path))
    assert run(["issue", "add", "Mend it"]) == 0


def test_safe_ones_are_used(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_root(root) is root
    root.path.chmod(0o1777)  # as /tmp is
    root.private.mkdir(mode=0o700)
    assert check_root(root) is root
    assert check_root(Root(root.path / "none" / "such")).path
    if os.geteuid() == 0:
        # In a user namespace without root, root's /tmp seems to be nobody's.
        os.chown(root.path, NOBODY, NOBODY)
        with pytest.raises(StateError):
            check_root(root)
        mapped = root.path / "uid_map"
        mapped.write_text("      1000       1000          1\n")
        monkeypatch.setattr(root_check, "USER_MAP", mapped)
        assert check_root(root) is root


def test_a_link_on_the_way_is_as_unsafe_as_where_it_leads(root: Root) -> None:
    (folder := root.path.parent / "shared").mkdir()
    real = root.path / "real"
    real.mkdir(mode=0o700)
    (link := folder / "link").symlink_to(root.path)
    assert find_root_fault(link / "real") is None
    folder.chmod(0o1777)
    assert find_root_fault(link / "real") is None, "nobody else can replace a link there"
    folder.chmod(0o777)
    fault = find_root_fault(link / "real")
    assert fault
    assert f"'{folder}' is open" in fault.what
    folder.chmod(0o755)
    root.path.chmod(0o777)
    assert find_root_fault(link / "real")


@pytest.mark.parametrize(("make", "said"), UNSAFE)
def test_every_command_refuses_an_unsafe_root_as_doctor_does(
    root: Root,
    make: Callable[[Root], None],
    said: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    make(root)
    said = said.format(root.path, root.private, root.path.parent)
    for command in COMMANDS:
        assert run(command.split()) != 0, command
        refusal = capfd.readouterr().err
        if command.startswith("attach"):  # needs a terminal before all else
            continue
        assert said in refusal, f"{command}: {refusal}"
    run(["doctor", "--json"])
    found = [one for one in json.loads(capfd.readouterr().out) if one["level"] == "fail"]
    assert found
    what, _, remedy = said.partition(": ")
    assert any(one["what"] == what and one["advice"] in (remedy, "create it") for one in found)


def test_what_needs_no_state_works_nevertheless(
    root: Root, capfd: pytest.CaptureFixture[str]
) -> None:
    open_to_all(root)
    assert run(["config", "show"]) == 0
    assert run(["hooks", "show"]) == 0


@pytest.mark.parametrize("command", ["status", "config check"])
def test_crash_log_is_where_the_configuration_has_the_state(
    command: str, tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    sm_yaml(tmp_path, state_root=str(elsewhere))
    assert crash(command, monkeypatch) == elsewhere / f"sm-{os.geteuid()}" / "crash.log"
    assert not root.private.exists()


def test_crash_log_is_in_the_default_root_where_reading_the_configuration_crashes(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SM_CONFIG")
    place = tmp_path / "sm.yaml"
    place.unlink()
    place.write_text("state_root: [\n")
    monkeypatch.setenv("SM_STATE_ROOT", str(root.path))
    assert crash("status", monkeypatch, keep_root=True) == root.private / "crash.log"


def crash(command: str, monkeypatch: pytest.MonkeyPatch, *, keep_root: bool = False) -> Path:
    """Have a command end in an unexpected error; returns the log that it names."""
    if not keep_root:
        monkeypatch.delenv("SM_STATE_ROOT")
    program = (
        "import os, sys, pathlib, sm.__main__, sm.cli.root, sm.store.paths\n"
        "sm.store.paths.DEFAULT_ROOT = pathlib.Path(os.environ['TMPDIR'], 'default')\n"
        "def fall(*_, **__): raise RuntimeError('bang')\n"
        "sm.cli.root.cli.main = fall\n"
        "sys.exit(sm.__main__.run(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=os.environ["TMPDIR"],
    )
    assert done.returncode == 3, done.stderr
    named = Path(done.stderr.rpartition("see '")[2].strip().rstrip("'"))
    assert "bang" in named.read_text()
    return named


ME = pwd.getpwuid(os.geteuid())
GID = 4711


def account(name: str, uid: int, gid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))


@pytest.mark.parametrize(
    ("name", "members", "others", "local", "expected"),
    [
        (ME.pw_name, [], [], False, True),
        (ME.pw_name, [ME.pw_name], [], False, True),
        (ME.pw_name, ["mallory"], [], True, False),
        (ME.pw_name, [], [account("mallory", 4242, GID)], True, False),
        ("staff", [], [], True, True),
        ("domain users", [], [], False, False),
    ],
)
def test_only_a_group_without_others_is_ones_own(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    members: list[str],
    others: list[pwd.struct_passwd],
    local: bool,
    expected: bool,
) -> None:
    group = grp.struct_group((name, "x", GID, members))
    monkeypatch.setattr("sm.store.root_check.grp.getgrgid", lambda _: group)
    monkeypatch.setattr("sm.store.root_check.pwd.getpwall", lambda: [ME, *others])
    (tmp_path / "group").write_text(f"root:x:0:\n{name}:x:{GID}:\n" if local else "root:x:0:\n")
    monkeypatch.setattr(root_check, "GROUPS_FILE", tmp_path / "group")
    assert root_check.is_own_group(GID) is expected


def test_a_group_without_a_name_is_not_ones_own() -> None:
    assert not root_check.is_own_group(3_999_999_999)
