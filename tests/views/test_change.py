"""Patches are read as git means them, and no line of them is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sm.views.change import ChangedFile, DiffLineKind, read_files
from tests.chance import dice
from tests.helpers import git

NAMES = (
    "plain.py",
    "with blank.txt",
    "ä ö.txt",
    "日本.md",
    'quo"te\t.txt',
    "back\\slash",
    "two\nlines",
    "a b/a b/c",
    "--- a",
    "\u202egnp.exe",
    "-rf",
)
LINES = [
    "",
    "  indented",
    "-- sql",
    "++ more",
    "@@ -1 +1 @@",
    "diff --git a/x b/x",
    "x\r",
    "\x0c",
    "ü",
]
"""Contents that look like parts of a patch, or that others would take for the end of a line."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    git(tmp_path, "init", "-q", str(path))
    (path / "first").write_text("x\n")
    commit(path)
    return path


def commit(repo: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "work")


def read_git(repo: Path, *args: str) -> bytes:
    return subprocess.run(["git", "-C", str(repo), *args], capture_output=True, check=True).stdout


def diff(repo: Path, *options: str) -> bytes:
    return read_git(repo, "diff", *options, "HEAD~1", "HEAD")


def read_one(repo: Path) -> ChangedFile:
    (found,) = read_files(diff(repo))
    return found


def change_at_random(repo: Path, seed: int) -> None:
    """Fill files at random, commit them, and change, move or remove some."""
    rng = dice(seed)
    contents = {name: [rng.choice(LINES) + str(n) for n in range(40)] for name in NAMES}

    def write(name: str) -> None:
        ending = rng.choice(["\n", ""])
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(("\n".join(contents[name]) + ending).encode())

    for name in rng.sample(NAMES, 8):
        write(name)
    commit(repo)
    for name in NAMES:
        path = repo / name
        match rng.randrange(5):
            case 0 if path.exists():
                path.unlink()
            case 1 if path.exists():
                path.rename(repo / f"moved-{len(name)}")
            case 2:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(rng.randbytes(50) + b"\0")
            case 3:
                at = rng.randrange(40)
                contents[name][at : at + rng.randrange(5)] = rng.sample(LINES, rng.randrange(5))
                write(name)
            case _ if path.exists():
                path.chmod(0o755)
    (repo / "always").write_text("there\n")
    commit(repo)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("option", ["-M", "--no-renames", "-U0", "--binary", "-w"])
def test_names_and_counts_are_those_of_git(repo: Path, seed: int, option: str) -> None:
    change_at_random(repo, seed)
    told = diff(repo, "--numstat", "-z", option).decode().split("\0")
    wanted = set[tuple[str, str, str, str]]()
    while told[0]:
        added, removed, name = told.pop(0).split("\t", 2)
        old, new = (name, name) if name else (told.pop(0), told.pop(0))
        wanted.add((old, new, added, removed))
    found = read_files(diff(repo, option))
    counts = {True: ("-", "-")}
    assert {
        (one.old_path, one.path, *counts.get(one.is_binary, (str(one.added), str(one.removed))))
        for one in found
    } == wanted


@pytest.mark.parametrize("seed", range(4))
def test_each_number_is_that_of_its_line(repo: Path, seed: int) -> None:
    change_at_random(repo, seed)
    for file in read_files(diff(repo)):
        for hunk in file.hunks:
            for line in hunk.lines:
                for rev, name, number in (
                    ("HEAD~1", file.old_path, line.old),
                    ("HEAD", file.path, line.new),
                ):
                    if number:
                        content = _read_content(repo, rev, name)
                        assert content[number - 1] == line.text


def _read_content(repo: Path, rev: str, name: str) -> list[str]:
    return read_git(repo, "show", f"{rev}:{name}").decode().split("\n")


@pytest.mark.parametrize("seed", range(3))
def test_a_patch_that_is_cut_anywhere_loses_no_line(repo: Path, seed: int) -> None:
    change_at_random(repo, seed)
    patch = diff(repo)
    for end in dice(seed).sample(range(len(patch)), 40):
        cut = patch[:end]
        bodies = 0
        for part in cut.split(b"\ndiff --"):
            lines = part.removesuffix(b"\n").split(b"\n")
            start = next(
                (at for at, line in enumerate(lines) if line.startswith(b"@@")), len(lines)
            )
            bodies += sum(not line.startswith(b"@@") for line in lines[start:])
        found = read_files(cut)
        assert sum(len(hunk.lines) for file in found for hunk in file.hunks) == bodies


def test_a_line_behind_those_that_are_counted_is_shown() -> None:
    patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+hidden?\nunknown\n"
    (file,) = read_files(patch)
    kinds = [(line.kind, line.text) for line in file.hunks[0].lines]
    assert kinds[2:] == [(DiffLineKind.ADDED, "hidden?"), (DiffLineKind.NOTE, "unknown")]
    assert file.added == 2


def test_a_new_mode_and_a_missing_end_of_line_are_told(repo: Path) -> None:
    (repo / "first").write_text("y")
    (repo / "first").chmod(0o755)
    commit(repo)
    found = read_one(repo)
    assert found.notes == ("old mode 100644", "new mode 100755")
    assert found.hunks[0].lines[-1].text == r"\ No newline at end of file"


def test_a_digest_is_of_the_lines_and_not_of_where_they_are(repo: Path) -> None:
    text = "".join(f"{n}\n" for n in range(30))
    (repo / "first").write_text(text)
    commit(repo)
    (repo / "first").write_text(text.replace("20\n", "twenty\n"))
    commit(repo)
    before = read_one(repo).digest
    (repo / "first").write_text("above\n" + text)
    commit(repo)
    (repo / "first").write_text("above\n" + text.replace("20\n", "twenty\n"))
    commit(repo)
    assert read_one(repo).digest == before
    (repo / "first").write_text("above\n" + text.replace("20\n", "zwanzig\n"))
    git(repo, "commit", "-q", "--amend", "-a", "-m", "work")
    assert read_one(repo).digest != before
