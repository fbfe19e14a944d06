"""The dialects of webhooks: GitHub's, Forgejo's, Gitea's and GitLab's.

The module of a kind of forge names its own, see `sm.adapters.forge.kinds`.
"""

from __future__ import annotations

from msgspec import structs

from sm.adapters.forge.dialect import Delivery, Dialect
from sm.plugins.forges.webhook.signature import STANDARD, is_hmac, is_standard, is_token


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
"""As on Gitea, with headers under its own name, which are preferred."""


def _is_of_gitlab(secret: str, delivery: Delivery, now: float) -> bool:
    """By the kind of the secret: who has a signing token does not take the plain one instead."""
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
