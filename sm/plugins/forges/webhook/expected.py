"""What is expected of the webhooks of a forge that is configured: above all, its secret."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.forge.dialect import Dialect, Webhooks
from sm.adapters.token import TokenSource, read_token
from sm.base.errors import UsageError
from sm.config.forges import RemoteSettings
from sm.plugins.forges.rest.state import StateFiles
from sm.plugins.forges.webhook.signature import find_weakness


def make_webhooks(settings: RemoteSettings, dialect: Dialect, state: Path | None) -> Webhooks:
    """How deliveries are known that come in `dialect`; `state` is the project's private folder.

    Raises:
        TokenError: there is no secret, it is no word, or its file is not private.
        UsageError: it is too weak.

    """
    configured = settings.repository

    def list_names() -> tuple[str, str]:
        return configured, StateFiles(state).present_name(configured)

    return Webhooks(dialect, read_secret(settings), list_names)


def find_source(settings: RemoteSettings) -> TokenSource:
    """Where the secret is."""
    return TokenSource(
        settings.webhook_secret_command,
        settings.webhook_secret_file,
        settings.webhook_secret_env,
        what="webhook secret",
        key="forge.webhook_secret",
    )


def read_secret(settings: RemoteSettings) -> str:
    """Read the secret now.

    Raises:
        TokenError: there is none, it is no word, or its file is not private.
        UsageError: it is too weak.

    """
    source = find_source(settings)
    secret = read_token(source).secret
    if why := find_weakness(secret):
        raise UsageError(f"the webhook secret in {source.name} cannot be used: {why}")
    return secret
