from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from sm.adapters import proc
from sm.adapters.forge.checkfolder import LOG_LIMIT
from sm.adapters.forge.checks import MAX_STARTS
from sm.adapters.forge.errors import NotFoundError
from sm.config.schema import Ci
from sm.forge import CheckState
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hub import Hub, make_hub


@pytest.fixture(autouse=True)
def _state(root: Root) -> None:
    """Runners keep their checkouts in a state root of the test's own."""


def work(hub: Hub, root: Root) -> Path:
    return root.project(hub.project.name).ci


def left_behind(hub: Hub, root: Root) -> list[Path]:
    folder = work(hub, root)
    return list(folder.iterdir()) if folder.exists() else []


def log_of(hub: Hub, head: str) -> str:
    return (hub.folder / "checks" / head / "log").read_text()


def pid_in(path: Path) -> int:
    """The pid that CI has written into a file."""
    wait_for(lambda: path.exists() and path.read_text().strip(), f"a pid in {path.name}")
    return int(path.read_text())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: proc.find(pid) is None, "the end of the runner")


def test_without_a_command_there_is_no_check(tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    head = hub.push("fix/1")
    assert hub.open().ensure_check(head).state is CheckState.NONE
    assert not list((hub.folder / "checks").iterdir())


def test_ci_sees_a_clean_checkout_and_a_clean_environment(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "secret")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    hub = make_hub(tmp_path, ci="ls; git log --oneline | wc -l; env | sort; test -w $TMPDIR")
    head = hub.push("fix/1")
    (hub.repository.clone / "untracked").touch()
    assert hub.checked(head) == "success"
    log = log_of(hub, head)
    assert log.startswith("README.md\nwork.txt\n2\n")
    names = {line.partition("=")[0] for line in log.splitlines()[3:]}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "CI",
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
        "USER",
    }
    assert left_behind(hub, root) == []


def test_result_touches_the_stamp(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="true")
    head = hub.push("fix/1")
    before = hub.open().stamp()
    os.utime(hub.folder / "stamp", (1, 1))
    hub.checked(head)
    wait_for(lambda: (hub.folder / "stamp").stat().st_mtime > 1, "the stamp")
    assert hub.open().changed_since(before)


def test_failure_names_its_step_and_has_the_end_of_the_log(tmp_path: Path, root: Root) -> None:
    hub = make_hub(
        tmp_path, ci="echo step: lint; seq 500; echo 'step: unit tests'; echo no; exit 3"
    )
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    check = hub.open().check(head)
    assert check.step == "unit tests"
    assert check.log.splitlines()[-2:] == ["step: unit tests", "no"]
    assert len(check.log.splitlines()) == hub.project.ci.log_lines
    assert check.url == (hub.folder / "checks" / head / "log").as_uri()
    assert left_behind(hub, root) == []


def test_failure_without_steps_is_named_by_its_command(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="exit 1")
    head = hub.push("fix/1")
    hub.checked(head)
    assert hub.open().check(head).step.strip() == "exit 1"


def test_commit_that_is_not_there_fails_at_the_checkout(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci="true")
    assert hub.checked("f" * 40) == "failure"
    assert hub.open().check("f" * 40).step == "checkout"
    assert left_behind(hub, root) == []
    with pytest.raises(NotFoundError, match="is no commit"):
        hub.open().check("../x")


def test_many_observers_start_one_runner(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=f"echo $PPID >>{tmp_path}/runners; cat {tmp_path}/go")
    os.mkfifo(tmp_path / "go")
    head = hub.push("fix/1")
    context = multiprocessing.get_context("fork")
    observers = [context.Process(target=lambda: hub.open().ensure_check(head)) for _ in range(8)]
    for observer in observers:
        observer.start()
    for observer in observers:
        observer.join(60)
    (tmp_path / "go").write_text("go\n")
    assert hub.checked(head) == "success"
    assert len((tmp_path / "runners").read_text().splitlines()) == 1


