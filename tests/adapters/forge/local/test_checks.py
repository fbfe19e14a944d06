from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs
from sm.adapters.forge.errors import AtWorkError, ChecksNotPassedError, NotFoundError
from sm.adapters.forge.local.check_folder import LOG_LIMIT
from sm.adapters.forge.local.checks import MAX_STARTS
from sm.adapters.forge.local.runner import count_oom_kills, killer
from sm.adapters.forge.model import CheckState
from sm.base.errors import StateError
from sm.config.load import load
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
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
    wait_for(lambda: procfs.find(pid) is None, "the end of the runner")


def test_without_a_command_there_is_no_check(tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    head = hub.push("fix/1")
    assert hub.open().checks.ensure(head).state is CheckState.NONE
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
    assert hub.open().stamp() != before


def test_failure_names_its_step_and_has_the_end_of_the_log(tmp_path: Path, root: Root) -> None:
    hub = make_hub(
        tmp_path, ci="echo step: lint; seq 500; echo 'step: unit tests'; echo no; exit 3"
    )
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    check = hub.open().checks.read(head)
    assert check.step == "unit tests"
    assert check.log.splitlines()[-2:] == ["step: unit tests", "no"]
    assert len(check.log.splitlines()) == hub.project.ci.log_lines
    assert check.url == (hub.folder / "checks" / head / "log").as_uri()
    assert left_behind(hub, root) == []


def test_failure_without_steps_is_named_by_its_command(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="exit 1")
    head = hub.push("fix/1")
    hub.checked(head)
    assert hub.open().checks.read(head).step.strip() == "exit 1"


def test_commit_that_is_not_there_says_nothing_of_itself(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci="true")
    assert hub.checked("f" * 40) == "broken"
    assert "could not be checked out" in hub.open().checks.read("f" * 40).step
    assert left_behind(hub, root) == []
    with pytest.raises(NotFoundError, match="is no commit"):
        hub.open().checks.read("../x")


def test_many_observers_start_one_runner(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=f"echo $PPID >>{tmp_path}/runners; cat {tmp_path}/go")
    os.mkfifo(tmp_path / "go")
    head = hub.push("fix/1")
    context = multiprocessing.get_context("fork")
    observers = [context.Process(target=lambda: hub.open().checks.ensure(head)) for _ in range(8)]
    for observer in observers:
        observer.start()
    for observer in observers:
        observer.join(HANG_S)
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
    forge.checks.ensure(head)
    runner, sleeper = pid_in(tmp_path / "runner"), pid_in(tmp_path / "sleeper")
    assert len(left_behind(hub, root)) == 1
    before = forge.stamp()
    kill(runner)
    assert forge.stamp() != before
    assert forge.checks.read(head).state is CheckState.PENDING
    (tmp_path / "second").touch()
    assert hub.checked(head) == "success"
    assert procfs.find(sleeper) is None
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
    hub.open().checks.ensure(head)
    kill(pid_in(tmp_path / "runner"))
    assert hub.checked(hub.push("fix/1", "ok")) == "success"
    assert procfs.find(pid_in(tmp_path / "command")) is None
    assert left_behind(hub, root) == []


def test_runner_that_keeps_dying_says_nothing_of_the_commit(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci=f"echo $$ >>{tmp_path}/commands; kill -9 $PPID; sleep 1000")
    head = hub.push("fix/1")
    forge = hub.open()
    wait_for(lambda: forge.checks.ensure(head).state != "pending", "a verdict")
    check = forge.checks.read(head)
    assert check.state is CheckState.BROKEN
    assert f"died {MAX_STARTS} times" in check.step
    assert f"died {MAX_STARTS} times" in check.log
    commands = (tmp_path / "commands").read_text().split()
    assert len(commands) == MAX_STARTS
    wait_for(lambda: not [pid for pid in commands if procfs.find(int(pid))], "their end")


def test_runner_that_cannot_read_the_configuration_tells_it_in_the_log(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="true")
    head = hub.push("fix/1")
    forge = hub.open()
    hub.config.write_text("nonsense: [")
    wait_for(lambda: forge.checks.ensure(head).state != "pending", "a verdict")
    assert "sm.yaml" in forge.checks.read(head).log


def test_overdue_command_is_ended_with_all_that_it_started(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.adapters.shell_command.GRACE_S", 0.2)
    ci = f"trap '' TERM; echo begun; sleep 1000 & echo $! >{tmp_path}/sleeper; wait; wait"
    hub = make_hub(tmp_path, ci=ci)
    head = hub.push("fix/1")
    limits = structs.replace(hub.project.ci, timeout_s=type(hub.project.ci.timeout_s)(0.5))
    verdict = hub.open().run_check(head, limits, work(hub, root))
    assert verdict is not None
    assert (verdict.state, verdict.code) == (CheckState.PENDING, 124)
    check = hub.open().checks.read(head)
    assert (check.state, check.overdue, check.step) == ("pending", True, "no result within 0.5 s")
    assert hub.open().checks.ensure(head).overdue, "and it is not run again by itself"
    assert log_of(hub, head) == "begun\nsm: stopped after 0.5 s, the project's CI timeout\n"
    assert procfs.find(pid_in(tmp_path / "sleeper")) is None


def test_child_left_in_the_background_holds_nothing_up(tmp_path: Path, root: Root) -> None:
    hub = make_hub(tmp_path, ci=f"sleep 1000 & echo $! >{tmp_path}/sleeper; echo over")
    head = hub.push("fix/1")
    assert hub.checked(head) == "success"
    assert log_of(hub, head) == "over\n"
    assert procfs.find(pid_in(tmp_path / "sleeper")) is None


def test_huge_log_is_kept_to_its_end(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="yes 'a line of many' | head -c 5000000; echo last; exit 1")
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    log = log_of(hub, head)
    assert len(log) <= LOG_LIMIT + 100
    assert log.startswith("sm: the beginning of this log was left out\na line of many\n")
    assert log.endswith("last\n")
    assert hub.open().checks.read(head).log.endswith("last\n")


def test_check_can_be_run_again_by_hand(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=f"test -e {tmp_path}/mended")
    head = hub.push("fix/1")
    assert hub.checked(head) == "failure"
    (tmp_path / "mended").touch()
    assert hub.sm("ci-run", head).stdout == "success\n"
    assert hub.open().checks.read(head).state is CheckState.SUCCESS


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


@pytest.mark.parametrize(
    ("command", "by"),
    [
        ("kill -9 $$", "SIGKILL"),
        ("kill -TERM $$", "SIGTERM"),
        ("kill -HUP $$", "SIGHUP"),
        ("sh -c 'kill -9 $$'; exit $?", "SIGKILL"),
        ("exit 143", "SIGTERM"),
    ],
)
def test_command_that_is_killed_is_run_once_more_and_says_nothing_of_the_commit(
    tmp_path: Path, root: Root, command: str, by: str
) -> None:
    """It was a failure of that commit for ever, and the agent was to mend it."""
    hub = make_hub(tmp_path, ci=f"echo run >>{tmp_path}/runs; {command}")
    head = hub.push("fix/1")
    assert hub.checked(head) == "broken"
    check = hub.open().checks.read(head)
    assert check.step == f"CI itself: its command was killed by {by}"
    assert check.log.count("that says nothing of the commit: run once more") == 1
    assert runs(tmp_path) == 2
    hub.open().checks.ensure(head)
    assert left_behind(hub, root) == []


def test_command_that_is_killed_once_passes_at_the_second_try(tmp_path: Path) -> None:
    first = f"test -e {tmp_path}/runs || {{ echo run >{tmp_path}/runs; kill -9 $$; }}"
    hub = make_hub(tmp_path, ci=f"{first}; echo run >>{tmp_path}/runs")
    assert hub.checked(hub.push("fix/1")) == "success"
    assert runs(tmp_path) == 2


@pytest.mark.parametrize(
    "command", ["kill -SEGV $$", "kill -ABRT $$", "exit 139", "exit 134", "exit 130", "exit 129"]
)
def test_command_that_ends_itself_has_failed(tmp_path: Path, command: str) -> None:
    """A segmentation fault of a test is the code's doing."""
    hub = make_hub(tmp_path, ci=f"echo run >>{tmp_path}/runs; {command}")
    assert hub.checked(hub.push("fix/1")) == "failure"
    assert runs(tmp_path) == 1


def test_failure_while_the_kernel_has_killed_for_want_of_memory_is_not_the_codes() -> None:
    assert killer(1, oom_kills=1) == "the kernel, as memory ran out"
    assert killer(1, oom_kills=0) == ""
    assert killer(0, oom_kills=1) == ""


@pytest.mark.parametrize(
    ("group", "file", "expected"),
    [
        ("0::/user.slice/x.scope\n", "user.slice/x.scope/memory.events", 3),
        ("1:name=systemd:/\n0::/\n", "memory.events", 3),
        ("4:memory:/x\n", "x/memory.events", 0),
        ("0::/elsewhere\n", "x/memory.events", 0),
    ],
)
def test_kills_of_the_kernel_are_counted_in_our_own_control_group(
    tmp_path: Path, group: str, file: str, expected: int
) -> None:
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    own.write_text(group)
    (groups / file).parent.mkdir(parents=True)
    (groups / file).write_text("low 0\noom 7\noom_kill 3\noom_group_kill 1\n")
    assert count_oom_kills(own, groups) == expected


def test_kills_are_counted_on_this_machine_or_none_are() -> None:
    assert count_oom_kills() >= 0
    assert count_oom_kills(Path("/nowhere"), Path("/nowhere")) == 0


# By hand


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Hub, str]:
    """A project whose CI has failed on pull request 2, which is for issue 1; and the commit."""
    hub = make_hub(tmp_path, ci=f"test -e {tmp_path}/mended")
    forge = hub.open()
    forge.issues.add("Mend it", author="ada")
    head = hub.push("fix/1")
    assert forge.pulls.open("fix/1", "main", "work", author="ada").number == 2
    assert hub.checked(head) == "failure"
    (tmp_path / "mended").touch()
    return hub, head


@pytest.mark.parametrize("words", [("harb", "1"), ("harb#1",), ("harb", "2"), ("harb#2",)])
def test_ci_is_run_again_on_an_issue_or_its_pull_request(
    opened: tuple[Hub, str], words: tuple[str, ...]
) -> None:
    hub, head = opened
    before = hub.open().stamp()
    done = hub.sm("ci", "rerun", *words)
    assert done.stdout == f"CI runs again on {head[:12]}: see sm status\n", done.stderr
    assert hub.open().stamp() != before
    assert hub.checked(head) == "success"
    assert hub.open().pulls.read(2).check.state is CheckState.SUCCESS


def test_runners_that_have_died_count_for_nothing_when_it_is_run_again(tmp_path: Path) -> None:
    mended = f"test -e {tmp_path}/mended && exit 0"
    hub = make_hub(tmp_path, ci=f"{mended}; kill -9 $PPID; sleep 1000")
    head, forge = hub.push("fix/1"), hub.open()
    wait_for(lambda: forge.checks.ensure(head).state != "pending", "a verdict", 60)
    (tmp_path / "mended").touch()
    forge.checks.rerun(head)
    assert hub.checked(head) == "success"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("harb", "3"), "there is no issue or pull request 3"),
        (("harb",), "expected a project and a number, such as 'harb 7' or 'harb#7'"),
        (("harb", "1", "2"), "expected a project and a number"),
        (("harbor", "1"), "did you mean 'harb'?"),
        (("harb", "x"), "'x' is no issue number"),
    ],
)
def test_what_cannot_be_run_again_is_said(
    opened: tuple[Hub, str], words: tuple[str, ...], said: str
) -> None:
    done = opened[0].sm("ci", "rerun", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_ci_at_work_is_not_started_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    hub = make_hub(tmp_path, ci=f"cat {tmp_path}/go")
    head, forge = hub.push("fix/1"), hub.open()
    forge.checks.ensure(head)
    with pytest.raises(AtWorkError, match="CI is at work on"):
        forge.checks.rerun(head)
    (tmp_path / "go").write_text("go\n")
    assert hub.checked(head) == "success"


def test_ci_that_has_its_result_and_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    """A person who was told the result, and asked for another run at once, was refused."""
    hub = make_hub(tmp_path, ci=f"echo run >>{tmp_path}/runs")
    head = hub.push("fix/1")
    assert hub.checked(head) == "success"
    with ThreadPoolExecutor() as pool:
        with lock.hold(hub.open().checks.folder(head).lock):
            again = pool.submit(hub.open().checks.rerun, head)
            assert not wait([again], timeout=0.3).done
        again.result()
    assert hub.checked(head) == "success"
    assert runs(tmp_path) == 2


def test_merged_pull_request_and_issue_without_a_branch_have_nothing_to_run(
    opened: tuple[Hub, str],
) -> None:
    hub, head = opened
    hub.sm("ci", "rerun", "harb", "2")
    assert hub.checked(head) == "success"
    hub.open().pulls.merge(2, author="ada")
    assert "pull request 2 is merged" in hub.sm("ci", "rerun", "harb", "1").stderr
    hub.open().issues.add("Another", author="ada")
    assert "issue 3 has no branch 'fix/3'" in hub.sm("ci", "rerun", "harb", "3").stderr


def test_broken_check_is_not_merged_and_says_what_to_do(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="kill -9 $$")
    head, forge = hub.push("fix/1"), hub.open()
    pull = forge.pulls.open("fix/1", "main", "work", author="ada")
    assert hub.checked(head) == "broken"
    with pytest.raises(ChecksNotPassedError, match=rf"sm ci rerun PROJECT {pull.number}"):
        forge.pulls.merge(pull.number, author="ada")


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
PEM = r"-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEAabc\n-----END PRIVATE KEY-----\n"


def test_secrets_are_gone_from_a_log_before_anybody_can_read_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    say = f"printf 'step: unit {TOKEN}\\nDEPLOY_KEY=hunter22 x\\n{PEM}half {TOKEN}'"
    hub = make_hub(tmp_path, ci=f"{say}; read -r _ <{gate}; exit 3")
    head = hub.push("fix/1")
    hub.open().checks.ensure(head)
    wait_for(lambda: "step: unit [redacted]" in log_of(hub, head), "its first line")
    assert TOKEN not in log_of(hub, head)
    gate.write_text("go\n")
    wait_for(lambda: hub.open().checks.read(head).state is CheckState.FAILURE, "the verdict")
    check = hub.open().checks.read(head)
    assert check.step == "unit [redacted]"
    for words in (check.log, log_of(hub, head)):
        assert not any(secret in words for secret in (TOKEN, "hunter22", "MIIEp"))
        assert "DEPLOY_KEY=[redacted] x" in words
        assert "half [redacted]" in words


def _with_ci(hub: Hub, command: str) -> Hub:
    """The same project with another CI command, as its configuration has it then."""
    text = hub.config.read_text()
    old = hub.project.ci.command or ""
    assert old in text
    hub.config.write_text(text.replace(old, command))
    config = load(hub.config, {}, hub.config.parent)
    return Hub(hub.config, config.projects[0], hub.repository)


def test_another_command_makes_old_verdicts_void(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="exit 3")
    head = hub.push("fix/1")
    hub.open().pulls.open("fix/1", "main", "work", author="ada")
    assert hub.checked(head) == "failure"
    changed = _with_ci(hub, "exit 0")
    assert changed.open().pulls.read(1).check.state is CheckState.PENDING
    assert _looked_at(changed, head) is CheckState.SUCCESS
    assert _looked_at(_with_ci(changed, "exit 4"), head) is CheckState.FAILURE


def _looked_at(hub: Hub, head: str) -> CheckState:
    """What CI says when it is looked at again and again: the last runner may just be ending."""
    forge = hub.open()
    wait_for(lambda: forge.checks.ensure(head).state is not CheckState.PENDING, "the end of CI")
    return forge.checks.read(head).state


def test_what_was_merged_keeps_what_ci_said_of_it(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="exit 0")
    head = hub.push("fix/1")
    hub.open().pulls.open("fix/1", "main", "work", author="ada")
    assert hub.checked(head) == "success"
    hub.open().pulls.merge(1, author="ada")
    assert _with_ci(hub, "exit 1").open().pulls.read(1).check.state is CheckState.SUCCESS


def test_runners_that_died_of_another_command_count_for_nothing(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="kill -9 $PPID; sleep 1000")
    head, forge = hub.push("fix/1"), hub.open()
    wait_for(lambda: forge.checks.ensure(head).state != "pending", "a verdict")
    assert forge.checks.read(head).state is CheckState.BROKEN
    assert _looked_at(_with_ci(hub, "exit 0"), head) is CheckState.SUCCESS


def test_a_verdict_of_before_commands_were_kept_holds(opened: tuple[Hub, str]) -> None:
    hub, head = opened
    result = hub.folder / "checks" / head / "result.json"
    verdict = json.loads(result.read_text())
    assert "test -e" not in verdict.pop("of")
    result.write_text(json.dumps(verdict))
    assert hub.checked(head) == "failure"


def test_what_ci_said_of_old_commits_is_removed(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.adapters.forge.local.checks.KEPT", 1)
    hub = make_hub(tmp_path, ci="true")
    forge = hub.open()
    heads = [hub.push(branch) for branch in ("fix/1", "fix/2", "fix/3")]
    for at, head in enumerate(heads):
        assert hub.checked(head) == "success"
        folder = hub.folder / "checks" / head
        os.utime(folder, (at, at))
    forge.pulls.open("fix/1", "main", "T", author="sm")
    forge.observe()
    kept = {path.name for path in (hub.folder / "checks").iterdir()}
    assert kept == {heads[0], heads[2]}, "the open one's, and the last"
    forge.pulls.close(1)
    forge.observe()
    assert {path.name for path in (hub.folder / "checks").iterdir()} == {heads[2]}
    assert forge.pulls.read(1).check.state is CheckState.NONE


def test_a_file_in_place_of_the_checks_is_named(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="true")
    head = hub.push("fix/1")
    shutil.rmtree(hub.folder / "checks", ignore_errors=True)
    (hub.folder / "checks").write_text("")
    forge = hub.open()
    for act in (forge.checks.rerun, lambda head: forge.run_check(head, hub.project.ci, tmp_path)):
        with pytest.raises(StateError, match="cannot use"):
            act(head)


def test_show_prints_the_failing_log(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci="echo boom zebra; exit 3")
    head = hub.push("fix/1")
    hub.open().pulls.open("fix/1", "main", "work", author="ada")
    assert hub.checked(head) == "failure"
    assert "\nboom zebra\n" in hub.sm("pr", "show", "1").stdout
