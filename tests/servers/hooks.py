"""Webhooks of a real server, on their way to `sm serve`: each is noted, and sent on twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from sm.adapters.forge.dialect import Dialect, find_text
from sm.adapters.forge.model import BOT
from sm.issues.look.webhooks import HeardWebhooks, read_heard_webhooks
from sm.plugins.forges.webhook import FORGEJO, GITEA
from sm.store.paths import Root
from tests.conftest import sealed_environment
from tests.forges import server
from tests.forges.server import Asked, Reply
from tests.servers.compare import HOOK
from tests.servers.recorder import Cleaner, Exchange
from tests.servers.sides import ServerSide
from tests.serving import Said, Served, serving

SECRET = "0123456789abcdef-a-secret"
DIALECTS: dict[str, Dialect] = {"gitea": GITEA, "forgejo": FORGEJO}
NOTED = ("x-gitea-", "x-forgejo-", "x-hub-", "x-github-")
"""How the headers begin that say whose delivery it is."""


@dataclass
class Receiver:
    """Takes deliveries of a server, and sends each on to `sm serve`, twice."""

    side: ServerSide
    served: Served
    root: Root
    taken: list[tuple[Asked, Said, Said]] = field(default_factory=list)

    def respond(self, asked: Asked) -> Reply:
        """Take a delivery; what `sm serve` has said of it at first."""
        first, second = self.send_on(asked.body, asked.headers), self.send_on(*_parts(asked))
        self.taken.append((asked, first, second))
        return Reply(first.status, first.body)

    def send_on(self, body: bytes, headers: dict[str, str]) -> Said:
        """Send a delivery on to `sm serve`."""
        kept = {name: value for name, value in headers.items() if name.startswith(NOTED)}
        names = {name.replace("-", "_"): value for name, value in kept.items()}
        names["content_type"] = headers["content-type"]
        return self.served.ask("POST", "/webhooks/harb", body, names)

    def heard(self) -> HeardWebhooks:
        """What `sm serve` has noted."""
        return read_heard_webhooks(self.root.project("harb"))

    def events(self) -> set[str]:
        """The events that have come, as `sm` calls them."""
        found = set[str]()
        for asked, _, _ in self.taken:
            given = DIALECTS[self.side.kind].event
            found.add(next(asked.headers[name] for name in given if name in asked.headers))
        return found

    def exchanges(self, journey: str) -> list[Exchange]:
        """What has come, as a recording has it: of the payload what `sm` reads."""
        dialect, cleaner = DIALECTS[self.side.kind], Cleaner(self.side.repository)
        found = []
        for asked, first, _ in self.taken:
            names = sorted(name for name in asked.headers if name.startswith(NOTED))
            given = next(asked.headers[name] for name in dialect.event if name in asked.headers)
            read = {at: find_text(asked.data, at) for at in (*dialect.commits, dialect.repository)}
            shown = {at: cleaner.text(said) for at, said in read.items() if said}
            headers = dict.fromkeys(names, "")
            found.append(Exchange(journey, HOOK, given, {}, None, first.status, headers, shown))
        return found


def _parts(asked: Asked) -> tuple[bytes, dict[str, str]]:
    return asked.body, asked.headers


@contextmanager
def receiving(side: ServerSide, folder: Path) -> Iterator[Receiver]:
    """A webhook of the repository for all events, and `sm serve` behind it."""
    folder.mkdir(mode=0o700)
    root, base = Root(folder / "state"), sealed_environment(folder)
    for made in (root.path, root.private, root.projects):
        made.mkdir(mode=0o700)
    place: dict[str, Any] = {"kind": side.kind, "repository": side.repository}
    place |= {"url": side.server.url, "token_file": str(side.token_file(BOT))}
    place |= {"webhook_secret_env": "HARB_SECRET"}
    project = {"name": "harb", "repo": str(side.hub.repository.clone), "forge": place}
    config = folder / "hooks.yaml"
    config.write_text(yaml.safe_dump({"projects": [project], "state_root": str(root.path)}))
    with ExitStack() as running:
        patch = running.enter_context(pytest.MonkeyPatch.context())
        for name, value in base.items():
            patch.setenv(name, value)
        env = {"SM_CONFIG": str(config), "HARB_SECRET": SECRET}
        served = running.enter_context(serving(folder, env=env, base=base))
        made_receiver = Receiver(side, served, root)
        site = running.enter_context(server.serving(made_receiver.respond))
        hook = {"url": site.url, "content_type": "json", "secret": SECRET}
        side.ask(
            "POST",
            "/hooks",
            {"type": side.kind, "active": True, "events": EVENTS, "config": hook},
        )
        yield made_receiver


EVENTS = [
    *("push", "create", "delete", "issues", "issue_label", "issue_comment", "status"),
    *("pull_request", "pull_request_comment", "pull_request_review", "pull_request_sync"),
    *("workflow_run", "workflow_job", "action_run_failure", "action_run_success"),
]
"""All that may matter to `sm`; a server drops those that it does not know."""
