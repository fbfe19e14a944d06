"""Services of plugins: real processes, which are killed here and started again."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import own_start, procfs
from sm.base import plugin
from sm.base.plugin import Plugin, Registry
from sm.config.load import load_any
from sm.config.schema import Config
from sm.helper import services
from sm.helper.services import Duty, Service, ServiceFiles, ServiceRun, count_failures
from sm.plugins.doctor.services import check_services
from sm.sessions.machine import Machine
from sm.setup import uninstall
from sm.setup.finding import Level
from sm.store import journal
from sm.store.events import Problem
from sm.store.paths import Root
from tests.helpers import wait_for


def listen(duty: Duty) -> None:
    """Write down each wake-up; the service fails or returns if it is told so."""
    heard = duty.folder / "heard"
    with heard.open("a") as log:
        print("began", os.getpid(), duty.config.notify_command, file=log, flush=True)
        while True:
            if duty.rest(60):
                print("woken", os.getpid(), file=log, flush=True)
            if (duty.folder / "fail").exists():
                raise OSError("no connection")
            if (duty.folder / "leave").exists():
                return


def is_wanted(config: Config) -> bool:
    if config.notify_command == "broken":
        raise OSError("no such thing")
    return config.notify_command != "unwanted"


EAR = Service(listen, is_wanted)
PLUGIN = Plugin(services={"ear": f"{__name__}:EAR"})
CHILDREN: list[int] = []
"""Processes that were started and may still live."""


@pytest.fixture
def files(root: Root) -> ServiceFiles:
    return ServiceFiles(root.plugins / "ears", "ear")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration in which the service is wanted."""
    return write(tmp_path, "true")


def write(folder: Path, command: str) -> Path:
    path = folder / "sm.yaml"
    path.with_suffix(".new").write_text(json.dumps({"notify_command": command}))
    return path.with_suffix(".new").rename(path)


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, root: Root, files: ServiceFiles) -> Iterator[None]:
    """The plugin is installed; what is started is a fork of the test, and ends with it."""
    monkeypatch.setattr(plugin, "_registry", Registry({"ears": f"{__name__}:PLUGIN"}.items))
    monkeypatch.setattr(services, "LOOK_S", 0.05)
    monkeypatch.setattr(services, "PAUSE_S", (0.1, 1.0))
    monkeypatch.chdir(root.path)  # or the next test would be where a service has gone

    def start(*words: str, log: Path, env: dict[str, str], **_: object) -> None:
        child = os.fork()
        if child:
            CHILDREN.append(child)
            return
        code = 1
        try:
            sys.stderr = log.open("a", buffering=1)
            assert words[2:] == ("service", "ear")
            services.be_service(root, words[3], read(Path(words[1])))
            code = 0
        finally:
            os._exit(code)

    monkeypatch.setattr(own_start, "start", start)
    yield
    services.end_service(files)
    while CHILDREN:
        os.waitpid(CHILDREN.pop(), 0)


def read(config: Path) -> Config:
    return load_any(config, os.environ, Path("/"))


def heard(files: ServiceFiles) -> list[list[str]]:
    path = files.folder / "heard"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def start(root: Root, config: Path, files: ServiceFiles) -> int:
    """Have it started, as a tick does; the process that listens."""
    known = len(heard(files))

    def listens() -> bool:
        for child in [one for one in CHILDREN if os.waitpid(one, os.WNOHANG)[0]]:
            CHILDREN.remove(child)
        if not CHILDREN:  # a second one could begin when the first one has ended
            services.ensure_services(root, read(config))  # which waits until the pause is over
        return len(heard(files)) > known and files.wake.exists()

    wait_for(listens, "the service")
    return int(heard(files)[-1][1])


def test_a_wanted_service_is_started_once_and_woken(
    root: Root, config: Path, files: ServiceFiles
) -> None:
    assert not services.wake_service(root, "ear")
    pid = start(root, config, files)
    services.ensure_services(root, read(config))
    services.be_service(root, "ear", read(config))  # another one finds it, and ends
    run = files.read()
    assert run
    assert (run.pid, run.config, run.failures) == (pid, str(config), 0)
    assert services.wake_service(root, "ear")
    wait_for(lambda: heard(files)[1:] == [["woken", str(pid)]], "the wake-up")
    [found] = check_services(root, read(config))
    assert found.level is Level.OK
    assert found.what.startswith("service 'ear' runs, since ")


def test_one_that_is_killed_is_started_again_after_a_pause_that_grows(
    root: Root, config: Path, files: ServiceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start(root, config, files)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not files.is_running(), "its end")
    monkeypatch.setattr(services, "PAUSE_S", (500.0, 1000.0))
    services.ensure_services(root, read(config))
    assert not files.is_running(), "the pause is not over"
    [found] = check_services(root, read(config))
    assert found.level is Level.WARN
    assert found.what == "service 'ear' does not run: it was killed"
    assert found.advice.startswith("it is started again in ")
    monkeypatch.setattr(services, "PAUSE_S", (0.01, 0.02))
    second = start(root, config, files)
    assert second != first
    run = files.read()
    assert run
    assert run.failures == 1


