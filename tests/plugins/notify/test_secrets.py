"""No error shows a secret of the configuration, wherever a person has put it by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sm.__main__ import run
from sm.store.paths import Root
from tests.helpers import sm_yaml

SECRET = "hunter2token"
ADDRESS = f"tgram://{SECRET}/chat"
FORGE = {"kind": "forgejo", "repository": "a/b", "token_command": f"false {SECRET}"}

WRONG: dict[str, dict[str, Any]] = {
    "a service that nobody knows": {"url": f"nosuch://{SECRET}"},
    "an address that cannot be read": {"url": ADDRESS},
    "one with a port that is none": {"url": f"json://127.0.0.1:{SECRET}/x"},
    "a list": {"url": [ADDRESS]},
    "as a key": {ADDRESS: "x"},
    "as the name": {},
    "as the file": {"url_file": ADDRESS},
    "as the variable": {"url_env": ADDRESS},
    "as a variable without a scheme": {"url_env": f"123:{SECRET}"},
    "in a command that fails": {"url_command": f"false --token {SECRET}"},
    "in a command that says nothing": {"url_command": f"true {SECRET}"},
    "as quiet hours": {"url": "json://127.0.0.1:9", "quiet": ADDRESS},
}
BESIDE: dict[str, dict[str, Any]] = {
    "a heartbeat with a port that is none": {
        "notify": {"heartbeat_url": f"https://127.0.0.1:{SECRET}/ping"}
    },
    "a heartbeat with a user": {
        "notify": {"heartbeat_url": f"https://{SECRET}:pass%20word@127.0.0.1:x/ping"}
    },
    "a heartbeat with a query": {"notify": {"heartbeat_url": f"https://127.0.0.1:x?key={SECRET}"}},
    "a page": {"notify": {"page": f"https://sm.example.com/?{SECRET}"}},
    "a forge with a password": {"forge": FORGE | {"url": f"https://u:{SECRET}@127.0.0.1:1"}},
    "a forge with a query": {"forge": FORGE | {"url": f"https://127.0.0.1:1/?token={SECRET}"}},
    "the command for a token": {"forge": FORGE | {"url": "https://127.0.0.1:1"}},
}


def make(what: str, folder: Path) -> Path:
    if what in BESIDE:
        return sm_yaml(folder, **BESIDE[what])
    name = ADDRESS if what == "as the name" else "phone"
    return sm_yaml(folder, notify={"channels": {name: WRONG[what]}})


@pytest.mark.parametrize("what", [*WRONG, *BESIDE])
def test_no_error_shows_a_secret_of_the_configuration(
    what: str, tmp_path: Path, root: Root, capfd: pytest.CaptureFixture[str]
) -> None:
    config = make(what, tmp_path)
    for verb in (["doctor"], ["notify", "--test"], ["status"]):
        run(["--config", str(config), *verb])
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    assert "word@" not in said.out + said.err
    assert "Traceback" not in said.err
    if root.journal.exists():
        assert SECRET not in root.journal.read_text()
