"""Programs from npm that tests are run with: pinned, installed once, in folders of their own."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

INSTALL_TIMEOUT_S = 900.0
PATIENCE_S = 60.0
"""With a registry that does not answer. npm itself waits five minutes, three times."""
LONGEST_REASON = 300
CACHE = Path(__file__).parents[2] / ".cache"
ERROR = re.compile(r"npm (?:error|ERR!)(.*)")
BESIDE = re.compile(r"complete log of this run|\.log$|^ +at ")
RELEASE = re.compile(r"\d+\.\d+\.\d+")

required = bool(os.environ.get("SM_REQUIRE_CLIENTS"))
"""Whether it is a failure that they cannot be installed, and no reason to leave tests out."""

given_up = bool(os.environ.get("SM_TEST_WITHOUT_CLIENTS"))
"""Whether it was tried in vain. Then not every test tries it again."""

# The fixture that seals a test's environment takes these away.
_kept = ("home", "path", "https_proxy", "http_proxy", "no_proxy", "node_extra_ca_certs")
_person = {
    name: value
    for name, value in os.environ.items()
    if name.lower() in _kept or name.lower().startswith("npm_config_")
}


_given = set[Path]()
"""Folders that the environment names. They are a person's own, and are not deleted."""


class InstallError(Exception):
    """The packages cannot be installed; the text says why, in one line."""


class WrongFolderError(InstallError):
    """A folder that a person has named holds something else."""


@dataclass(frozen=True)
class Packages:
    """What is installed together; `name` says what it is, `pinned` are names with versions."""

    name: str
    folder: Path
    pinned: tuple[str, ...]
    programs: tuple[Path, ...]
    options: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What to say where there is nothing to install them with."""
        return f"there is no npm to install {self.name} with"

    def installed(self) -> bool:
        """Install what is not there yet; False where there is nothing to do it with.

        A folder that the environment names is used as it is, whatever versions are in it.

        Raises:
            WrongFolderError: that folder holds something else.
            InstallError: npm has failed.

        """
        if self.is_there():
            return True
        if self.folder in _given and self.folder.exists() and any(self.folder.iterdir()):
            if all((self.folder / program).exists() for program in self.programs):
                return True
            raise WrongFolderError(
                f"'{self.folder}' lacks {self.name}, and is left alone: name a folder with them, "
                "or one that is not there yet"
            )
        if not find("npm"):
            return False
        self._install_once()
        return True

    def ready(self) -> None:
        """Install what is not there yet, for a test: it is skipped where that cannot be done.

        It fails there if they are required.
        """
        global given_up
        why = f"cannot install {self.name}"
        try:
            if (not given_up or self.is_there()) and self.installed():
                return
            why = why if given_up else self.missing
        except WrongFolderError as error:
            pytest.fail(str(error))
        except InstallError as error:
            given_up, why = True, str(error)
        (pytest.fail if required else pytest.skip)(why)

    def is_there(self) -> bool:
        """Whether nothing is left to be installed."""
        return self._is_there(self.folder)

    def _is_there(self, folder: Path) -> bool:
        """Whether all of it is in `folder`, in the versions that are pinned."""
        return all((folder / program).exists() for program in self.programs) and all(
            _version(folder, name) == version
            for name, _, version in (package.rpartition("@") for package in self.pinned)
        )

    def _install_once(self) -> None:
        folder = self.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._is_there(folder):
                return
            print(f"installing {self.name} that the tests are run with: once", flush=True)
            beside = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
            try:
                self.install(beside)
                if folder not in _given:
                    shutil.rmtree(folder, ignore_errors=True)  # of an older pin, or half of one
                beside.rename(folder)
            finally:
                shutil.rmtree(beside, ignore_errors=True)

    def install(self, folder: Path) -> None:
        """Install it into a new folder.

        Raises:
            InstallError: npm has failed.

        """
        self._ask_registry()
        quiet = ("--no-audit", "--no-fund")
        where = ("--prefix", str(folder))
        self._npm(INSTALL_TIMEOUT_S, "install", *quiet, *self.options, *where, *self.pinned)
        if not self._is_there(folder):
            raise InstallError(f"npm has installed {self.name} without {self.programs[0].name}")

    def _ask_registry(self) -> None:
        """Find out soon whether anybody answers."""
        impatient = (f"--fetch-timeout={PATIENCE_S * 1000:.0f}", "--fetch-retries=0")
        self._npm(PATIENCE_S + 30, "view", *impatient, self.pinned[0], "version")

    def _npm(self, timeout_s: float, *args: str) -> None:
        try:
            done = subprocess.run(
                ["npm", *args],
                env=_person,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InstallError(f"npm {args[0]} has not ended within {timeout_s:g} s") from error
        if done.returncode:
            raise InstallError(f"cannot install {self.name}: {_reason(done.stderr)}")


def _reason(stderr: str) -> str:
    """Why npm has failed, in a line. It tells that in many, mostly in one that names the reason."""
    told = (ERROR.match(line) for line in stderr.splitlines())
    lines = [line[1].strip() for line in told if line and not BESIDE.search(line[1])]
    reason = next((line for line in lines if "reason: " in line), "; ".join(filter(None, lines)))
    return reason[:LONGEST_REASON] or "npm has failed"


def find(program: str) -> str | None:
    """The path of one of the person's programs, which a sealed test may not see."""
    return shutil.which(program, path=_person.get("PATH"))


def _version(folder: Path, package: str) -> str:
    try:
        described = json.loads((folder / "node_modules" / package / "package.json").read_text())
    except FileNotFoundError:
        return ""
    return str(described["version"]).removeprefix("v")


def folder(variable: str, name: str) -> Path:
    """Where packages belong: the folder that the environment names, or one in the clone."""
    if not (prepared := os.environ.get(variable)):
        return CACHE / name
    _given.add(Path(prepared))
    return Path(prepared)


def list_versions(package: str) -> list[str]:
    """The released versions of a package, as the registry lists them, oldest first.

    Raises:
        InstallError: npm has failed.

    """
    command = ["npm", "view", package, "versions", "--json"]
    done = subprocess.run(command, env=_person, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"cannot list the versions of {package}: {done.stderr[-500:]}")
    return [one for one in json.loads(done.stdout) if RELEASE.fullmatch(one)]
