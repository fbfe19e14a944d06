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
CACHE = Path(__file__).parents[2] / ".cache"
RELEASE = re.compile(r"\d+\.\d+\.\d+")

required = bool(os.environ.get("SM_REQUIRE_CLIENTS"))
"""Whether it is a failure that there is no npm, and no reason to leave tests out."""

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
    """The packages cannot be installed; the text says why."""


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
        return f"not tested with {self.name}: there is no npm to install them with"

    def installed(self) -> bool:
        """Install what is not there yet; False where there is nothing to do it with.

        A folder that the environment names is used as it is, whatever versions are in it.

        Raises:
            InstallError: npm has failed, or that folder holds something else.

        """
        if self._is_there(self.folder):
            return True
        if self.folder in _given and self.folder.exists() and any(self.folder.iterdir()):
            if all((self.folder / program).exists() for program in self.programs):
                return True
            raise InstallError(
                f"'{self.folder}' lacks {self.name}, and is left alone: name a folder with them, "
                "or one that is not there yet"
            )
        if not find("npm"):
            return False
        self._install_once()
        return True

    def ready(self) -> None:
        """Install what is not there yet, for a test: it is skipped, or fails, without npm."""
        try:
            there = self.installed()
        except InstallError as error:
            pytest.fail(str(error))
        if not there:
            (pytest.fail if required else pytest.skip)(self.missing)

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
        quiet = ("--no-audit", "--no-fund")
        command = ["npm", "install", *quiet, *self.options, "--prefix", str(folder), *self.pinned]
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
        if done.returncode or not self._is_there(folder):
            raise InstallError(f"cannot install {self.name}: {done.stderr[-2000:]}")


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
