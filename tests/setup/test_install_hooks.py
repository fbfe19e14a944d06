"""`sm hooks`: merged into a person's settings, nothing else touched, and taken out again."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sm.adapters import settings_file
from sm.base.errors import SmError
from sm.sessions.agent_hooks import HOOKS
from tests.forked import run_sm
from tests.shell import BIN

SM = [sys.executable, "-Im", "sm"]

THEIRS: dict[str, Any] = {
    "model": "opus",
    "statusLine": {"type": "command", "command": '~/bin/it\'s mine "$HOME"', "padding": 2},
    "hooks": {
        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}],
    },
    "zzz": {"unknown": [1, 2.5, None, "ä"]},
}


def hooks(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_sm("hooks", *map(str, arguments), env=os.environ, cwd=Path.cwd())


def done(*arguments: str | Path) -> str:
    result = hooks(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1 or arguments[0] == "show"
    return result.stdout


@pytest.fixture
def settings(sealed: Path) -> Path:
    """The person's own settings, as they wrote them."""
    path = sealed / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps(THEIRS, indent=4, ensure_ascii=False))
    path.chmod(0o644)
    return path


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def folder(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


def test_install_keeps_what_is_there_and_adds_every_hook(settings: Path) -> None:
    assert str(settings) in done("install")
    found = content(settings)
    assert list(found) == list(THEIRS)
    assert found["model"] == "opus"
    assert found["zzz"] == THEIRS["zzz"]
    assert found["hooks"]["PreToolUse"] == THEIRS["hooks"]["PreToolUse"]
    assert found["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]
    assert found["statusLine"]["padding"] == 2
    for event, name in HOOKS.items():
        (ours,) = found["hooks"][event][-1]["hooks"]
        program = Path(shlex.split(ours["command"])[-1])
        assert program.name == name
        assert program.is_file()
        assert ours["timeout"] > 1
    assert '\n    "model"' in settings.read_text()  # indented as it was
    assert stat.S_IMODE(settings.stat().st_mode) == 0o644


def test_the_status_line_that_was_there_is_still_shown(settings: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sh"
    mine.write_text("printf 'my line, '; cat | tr a-z A-Z")
    settings.write_text(
        json.dumps({"statusLine": {"type": "command", "command": f"sh '{mine}' \"$HOME\""}})
    )
    done("install")
    command = content(settings)["statusLine"]["command"]
    shown = subprocess.run(["sh", "-c", command], input="{}\n", capture_output=True, text=True)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "my line, {}\n", "")


def test_installing_twice_changes_nothing(settings: Path) -> None:
    done("install")
    once, at = settings.read_bytes(), settings.stat().st_mtime_ns
    assert "already installed" in done("install")
    assert (settings.read_bytes(), settings.stat().st_mtime_ns) == (once, at)


def test_another_clones_hooks_are_replaced_and_not_doubled(settings: Path) -> None:
    done("install")
    text = settings.read_text()
    root = str(BIN.parent)
    settings.write_text(text.replace(f"{root}/lib", "/elsewhere/lib"))
    done("install")
    found = content(settings)
    assert "/elsewhere" not in settings.read_text()
    assert [len(found["hooks"][event]) for event in HOOKS] == [
        2 if event == "Stop" else 1 for event in HOOKS
    ]
    assert settings.read_text().count("SM_STATUS_LINE") == 1


def test_uninstall_gives_the_file_back_byte_for_byte(settings: Path) -> None:
    before = settings.read_bytes()
    done("install")
    done("uninstall")
    assert settings.read_bytes() == before
    assert "nothing of sm" in done("uninstall")
    assert settings.read_bytes() == before


def test_uninstall_keeps_what_was_changed_in_between(settings: Path) -> None:
    done("install")
    found = content(settings)
    found["model"] = "sonnet"
    found["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    found["statusLine"]["padding"] = 0
    settings.write_text(json.dumps(found))
    done("uninstall")
    expected = json.loads(json.dumps(THEIRS))
    expected["model"] = "sonnet"
    expected["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    expected["statusLine"]["padding"] = 0
    assert content(settings) == expected
    assert list(content(settings)) == list(THEIRS)


def test_the_first_version_is_kept_as_the_backup(settings: Path) -> None:
    before = settings.read_bytes()
    done("install")
    done("uninstall")
    settings.write_text('{"model": "other"}')
    done("install")
    assert settings.with_name("settings.json.sm-backup").read_bytes() == before
    done("uninstall")
    assert content(settings) == {"model": "other"}


def test_a_file_made_by_install_goes_with_uninstall(sealed: Path) -> None:
    path = sealed / ".claude" / "settings.json"
    done("install")
    assert content(path)["statusLine"]["type"] == "command"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done("uninstall")
    assert not path.exists()


def test_another_file_can_be_named(sealed: Path, tmp_path: Path) -> None:
    path = tmp_path / "my settings.json"
    path.write_text("")
    done("install", "--settings", path)
    assert "hooks" in content(path)
    done("uninstall", "--settings", path)
    assert path.read_text() == ""
    assert not (sealed / ".claude").exists()


def test_the_clients_own_variable_says_where_the_settings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    done("install")
    assert "hooks" in content(tmp_path / "config" / "settings.json")


def test_a_link_is_written_through(settings: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    settings.rename(real)
    settings.symlink_to(real)
    done("install")
    assert settings.is_symlink()
    assert "Stop" in content(real)["hooks"]
    assert folder(real.parent) == {"claude.json", "claude.json.sm-backup"}
    done("uninstall")
    assert content(real) == THEIRS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"model": ', "as JSON"),
        ("// mine\n{}", "as JSON"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[]", "JSON object"),
        ('"x"', "JSON object"),
        ('{"hooks": []}', "'hooks'"),
        ('{"hooks": {"Stop": {}}}', "'hooks.Stop'"),
        ('{"statusLine": "date"}', "'statusLine'"),
        ('{"statusLine": {"type": "static"}}', "'statusLine'"),
        ("\udcff", "as JSON"),
    ],
)
@pytest.mark.parametrize("verb", ["install", "show"])
def test_what_is_no_settings_file_is_refused_and_left_alone(
    settings: Path, text: str, reason: str, verb: str
) -> None:
    settings.write_bytes(os.fsencode(text))
    refused = hooks(verb)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("sm: ")
    assert refused.stderr.count("\n") == 1
    assert reason in refused.stderr
    assert str(settings) in refused.stderr
    assert settings.read_bytes() == os.fsencode(text)
    assert folder(settings.parent) == {"settings.json"}


def test_what_is_no_file_is_refused(settings: Path, tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    os.mkfifo(tmp_path / "fifo.json")
    twin = tmp_path / "twin.json"
    twin.hardlink_to(settings)
    for path in (tmp_path, loop, tmp_path / "fifo.json", twin, settings / "below.json"):
        refused = hooks("install", "--settings", path)
        assert refused.returncode in (1, 2), path
        assert refused.stderr.startswith("sm: ")
        assert refused.stderr.count("\n") == 1
    assert content(settings) == THEIRS


def test_a_full_disk_leaves_the_file_as_it_was(settings: Path) -> None:
    before = settings.read_bytes()
    script = f"ulimit -f 1; trap '' XFSZ; exec {shlex.join(SM)} hooks install"
    refused = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused.stderr
    assert settings.read_bytes() == before


def test_a_change_by_another_program_while_ours_is_written_is_kept(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sync = settings_file.read(settings), os.fsync

    def sync_late(fd: int) -> None:
        settings.write_text('{"model": "theirs"}')
        sync(fd)

    monkeypatch.setattr(os, "fsync", sync_late)
    with pytest.raises(SmError, match="was changed meanwhile: try again"):
        settings_file.write(file, {"model": "ours"})
    assert content(settings) == {"model": "theirs"}
    assert folder(settings.parent) == {"settings.json", "settings.json.sm-backup"}


def test_a_file_is_removed_only_as_it_was_read(sealed: Path) -> None:
    path = sealed / "settings.json"
    path.write_text("{}")
    file = settings_file.read(path)
    path.write_text('{"model": "theirs"}')
    with pytest.raises(SmError, match="was changed meanwhile: try again"):
        settings_file.remove(file)
    assert content(path) == {"model": "theirs"}
    path.unlink()
    path.mkdir()
    with pytest.raises(SmError, match="cannot remove"):
        settings_file.remove(file)


def test_show_tells_what_would_be_and_what_is(settings: Path) -> None:
    before = settings.read_bytes()
    found = json.loads(done("show", "--json"))
    assert settings.read_bytes() == before
    assert found["settings"] == str(settings)
    assert found["installed"] is False
    assert [hook["event"] for hook in found["hooks"]] == [*HOOKS, "statusLine"]
    assert not any(hook["installed"] for hook in found["hooks"])
    assert found["wraps"] == THEIRS["statusLine"]["command"]

    done("install")
    found = json.loads(done("show", "--json"))
    assert found["installed"] is True
    assert found["hooks"][-1]["command"] == content(settings)["statusLine"]["command"]
    shown = done("show")
    assert shown.count(" installed ") == len(HOOKS) + 1
    assert f"wrapped status line: {THEIRS['statusLine']['command']}" in shown
