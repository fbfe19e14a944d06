"""The documents are true: every file, command, option, link and example that they name is there."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import os
import re
import shlex
import subprocess
import tokenize
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import click
import pytest

from sm.adapters.agent import codex
from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.forge.local.check_folder import CheckFolder
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.cli.root import cli, list_verbs
from sm.config.schema import ContextMonitor, HandoffCycle
from sm.plugins.forges.rest.state import ForgeFiles
from sm.store.paths import DEFAULT_ROOT, PRIVATE, ProjectDir, Root, SessionDir, StateEntry
from tests.helpers import make_repository
from tests.shell import REPOSITORY

DOCUMENTS = [
    path
    for path in sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])
    if path.name != "CHANGELOG.md"
]
NAMES = [str(path.relative_to(REPOSITORY)) for path in DOCUMENTS]
PROGRAMS = ("dev-poll", "agent-session", "demo", "test", "bench")
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def code(markdown: str) -> Iterator[str]:
    """Every line of the code blocks, and every piece of code within the text."""
    for block in FENCE.findall(markdown):
        yield from block.splitlines()
    yield from re.findall(r"`([^`]+)`", FENCE.sub("", markdown).replace("\n", " "))


def commands(markdown: str, program: str) -> Iterator[list[str]]:
    """The calls of a program, each as its arguments; comments and pipes cut off."""
    for line in code(markdown):
        call = re.match(rf"(?:[\d* ]+ )?(?:\S*/)?{program}(?= |$)(.*)", line)
        if call:
            yield shlex.split(re.split(r" [|&>]", call[1])[0], comments=True)


def anchors(markdown: str) -> set[str]:
    """What GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", markdown), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


# Files and modules

FOLDERS = ("bin", "demo", "docs", "lib", "sm", "tests")
FILE = re.compile(rf"(?<![\w./~{{}}-])(?:{'|'.join(FOLDERS)})/[a-z0-9_./-]*[a-z0-9_]")
MODULE = re.compile(r"(?<![\w./-])sm(?:\.\w+)+")
OTHERS = re.compile(r"sm\.(?:yaml|yml|toml|example\b.*)")
SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((REPOSITORY / folder).rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts and path.suffix in ("", ".py", ".sh")
]
SOURCE_NAMES = {path.name for path in SOURCES}


def remarks(path: Path) -> str:
    """The docstrings and comments of a program, one after another."""
    source = path.read_text()
    if path.suffix != ".py":
        return "\n".join(re.findall(r"(?:^|\s)#(.*)", source))
    read = io.StringIO(source).readline
    found = [
        token.string for token in tokenize.generate_tokens(read) if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
    return "\n".join(found)


@functools.cache
def is_module(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something that a module mentions."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        place = REPOSITORY.joinpath(*parts[:end])
        if place.is_dir():
            return end == len(parts)
        if (module := place.with_suffix(".py")).is_file():
            source = module.read_text()
            return all(re.search(rf"\b{part}\b", source) for part in parts[end:])
    return False


def missing(said: str) -> Iterator[str]:
    """The files and modules of this repository that a text names and that are not there."""
    for name in FILE.findall(said):
        place = REPOSITORY / name
        if not place.exists() and not place.with_suffix(".py").exists():
            yield name
    for name in re.findall(r"`([a-z]\w*\.py)`", said):
        if name not in SOURCE_NAMES:
            yield name
    for name in MODULE.findall(said):
        if not OTHERS.fullmatch(name) and not is_module(name):
            yield name


@pytest.mark.parametrize("name", NAMES)
def test_the_files_that_a_document_names_are_there(name: str) -> None:
    assert not list(missing(text(name)))


def test_the_files_that_docstrings_and_comments_name_are_there() -> None:
    # To take a program apart costs a hundred times what it costs to look through its text.
    suspects = [path for path in SOURCES if any(missing(path.read_text()))]
    found = {path: [*missing(remarks(path))] for path in suspects}
    assert {str(path): names for path, names in found.items() if names} == {}


# Links and pictures


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text(name))):
        if re.match(r"https?:", target):
            continue
        place, _, anchor = target.partition("#")
        path = (REPOSITORY / name).parent / place if place else REPOSITORY / name
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text()), target


def test_the_picture_shows_the_table_and_fetches_nothing() -> None:
    drawn = text("docs/status.svg")
    said = " ".join(ElementTree.fromstring(drawn).itertext()).replace("\xa0", " ")
    for word in ("Phase", "Review", "merged", "approved", "needs you: ", "sm reply"):
        assert word in said
    assert "url(http" not in drawn


def test_the_picture_of_top_shows_a_question_and_fetches_nothing() -> None:
    drawn = text("docs/top.svg")
    said = " ".join(ElementTree.fromstring(drawn).itertext()).replace("\xa0", " ")
    for word in ("need you", "Last words", "escalated", "needs you: ", "sm reply", "type here"):
        assert re.sub(" ", "", word) in re.sub(r"\s", "", said)
    assert "url(http" not in drawn


