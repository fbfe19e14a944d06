"""Looks at forges that webhooks start: at most one at a time for a project, and one to come.

A storm of webhooks makes a look every few seconds. A process that dies with a look to come loses
nothing but time: the next look by the clock sees what has changed.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable

from sm.base.errors import SmError, TemporaryError
from sm.base.output import say_text, warn

APART_S = 5.0
"""Seconds from the end of one look to the beginning of the next."""


class ForgeLooks:
    """Looks of one project. `look` makes one; `sleep` waits between two."""

    def __init__(
        self, look: Callable[[], object], sleep: Callable[[float], object] = time.sleep
    ) -> None:
        """Look at nothing yet."""
        self._look, self._sleep = look, sleep
        self._lock = threading.Lock()
        self._is_asked = self._is_running = False

    def ask(self) -> None:
        """Have a look begin after now: at once, or after the one under way."""
        with self._lock:
            self._is_asked = True
            if not self._is_running:
                threading.Thread(target=self._run, daemon=True).start()
                self._is_running = True  # only now: without a thread the next one asks anew

    def _run(self) -> None:
        while self._take():
            self._try()
            self._sleep(APART_S)

    def _take(self) -> bool:
        """Take the request for a look, and say whether there was one; if not, the thread ends."""
        with self._lock:
            asked, self._is_asked = self._is_asked, False
            self._is_running = asked
            return asked

    def _try(self) -> None:
        """Look. Whatever happens, the thread goes on: else it would be the last look."""
        try:
            self._look()
        except TemporaryError:
            pass  # the monitors and dev-poll look as soon as it is possible
        except SmError as error:
            warn(error.message)
        except Exception:
            say_text(traceback.format_exc(), err=True, nl=False)
