"""Webhooks of forges: the dialect of each, signatures, and the secret of a configured one.

The module of a kind of forge names its own dialect, see `sm.adapters.forge.kinds`. Each check of a
signature compares bytes in a time that does not depend on where they differ. What a client sends
may be of any length, and need not be ASCII.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from pathlib import Path

from msgspec import structs

from sm.adapters.forge.dialect import Delivery, Dialect, Webhooks
from sm.adapters.token import TokenSource, read_token
from sm.base.errors import UsageError
from sm.config.forges import RemoteSettings
from sm.plugins.forges.rest.state import StateFiles

STANDARD = "whsec_"
"""Beginning of a key of Standard Webhooks (https://www.standardwebhooks.com)."""
KEY_BYTES = 24
"""The shortest key that Standard Webhooks allows."""
TOLERANCE_S = 300
"""Seconds that a delivery with a time may be old, and that the sender's clock may be ahead."""
SIGNATURES = 8
"""A sender signs with two keys while one replaces the other; more are not looked at."""
SHORTEST = 16
"""Characters of a secret."""
SECONDS = re.compile(rb"[0-9]{1,12}")


def is_hmac(secret: str, body: bytes, given: bytes, prefix: bytes = b"") -> bool:
    """Whether `given` is `prefix` and the HMAC-SHA256 of the body in hexadecimal digits."""
    right = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given, prefix + right.encode())


def is_standard(secret: str, signed: tuple[bytes, bytes, bytes], given: bytes, now: float) -> bool:
    """Whether one of the signatures in `given` is that of `signed`, which is new.

    `signed` is the id, the time in seconds since the epoch, as `now` is, and the body. `secret`
    begins with `whsec_`.
    """
    ident, at, _ = signed
    digest = hmac.new(decode_key(secret), b".".join(signed), hashlib.sha256).digest()
    right = b"v1," + base64.b64encode(digest)
    some = given.split(b" ", SIGNATURES)[:SIGNATURES]
    matches = [hmac.compare_digest(one, right) for one in some]
    is_new = bool(SECONDS.fullmatch(at)) and abs(now - int(at)) <= TOLERANCE_S
    return any(matches) and is_new and ident != b""


def is_token(secret: str, given: bytes) -> bool:
    """Whether the secret itself was sent."""
    return hmac.compare_digest(given, secret.encode())


def decode_key(secret: str) -> bytes:
    """The key in a secret of Standard Webhooks; b"" if it has none."""
    try:
        return base64.b64decode(secret.removeprefix(STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return b""


def find_weakness(secret: str) -> str:
    """Why this secret must not be used; '' if it is strong enough to try."""
    if secret.startswith(STANDARD) and len(decode_key(secret)) < KEY_BYTES:
        return f"behind '{STANDARD}' is no key of {KEY_BYTES} bytes or more in Base64"
    if len(secret) < SHORTEST:
        return f"it is shorter than {SHORTEST} characters: 'openssl rand -hex 32' makes a good one"
    return ""


def _is_of_github(secret: str, delivery: Delivery, _now: float) -> bool:
    return is_hmac(secret, delivery.body, delivery.only("x-hub-signature-256"), b"sha256=")


GITHUB = Dialect(
    is_signed=_is_of_github,
    event=("x-github-event",),
    ident=("x-github-delivery",),
    ping="ping",
    checks=("check_run", "check_suite", "status", "workflow_job", "workflow_run"),
    work=frozenset(
        {
            *("issues", "issue_comment", "issue_dependencies", "sub_issues", "label"),
            *("pull_request", "pull_request_review", "pull_request_review_comment"),
            *("pull_request_review_thread", "push", "create", "delete"),
            *("member", "membership", "organization", "team", "team_add", "repository"),
        }
    ),
    commits=(
        "sha",
        *("check_run.head_sha", "check_suite.head_sha"),
        *("workflow_job.head_sha", "workflow_run.head_sha"),
    ),
    repository="repository.full_name",
)
"""https://docs.github.com/en/webhooks/webhook-events-and-payloads"""


def _is_of_forgejo(secret: str, delivery: Delivery, _now: float) -> bool:
    given = delivery.only("x-forgejo-signature", "x-gitea-signature")
    return is_hmac(secret, delivery.body, given)


def _is_of_gitea(secret: str, delivery: Delivery, _now: float) -> bool:
    return is_hmac(secret, delivery.body, delivery.only("x-gitea-signature"))


GITEA = Dialect(
    is_signed=_is_of_gitea,
    # The type is finer than the event, which is empty for a status in some versions.
    event=("x-gitea-event-type", "x-gitea-event"),
    ident=("x-gitea-delivery",),
    checks=("status", "workflow_job*", "workflow_run*", "action_run_*"),
    work=frozenset(
        {
            *("issues", "issue_label", "issue_assign", "issue_comment"),
            *("pull_request", "pull_request_label", "pull_request_sync", "pull_request_comment"),
            "pull_request_review_request",
            *("pull_request_review_approved", "pull_request_review_rejected"),
            *("pull_request_review_comment", "pull_request_approved", "pull_request_rejected"),
            *("push", "create", "delete", "repository"),
        }
    ),
    commits=(
        *("sha", "run.commit_sha", "run.head_sha"),
        *("workflow_job.head_sha", "workflow_run.head_sha"),
    ),
    repository="repository.full_name",
)
"""`modules/webhook/type.go` and `services/webhook/deliver.go` of Gitea, and Forgejo's."""

FORGEJO = structs.replace(
    GITEA,
    is_signed=_is_of_forgejo,
    event=("x-forgejo-event-type", "x-gitea-event-type", "x-forgejo-event", "x-gitea-event"),
    ident=("x-forgejo-delivery", "x-gitea-delivery"),
)
"""Gitea's dialect with headers under Forgejo's own name, which are preferred."""


def _is_of_gitlab(secret: str, delivery: Delivery, now: float) -> bool:
    """Check by the kind of the secret: a signing token is not replaced by a plain one."""
    if not secret.startswith(STANDARD):
        return is_token(secret, delivery.only("x-gitlab-token"))
    signed = delivery.only("webhook-id"), delivery.only("webhook-timestamp"), delivery.body
    return is_standard(secret, signed, delivery.only("webhook-signature"), now)


GITLAB = Dialect(
    is_signed=_is_of_gitlab,
    event=("x-gitlab-event",),
    # The first is signed, where anything is; the last is one for all hooks of an event.
    ident=("webhook-id", "idempotency-key", "x-gitlab-event-uuid"),
    checks=("Pipeline Hook", "Job Hook"),
    work=frozenset(
        {
            *("Issue Hook", "Confidential Issue Hook", "Work Item Hook"),
            *("Note Hook", "Confidential Note Hook", "Merge Request Hook"),
            *("Push Hook", "Member Hook", "Project Hook"),
        }
    ),
    commits=("sha", "object_attributes.sha", "commit.id"),
    repository="project.path_with_namespace",
)
"""https://docs.gitlab.com/user/project/integrations/webhook_events"""


def make_webhooks(settings: RemoteSettings, dialect: Dialect, state: Path | None) -> Webhooks:
    """Return the marks of deliveries in `dialect`; `state` is the project's private folder.

    Raises:
        TokenError: there is no secret, it is no word, or its file is not private.
        UsageError: it is too weak.

    """
    configured = settings.repository

    def list_names() -> tuple[str, str]:
        return configured, StateFiles(state).present_name(configured)

    return Webhooks(dialect, read_secret(settings), list_names)


def find_source(settings: RemoteSettings) -> TokenSource:
    """Return where the secret is."""
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
