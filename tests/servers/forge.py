"""A real Gitea or Forgejo on loopback: its accounts, its tokens, its runner."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

from sm.adapters.forge.model import BOT
from tests.ports import find_free_port
from tests.servers.process import Process, send, wait_until_it_answers

OWNER = "harbor"
"""The organisation that owns every repository; our account owns it."""
ADMIN = "root-of-all"
SETTINGS = """
APP_NAME = Harbor
RUN_MODE = prod
WORK_PATH = {folder}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = {is_root}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
LOCAL_ROOT_URL = http://127.0.0.1:{port}/
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = true
{static}
[database]
DB_TYPE = sqlite3
PATH = {folder}/data/forge.db
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
SECRET_KEY = {secret}
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
ENABLE_REVERSE_PROXY_AUTHENTICATION = true
[repository]
ROOT = {folder}/repositories
DEFAULT_BRANCH = main
[actions]
ENABLED = true
[webhook]
ALLOWED_HOST_LIST = loopback
[migrations]
ALLOW_LOCALNETWORKS = true
[mailer]
ENABLED = false
[log]
MODE = console
LEVEL = Info
"""
TASK_TIMEOUT = "10m"


class ForgeServer:
    """A server of that `kind`, with all that it keeps in `folder`."""

    def __init__(self, kind: str, program: Path, folder: Path) -> None:
        """Make its folder and its database; it does not serve yet."""
        self.kind, self.folder, self.port = kind, folder, find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.tokens: dict[str, str] = {}
        self.passwords: dict[str, str] = {}
        self.has_owner = False
        folder.mkdir(mode=0o700, parents=True)
        self._settings = folder / "app.ini"
        # A program that was built within its source has its templates there, one of a release in
        # itself.
        has_files = (program.parent / "templates").is_dir()
        static = f"STATIC_ROOT_PATH = {program.parent}" if has_files else ""
        self._settings.write_text(
            SETTINGS.format(
                folder=folder,
                port=self.port,
                static=static,
                secret=secrets.token_hex(32),
                is_root=str(os.geteuid() == 0).lower(),
            )
        )
        where = ("--config", self._settings, "--work-path", folder)
        self.process = Process([program, "web", *where], folder)
        self._where = where
        self.process.run("migrate", *where)
        self.tokens[ADMIN] = self._make_admin()

    def _make_admin(self) -> str:
        self.passwords[ADMIN] = secrets.token_hex(12)
        words = ["--username", ADMIN, "--email", f"{ADMIN}@example.com", "--admin"]
        words += ["--password", self.passwords[ADMIN], "--must-change-password=false"]
        words += ["--access-token"]
        said = self.process.run("admin", "user", "create", *words, *self._where)
        found = re.search(r"\b[0-9a-f]{40}\b", said)
        assert found, said
        return found[0]

    def start(self) -> None:
        """Serve, and wait until it answers."""
        self.process.start()
        wait_until_it_answers(self.process, self.port, "/api/v1/version")

    def back_up(self, folder: Path) -> None:
        """Copy what it keeps; it is stopped meanwhile, as its documentation asks for."""
        self._copy(self.folder, folder)

    def set_back(self, folder: Path) -> None:
        """Have it keep what a copy has, and nothing else."""
        self._copy(folder, self.folder)

    def _copy(self, source: Path, target: Path) -> None:
        self.process.stop()
        for name in ("data", "repositories"):
            shutil.rmtree(target / name, ignore_errors=True)
            shutil.copytree(source / name, target / name, symlinks=True)
        self.start()

    @property
    def version(self) -> str:
        """Its version, without what a build adds to it."""
        said = str(self.ask("GET", "/version")["version"])
        number, _, rest = said.partition("+")
        return f"{number}-dev" if rest.startswith("dev") else number

    @property
    def name(self) -> str:
        """What its recordings are called."""
        return f"{self.kind}-{self.version}"

    def ask(self, method: str, path: str, body: object = None, author: str = ADMIN) -> Any:
        """A request beside `sm`, by the token of an account."""
        token = f"token {self.tokens[author]}"
        return send(self.port, method, f"/api/v1{path}", body, token=token)

    def add_account(self, name: str) -> None:
        """Make an account, if there is none of that name, and a token, if it has none."""
        if name not in self.passwords:
            self.passwords[name] = secrets.token_hex(12)
            said = {"username": name, "email": f"{name}@example.com"}
            said |= {"password": self.passwords[name]}
            self.ask("POST", "/admin/users", {**said, "must_change_password": False})
        if name not in self.tokens:
            self.renew_token(name)

    def renew_token(self, name: str) -> str:
        """A new token for an account."""
        made = self._by_password(
            name, "POST", "/tokens", {"name": secrets.token_hex(4), "scopes": ["all"]}
        )
        self.tokens[name] = str(made["sha1"])
        return self.tokens[name]

    def revoke_tokens(self, name: str) -> None:
        """Delete every token of an account; it gets another one when it is asked for next."""
        for one in self._by_password(name, "GET", "/tokens"):
            self._by_password(name, "DELETE", f"/tokens/{one['id']}")
        del self.tokens[name]

    def _by_password(self, name: str, method: str, path: str, body: object = None) -> Any:
        at = f"/api/v1/users/{name}{path}"
        return send(self.port, method, at, body, password=(name, self.passwords[name]))

    def add_repository(self, name: str, *, is_private: bool = False) -> str:
        """Make an empty repository of the organisation, which is made with the first one."""
        self.add_account(BOT)
        if not self.has_owner:
            self.ask("POST", "/orgs", {"username": OWNER}, BOT)
            self.has_owner = True
        self.ask("POST", f"/orgs/{OWNER}/repos", {"name": name, "private": is_private}, BOT)
        return f"{OWNER}/{name}"

    def git_url(self, repository: str, author: str) -> str:
        """The address by which git pushes as an account."""
        return f"http://{author}:{self.tokens[author]}@127.0.0.1:{self.port}/{repository}.git"

    # Its own CI

    def make_runner(self, program: Path) -> Process:
        """A runner of its Actions that runs jobs on this machine; it is not started."""
        folder = self.folder / "runner"
        folder.mkdir()
        token = self.process.run("actions", "generate-runner-token", *self._where).split()[-1]
        made = Process([program, "daemon", "--config", folder / "config.yaml"], folder)
        config = {
            "log": {"level": "info"},
            "runner": {"file": ".runner", "fetch_interval": "1s", "timeout": TASK_TIMEOUT},
            "cache": {"enabled": False},
            "host": {"workdir_parent": str(folder / "work")},
        }
        (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
        words = ["register", "--no-interactive", "--instance", self.url, "--token", token]
        words += ["--name", "runner", "--labels", "here:host"]
        made.run(*words, "--config", "config.yaml")
        return made
