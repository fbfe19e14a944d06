"""Telemetry of Claude Code, which tells of each request if `cost.telemetry` is set.

A receiver of `sm` on loopback enters it: one for each state root, for as long as an agent runs that
was told of it. Its address has a secret in it. It is never put in the place of one of a person's
own: whoever has set up anything of OpenTelemetry for the client keeps that, and nothing else.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.adapters.agent.first_start import read_dict
from sm.adapters.agent.own_settings import read_settings
from sm.adapters.agent.profile import Profile
from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import spawn
from sm.base.decoder import decode
from sm.config.shapes import read_section
from sm.plugins.cost.settings import SESSION, CostSection, find_folder, find_ledger
from sm.sessions import launch
from sm.sessions.session import Session
from sm.store import lock
from sm.store.files import ensure_private_dir, read_guarded, write_atomic
from sm.store.paths import Root

SWITCH, ENDPOINT = "CLAUDE_CODE_ENABLE_TELEMETRY", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
THEIRS = ("OTEL_", SWITCH, "BETA_TRACING_ENDPOINT")
"""Beginnings of variables by which a person says what becomes of telemetry."""
EVERY_MS = 1000
"""Seconds that a request may wait to be told: a killed client does not tell it any more."""
LOOPBACK = "127.0.0.1"


class Address(Struct, frozen=True):
    """Address at which the receiver of a state root listens, and the secret in its path."""

    port: int
    secret: str

    @property
    def url(self) -> str:
        """The URL that an agent is told."""
        return f"http://{LOOPBACK}:{self.port}/{self.secret}/v1/logs"


def make_variables(
    session: Session, profile: Profile, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """The variables by which a client tells of its requests; none if it must not, or cannot."""
    if (
        profile.spending != "claude"
        or not read_section(session.machine.settings, CostSection).telemetry
    ):
        return {}
    if any(list_theirs(session.record.cwd, environment)):
        return {}
    return {
        SWITCH: "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/json",
        "OTEL_LOGS_EXPORT_INTERVAL": str(EVERY_MS),
        ENDPOINT: ensure_receiver(session.root, find_ledger(session.machine.settings)).url,
        "OTEL_RESOURCE_ATTRIBUTES": f"{SESSION}={session.name}",
    }


def list_theirs(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """List what a person, or whoever manages the machine, has said about telemetry."""
    yield from (name for name in environment if name.startswith(THEIRS))
    for _, settings in read_settings(folder, environment):
        yield from (name for name in read_dict(settings, "env") if name.startswith(THEIRS))
        yield from (name for name in settings if name == "otelHeadersHelper")


def is_told(session: Session) -> bool:
    """Whether the session's agent was told of our receiver."""
    address = read_address(session.root)
    told = launch.read_environment(session.dir).get(ENDPOINT)
    return address is not None and told == address.url


def ensure_receiver(root: Root, ledger: Path) -> Address:
    """Start the receiver if none runs; returns where it listens, or will in a moment.

    Agents have been told of the port of before, so that is taken again if it is free.
    """
    folder = find_folder(root)
    ensure_private_dir(folder)
    with lock.hold(folder / "telemetry.start.lock"):
        address = read_address(root)
        if lock.is_held(folder / "telemetry.lock") and address:
            return address
        listener, address = _listen(address)
        with listener:
            write_atomic(folder / "telemetry.json", msgspec.json.encode(address))
            spawn(
                *(sys.executable, "-Im", "sm.plugins.cost.ledger.receiver"),
                *(str(root.path), str(ledger), str(listener.fileno())),
                log=folder / "telemetry.log",
                env=select_lasting_environment(),
                pass_fds=(listener.fileno(),),
            )
        return address


def _listen(before: Address | None) -> tuple[socket.socket, Address]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            listener.bind((LOOPBACK, before.port if before else 0))
        except OSError:
            before = None
            listener.bind((LOOPBACK, 0))
        listener.listen(16)
    except OSError:
        listener.close()
        raise
    import secrets  # takes longer to import than all the rest of this

    secret = before.secret if before else secrets.token_urlsafe(24)
    return listener, Address(listener.getsockname()[1], secret)


def read_address(root: Root) -> Address | None:
    """Read where the receiver listens, or did last; None if there never was one."""
    try:
        found = read_guarded(find_folder(root) / "telemetry.json") or b""
        return decode(found, Address)
    except msgspec.MsgspecError:
        return None
