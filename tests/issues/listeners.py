"""Listeners for `test_ticks.py`. Run it to tell them of a tick, as `sm poll` does it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sm.base import plugin
from sm.base.plugin import Plugin
from sm.config.schema import Config
from sm.issues.look.tick_record import Clock, Polled
from sm.issues.ticks import Listener, Tick, tell_listeners
from sm.store.files import append_line
from sm.store.paths import Root


def write(root: Root, tick: Tick) -> None:
    append_line(root.path / "heard", " ".join(tick.projects).encode())


def linger(root: Root, tick: Tick) -> None:
    write(root, tick)
    while (root.path / "slow").exists():
        time.sleep(0.01)


def fail(root: Root, tick: Tick) -> None:
    raise ValueError("no paper")


def always(tick: Tick) -> bool:
    return True


def never(tick: Tick) -> bool:
    return False


LINGERING = Listener(linger, always)
FAILING = Listener(fail, always)
UNWILLING = Listener(write, never)
CONFUSED = Listener(write, fail)  # type: ignore[arg-type]  # it takes two arguments
PLUGIN = Plugin(
    ticks={name: f"{__name__}:{name.upper()}" for name in ("lingering", "failing", "unwilling")}
)
BROKEN = Plugin(ticks={"confused": f"{__name__}:CONFUSED", "absent": "no_such_module:LISTENER"})


def main(root: Root, *plugins: str) -> None:
    plugin.use(lambda: [(name, f"{__name__}:{name}") for name in plugins])
    config = Config(state_root=root.path, projects=(), source=root.path)
    tell_listeners(root, Tick(config, {"shop": Polled(Clock.read())}))


if __name__ == "__main__":
    main(Root(Path(sys.argv[1])), *sys.argv[2:])
