from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sm.__main__ import run
from sm.base.errors import SmError, TemporaryError
from sm.base.plugin import Verb
from sm.base.version import version
from sm.cli.arguments import project_issue
from sm.cli.options import project_option, projects_option
from sm.cli.root import COMMANDS, arrange, cli, list_verbs
from sm.config.schema import ProjectSettings
from sm.store.paths import Root
from tests.helpers import wait_for

CONFIG = """
projects:
  - {name: harb, repo: a, forge: {kind: local, path: f}}
  - {name: reef, repo: b, forge: {kind: local, path: f}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sm.yaml"
    path.write_text(CONFIG)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return path


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A verb of the test's own, `try`, whose module prints or raises what the test wants."""
    folder = tmp_path / "verbs"
    folder.mkdir()
    monkeypatch.setattr("sm.cli.__path__", [*sys.modules["sm.cli"].__path__, str(folder)])
    monkeypatch.setitem(COMMANDS, "try", Verb("try_", "A verb for tests."))
    monkeypatch.delitem(sys.modules, "sm.cli.try_", raising=False)
    return str(folder / "try_.py")


def write_verb(path: str, body: str) -> None:
    Path(path).write_text(
        "import os, sys, click\n"
        "from sm.cli.options import *\n"
        "from sm.base.errors import *\n"
        f"@click.command()\n@click.option('--number', type=int)\ndef command(number):\n    {body}\n"
    )
    sys.modules.pop("sm.cli.try_", None)


def sm(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-Im", "sm", *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
    )


# -- the table -----------------------------------------------------------------------------------


def test_help_imports_no_verb_and_nothing_heavy() -> None:
    code = (
        "import sys\nfrom sm.__main__ import run\nrun(['--help'])\n"
        "heavy = {'yaml', 'msgspec', 'shutil', 'rich', 'sh', 'tenacity', 'asyncio', 'subprocess'}\n"
        "verbs = {m for m in sys.modules if m.startswith('sm.cli.')}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(verbs))\n"
    )
    sm("--help")  # which notes what plugins are installed
    done = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True)
    expected = "[] ['sm.cli.invocation', 'sm.cli.passes', 'sm.cli.root']"
    assert done.stdout.splitlines()[-1] == expected


def test_a_pass_imports_nothing_that_it_does_not_need() -> None:
    """It is what runs most of all, and imports are most of its time."""
    heavy = {"click", "dataclasses", "rich", "sh", "tenacity", "yaml", "difflib", "shutil"}
    heavy |= {"httpx2", "httpcore2", "ssl", "email"}
    code = (
        "import sys\nfrom sm.__main__ import run\nrun(['react', 'gone'])\n"
        "import sm.issues.act.reactor, sm.personal.reactor, sm.context.run\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_help_names_every_verb_but_the_hidden_ones() -> None:
    done = sm("--help")
    assert done.returncode == 0
    for name, verb in list_verbs().items():
        assert (f"\n  {name} " in done.stdout) is not verb.hidden


ORDER = (
    *("init", "config", "doctor", "notify", "host", "issue", "pr", "ci", "sync", "review", "reply"),
    *("status", "needs", "top", "trace", "events", "logs", "attach", "worktree", "recover"),
    *("pause", "resume", "kill", "new", "send", "queue"),
    *("wait", "tail", "children", "whoami", "context", "handoff", "cycle", "health", "quota"),
    *("cost", "budget", "hooks", "serve", "bridge", "mcp", "uninstall"),
)


def test_the_help_has_the_verbs_of_our_plugins_among_the_others() -> None:
    assert tuple(cli.list_commands(click.Context(cli))) == ORDER


@pytest.mark.parametrize("columns", ["", "0", "no", "20", "60", "200"])
def test_the_help_is_as_wide_as_click_has_it(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    formatter = click.Context(cli).make_formatter()  # without a width: by shutil
    cli.format_help(click.Context(cli), formatter)
    assert click.Context(cli).get_help() == formatter.getvalue().rstrip("\n")


def test_a_verb_stands_behind_the_one_that_it_names_whatever_comes_first() -> None:
    own = {name: Verb(name, "") for name in "ab"}
    added = {
        "second": Verb("", "", after="first"),
        "first": Verb("", "", after="a"),
        "lost": Verb("", "", after="nothing"),
        "also": Verb("", "", after="a"),
        "last": Verb("", ""),
    }
    assert [*arrange(own, added)] == ["a", "first", "second", "also", "b", "lost", "last"]


def test_every_verb_of_the_table_is_a_command() -> None:
    ctx = click.Context(cli)
    for name in list_verbs():
        assert isinstance(cli.get_command(ctx, name), click.Command), name


def test_no_arguments_show_the_help_but_are_an_error() -> None:
    done = sm()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: sm ")


def test_version() -> None:
    done = sm("--version")
    assert done.returncode == 0
    assert done.stdout == f"sm {version()}\n"


# -- how it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["statsu"], "sm: no such command 'statsu': did you mean 'status'?"),
        (["react-"], "sm: no such command 'react-': see 'sm --help'"),
        (["xyz"], "sm: no such command 'xyz': see 'sm --help'"),
        (["--bad"], "sm: no such option '--bad': see 'sm --help'"),
        (["try", "--number", "x"], "sm: invalid value for '--number': 'x' is not a valid integer"),
        (["try", "more"], "sm: got unexpected extra argument (more): see 'sm try --help'"),
    ],
)
def test_usage_errors_are_one_line(
    verb: str, capsys: pytest.CaptureFixture[str], args: list[str], line: str
) -> None:
    write_verb(verb, "pass")
    assert run(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("raise SmError('it failed: do so')", SmError.exit_code, "sm: it failed: do so\n"),
        ("raise TemporaryError('wait')", TemporaryError.exit_code, "sm: wait\n"),
        ("raise SmError('two\\n  lines \\x1b[31m')", 1, "sm: two lines\n"),
        ("raise KeyboardInterrupt", 130, "sm: interrupted\n"),
        ("raise EOFError", 2, "sm: no answer: the input has ended\n"),
        ("click.get_current_context().exit(7)", 7, ""),
        ("pass", 0, ""),
    ],
)
def test_every_end_has_its_exit_code(
    verb: str, capsys: pytest.CaptureFixture[str], body: str, code: int, line: str
) -> None:
    write_verb(verb, body)
    assert run(["try"]) == code
    assert capsys.readouterr().err.strip() == line.strip()


