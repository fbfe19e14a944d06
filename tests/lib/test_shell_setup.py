from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pip
import pytest

from tests.helpers import HANG_S, wait_for
from tests.shell import REPOSITORY, lines

pytestmark = pytest.mark.long_lived

NOBODY = 65534

BACKEND = '''
"""Builds an editable wheel of the folder `src` with nothing but the standard library."""
import os, pathlib, time, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path.cwd()
    with (here / "builds").open("a") as builds:
        builds.write(f"{config_settings}\\n")
    while (here / "hang").exists():
        time.sleep(0.02)
    if (here / "broken").exists():
        raise SystemExit("the backend is broken")
    name = "sm_tiny-1-py3-none-any.whl"
    info = "sm_tiny-1.dist-info"
    parts = {
        "sm_tiny.pth": f"{here}/src",
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: sm-tiny\\nVersion: 1",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any",
    }
    parts[f"{info}/RECORD"] = "\\n".join(f"{part},," for part in [*parts, f"{info}/RECORD"])
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for part, content in parts.items():
            wheel.writestr(part, content + "\\n")
    return name
'''

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


class Clone:
    """A fresh clone of a tiny project with our shell half; setting it up needs no network."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "src" / "sm").mkdir(parents=True)
        (path / "src" / "sm" / "__init__.py").touch()
        (path / "src" / "sm" / "__main__.py").write_text("import sys; print(*sys.argv[1:])")
        (path / "backend.py").write_text(BACKEND)
        (path / "pyproject.toml").write_text(PYPROJECT)
        (path / "setup.cfg").write_text("[metadata]\n")
        (path / "bin").mkdir()
        (path / "lib").mkdir()
        shutil.copy(REPOSITORY / "bin" / "sm", path / "bin")
        for name in ("common.sh", "setup.sh"):
            shutil.copy(REPOSITORY / "lib" / name, path / "lib")

    def start(self, *args: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.path / "bin" / "sm", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )

    def sm(self, *args: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*args, **environment)
        out, err = process.communicate(timeout=HANG_S)
        return process.returncode, out, err

    def give_environment(self) -> None:
        """An environment as a set-up makes it, in a tenth of the time: pip is borrowed."""
        environment = self.path / ".venv"
        venv.create(environment, with_pip=False, symlinks=True)
        (borrowed,) = (Path(found) for found in pip.__path__)
        (site_packages,) = environment.glob("lib/python3*/site-packages")
        (site_packages / "pip").symlink_to(borrowed)

    @property
    def builds(self) -> int:
        return len(lines(self.path / "builds"))

    @property
    def announcement(self) -> str:
        return f"sm: setting up (once): {self.path}/.venv\n"

    def change(self, name: str, more: str) -> None:
        """Make a file newer than the stamp, with `more` in it."""
        file, stamp = self.path / name, self.path / ".venv" / "sm-setup"

        def changed() -> bool:
            file.write_text(file.read_text() + more)
            return file.stat().st_mtime_ns > stamp.stat().st_mtime_ns

        wait_for(changed, "the clock to go on")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "a clone")


@pytest.fixture
def prepared(clone: Clone) -> Clone:
    """A clone that only lacks what pip installs."""
    clone.give_environment()
    return clone


def test_first_call_sets_up_and_the_next_ones_pay_nothing(clone: Clone) -> None:
    assert clone.sm("a", "b c") == (0, "a b c\n", clone.announcement)
    assert lines(clone.path / "builds") == ["{'editable_mode': 'compat'}"]
    # The slow part of the shell is not even read any more.
    (clone.path / "lib" / "setup.sh").unlink()
    assert clone.sm("x", PATH="/usr/bin:/bin") == (0, "x\n", "")
    leftovers = {file.name for file in (clone.path / ".venv").iterdir() if file.is_file()}
    leftovers.discard(".gitignore")  # of venv, from Python 3.13 on
    assert leftovers == {"pyvenv.cfg", "setup.log", "sm-setup"}


def test_changed_dependencies_are_installed_and_a_mere_checkout_is_not(prepared: Clone) -> None:
    assert prepared.sm()[0] == 0
    prepared.change("setup.cfg", "")
    assert prepared.sm() == (0, "\n", "")
    assert prepared.builds == 1
    prepared.change("setup.cfg", "# more\n")
    assert prepared.sm() == (0, "\n", prepared.announcement)
    assert prepared.builds == 2
    moved = prepared.path.rename(prepared.path.with_name("moved"))
    moved_clone = Clone.__new__(Clone)
    moved_clone.path = moved
    assert moved_clone.sm("z") == (0, "z\n", moved_clone.announcement)
    pth = next((moved / ".venv").rglob("sm_tiny.pth"))
    assert pth.read_text() == f"{moved}/src\n"


def test_several_first_calls_set_up_once(prepared: Clone) -> None:
    (prepared.path / "hang").touch()
    first = prepared.start("first")
    wait_for(lambda: prepared.builds, "the first set-up")
    others = [prepared.start("other") for _ in range(3)]
    for other in others:
        assert other.stderr
        assert other.stderr.readline() == "sm: another set-up is running: waiting for it\n"
    (prepared.path / "hang").unlink()
    assert first.communicate(timeout=HANG_S) == ("first\n", prepared.announcement)
    assert [other.communicate(timeout=HANG_S) for other in others] == [("other\n", "")] * 3
    assert prepared.builds == 1


def test_failure_is_shown_and_the_next_call_tries_again(prepared: Clone) -> None:
    (prepared.path / "broken").touch()
    status, out, err = prepared.sm()
    assert (status, out) == (1, "")
    assert "the backend is broken" in err
    assert err.splitlines()[-1] == (
        f"sm: setting up failed: see '{prepared.path}/.venv/setup.log', mend it and try again"
    )
    (prepared.path / "broken").unlink()
    assert prepared.sm("well") == (0, "well\n", prepared.announcement)


def test_killed_set_up_is_begun_anew(clone: Clone) -> None:
    clone.give_environment()
    (clone.path / "hang").touch()
    process = clone.start()
    wait_for(lambda: clone.builds, "the set-up")
    half = clone.path / ".venv" / "half"
    half.touch()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=HANG_S)
    (clone.path / "hang").unlink()
    status, out, err = clone.sm("again")
    assert (status, out) == (0, "again\n")
    assert err.endswith(clone.announcement)  # the last of the killed may just be dying
    assert not half.exists()


def test_half_removed_environment_is_made_anew_and_its_base_is_left_alone(clone: Clone) -> None:
    """Without its pyvenv.cfg its Python is the machine's own, with a pip that would serve."""
    clone.give_environment()
    settings = clone.path / ".venv" / "pyvenv.cfg"
    settings.unlink()
    status, out, _ = clone.sm("again", PIP_REQUIRE_VIRTUALENV="1")
    assert (status, out) == (0, "again\n")
    assert settings.exists()


