"""Where npm cannot install what tests are run with: soon, in one line, and once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import client, emulator, inspector, npm
from tests.shell import lines, stand_in

SAID = """
npm warn using --force
npm error code SELF_SIGNED_CERT_IN_CHAIN
npm error errno SELF_SIGNED_CERT_IN_CHAIN
npm error request to https://registry.npmjs.org/it failed, reason: self-signed certificate
npm error     at ClientRequest.<anonymous> (index.js:130:14)
npm error A complete log of this run can be found in: /home/ada/.npm/_logs/2026-debug-0.log
"""
REASON = "request to https://registry.npmjs.org/it failed, reason: self-signed certificate"


@pytest.fixture(autouse=True)
def _as_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "given_up", False)
    monkeypatch.setattr(npm, "required", False)


@pytest.fixture
def absent(tmp_path: Path) -> npm.Packages:
    """What is not installed yet."""
    return npm.Packages("it", tmp_path / "cache" / "it", ("it@1.0.0",), (Path("program"),))


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have an npm that always fails; returns where it notes its calls."""
    calls, folder = tmp_path / "calls", tmp_path / "bin"
    folder.mkdir()
    stand_in(folder / "npm", f'echo "$*" >>"{calls}"\necho "{SAID}" >&2\nexit 1')
    monkeypatch.setattr(npm, "_person", {"PATH": f"{folder}:/usr/bin:/bin"})
    return calls


def test_the_reason_is_one_line(absent: npm.Packages, calls: Path) -> None:
    with pytest.raises(npm.InstallError) as failed:
        absent.installed()
    assert str(failed.value) == f"cannot install it: {REASON}"
    assert [line.split()[0] for line in lines(calls)] == ["view"]


def test_the_next_test_does_not_try_it_again(absent: npm.Packages, calls: Path) -> None:
    for _ in range(3):
        with pytest.raises(pytest.skip.Exception):
            absent.ready()
    assert len(lines(calls)) == 1


def test_where_it_is_required_the_test_fails(
    absent: npm.Packages, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npm, "required", True)
    with pytest.raises(pytest.fail.Exception, match="self-signed"):
        absent.ready()


@pytest.mark.parametrize("required", [False, True])
def test_all_that_lacks_is_told_at_once(
    tmp_path: Path,
    calls: Path,
    required: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(npm, "required", required)
    given = [
        npm.Packages(name, tmp_path / "cache" / name, ("it@1.0.0",), (Path("program"),))
        for name in ("one", "two", "three")
    ]
    monkeypatch.setattr(client, "PINNED", given[0])
    monkeypatch.setattr(inspector, "packages", lambda: given[1])
    monkeypatch.setattr(emulator, "packages", given[2])
    assert client.main() == (1 if required else client.LEFT_OUT)
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == [f"cannot test with one and two and three: cannot install one: {REASON}"]
    assert len(lines(calls)) == 1


@pytest.fixture
def silence() -> Iterator[str]:
    """The URL of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.mark.skipif(not npm.find("npm"), reason="there is no npm")
def test_a_registry_that_does_not_answer_is_not_waited_for(
    absent: npm.Packages, silence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = {"HOME": str(tmp_path), "npm_config_registry": silence}
    monkeypatch.setattr(npm, "_person", npm._person | person)
    monkeypatch.setattr(npm, "PATIENCE_S", 0.2)
    began = time.monotonic()
    with pytest.raises(npm.InstallError, match=r"cannot install it: .*(?i:timeout)"):
        absent.installed()
    assert time.monotonic() - began < npm.INSTALL_TIMEOUT_S / 10
