"""The pinned agent clients: installed once from npm, and started sealed off from everything.

`python -m tests.real.client` installs them, which takes minutes: longer than a test may take.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CLAUDE_VERSION, CODEX_VERSION = "2.1.329", "0.169.0"
PACKAGES = (f"@anthropic-ai/claude-code@{CLAUDE_VERSION}", f"@openai/codex@{CODEX_VERSION}")
INSTALL_TIMEOUT_S = 900.0
MISSING = "the real clients are not tested: there is no npm to install them with"
KEY = "sk-ant-api03-a-key-of-a-test-that-opens-no-door"
"""No key: the scripted API takes any, and the client wants to have one."""

CLAUDE = Path("node_modules/@anthropic-ai/claude-code-linux-x64/claude")
CODEX = Path("node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")

_folder = os.environ.get("SM_TEST_CLIENTS")
_required = bool(os.environ.get("SM_REQUIRE_CLIENTS"))
# The fixture that seals a test's environment takes these away.
_kept = ("home", "path", "https_proxy", "http_proxy", "no_proxy", "node_extra_ca_certs")
_person = {
    name: value
    for name, value in os.environ.items()
    if name.lower() in _kept or name.lower().startswith("npm_config_")
}


@dataclass(frozen=True)
class Clients:
    """The programs of the pinned clients."""

    claude: Path
    codex: Path


class InstallError(Exception):
    """The clients cannot be installed; the text says why."""


def clients() -> Clients:
    """The pinned clients, installed when they are not there yet.

    Skips the test where npm is missing, and fails it there when SM_REQUIRE_CLIENTS is set.
    """
    try:
        found = _installed()
    except InstallError as error:
        pytest.fail(str(error))
    if found is None:
        (pytest.fail if _required else pytest.skip)(MISSING)
    return found


def _installed() -> Clients | None:
    """The pinned clients, None where there is nothing to install them with."""
    folder = Path(_folder) if _folder else Path(__file__).parents[2] / ".cache" / "clients"
    if not _is_there(folder):
        if not shutil.which("npm", path=_person.get("PATH")):
            return None
        _install_once(folder)
    return Clients(folder / CLAUDE, folder / CODEX)


def _is_there(folder: Path) -> bool:
    """Whether both clients are in `folder`, in the versions that are pinned."""
    return all((folder / program).exists() for program in (CLAUDE, CODEX)) and all(
        json.loads((folder / "node_modules" / name / "package.json").read_text())["version"]
        == version
        for name, _, version in (package.rpartition("@") for package in PACKAGES)
    )


def _install_once(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_there(folder):
            return
        print(
            "installing the agent CLIs that the tests are run with: once, some minutes", flush=True
        )
        beside = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        try:
            _install(beside)
            shutil.rmtree(folder, ignore_errors=True)  # of an older pin, or half of one
            beside.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _install(folder: Path) -> None:
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    try:
        done = subprocess.run(
            command,
            env=_person,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"npm has not installed them in {INSTALL_TIMEOUT_S:g} s") from error
    if done.returncode or not _is_there(folder):
        raise InstallError(f"cannot install the pinned clients: {done.stderr[-2000:]}")


def seal(home: Path, cwd: Path, key: str = KEY) -> None:
    """Answer, in `home`, the questions that a first start of Claude Code in `cwd` would ask."""
    home.mkdir(parents=True, exist_ok=True)
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(cwd): {"hasTrustDialogAccepted": True}},
    }
    (home / ".claude.json").write_text(json.dumps(state))
    (home / ".claude").mkdir(exist_ok=True)
    settings = {"skipDangerousModePermissionPrompt": True}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))


def environment(home: Path, url: str, key: str = KEY, **more: str) -> dict[str, str]:
    """All that a client may know: its own HOME, and the scripted API as the only host."""
    scratch = home / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "TERM": "tmux-256color",
        "USER": "ada",
        "SHELL": "/bin/bash",
        "TMPDIR": str(scratch),
        "CLAUDE_CODE_TMPDIR": str(scratch),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        **more,
    }


def argv(program: Path, env: dict[str, str], *args: str) -> list[str]:
    """The command that starts `program` with nothing but `env`."""
    return ["env", "-i", *(f"{name}={value}" for name, value in env.items()), str(program), *args]


def hooks(**commands: str) -> dict[str, Any]:
    """Settings by which the client runs a command at each of these hook events."""
    return {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": command}]}]
            for event, command in commands.items()
        }
    }


def main() -> int:
    """Install them; returns the exit code: 1 where they are required and cannot be had."""
    try:
        found = _installed()
    except InstallError as error:
        print(error)
        return 1
    if found is None:
        print(MISSING)
    return int(found is None and _required)


if __name__ == "__main__":
    sys.exit(main())
