"""Hands a message to a service, by apprise. Nothing else imports it: it takes 50 MB."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import one_line

if TYPE_CHECKING:
    import apprise

ANSWER_S = 90.0
"""How long a service's answer is waited for, unless its address says otherwise (`rto`). One that
takes a minute has the message all the same, and would get it twice from somebody less patient."""
WAITED = "timed out"
"""In what apprise says of a service that was too slow; by then it may have the message."""
REASON_LIMIT = 300
HOW_TO_GET = "pipx inject sm-orchestrator apprise, or in a clone .venv/bin/pip install apprise"
PARTS = re.compile(r"[/:@?&=#,]+")


class MissingLibraryError(SmError):
    """There is no apprise."""


class AddressError(SmError):
    """apprise knows no service of such an address."""


class Outcome(NamedTuple):
    """What became of a message: delivered, or why not. `unsure`: it may have arrived."""

    reason: str = ""
    unsure: bool = False


class Said(logging.Handler):
    """What apprise says in this thread: why something did not work, and how."""

    def __init__(self) -> None:
        """Nothing is said yet."""
        super().__init__()
        self._thread = threading.get_ident()
        self.reason = self.detail = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the last warning, and the last of all."""
        if record.thread != self._thread:
            return
        said = record.getMessage()
        if record.levelno >= logging.WARNING:
            self.reason = said
        if "Exception" in said:
            self.detail = said


def send(address: str, title: str, text: str) -> Outcome:
    """Hand a message over.

    Raises:
        MissingLibraryError: there is no apprise.
        AddressError: the address is of no service.

    """
    with _listening() as said:
        services = _open(address, said)
        delivered = services.notify(title=title, body=text, body_format="text")
    if delivered:
        return Outcome()
    reason = said.reason or "the service did not take it"
    return Outcome(_show(reason, address), WAITED in said.detail)


def name_service(address: str) -> str:
    """Return what service an address is of, such as ntfy.

    Raises:
        MissingLibraryError, AddressError: as `send`.

    """
    with _listening() as said:
        return str(_open(address, said)[0].service_name)


def _open(address: str, said: Said) -> apprise.Apprise:
    try:
        import apprise
    except ImportError as error:
        raise MissingLibraryError(f"apprise is not installed: {HOW_TO_GET}") from error

    # Without an image, which a phone would fetch from elsewhere.
    asset = apprise.AppriseAsset(app_id="sm", app_desc="sm", app_url="", image_url_mask="")
    services = apprise.Apprise(asset=asset)
    if not services.add(address) or not len(services):
        why = f" ({_show(said.reason, address)})" if said.reason else ""
        raise AddressError(f"apprise knows no service of its address{why}: see docs/NOTIFY.md")
    for service in services:
        if "rto" not in address:
            service.socket_read_timeout = ANSWER_S
    return services


@contextmanager
def _listening() -> Iterator[Said]:
    logger, said = logging.getLogger("apprise"), Said()
    logger.addHandler(said)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(said)


def _show(reason: str, address: str) -> str:
    """Return a reason without anything of the address, any part of which may be a secret."""
    _, _, rest = address.partition("://")
    return one_line(redact(reason, [address, *PARTS.split(rest)]), REASON_LIMIT)
