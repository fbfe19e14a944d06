"""Services: parts of plugins that live as a process of their own, such as a long-lived connection.

A plugin has a `Service` among its parts of the kind `services`. `sm service NAME` is its process, a
helper like others (`process.py`): one at a time for a state root. Each tick of dev-poll, and `sm
serve` every few seconds, starts what is wanted and does not run, and ends what is wanted no more.
One that dies is started again, after a pause that grows as long as it dies soon.

`sm pause` is for agents: services go on. `sm uninstall` ends them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from msgspec import Struct, structs

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.base import plugin
from sm.base.clock import is_ahead, wait_until
from sm.base.errors import SmError, StateError, UsageError
from sm.base.output import say_text
from sm.base.plugin import Part
from sm.config.load import list_watched, load_any
from sm.config.schema import Config
from sm.config.shapes import list_variables
from sm.helper.plugin_call import note_failure
from sm.helper.process import Helper
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.fifo import WakeUp, listen_anew, wake_reader
from sm.store.files import discard, ensure_private_dir, write_json
from sm.store.paths import Root, check_name

WHAT = "could not start its service"
PAUSE_S = (2.0, 600.0)
"""Seconds between two starts, at least: twice as long after each run that has died, up to these."""
STEADY_S = 3600.0
"""A run of that many seconds was no failed start, whatever it has died of."""
LOOK_S = 2.0
"""Seconds between a service's looks at its configuration and at its state root."""
KEEP_S = 5.0
"""Seconds between the looks of `sm serve` at all services."""
GRACE_S = 5.0
"""Seconds that a service has for its end, before it is killed."""


class Duty(NamedTuple):
    """What a service works with. `folder` is the plugin's own, for what it keeps."""

    root: Root
    config: Config
    folder: Path
    wake: int
    """A descriptor that can be read once the service is woken: for `select` beside a connection."""

    def rest(self, longest_s: float) -> bool:
        """Wait for so many seconds at most; return whether the service was woken."""
        if not select.select([self.wake], [], [], longest_s)[0]:
            return False
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self.wake, 4096)) == 4096:
                pass
        return True


class Service(NamedTuple):
    """Service, in a plugin.

    `wants` says whether the configuration has anything for it to do; it is asked in each tick, so
    its module imports little. `run` does that until it is told to end: then SystemExit is raised in
    it, wherever it is, and it has `GRACE_S`. When the configuration has changed, it is told so and
    begins again. If it returns or raises, it is started again.
    """

    run: Callable[[Duty], object]
    wants: Callable[[Config], bool]


class ServiceRun(Struct, frozen=True, omit_defaults=True):
    """The last run of a service: its process, when it began, and by which configuration.

    `failures` counts the runs before it that have died soon. `ended_at` is 0 for one that runs, or
    has died without a word, and `reason` what it has died of. Times are seconds since 1970.
    """

    pid: int
    started: int
    began_at: float
    config: str
    failures: int = 0
    ended_at: float = 0.0
    reason: str = ""

    @property
    def process(self) -> Process:
        """Its process."""
        return Process(self.pid, self.started)

    @property
    def is_done(self) -> bool:
        """Whether it has ended as it should."""
        return bool(self.ended_at) and not self.reason

    @property
    def next_at(self) -> float:
        """When the next run may begin, if this one is over."""
        shortest, longest = PAUSE_S
        return self.began_at + min(shortest * 2.0 ** min(self.failures, 16), longest)


def count_failures(last: ServiceRun | None, now: float) -> int:
    """Return how many runs, one after the other, have died soon before one that begins now."""
    if last is None or last.is_done or now - last.began_at > STEADY_S:
        return 0
    return last.failures + 1


class ServiceFiles(NamedTuple):
    """The files of a service in the folder of its plugin."""

    folder: Path
    name: str

    @property
    def lock(self) -> Path:
        """Held as long as it lives."""
        return self.folder / f"{self.name}.service.lock"

    @property
    def wake(self) -> Path:
        """FIFO: a byte in it wakes the service."""
        return self.folder / f"{self.name}.service.wake"

    @property
    def log(self) -> Path:
        """What the service has said, and its faults."""
        return self.folder / f"{self.name}.service.log"

    @property
    def record(self) -> Path:
        """Its last run."""
        return self.folder / f"{self.name}.service.json"

    def is_running(self) -> bool:
        """Whether it lives."""
        return lock.is_held(self.lock)

    def read(self) -> ServiceRun | None:
        """Return its last run; None if it never ran."""
        return read_rebuildable(self.record, ServiceRun)


class ServiceState(NamedTuple):
    """A service as it is now; `problem` says why it is not known whether it is wanted."""

    part: Part
    files: ServiceFiles
    is_wanted: bool
    problem: str = ""


def find_files(root: Root, part: Part) -> ServiceFiles:
    """Return where a service has its files."""
    folder = root.plugins / check_name(part.plugin, "plugin")
    return ServiceFiles(folder, check_name(part.name, "service"))


def list_services(root: Root, config: Config) -> Iterator[ServiceState]:
    """Yield all services of the plugins, wanted or not."""
    for part in plugin.list_parts("services").values():
        files = find_files(root, part)
        try:
            wanted, problem = bool(plugin.load_entry(part).wants(config)), ""
        except Exception as error:  # whatever is wrong with a plugin
            wanted, problem = False, plugin.describe(error)
        yield ServiceState(part, files, wanted, problem)