def test_missing_programs_are_named_in_one_line(clone: Clone, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    (few / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("bash", "env", "flock"):
        program = shutil.which(name)
        assert program
        (few / name).symlink_to(program)
    status, out, err = clone.sm(PATH=str(few))
    assert (status, out) == (1, "")
    assert err.startswith("sm: missing: tmux git; run apt-get install tmux git")
    assert err.count("\n") == 1
    assert not (clone.path / ".venv").exists()


def test_installed_shell_without_its_interpreter_says_what_to_do(clone: Clone) -> None:
    (clone.path / "setup.cfg").unlink()
    status, _, err = clone.sm()
    assert status == 1
    assert err == (
        f"sm: '{clone.path}' is no clone: set SM_PYTHON to the Python that sm is installed in\n"
    )


def test_environment_of_another_user_is_left_alone(clone: Clone, tmp_path: Path) -> None:
    """Also for an ordinary user: `/usr` is root's, and what is behind the link is what counts."""
    theirs = Path("/usr")
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
    (clone.path / ".venv").symlink_to(theirs)
    status, out, err = clone.sm("x")
    assert (status, out) == (1, "")
    assert err == (
        f"sm: '{clone.path}/.venv' is another user's, and cannot be used as it is: make a clone of "
        "your own, or set SM_PYTHON to a Python that has sm\n"
    )
    assert (clone.path / ".venv").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_else_cannot_undo_the_set_up_of_a_clone() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        clone = Clone(Path(folder) / "clone")
        for environment in (False, True):
            if environment:
                # The interpreter is where only its owner may go, as in a HOME with mode 700.
                (clone.path / ".venv" / "bin").mkdir(parents=True)
                (clone.path / ".venv" / "bin" / "python").symlink_to("/root/nowhere/python")
                (clone.path / ".venv").chmod(0o777)
            done = subprocess.run(
                ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                 str(clone.path / "bin" / "sm"), "x"],
                capture_output=True, text=True, check=False, timeout=HANG_S,
            )  # fmt: skip
            assert done.returncode == 1
            assert "make a clone of your own" in done.stderr
            assert done.stderr.count("\n") == 1
            assert (clone.path / ".venv" / "bin" / "python").is_symlink() == environment


@pytest.mark.parametrize("noise", ["\x1b]52;c;eA==\x07", "\u009b2J", "\u202e", "\x7f"])
def test_what_set_up_tells_of_others_harms_no_terminal(prepared: Clone, noise: str) -> None:
    (prepared.path / "backend.py").write_text(f"raise SystemExit({'evil' + noise!r} * 2000)")
    status, _, err = prepared.sm()
    assert status == 1
    assert "evil" in err
    assert not [c for c in err if c != "\n" and not c.isprintable()]
    assert len(err) < 100_000
