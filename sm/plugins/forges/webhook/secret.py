"""The secret with which a forge signs its webhooks, from where the configuration says."""

from __future__ import annotations

from sm.base.errors import UsageError
from sm.config.forges import RemoteSettings
from sm.plugins.forges.web.token import TokenSource, read_token
from sm.plugins.forges.webhook.signature import find_weakness


def find_source(settings: RemoteSettings) -> TokenSource:
    """Where the secret is."""
    return TokenSource(
        settings.webhook_secret_command,
        settings.webhook_secret_file,
        settings.webhook_secret_env,
        what="webhook secret",
        key="webhook_secret",
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