def test_killed_runner_is_replaced_and_leaves_nothing(tmp_path: Path, root: Root) -> None:
    """The first run never ends by itself; the second finds what tells it to."""
    ci = (
        f"if test -e {tmp_path}/second; then exit 0; fi; chmod 555 .; "
        f"sleep 1000 & echo $! >{tmp_path}/sleeper; echo $PPID >{tmp_path}/runner; wait"
    )
    hub = make_hub(tmp_path, ci=ci)
    head = hub.push("fix/1")
    forge = hub.open()
    forge.ensure_check(head)
    runner, sleeper = pid_in(tmp_path / "runner"), pid_in(tmp_path / "sleeper")
    assert len(left_behind(hub, root)) == 1
    before = forge.stamp()
    kill(runner)
    assert forge.changed_since(before)
    assert forge.check(head).state is CheckState.PENDING
    (tmp_path / "second").touch()
    assert hub.checked(head) == "success"
    assert proc.find(sleeper) is None
    assert left_behind(hub, root) == []


def test_checkout_of_a_killed_runner_is_removed_by_the_next_of_any_commit(
    tmp_path: Path, root: Root
) -> None:
    ci = (
        f"test -e ok || {{ echo $$ >{tmp_path}/command; echo $PPID >{tmp_path}/runner; "
        "sleep 1000; }"
    )
    hub = make_hub(tmp_path, ci=ci)
    head = hub.push("fix/1")
    hub.open().ensure_check(head)
    kill(pid_in(tmp_path / "runner"))
    assert hub.checked(hub.push("fix/1", "ok")) == "success"
    assert proc.find(pid_in(tmp_path / "command")) is None
    assert left_behind(hub, root) == []


def test_runner_that_keeps_dying_becomes_a_failure(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci=f"echo $$ >>{tmp_path}/commands; kill -9 $PPID; sleep 1000")
    head = hub.push("fix/1")
    forge = hub.open()
    wait_for(lambda: forge.ensure_check(head).state != "pending", "a verdict")
    check = forge.check(head)
    assert check.state is CheckState.FAILURE
    assert f"died {MAX_STARTS} times" in check.step
    assert f"died {MAX_STARTS} times" in check.log
    commands = (tmp_path / "commands").read_text().split()
    assert len(commands) == MAX_STARTS
    assert not [pid for pid in commands if proc.find(int(pid))]


def test_runner_that_cannot_read_the_configuration_tells_it_in_the_log(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="true")
    head = hub.push("fix/1")
    forge = hub.open()
    hub.config.write_text("nonsense: [")
    wait_for(lambda: forge.ensure_check(head).state != "pending", "a verdict")
    assert "sm.yaml" in forge.check(head).log


def test_overdue_command_is_ended_with_all_that_it_started(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.adapters.forge.command.GRACE_S", 0.2)
    ci = f"trap '' TERM; echo begun; sleep 1000 & echo $! >{tmp_path}/sleeper; wait; wait"
    hub = make_hub(tmp_path, ci=ci)
    head = hub.push("fix/1")
    limits = Ci(command=ci, timeout_s=type(hub.project.ci.timeout_s)(0.5))
    verdict = hub.open().run_check(head, limits, work(hub, root))
    assert verdict is not None
    assert (verdict.state, verdict.code) == (CheckState.FAILURE, 124)
    assert log_of(hub, head) == "begun\nsm: stopped after 0.5 s, the project's CI timeout\n"
    assert proc.find(pid_in(tmp_path / "sleeper")) is None


def test_child_left_in_the_background_holds_nothing_up(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci=f"sleep 1000 & echo $! >{tmp_path}/sleeper; echo over")
    head = hub.push("fix/1")
    assert hub.checked(head) == "success"
    assert log_of(hub, head) == "over\n"
    assert proc.find(pid_in(tmp_path / "sleeper")) is None


def test_huge_log_is_kept_to_its_end(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="yes 'a line of many' | head -c 5000000; echo last; exit 1")
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    log = log_of(hub, head)
    assert len(log) <= LOG_LIMIT + 100
    assert log.startswith("sm: the beginning of this log was left out\na line of many\n")
    assert log.endswith("last\n")
    assert hub.open().check(head).log.endswith("last\n")


def test_check_can_be_run_again_by_hand(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=f"test -e {tmp_path}/mended")
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    (tmp_path / "mended").touch()
    assert hub.sm("ci-run", head).stdout == "success\n"
    assert hub.open().check(head).state is CheckState.SUCCESS
