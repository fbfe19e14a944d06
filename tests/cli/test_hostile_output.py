"""Nothing that others have written reaches a terminal as it is, whatever command shows it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sm.__main__ import run
from sm.adapters import procfs
from sm.cli.root import cli, list_verbs
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import HANG_S, REPOSITORY, Repository
from tests.hostileworld import HOSTILE, LONG, MESSAGE, OWN_COLOURS, World, make_world, unsafe

ENOUGH = 200_000
"""Characters; the world has titles of more."""

RAW = {"pr diff"}
"""What is for another program as it is, where no terminal reads it."""

JSON_LINES = {"events"}
"""What prints a value on each line with --json."""

CALLS: dict[str, tuple[str, ...]] = {
    "config allow": ("", "{hostile}"),
    "config check": ("",),
    "config show": ("",),
    "doctor": ("", "--profile x"),
    "issue list": ("", "--state all"),
    "issue show": ("1", "2", "9", "77"),
    "issue view": ("1", "77"),
    "issue reopen": ("2", "77"),
    "issue add": ("{hostile}", "'' -F /nowhere"),
    "issue edit": ("1 --title {hostile}", "1 --add-label {hostile}", "1", "77 --title x"),
    "issue label": ("1 --add {hostile}", "1 --remove {hostile}"),
    "issue comment": ("1 --body {hostile}", "1"),
    "pr list": ("", "--state all"),
    "pr show": ("3", "1"),
    "pr view": ("3", "1"),
    "pr checks": ("3", "1"),
    "pr comment": ("3 --body {hostile}", "3"),
    "pr checkout": ("3", "1"),
    "pr diff": ("3 --stat", "3", "1"),
    "pr merge": ("3", "3 --head {hostile}"),
    "ci rerun": ("harb 99", "harb 1"),
    "sync": ("", "--remote {hostile}", "--dry-run"),
    "review": ("3 -m x --comment {hostile}", "3", "3 --approve --head {hostile}"),
    "status": ("", "--project harb", "--watch"),
    "top": ("", "--project {hostile}"),
    "needs": ("", "--project harb", "--json"),
    "trace": ("{session}", "harb 1", "{other}"),
    "events": ("", "{session}", "harb 1", "{other}", "--since 1h", "--since {hostile}"),
    "logs": ("{session}", "harb 1 --monitor", "{other}"),
    "worktree list": ("",),
    "worktree drop": ("harb 99", "harb 1"),
    "attach": ("{session}", "{other}"),
    "recover": ("harb 99",),
    "new": ("--name {hostile} -- true", "--provider {hostile}"),
    "send": ("{session} {hostile}", "{other} {hostile}", "{session} --wait 0 x"),
    "queue": (
        *("{session}", "{other}", "{session} --cancel {hostile}", "{session} --show {hostile}"),
        *(f"{{session}} --show {MESSAGE}", f"{{session}} --show {MESSAGE} --json"),
    ),
    "wait": ("{session} --timeout 0", "{other} --timeout 0 --for dialog"),
    "tail": ("{session}", "{other}"),
    "children": ("", "{session}", "{other}"),
    "whoami": ("",),
    "context": ("", "{session}", "enable {session} --cycle 50", "disable {other}", "--watch"),
    "handoff": ("{folder}/none",),
    "cycle": ("{session} --dry-run", "{other} --dry-run"),
    "health": ("", "{session}", "--check"),
    "notifier": ("{folder}/none",),
    "terminal": ("{hostile} 1", "harb 99"),
    "notify": ("", "--json", "--test {hostile}"),
    "quota": ("", "--project {hostile}"),
    "cost": (
        "",
        "--by model",
        "--by model --csv",
        "--project {hostile}",
        "--since {hostile}",
        "--prices",
    ),
    "budget": ("", "--json"),
    "budget raise": (
        "{hostile} 5",
        "harb 1 {hostile}",
        "{session} --session 5",
        "--day 5 {hostile}",
    ),
    "budget lower": ("{hostile}", "harb --project 5"),
    "ledger tell": ("", "{hostile}"),
    "host list": ("", "--json"),
    "host check": ("{hostile}", ""),
    "host remove": ("{hostile}",),
    "host add": ("{hostile}", "127.0.0.1 --name {hostile}", "127.0.0.1 -o Port=1"),
    "host facts": ("{hostile}",),
    "host begin": ("{hostile} 1 --attempt 1 --claim {hostile}",),
    "host report": ("{hostile}",),
    "host job": ("{hostile} 1 --attempt 1 --claim {hostile}",),
    "host look": ("{hostile}",),
    "host adopt": ("{hostile}",),
    "host carry": ("{hostile}",),
    "host wishes": ("",),
    "host link": ("{folder}/{hostile}",),
    "host serve": ("",),
    "hooks install": ("--settings {folder}/s.json",),
    "hooks show": ("--settings {folder}/s.json",),
    "hooks uninstall": ("--settings {folder}/s.json",),
    "mcp install": ("--print",),
    "mcp uninstall": ("claude-code",),
    "mcp secret": ("--new",),
    "mcp grants": ("", "--json"),
    "mcp revoke": ("{hostile}", "--all"),
    "bridge create": ("{hostile} {hostile} --as chat",),
    "bridge get": ("{thread} --as chat", "nonsense"),
    "bridge add": ("{thread} decision {hostile} --as chat", "{thread} {hostile} x"),
    "bridge bind": ("{thread} harb 1", "{thread} {hostile} 1"),
    "bridge read": ("{thread} --as chat",),
    "bridge close": ("{thread}",),
    "init": ("--repo {folder} --yes", "--repo {folder}/clone --yes --force --name {hostile}"),
    "poll": ("--dry-run", ""),
    "start-session": ("harb 1", "harb 99"),
    "uninstall": ("--dry-run",),
    "ci-run": ("{hostile}",),
    "service": ("{hostile}",),
    "react": ("nothing", "harb 99"),
    "react-server": ("nothing x",),
    "rotate": ("nothing",),
    "watch": ("nothing",),
    "git-credential": ("--place https://example.com/a/b get", "--place {hostile} store"),
    "news": ("{folder}/journal.jsonl 0 harb", "{hostile} 0 harb"),
    "reply": ("harb 1 {hostile}", "harb 99 x"),
    "issue close": ("2", "77"),
    "pr close": ("3", "77"),
    "pause": ("{session} --reason {hostile}", "{hostile}"),
    "resume": ("{hostile}", ""),
    "kill": ("{other}", "harb 99"),
    "serve": ("--token-file {folder}/none --listen {hostile}",),
    "mcp": ("--http --token-file {folder}/none",),
}
"""Arguments for each command, in an order in which those that end something come last."""


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that can be called, by what is typed for it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command
    context = click.Context(command)
    names = list(list_verbs()) if command is cli else command.list_commands(context)
    for name in names:
        found = command.get_command(context, name)
        assert found
        yield from leaves(found, f"{path} {name}".strip())


def has_json(command: click.Command) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


@pytest.fixture
def world(
    tmp_path: Path,
    root: Root,
    repository: Repository,
    tmux_socket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    made = make_world(tmp_path, root, repository)
    monkeypatch.setenv("SM_CONFIG", str(tmp_path / "sm.yaml"))
    monkeypatch.chdir(tmp_path)
    # As if it were watched: no monitor is to be started for it.
    # The agent is another process than this one, which calls as a person.
    with (
        lock.hold(made.session.dir.monitor_lock),
        lock.hold(made.other.dir.monitor_lock),
        subprocess.Popen(["tail", "-f", os.devnull], start_new_session=True) as agent,
    ):
        known = procfs.find(agent.pid)
        assert known
        for session in (made.session, made.other):
            session.dir.agent_pid.write_text(f"{known.pid} {known.started}\n")
        yield made
        agent.kill()


def calls_of(world: World, path: str, command: click.Command) -> Iterator[list[str]]:
    for call in CALLS[path]:
        words = [word.replace("''", "").format(**world.names) for word in call.split()]
        yield [*path.split(), *words]
        if has_json(command) and "--watch" not in words:
            yield [*path.split(), "--json", *words]
    parameters = [one for one in command.params if isinstance(one, click.Argument)]
    yield [*path.split(), *[world.names["hostile"]] * max(1, len(parameters))]
    yield [*path.split(), f"--{world.names['hostile']}"]


def test_every_command_has_its_calls_here() -> None:
    assert {path for path, _ in leaves(cli)} == set(CALLS)


@pytest.mark.timeout(900)
def test_no_command_passes_on_what_a_terminal_would_act_upon(
    world: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr("sm.plugins.hosts.ssh.link.REST_S", 0.0)  # it serves nobody here
    commands, wrong, shown = dict(leaves(cli)), [], ""
    for path in CALLS:
        for argv in calls_of(world, path, commands[path]):
            code = run(argv)
            out, err = capfd.readouterr()
            as_json = "--json" in argv
            faults = unsafe(err) + (unsafe(out) if path not in RAW else [])
            if len(err) > ENOUGH or (len(out) > ENOUGH and not as_json):
                faults.append(f"{len(out)} and {len(err)} characters")
            if code == 3:
                faults.append(err[-2000:])
            if as_json and code == 0:
                for value in out.splitlines() if path in JSON_LINES else [out]:
                    json.loads(value)
            if faults:
                wrong.append(f"sm {' '.join(argv)[:120]!a}: {faults[:3]}")
            shown += out[:ENOUGH]
    assert not wrong, "\n".join(wrong)
    assert shown.count("evil") > 100, "the world was not shown"


def test_configuration_with_hostile_words_is_refused_in_words_that_harm_nobody(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = (HOSTILE, f"{HOSTILE!r}: 1", json.dumps({HOSTILE: 1}), json.dumps({"name": LONG}))
    for text in texts:
        (world.folder / "bad.yaml").write_text(text, newline="")
        assert run(["--config", str(world.folder / "bad.yaml"), "status"]) in (1, 2)
        out, err = capfd.readouterr()
        assert not unsafe(out + err)
        assert len(out + err) < ENOUGH


def on_terminal(*argv: str) -> str:
    """What a terminal gets to see of a command."""
    reading, writing = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-Im", "sm", *argv],
        stdin=writing,
        stdout=writing,
        stderr=writing,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "150"},
    ) as process:
        os.close(writing)
        said = b""
        while chunk := _read(reading):
            said += chunk
        process.wait(timeout=HANG_S)
    os.close(reading)
    return said.decode().replace("\r\n", "\n")


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize(
    "argv",
    ["status", "issue list", "issue show 1", "pr show 3", "pr diff 3", "pr diff 3 --stat",
     "trace harb 1", "health", "context", "doctor"],
)  # fmt: skip
def test_terminal_gets_no_sequences_but_our_own_colours(world: World, argv: str) -> None:
    said = on_terminal(*argv.split())
    assert "evil" in said or argv in ("pr diff 3 --stat", "context", "doctor"), said
    assert not unsafe(OWN_COLOURS.sub("", said))
    assert "\x1b[8m" not in said
    assert len(said) < ENOUGH


def test_dev_poll_prints_titles_and_file_names_harmless_and_short(world: World) -> None:
    for option in ("--dry-run", "--once"):
        done = subprocess.run(
            ["bash", "bin/dev-poll", option],
            cwd=REPOSITORY,
            env=os.environ | {"SM_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
        assert not unsafe(done.stdout + done.stderr)
        assert len(done.stdout + done.stderr) < ENOUGH
        assert ".md" in done.stdout


def test_patch_in_a_pipe_stays_as_it_is(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["pr", "diff", "3"]) == 0
    patch = capfd.readouterr().out
    assert "\r" in patch
    assert "\x1b[2J" in patch


def test_what_the_encoding_does_not_have_is_no_error(world: World) -> None:
    done = subprocess.run(
        [sys.executable, "-Im", "sm", "issue", "list"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert b"evil" in done.stdout