def test_the_pictures_of_the_page_are_there_in_light_and_dark_and_small() -> None:
    for name in ("README.md", "docs/PAGE.md"):
        named = re.findall(r'(?:src|srcset)="([^"]+)"', text(name))
        found = [(REPOSITORY / name).parent / one for one in named]
        assert [path.name for path in found] == ["page-dark.png", "page-light.png"]
        for path in found:
            assert path.read_bytes().startswith(b"\x89PNG")
            assert path.stat().st_size < 200_000


def test_the_picture_of_contexts_has_the_thresholds_that_hold() -> None:
    drawn = text("docs/context.svg")
    said = " ".join(ElementTree.fromstring(drawn).itertext())
    monitor, cycle = ContextMonitor(), HandoffCycle()
    levels = (monitor.warning_percentage, monitor.critical_percentage, cycle.percentage)
    for level in levels:
        assert f"{level} %" in said
    assert "url(" not in drawn


def test_the_readme_links_every_document() -> None:
    for name in NAMES:
        assert name == "README.md" or f"]({name})" in text("README.md"), name


def test_the_readme_stays_short_and_begins_with_what_a_person_gets() -> None:
    lines = text("README.md").splitlines()
    assert len(lines) < 200
    assert [line for line in lines if len(line) > 100] == []
    assert "What you get" in "".join(lines[:12])


# Commands


@pytest.mark.parametrize("name", NAMES)
def test_commands_of_sm_exist_with_their_options(name: str) -> None:
    for arguments in commands(text(name), "sm"):
        command: click.Command = cli
        words = list(arguments)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            word = words.pop(0)
            found = command.get_command(click.Context(command), word)
            assert found, f"sm {shlex.join(arguments)}"
            command = found
        known = {option for parameter in command.params for option in parameter.opts}
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert word.split("=")[0] in {*known, "--help", "-h"}, f"sm {shlex.join(arguments)}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_other_programs_have_the_options_that_are_named(program: str) -> None:
    prefix = "bin/" if program in ("demo", "test", "bench") else ""
    says_so = (REPOSITORY / "bin" / program).read_text().partition("set -euo")[0]
    for name in NAMES:
        for arguments in commands(text(name), prefix + program):
            for word in arguments:
                # What bin/test does not know itself goes to pytest.
                is_known = not word.startswith("--") or word in says_so
                assert is_known, f"{name}: {shlex.join(arguments)}"


def test_every_verb_that_a_person_may_use_is_in_the_readme() -> None:
    for verb, entry in list_verbs().items():
        assert entry.hidden or f"sm {verb}" in text("README.md"), verb


def test_the_lists_of_json_are_complete() -> None:
    sentence = " ".join(text("docs/SCRIPTS.md").split())
    sentence = sentence.partition("For other languages")[2].partition("know.")[0]
    named = set(re.findall(r"`sm ([a-z ]+)`", sentence))
    offered = {name for name, command in _leaves(cli, "") if _has_json(command)}
    assert named | {"config check"} == offered


