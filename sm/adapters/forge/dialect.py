"""Webhooks of a kind of forge: signature, names of headers and events. Pure.

What a delivery says is never believed, even if it is signed. It only tells that it is time to look
at the forge, and for which commits the forge tells about checks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
EVENT = re.compile(r"[A-Za-z0-9_ ]{1,64}")


class Delivery(Struct, frozen=True):
    """Request as it came: every value of each header, by its name in small letters."""

    headers: Mapping[str, tuple[bytes, ...]]
    body: bytes

    def only(self, *names: str) -> bytes:
        """Return the value of the first of these headers that exists; b"" if it is there twice."""
        values = next((self.headers[name] for name in names if name in self.headers), ())
        return values[0] if len(values) == 1 else b""


class About(StrEnum):
    """Subject of a delivery."""

    CHECKS = "checks"
    """The state of CI at a commit."""
    WORK = "work"
    """Issues, pull requests, branches, who may push."""
    PING = "ping"
    """No subject: the forge tries whether it can deliver."""
    OTHER = "other"
    """A subject that `sm` does not read: stars, releases, pages of a wiki."""


class Dialect(Struct, frozen=True, kw_only=True):
    """Form of the deliveries of a kind of forge.

    `is_signed(secret, delivery, now)` decides whether it was the forge. `event` and `ident` are
    headers: the first that is there counts. `checks` and `work` are events; those of `checks` end
    with `*` if what follows does not matter. `commits` and `repository` are where the payload has
    these, as keys joined by dots.
    """

    is_signed: Callable[[str, Delivery, float], bool]
    event: tuple[str, ...]
    ident: tuple[str, ...]
    checks: tuple[str, ...]
    work: frozenset[str]
    ping: str = ""
    commits: tuple[str, ...]
    repository: str

    def read_event(self, delivery: Delivery) -> str:
        """Return the name of the event; '' if it has none that can be shown."""
        found = delivery.only(*self.event).decode("ascii", "replace")
        return found if EVENT.fullmatch(found) else ""

    def sort(self, event: str) -> About:
        """Return the subject of an event of this name."""
        if event and event == self.ping:
            return About.PING
        # One that ends with `*` stands for all that begin so.
        begins = tuple(one[:-1] for one in self.checks if one.endswith("*"))
        if event in self.checks or event.startswith(begins):
            return About.CHECKS
        return About.WORK if event in self.work else About.OTHER

    def list_names(self, delivery: Delivery) -> Iterator[bytes]:
        """Yield the names of a delivery: its id, if it has one, and its body.

        The id is not signed by every forge, so a delivery that is sent again under another id is
        known by its body.
        """
        if ident := delivery.only(*self.ident):
            yield b"id" + hashlib.sha256(ident).digest()
        yield b"body" + hashlib.sha256(delivery.body).digest()

    def list_commits(self, payload: Mapping[str, object]) -> list[str]:
        """Yield the commits that the payload of an event about checks names."""
        found = (find_text(payload, path) for path in self.commits)
        return list(dict.fromkeys(one for one in found if COMMIT.fullmatch(one)))

    def is_of(self, payload: Mapping[str, object], names: Iterable[str]) -> bool:
        """Whether the delivery may be of a repository of one of these names: it may name none."""
        found = find_text(payload, self.repository)
        return not found or found.lower() in {name.lower() for name in names}


class Webhooks(Struct, frozen=True):
    """Marks of the deliveries of one forge: its `dialect`, `secret`, and repository.

    `list_names` gives what the repository is called: in the configuration, and now.
    """

    dialect: Dialect
    secret: str
    list_names: Callable[[], Iterable[str]]


def find_text(payload: Mapping[str, object], path: str) -> str:
    """Find the text at `path`, whose keys are joined by dots; '' if there is none."""
    found: object = payload
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""
