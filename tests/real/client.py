"""The pinned agent clients: installed once from npm, and started sealed off from everything.

`python -m tests.real.client` installs them, which takes minutes: longer than a test may take.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real import emulator, inspector, npm

CLAUDE_VERSION, CODEX_VERSION = "2.1.332", "0.171.0"
CLAUDE_PACKAGE, CODEX_PACKAGE = "@anthropic-ai/claude-code", "@openai/codex"
PACKAGES = (f"{CLAUDE_PACKAGE}@{CLAUDE_VERSION}", f"{CODEX_PACKAGE}@{CODEX_VERSION}")
KEY = "sk-ant-api03-a-key-of-a-test-that-opens-no-door"
"""No key: the scripted API takes any, and the client wants to have one."""

FRUGAL = {
    "BUN_JSC_useDFGJIT": "0",  # it lives for seconds: a quarter of its time went into compiling
    # Nor is it worth the processor to keep its memory small: a fourteenth of what it used.
    "BUN_JSC_useConcurrentGC": "0",
    "BUN_JSC_numberOfGCMarkers": "1",
    "BUN_JSC_minHeapUtilization": "0.1",
    "BUN_JSC_smallHeapGrowthFactor": "8",
}
"""Variables with which Claude Code does the same with less of the processor."""

CLAUDE = Path("node_modules/@anthropic-ai/claude-code-linux-x64/claude")
CODEX = Path("node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")

PINNED = npm.Packages(
    name="the agent CLIs",
    folder=npm.folder("SM_TEST_CLIENTS", "clients"),
    pinned=PACKAGES,
    programs=(CLAUDE, CODEX),
)


LEFT_OUT = 3
"""The exit code where tests have to be left out."""


@dataclass(frozen=True)
class Clients:
    """The programs of the pinned clients."""

    claude: Path
    codex: Path


def clients() -> Clients:
    """The pinned clients, installed when they are not there yet.

    Skips the test where that cannot be done, and fails it there when SM_REQUIRE_CLIENTS is set.
    """
    PINNED.ready()
    return Clients(PINNED.folder / CLAUDE, PINNED.folder / CODEX)


def seal(home: Path, *folders: Path, key: str = KEY) -> None:
    """Answer, in `home`, the questions that a first start of Claude Code in these would ask."""
    home.mkdir(parents=True, exist_ok=True)
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(cwd): {"hasTrustDialogAccepted": True} for cwd in folders},
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
        **FRUGAL,
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
    """Install them, the Inspector and the emulator; returns the exit code.

    The first that cannot be installed is the last that is tried, and a line says so: with LEFT_OUT
    the tests go on without, with 1 they cannot.
    """
    everything = (PINNED, inspector.packages(), emulator.packages)
    for packages in everything:
        try:
            if packages.installed():
                continue
            why = packages.missing
        except npm.WrongFolderError as error:
            print(error)
            return 1
        except npm.InstallError as error:
            why = str(error)
        lacking = " and ".join(one.name for one in everything if not one.is_there())
        print(f"cannot test with {lacking}: {why}")
        return 1 if npm.required else LEFT_OUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
