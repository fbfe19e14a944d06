"""Helper processes: an `sm` that works beside commands, one at a time, started by who needs it.

| helper | seen by | woken by | ends |
|---|---|---|---|
| `sm notifier` | its FIFO, and the time in `due` | its FIFO | when nothing is due soon |
| `sm host link` | its socket | a connection | when no host was asked for a while |
| `sm host look` | its lock | – | when it has asked all jobs once |
| `sm host carry` | its lock | – | when it has brought all jobs their share |
| `sm service` | its lock | its FIFO | when the configuration does not want it any more |

All of them have this in common. A helper holds a lock as long as it lives, and one that finds the
lock held ends at once, so whoever misses it may start it, and two starts are no fault. It outlives
its starter, and has an environment for what lasts. Its log has its faults alone, and begins again
when it is long. What it is to do is on disk before it is started or woken.

A service (`services.py`) lives as long as a configuration wants it. The first four do not: the
process that needs one starts it, and it ends when its work is done. A notifier loads 50 MB, runs
for seconds, and is needed without dev-poll, too; a command that asks for a link waits for it.

These processes are of another kind. A runner of CI (`adapters/forge/local/checks.py`) inherits the
lock from its starter, because its starts are counted: one that dies at once must not be started for
ever. The receiver of telemetry (`plugins/cost/ledger/receiver.py`) inherits its socket, because
agents are told of the port before it runs; it is no command of `sm`. What a plugin does aside
(`plugin_call.py`) is a fork that says nothing, and ends with its deadline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sm.base.clock import Deadline
from sm.store import lock

LOG_LIMIT = 256 * 1024
"""Bytes of a log, which begins again then."""
LOOK_S = 0.05


class Helper(Struct, frozen=True):
    """A helper: the command line of `sm` that it is, its lock and its log.

    It gets `variables` of our environment beside those for what lasts, and these `settings` too.
    """

    words: tuple[str, ...]
    lock: Path
    log: Path
    variables: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}

    def ensure(self) -> None:
        """Start it, unless it is at work.

        Raises:
            SmError: it cannot be started.

        """
        if not lock.is_held(self.lock):
            self.start()

    def start(self) -> None:
        """Start it; where another one is at work, that ends at once.

        Raises:
            SmError: it cannot be started.

        """
        from sm.adapters import own_start  # mostly a helper is there, and is only woken or asked
        from sm.adapters.environment import select_lasting_environment

        with contextlib.suppress(OSError):
            if self.log.stat().st_size > LOG_LIMIT:
                self.log.unlink()
        env = select_lasting_environment(self.variables) | dict(self.settings)
        own_start.start(*self.words, log=self.log, env=env)

    @contextlib.contextmanager
    def take_place(self, within_s: float = 0.0) -> Iterator[bool]:
        """Be the helper. Yields whether we are, or another one is and does not end `within_s`."""
        deadline = Deadline(within_s)
        while True:
            with lock.try_hold(self.lock) as is_ours:
                if is_ours or deadline.is_over:
                    yield is_ours
                    return
            time.sleep(LOOK_S)
