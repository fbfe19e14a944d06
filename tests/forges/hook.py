"""Delivers webhooks as a forge does: signed by its own means, over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 10
"""As GitHub has it."""


@dataclass
class Hook:
    """A webhook of a repository, as a forge of that kind has it. `answers` has each status."""

    kind: str
    url: str
    secret: str
    name: str = "harbor/harb"
    answers: list[int] = field(default_factory=list)

    def deliver(self, event: str, payload: dict[str, Any] | None = None) -> int:
        """Deliver an event; the status of the answer."""
        body = json.dumps({**self._of(), **(payload or {})}).encode()
        return self.send(body, self.headers(event, body))

    def send(self, body: bytes, headers: dict[str, str]) -> int:
        """Send these bytes."""
        parts = urlsplit(self.url)
        client = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
        with closing(client):
            client.request("POST", parts.path, body, headers)
            self.answers.append(client.getresponse().status)
        return self.answers[-1]

    def headers(self, event: str, body: bytes, ident: str = "") -> dict[str, str]:
        """What goes with the body."""
        ident = ident or secrets.token_hex(8)
        common = {"Content-Type": "application/json", "Host": "sm.example.org"}
        digest = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        if self.kind == "github":
            return common | {
                "User-Agent": "GitHub-Hookshot/1a2b3c4",
                "X-GitHub-Event": event,
                "X-GitHub-Delivery": ident,
                "X-Hub-Signature-256": f"sha256={digest}",
            }
        if self.kind == "gitlab":
            return common | {"X-Gitlab-Event": event, **self._gitlab(ident, body)}
        brands = ["Gitea", "Forgejo"] if self.kind == "forgejo" else ["Gitea"]
        made = {
            "X-Hub-Signature-256": f"sha256={digest}",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": ident,
        }
        for brand in brands:
            made |= {
                f"X-{brand}-Event": event,
                f"X-{brand}-Event-Type": event,
                f"X-{brand}-Delivery": ident,
                f"X-{brand}-Signature": digest,
            }
        return common | made

    def _gitlab(self, ident: str, body: bytes) -> dict[str, str]:
        if not self.secret.startswith("whsec_"):
            return {"X-Gitlab-Token": self.secret, "Idempotency-Key": ident}
        at = str(int(time.time()))
        key = base64.b64decode(self.secret[6:])
        signed = hmac.new(key, f"{ident}.{at}.".encode() + body, hashlib.sha256).digest()
        return {
            "Idempotency-Key": ident,
            "webhook-id": ident,
            "webhook-timestamp": at,
            "webhook-signature": "v1," + base64.b64encode(signed).decode(),
        }

    def _of(self) -> dict[str, Any]:
        if self.kind == "gitlab":
            return {"project": {"path_with_namespace": self.name}}
        return {"repository": {"full_name": self.name}}