def test_an_unexpected_error_leaves_its_traceback_in_a_log(
    verb: str, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    write_verb(verb, "raise ValueError('odd')")
    assert run(["try"]) == 3
    log = root.private / "crash.log"
    assert capsys.readouterr().err == f"sm: unexpected error: ValueError: odd: see '{log}'\n"
    assert "sm try\nTraceback (most recent call last):" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert run(["try"]) == 3
    assert log.read_text().count("Traceback") == 2


def test_without_a_place_for_the_log_the_traceback_is_shown(
    verb: str, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    root.private.write_text("in the way")
    write_verb(verb, "raise ValueError('odd')")
    assert run(["try"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("\nsm: unexpected error: ValueError: odd\n")


def test_a_missing_module_fails_only_when_it_is_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(COMMANDS, "ghost", Verb("ghost", "Not there."))
    assert run(["--help"]) == 0
    assert "ghost" in capsys.readouterr().out
    assert run(["ghost"]) == 2
    assert capsys.readouterr().err == "sm: 'sm ghost' is missing from this installation\n"


def test_a_reader_that_goes_away_is_no_error_to_speak_of() -> None:
    code = (
        "import sys, click, sm.__main__, sm.cli.root as r\n"
        "@click.command()\ndef command():\n"
        "    for _ in range(9999): click.echo('x' * 80)\n"
        "r.cli.get_command = lambda ctx, name: command\n"
        "sys.argv = ['sm', 'status']\nsm.__main__.main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-Ic", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_short_output_that_nobody_reads_is_quiet_too() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-Im", "sm", "--help"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, b"")


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        "import sys, time, pathlib, click, sm.__main__, sm.cli.root as r\n"
        "@click.command()\ndef command():\n"
        f"    pathlib.Path({str(ready)!r}).touch(); time.sleep(60)\n"
        "r.cli.get_command = lambda ctx, name: command\n"
        "sys.argv = ['sm', 'status']\nsm.__main__.main()\n"
    )
    with subprocess.Popen([sys.executable, "-Ic", code], stderr=subprocess.PIPE) as process:
        wait_for(ready.exists, "the command to run")
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1].strip() == b"sm: interrupted"
    assert process.returncode == 130


# -- shared options ------------------------------------------------------------------------------


def give(monkeypatch: pytest.MonkeyPatch, command: click.Command) -> None:
    monkeypatch.setattr(cli, "get_command", lambda ctx, name: command)


@click.command()
@project_issue
def _on_issue(project: ProjectSettings, issue: int) -> None:
    click.echo(f"{project.name} {issue}")


@click.command()
@project_option
def _on_one(project: ProjectSettings) -> None:
    click.echo(project.name)


@click.command()
@projects_option
def _on_some(projects: tuple[ProjectSettings, ...]) -> None:
    click.echo(" ".join(project.name for project in projects))


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize(
    ("command", "args", "out"),
    [
        (_on_issue, ["harb", "42"], "harb 42"),
        (_on_one, ["--project", "reef"], "reef"),
        (_on_some, ["--project", "reef"], "reef"),
        (_on_some, [], "harb reef"),
    ],
)
def test_shared_options_give_what_was_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: click.Command,
    args: list[str],
    out: str,
) -> None:
    give(monkeypatch, command)
    assert run(["status", *args]) == 0
    assert capsys.readouterr().out == f"{out}\n"


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (_on_issue, ["hrab", "42"], "no project 'hrab' in '{config}': did you mean 'harb'?"),
        (_on_issue, ["zz", "42"], "no project 'zz' in '{config}': there is 'harb', 'reef'"),
        (_on_issue, ["harb", "0"], "'0' is no issue number: use a whole number from 1 up"),
        (_on_issue, ["harb", "../1"], "'../1' is no issue number: use a whole number from 1 up"),
        (_on_issue, ["harb", "9" * 10], f"'{'9' * 10}' is no issue number"),
        (_on_one, [], "name one with --project, or be in its clone: there is 'harb', 'reef'"),
    ],
)
def test_shared_options_refuse_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: Path,
    command: click.Command,
    args: list[str],
    expected: str,
) -> None:
    give(monkeypatch, command)
    assert run(["status", *args]) == 2
    assert expected.format(config=config) in capsys.readouterr().err


def test_the_only_project_needs_no_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("{name: harb, repo: a, forge: {kind: local, path: f}}")
    give(monkeypatch, _on_one)
    assert run(["--config", str(path), "status"]) == 0
    assert capsys.readouterr().out == "harb\n"