def list_running(root: Root) -> list[ServiceFiles]:
    """Return the services that run, also those of plugins that are not installed any more."""
    found = []
    for record in sorted(root.plugins.glob("*/*.service.json")):
        files = ServiceFiles(record.parent, record.name.removesuffix(".service.json"))
        if files.is_running():
            found.append(files)
    return found


def wake_service(root: Root, name: str) -> bool:
    """Wake a service; return whether it heard that. What it is to find is on disk before."""
    part = plugin.list_parts("services").get(name)
    return part is not None and wake_reader(find_files(root, part).wake) is WakeUp.HEARD


def ensure_services(root: Root, config: Config) -> None:
    """Start each service that is wanted and does not run, and end each that is wanted no more.

    One that another configuration has started stays, as far as a plugin has it still.
    """
    known = []
    for one in list_services(root, config):
        known.append(one.files)
        try:
            _ensure(root, one, config)
        except Exception as error:  # a broken plugin changes nothing about the tick
            note_failure(root, one.part, WHAT, error)
    for files in list_running(root):
        if files not in known:
            end_service(files)


def _ensure(root: Root, one: ServiceState, config: Config) -> None:
    if one.problem:
        raise SmError(one.problem)
    files, last = one.files, one.files.read()
    if files.is_running():
        if not one.is_wanted and last and last.config == str(config.source):
            end_service(files)
    elif one.is_wanted and not (last and is_ahead(last.next_at, PAUSE_S[1])):
        ensure_private_dir(root.private)
        ensure_private_dir(files.folder)
        _make_helper(root, files, config).start()


def _make_helper(root: Root, files: ServiceFiles, config: Config) -> Helper:
    named = [name for project in config.projects for name in list_variables(project)]
    return Helper(
        ("--config", str(config.source), "service", files.name),
        files.lock,
        files.log,
        (*list_variables(config), *named),
        {"SM_STATE_ROOT": str(root.path)},
    )


def end_service(files: ServiceFiles) -> None:
    """End a service that runs: politely, then by force."""
    last = files.read()
    if last is None or not files.is_running():
        return
    for number, within_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        procfs.send([last.process], number)
        if wait_until(lambda: not files.is_running(), within_s, 0.02):
            return


def keep_services(root: Root, source: Path, over: threading.Event) -> None:
    """Look after all services until the event: for a server, beside which no dev-poll may run."""
    while not over.is_set():
        with contextlib.suppress(SmError):  # a configuration that cannot be read changes nothing
            ensure_services(root, load_any(source, os.environ, Path("/")))
        over.wait(KEEP_S)


# The process of a service


def be_service(root: Root, name: str, config: Config) -> None:
    """Be the service of that name, unless it runs already or is not wanted.

    Raises:
        UsageError: no plugin has it, or it cannot be imported.

    """
    part = plugin.list_parts("services").get(name)
    if part is None:
        raise UsageError(f"no plugin has '{name}' among its services: see docs/PLUGINS.md")
    service: Service = plugin.load_entry(part)
    files = find_files(root, part)
    ensure_private_dir(root.private)
    ensure_private_dir(files.folder)
    os.chdir("/")  # or no folder that it was started in could be unmounted
    with _make_helper(root, files, config).take_place() as is_ours:
        current: Config | None = config
        while is_ours and current and service.wants(current):
            current = _run(root, service, files, current)


def _run(root: Root, service: Service, files: ServiceFiles, config: Config) -> Config | None:
    """Run once; return the configuration to go on with, None if it is to end."""
    now, own = time.time(), procfs.find(os.getpid())
    failures = count_failures(files.read(), now)
    started = own.started if own else 0
    run = ServiceRun(os.getpid(), started, now, str(config.source), failures)
    write_json(files.record, run)
    wake = listen_anew(files.wake)
    watch = _Watch(files, config)
    signal.signal(signal.SIGTERM, _end)
    watch.start()
    reason = ""
    try:
        service.run(Duty(root, config, files.folder, wake))
    except SystemExit:
        pass
    except Exception as error:  # whatever is wrong with a plugin, its next run may do better
        reason = plugin.describe(error)
        say_text(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {traceback.format_exc()}", err=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what it had to be told, it was
        watch.over.set()
        os.close(wake)
        with contextlib.suppress(OSError, StateError):  # the state root may be gone
            discard(files.wake)
            write_json(files.record, structs.replace(run, ended_at=time.time(), reason=reason))
    if reason:
        raise SystemExit(1)
    watch.join()
    return watch.changed


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)


class _Watch(threading.Thread):
    """Ends the run when its state root is gone, or its configuration has changed."""

    def __init__(self, files: ServiceFiles, config: Config) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.changed: Config | None = None
        self._files, self._config = files, config

    def run(self) -> None:
        """Look until the run is over."""
        stamps = _read_stamps(self._config.source)
        while not self.over.wait(LOOK_S):
            if not self._files.wake.exists():
                self._end()
            elif (now := _read_stamps(self._config.source)) != stamps:
                stamps = now
                if (found := self._load()) and found != self._config:
                    self.changed = found
                    self._end()

    def _load(self) -> Config | None:
        try:
            return load_any(self._config.source, os.environ, Path("/"))
        except SmError:  # somebody is at it: what was before holds
            return None

    def _end(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        if not self.over.wait(GRACE_S):
            os._exit(1)


def _read_stamps(source: Path) -> list[tuple[str, int, int]]:
    found = []
    for path in list_watched(source):
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.append((str(path), stat.st_mtime_ns, stat.st_ino))
    return found
