"""Takes webhooks of forges: each one that is signed and matters starts a look at its forge.

A storm of webhooks makes a look every few seconds. A process that dies with a look to come loses
nothing but time: the next look by the clock sees what has changed.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct
from starlette.requests import Request

from sm.adapters.forge.dialect import About, Delivery, Webhooks
from sm.adapters.forge.kinds import kind_of
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.output import say_text, warn
from sm.config.schema import Config, ProjectSettings
from sm.issues.look.snapshot import look_for_webhook
from sm.issues.look.webhooks import note_webhook
from sm.plugins.http.shapes import WebhookAnswer
from sm.sessions.project import Project
from sm.web.answers import HttpError
from sm.web.bodies import decode
from sm.web.endpoint import Call

PREFIX = "/webhooks/"
REMEMBERED = 10_000
"""Names of deliveries that a project remembers, two for each delivery."""

APART_S = 5.0
"""Seconds from the end of one look to the beginning of the next."""

Status = Literal["accepted", "repeated", "ignored", "pong"]


class ForgeLooks:
    """Looks of one project: at most one at a time, and one to come.

    `look` makes one; `sleep` waits between two.
    """

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


class Receiver:
    """Takes the deliveries for one project."""

    def __init__(self, project: Project, expected: Webhooks, looks: ForgeLooks) -> None:
        """Begin with nothing delivered."""
        self._project, self._expected, self._dialect = project, expected, expected.dialect
        self._looks = looks
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, delivery: Delivery) -> Status:
        """Take one delivery, and say what becomes of it.

        Raises:
            HttpError: it is not signed as it has to be (403), or is no JSON (400).

        """
        if not self._dialect.is_signed(self._expected.secret, delivery, time.time()):
            raise HttpError(403, "refused")
        payload = decode(delivery.body, dict[str, object])
        with self._lock:
            if self._is_known(delivery):
                return "repeated"
            return self._sort(delivery, payload)

    def _sort(self, delivery: Delivery, payload: Mapping[str, object]) -> Status:
        event = self._dialect.read_event(delivery)
        about = self._dialect.sort(event)
        directory = self._project.directory
        if about is About.PING:
            note_webhook(directory, event)
            return "pong"
        if about is About.OTHER or not self._dialect.is_of(payload, self._expected.list_names()):
            note_webhook(directory, event)
            return "ignored"
        commits = self._dialect.list_commits(payload) if about is About.CHECKS else []
        try:  # first the note: the look decides by it when the next one is due
            note_webhook(directory, event, wakes=True, commits=commits)
        finally:
            self._looks.ask()
        return "accepted"

    def _is_known(self, delivery: Delivery) -> bool:
        """Say whether it was delivered before, and remember it."""
        names = list(self._dialect.list_names(delivery))
        is_known = any(name in self._seen for name in names)
        self._seen.update(dict.fromkeys(names))
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return is_known


def make_receivers(config: Config) -> dict[str, Receiver]:
    """Make the receiver of deliveries for each project that has a secret for them.

    Variables with secrets are removed: the monitors that the server starts have its environment.

    Raises:
        SmError: a secret cannot be read, or is too weak.

    """
    found = {
        settings.name: _make_receiver(config, settings)
        for settings in config.projects
        if settings.forge.has_webhooks
    }
    for settings in config.projects:
        os.environ.pop(settings.forge.webhook_secret_env, None)
    return found


def _make_receiver(config: Config, settings: ProjectSettings) -> Receiver:
    project, forge = Project(config, settings), settings.forge
    expected = kind_of(forge).expect_webhooks(forge, project.root.project(project.name).path)
    if expected is None:
        raise UsageError(f"'{settings.name}': a forge of kind {forge.kind} has no webhooks for sm")

    def look() -> None:
        look_for_webhook(Project(config, settings))

    return Receiver(project, expected, ForgeLooks(look))


def make_delivery(request: Request, body: bytes) -> Delivery:
    """Return the request with every value of each header."""
    headers: dict[str, tuple[bytes, ...]] = {}
    for name, value in request.headers.raw:
        key = name.decode("latin-1").lower()
        headers[key] = (*headers.get(key, ()), value)
    return Delivery(headers, body)


class Delivered(Struct, frozen=True):
    """A delivery, and its receiver."""

    receiver: Receiver
    delivery: Delivery


def take_webhook(call: Call[Delivered]) -> WebhookAnswer:
    """Take a delivery of a project's forge."""
    return WebhookAnswer(call.body.receiver.take(call.body.delivery))
