"""The page of `bin/demo --web`: `sm serve` on the stage, and a browser if there is one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from serve import WAITS
from stage import GONE_S, DemoError, Stage

from sm.store.files import write_atomic

SERVE = Path(__file__).with_name("serve.py")
OPENERS = ("xdg-open", "open")
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


class Web:
    """The server, which ends with the block. `environ` is the person's, for the browser."""

    def __init__(self, stage: Stage, environ: Mapping[str, str]) -> None:
        self._stage, self._environ = stage, dict(environ)
        self._waits = stage.path / "waits.json"
        self._log = stage.path / "serve.log"
        self._told: dict[str, float] = {}
        self._server: subprocess.Popen[str] | None = None
        self._browser: subprocess.Popen[bytes] | None = None
        self.link = ""

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-E", "-s", str(SERVE), "serve", "--port", "0", "--open"],
                cwd=self._stage.path,
                env=os.environ | {WAITS: str(self._waits)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._server.stdout
        said = [self._server.stdout.readline() for _ in range(2)]
        self.link = said[1].removeprefix("open ").strip()
        if not self.link:
            self._end()
            raise DemoError(f"the page cannot be served: {self._log.read_text().strip()}")
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._end()
        if self._browser:
            self._browser.poll()  # it goes on, unless it has only told another to open the link

    def _end(self) -> None:
        if self._server:
            self._server.send_signal(signal.SIGTERM)
            try:
                self._server.wait(GONE_S)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            assert self._server.stdout
            self._server.stdout.close()

    def open_browser(self) -> bool:
        """Open the link on the person's desktop; whether there is one."""
        program = next(filter(None, map(self._find, OPENERS)), None)
        has_desktop = sys.platform == "darwin" or any(map(self._environ.get, DISPLAYS))
        if program is None or not has_desktop:
            return False
        self._browser = subprocess.Popen(
            [program, self.link],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return True

    def _find(self, program: str) -> str | None:
        return shutil.which(program, path=self._environ.get("PATH"))

    def has_visitor(self) -> bool:
        """Whether a browser has logged in."""
        return (self._stage.project.root.plugins / "page" / "logins.json").exists()

    def tell_waits(self, waits: Mapping[str, float]) -> None:
        """Have the page show until when each of these sessions is left to the person."""
        if waits == self._told:
            return
        changed = {name for name, _ in self._told.items() ^ waits.items()}
        self._told = dict(waits)
        shown = {name: time.strftime("%H:%M:%S", time.localtime(at)) for name, at in waits.items()}
        write_atomic(self._waits, json.dumps(shown))
        self._touch(changed)

    def _touch(self, sessions: Iterable[str]) -> None:
        """Have the page read these sessions again: it looks at the times of their directories."""
        for name in sessions:
            try:
                os.utime(self._stage.project.root.session(name).path)
            except FileNotFoundError:
                continue  # it is over