def test_each_pause_is_twice_as_long_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "PAUSE_S", (2.0, 600.0))
    run = ServiceRun(1, 1, 1000.0, "")
    waits = [structs.replace(run, failures=count).next_at - 1000.0 for count in (0, 1, 2, 20, 900)]
    assert waits == [2.0, 4.0, 8.0, 600.0, 600.0]
    assert count_failures(None, 1000.0) == 0
    assert count_failures(structs.replace(run, failures=3), 1001.0) == 4
    assert count_failures(structs.replace(run, failures=3), 1001.0 + services.STEADY_S) == 0
    done = structs.replace(run, failures=3, ended_at=1001.0)
    assert count_failures(done, 1002.0) == 0
    assert count_failures(structs.replace(done, reason="x"), 1002.0) == 4


def test_one_that_fails_says_so_in_its_log_and_to_the_doctor(
    root: Root, config: Path, files: ServiceFiles
) -> None:
    start(root, config, files)
    (files.folder / "fail").touch()
    services.wake_service(root, "ear")
    wait_for(lambda: not files.is_running(), "its end")
    assert "OSError: no connection" in files.log.read_text()
    [found] = check_services(root, read(config))
    assert found.what == "service 'ear' does not run: OSError: no connection"
    assert str(files.log) in found.advice
    assert not files.wake.exists()


def test_one_that_returns_has_not_failed(root: Root, config: Path, files: ServiceFiles) -> None:
    pid = start(root, config, files)
    (files.folder / "leave").touch()
    services.wake_service(root, "ear")
    wait_for(lambda: not files.is_running(), "its end")
    run = files.read()
    assert run
    assert run.is_done
    (files.folder / "leave").unlink()
    assert start(root, config, files) != pid


def test_a_change_of_the_configuration_begins_it_anew_and_one_that_drops_it_ends_it(
    root: Root, config: Path, files: ServiceFiles, tmp_path: Path
) -> None:
    pid = start(root, config, files)
    write(tmp_path, "other")
    wait_for(lambda: ["began", str(pid), "other"] in heard(files), "the new configuration")
    config.with_suffix(".new").write_text("{")
    config.with_suffix(".new").rename(config)  # somebody is at it
    time.sleep(0.2)  # four looks: nothing tells of one that changes nothing
    assert files.is_running()
    write(tmp_path, "unwanted")
    wait_for(lambda: not files.is_running(), "its end")
    services.ensure_services(root, read(config))
    assert not files.is_running()
    assert [*check_services(root, read(config))] == []


def test_a_tick_ends_what_is_wanted_no_more_but_not_what_another_configuration_wants(
    root: Root, config: Path, files: ServiceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LOOK_S", 60.0)
    pid = start(root, config, files)
    (tmp_path / "elsewhere").mkdir()
    services.ensure_services(root, read(write(tmp_path / "elsewhere", "unwanted")))
    assert files.is_running()
    write(tmp_path, "unwanted")
    services.ensure_services(root, read(config))
    assert not files.is_running()
    wait_for(lambda: procfs.find(pid) is None, "the end of its process")


def test_one_of_a_plugin_that_is_gone_is_ended(
    root: Root, config: Path, files: ServiceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(root, config, files)
    monkeypatch.setattr(plugin, "_registry", Registry(list))
    [found] = check_services(root, read(config))
    assert found.what == "service 'ear' runs, and no plugin has it any more"
    services.ensure_services(root, read(config))
    assert not files.is_running()


def test_one_whose_files_are_taken_away_ends(root: Root, config: Path, files: ServiceFiles) -> None:
    start(root, config, files)
    files.wake.unlink()
    wait_for(lambda: not files.is_running(), "its end")


def test_a_plugin_that_cannot_say_what_it_wants_is_named_once(
    root: Root, files: ServiceFiles, tmp_path: Path
) -> None:
    config = read(write(tmp_path, "broken"))
    root.private.mkdir(mode=0o700)
    for _ in range(2):
        services.ensure_services(root, config)
    [said] = [one.text for one in journal.read(root.journal) if isinstance(one, Problem)]
    assert said == "plugin 'ears' could not start its service: OSError: no such thing"
    [found] = check_services(root, config)
    assert found.what == "service 'ear' cannot be judged: OSError: no such thing"


def test_a_server_looks_after_them_too(root: Root, config: Path, files: ServiceFiles) -> None:
    over = threading.Event()
    keeping = threading.Thread(target=services.keep_services, args=(root, config, over))
    keeping.start()
    wait_for(lambda: files.is_running() and files.wake.exists(), "the service")
    over.set()
    keeping.join()


def test_an_uninstall_ends_them(
    root: Root, config: Path, files: ServiceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LOOK_S", 60.0)
    start(root, config, files)
    found = uninstall.list_parts(Machine(read(config), config), None, os.environ)
    [part] = [one for one in found if one.what == "service: ear"]
    part.remove()
    assert not files.is_running()
