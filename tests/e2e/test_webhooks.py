"""A forge that tells what has happened: from a label on an issue to the words before the agent.

Looks by the clock are an hour apart, so whatever happens here was started by a webhook. The forge,
`sm serve`, dev-poll and the monitors are processes or threads with HTTP between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import yaml

from sm.adapters.forge.model import CheckState
from sm.issues.look.webhooks import read_heard_webhooks
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.e2e.test_polling import RARELY, looping
from tests.forges.hook import Hook
from tests.forges.sides import RemoteSide, remote_side
from tests.helpers import wait_for
from tests.hub import Hub
from tests.serving import serving

SECRET = "0123456789abcdef-a-secret"
SETTINGS: dict[str, object] = RARELY | {"ci": {"command": "", "poll": "1h"}}


@contextmanager
def delivering(stage: Stage, kind: str, **settings: dict[str, object]) -> Iterator[RemoteSide]:
    """The stage's project on such a forge, which delivers webhooks to a `sm serve`."""
    project = stage.project
    folder = project.directory.path
    hub = Hub(stage.config, project.settings, stage.repository)
    secret = stage.folder / "webhook-secret"
    secret.touch(mode=0o600)
    secret.write_text(f"{SECRET}\n")
    with ExitStack() as running:
        side = running.enter_context(remote_side(kind, hub, folder))
        config = yaml.safe_load(stage.config.read_text())
        config["forge"] = {
            "kind": kind,
            "repository": side.state.name,
            "url": side.site.url,
            "token_file": str(side.token_file("sm")),
            "webhook_secret_file": str(secret),
        }
        stage.config.write_text(yaml.safe_dump(config | settings))
        served = running.enter_context(serving(stage.folder, env={"SM_CONFIG": str(stage.config)}))
        side.hook = Hook(kind, f"{served.url}/webhooks/harb", SECRET)
        side.admit("ada", "rita")
        yield side


@pytest.mark.parametrize("kind", ["github", "forgejo"])
def test_a_webhook_leads_to_the_agent(stage_of: MakeStage, kind: str) -> None:
    stage = stage_of(settings=SETTINGS)
    with delivering(stage, kind) as side, looping(stage):
        assert side.hook
        issue = side.state.add("Mend it", "It is broken.", "ada")
        side.state.label(issue, ["backlog"])
        side.hook.deliver("issues", {"action": "labeled"})
        first = wait_for(stage.told, "the agent's task")
        assert "It is broken." in first[0]

        side.begin(stage.push_work(issue.number))
        stage.write_phase(issue.number, "PHASE:awaiting_ci")
        branch = f"fix/{issue.number}"
        pull = wait_for(lambda: side.open().pulls.find_newest(branch), "the pull request")
        assert pull
        side.finish(pull.head, CheckState.FAILURE, "build", "line 7 is wrong\n")
        wait_for(lambda: [one for one in stage.told() if "CI failed" in one], "what CI has to say")

        assert set(side.hook.answers) == {202}
        assert read_heard_webhooks(stage.project.directory).commits == (pull.head,)
