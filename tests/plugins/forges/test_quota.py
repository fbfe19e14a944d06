"""`sm quota`: what is shown of the ledgers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from sm.adapters.forge.spender import spend_for
from sm.plugins.forges.rest.state import ForgeFiles
from sm.plugins.forges.web.ledger import QuotaLedger, RequestCount
from sm.plugins.forges.web.limits import RateLimit
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from tests.forked import run_sm

CONFIG = """\
projects:
- name: shop
  repo: shop
  forge: {kind: github, repository: harbor/shop, token_env: NO_TOKEN}
- name: own
  repo: own
  forge: {kind: local, path: own}
"""


@pytest.fixture
def ledger(tmp_path: Path, root: Root) -> QuotaLedger:
    (tmp_path / "sm.yaml").write_text(CONFIG)
    folder = root.project("shop").path
    ensure_private_dir(folder)
    return QuotaLedger(ForgeFiles(root.project("shop").path).quota)


def quota(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ("--config", str(tmp_path / "sm.yaml"), "quota", *options)
    done = run_sm(*words, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done


def test_without_requests_there_is_nothing_to_show(ledger: QuotaLedger, tmp_path: Path) -> None:
    done = quota(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no requests" in done.stderr
    assert json.loads(quota(tmp_path, "--json").stdout) == []


def test_requests_are_shown_by_purpose_with_what_is_left(
    ledger: QuotaLedger, tmp_path: Path
) -> None:
    limit = RateLimit("core", 5000, 4321, time.time() + 600)
    for _ in range(3):
        ledger.count("observe", RequestCount(requests=1, unchanged=1), limit, "me")
    with spend_for("dev-shop-7"):
        ledger.count("comment", RequestCount(requests=1, points=1), None, "me")
    ledger.block(time.time() + 300)
    lines = quota(tmp_path).stdout.splitlines()
    assert lines[0].split()[:4] == ["PROJECT", "SESSION", "PURPOSE", "HOUR"]
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["shop", "(all)", "observe", "3"],
        ["shop", "dev-shop-7", "comment", "1"],
    ]
    assert "4,321 of 5,000 (core) left" in lines[3]
    assert "takes no requests until" in lines[4]
    [shown] = json.loads(quota(tmp_path, "--json", "--project", "shop").stdout)
    assert shown["limits"][0]["left"] == 4321
    assert shown["spent"][0]["day"] == {"requests": 3, "unchanged": 3, "failed": 0, "points": 0}
    assert [one["session"] for one in shown["spent"]] == ["", "dev-shop-7"]
    assert len(shown["hours"]) == 1
