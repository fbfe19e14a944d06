"""Hands a message to a service, by apprise. Nothing else imports it: it takes 50 MB."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from sm.base.errors import SmError
from sm.plugins.notify.address import hide

if TYPE_CHECKING:
    import apprise

ANSWER_S = 90.0
"""Seconds that a service has to answer, unless its address says otherwise (`rto`). One that
takes a minute has the message all the same, and would get it twice from somebody less patient."""
TOO_SLOW = "timed out"
"""Words of apprise about a service that took longer; by then it may have the message."""
HOW_TO_GET = "pipx inject sm-orchestrator apprise, or in a clone .venv/bin/pip install apprise"


class MissingLibraryError(SmError):
    """There is no apprise."""


class AddressError(SmError):
    """apprise knows no service of such an address."""


class ServiceOutcome(NamedTuple):
    """Why a message was not delivered, '' if it was. `unsure`: it may have arrived all the same."""

    reason: str = ""
    unsure: bool = False


def send(address: str, title: str, text: str) -> ServiceOutcome:
    """Hand a message over.

    Raises:
        MissingLibraryError: there is no apprise.
        AddressError: the address is of no service.

    """
    result = _open(address).notify(
        title=title, body=text, body_format="text", log_level=logging.DEBUG
    )
    if result:
        return ServiceOutcome()
    said = [entry for entry in result.logs() if entry.level in ("WARNING", "ERROR")]
    reason = said[-1].message if said else "the service did not take it"
    unsure = any("Exception" in one.message and TOO_SLOW in one.message for one in result.logs())
    return ServiceOutcome(hide(reason, address), unsure)


def name_service(address: str) -> str:
    """Return what service an address is of, such as ntfy.

    Raises:
        MissingLibraryError, AddressError: as `send`.

    """
    return str(_open(address)[0].service_name)


def _open(address: str) -> apprise.Apprise:
    try:
        import apprise
    except ImportError as error:
        raise MissingLibraryError(f"apprise is missing: {HOW_TO_GET}") from error

    logger = logging.getLogger("apprise")
    logger.setLevel(logging.DEBUG)  # it says only there that a service was too slow
    logger.propagate = False
    services = apprise.Apprise(
        asset=apprise.AppriseAsset(
            app_id="sm",
            app_desc="sm",
            app_url="",
            image_url_mask="",  # a phone would fetch it from elsewhere
            service_timeout=0,  # it would end at a minute, while the message goes its way
        )
    )
    if not services.add(address):
        raise AddressError("apprise knows no service of its address: see docs/NOTIFY.md")
    if "rto=" not in address:
        for service in services:
            service.socket_read_timeout = ANSWER_S
    return services
