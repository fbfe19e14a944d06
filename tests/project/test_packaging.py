"""What is installed from a wheel or a source distribution does what a clone does."""

from __future__ import annotations

import os
import shutil
import signal
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.helpers import git
from tests.shell import REPOSITORY

BUILD = "import sys, setuptools.build_meta as backend; getattr(backend, sys.argv[1])(sys.argv[2])"


def clean_copy(folder: Path) -> Path:
    """The files that git knows, as they are now, and what an untidy clone has besides."""
    copy = folder / "copy"
    if (REPOSITORY / ".git").exists():
        names = git(REPOSITORY, "-c", "safe.directory=*", "ls-files", "-z").split("\0")
        for name in filter(None, names):
            if (REPOSITORY / name).exists():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, copy / name)
    else:
        shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(".venv", "build"))
    for litter in ("demo/__pycache__/agent.cpython-311.pyc", "lib/__pycache__/x.pyc"):
        (copy / litter).parent.mkdir(parents=True, exist_ok=True)
        (copy / litter).touch()
    (copy / "lib" / "hooks").mkdir(exist_ok=True)
    (copy / "lib" / "hooks" / "probe").touch()
    return copy


def build(source: Path, what: str) -> Path:
    """Build with the tools at hand, so that no network is needed; returns the file."""
    out = source.parent / what
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(out)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(clean_copy(tmp_path_factory.mktemp("wheel")), "build_wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel, which borrows the libraries of this one."""
    environment = tmp_path_factory.mktemp("installed") / "my env"
    venv.create(environment, with_pip=False, symlinks=True)
    (site_packages,) = environment.glob("lib/python3*/site-packages")
    (site_packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    python = environment / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    subprocess.run([*command, "--no-index", str(wheel)], check=True, capture_output=True)
    return environment / "bin"


def test_wheel_carries_the_shell_half_and_no_litter(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shell = {name for name in names if name.startswith("sm/shell/")}
    commands = {f"sm/shell/bin/{name}" for name in ("sm", "dev-poll", "agent-session")}
    sourced = {f"sm/shell/lib/{file.name}" for file in (REPOSITORY / "lib").glob("*.sh")}
    programs = {f"sm/shell/lib/{name}" for name in ("launch", "hooks/probe", "agent/git")}
    assert commands | sourced | programs <= shell
    assert not {name for name in names if "__pycache__" in name or name.startswith("tests/")}
    assert not shell & {"sm/shell/bin/bench", "sm/shell/bin/soak", "sm/shell/bin/test"}


def test_every_module_is_in_the_wheel(wheel: Path) -> None:
    tracked = git(REPOSITORY, "-c", "safe.directory=*", "ls-files", "sm").split("\n")
    with zipfile.ZipFile(wheel) as archive:
        assert not {name for name in tracked if (REPOSITORY / name).exists()} - set(
            archive.namelist()
        )


def test_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(clean_copy(tmp_path), "build_sdist")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path / "unpacked"], check=True)
    (source,) = (tmp_path / "unpacked").iterdir()
    assert (source / ".ci" / "run").stat().st_mode & 0o100
    again = build(source, "build_wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert set(first.namelist()) == set(second.namelist())


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (["sm", "--version"], "sm"),
        (["sm", "--help"], "Usage: sm"),
        (["dev-poll", "--help"], "Usage: dev-poll"),
        (["agent-session", "--help"], "Usage: agent-session"),
    ],
)
def test_installed_command_works_anywhere(
    installed: Path, tmp_path: Path, command: list[str], answer: str
) -> None:
    done = subprocess.run(
        [installed / command[0], *command[1:]],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(answer)


def test_installed_command_dies_quietly_when_nobody_reads(installed: Path) -> None:
    """Python ignores SIGPIPE, and what it becomes would go on writing and complaining."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [installed / "dev-poll", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_installed_shell_runs_the_installed_core(installed: Path, tmp_path: Path) -> None:
    """Both ways lead to the wheel, not to the clone that the libraries are borrowed from."""
    done = subprocess.run(
        [installed / "dev-poll", "--once", "--config", "none.yaml"],
        cwd=tmp_path,
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("sm: ")
    assert "none.yaml" in done.stderr
    script = "import sm, sm.shell_root; print(sm.__file__, sm.shell_root.find_shell_root())"
    found = subprocess.run(
        [installed / "python", "-Ic", script], capture_output=True, text=True, check=True
    ).stdout
    assert found.count(str(installed.parent)) == 2