def _leaves(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{name} ")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield before + name, command


def _has_json(command: click.Command) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_exit_codes_are_as_documented() -> None:
    from sm.__main__ import INTERRUPTED, UNEXPECTED

    sentence = text("docs/GUIDE.md").partition("Exit codes: ")[2].partition(".")[0]
    named = {int(number) for number in re.findall(r"(?:^|, )(\d+) ", sentence.replace("\n", " "))}
    classes = (SmError, UsageError, TemporaryError)
    assert named == {0, UNEXPECTED, INTERRUPTED, *(each.exit_code for each in classes)}


def test_what_is_said_of_hooks_is_what_the_profiles_have() -> None:
    told = text("docs/PROFILES.md").partition("of every agent.**")[2].partition("## ")[0]
    said = " ".join(told.split())
    of_codex = said.partition("Codex tells of")[2].partition("Any other agent")[0]
    hooked = {name for name, profile in BUILTIN.items() if profile.hooks and profile.program}
    assert hooked == {"claude", "codex"}
    assert said.startswith("Claude Code tells by its hooks")
    for event, words in (
        ("UserPromptSubmit", "prompts"),
        ("Stop", "the end of a turn"),
        ("PermissionRequest", "permission dialogs"),
    ):
        assert event in codex.HOOKS
        assert words in of_codex.partition(".")[0]
    assert "StopFailure" not in codex.HOOKS
    assert "Of a failed turn no hook tells" in of_codex
    assert BUILTIN["codex"].context_pattern
    assert "read off its screen" in of_codex


# State


def rows(heading: str) -> set[str]:
    """The first cells of the table below a heading of docs/STATE.md, without their marks."""
    _, found, section = text("docs/STATE.md").partition(f"\n## {heading}")
    assert found, heading
    table = re.findall(r"^\| (`.+?) \|", section.partition("\n## ")[0], re.MULTILINE)
    return {name for cell in table for name in re.findall(r"`([^`]+)`", cell)}


def paths(place: Root | ProjectDir | SessionDir | ForgeFiles) -> Iterator[Path]:
    """What every entry, property and method of a folder makes of names in braces."""
    values: dict[str, object] = {"project": "{project}", "issue": 7, "session": "{session}"}
    for name, member in vars(type(place)).items():
        if isinstance(member, property | StateEntry):
            yield cast("Path", getattr(place, name))
        elif inspect.isfunction(member) and not name.startswith("_"):
            wanted = list(inspect.signature(member).parameters)[1:]
            if member.__annotations__["return"] == "Path":
                yield getattr(place, name)(*(values[each] for each in wanted))


def test_every_file_of_the_root_is_in_the_table() -> None:
    root = Root(Path("/state"))
    found = {path.relative_to("/state").as_posix() for path in paths(root)}
    found = {name.replace(f"sm-{os.geteuid()}", "sm-{uid}") for name in found}
    found = {re.sub(r"-7(?=[.]|$)", "-{issue}", name) for name in found}
    private = {name.removeprefix("sm-{uid}/") for name in found if name.startswith("sm-{uid}/")}
    assert rows("The root") == {name for name in found if "/" not in name}
    assert rows("Private") == private | {"crash.log", "projects"}
    assert set(PRIVATE) == rows("Private") | {"journal.jsonl.1", "health.jsonl.1"}


@pytest.mark.parametrize(
    ("heading", "folder"),
    [("A project", ProjectDir(Path("/x"))), ("A session", SessionDir(Path("/x")))],
)
def test_every_file_of_a_project_and_a_session_is_in_the_table(
    heading: str, folder: ProjectDir | SessionDir
) -> None:
    added = paths(ForgeFiles(folder.path)) if isinstance(folder, ProjectDir) else ()
    assert rows(heading) == {path.name for path in (*paths(folder), *added)}


def test_the_default_root_is_the_documented_one() -> None:
    assert f"by default `{DEFAULT_ROOT}`" in text("docs/STATE.md")


def test_every_file_of_the_forge_is_in_the_table(tmp_path: Path) -> None:
    from sm.adapters.forge.local import setup
    from sm.adapters.forge.local.folder import ForgeFolder
    from sm.adapters.forge.local.issues import LocalIssues

    setup.create(tmp_path / "forge", make_repository(tmp_path).bare)
    LocalIssues(ForgeFolder(tmp_path / "forge")).add("Mend it", author="ada")
    named = " ".join(rows("The embedded forge"))
    for path in (tmp_path / "forge").iterdir():
        assert path.name in named
    section = text("docs/STATE.md").partition("\n## The embedded forge")[2]
    check = CheckFolder(Path("/x"))
    for file in (check.result, check.log, check.lock, check.starts, check.process):
        assert f"`{file.name}`" in section


# Examples


FAKE_AGENT = r"""#!/usr/bin/env bash
[[ -e crashed ]] || { touch crashed && exit 1; }
file=$(sed -n "s/.*> '\(.*\)'/\1/p" <<<"$1")
[[ -e asked ]] || { touch asked && printf 'PHASE:escalate\nwhich version?\n' >"$file" && exec cat; }
printf 'PHASE:done\n' >"$file"
exec cat
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example of docs/SCRIPTS.md, with an agent that dies, asks, and then is done."""
    found = next(block for block in FENCE.findall(text("docs/SCRIPTS.md")) if "#!" in block)
    for name, content in (("claude", FAKE_AGENT), ("example", found)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SM", str(REPOSITORY))
    monkeypatch.setenv("PHASE_POLL_INTERVAL", "0.1")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # A server that loses its last session ends, and may take with it who comes at that moment.
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "other"], check=True)
    yield tmp_path / "example"
    subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)


def test_the_example_script_works(script: Path) -> None:
    asked = subprocess.run([script], capture_output=True, text=True, check=True).stdout
    assert asked == "it asks: which version?\nanswer it with: tmux attach -t release-notes\n"
    subprocess.run(["tmux", "kill-session", "-t", "=release-notes"], check=True)

    done = subprocess.run([script], capture_output=True, text=True, check=True).stdout
    assert done == "there are release notes\n"
    left = subprocess.run(["tmux", "list-sessions"], capture_output=True, text=True, check=False)
    assert "release-notes" not in left.stdout


def test_the_example_of_several_projects_can_be_read(tmp_path: Path) -> None:
    from sm.config.load import load

    blocks = [block for block in FENCE.findall(text("docs/GUIDE.md")) if "projects:" in block]
    (tmp_path / "sm.yaml").write_text(blocks[0])
    config = load(None, {"HOME": str(tmp_path)}, tmp_path)
    assert [project.name for project in config.projects] == ["shop", "web"]
    assert {project.max_sessions for project in config.projects} == {1}
