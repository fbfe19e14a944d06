"""A proxy with TLS before a server: nginx or Caddy, with the very block of docs/PAGE.md."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.helpers import HANG_S, wait_for
from tests.ports import find_free_port
from tests.shell import REPOSITORY

KEY = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()  # noqa: SIM905
PROGRAMS = {
    "nginx": os.environ.get("SM_TEST_NGINX")
    or shutil.which("nginx", path="/usr/sbin:/usr/bin")
    or "",
    "caddy": os.environ.get("SM_TEST_CADDY") or shutil.which("caddy") or "",
}
NGINX = """
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
access_log off;
client_body_temp_path {folder}/body;
proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi;
scgi_temp_path {folder}/scgi;
{block}
}}
"""
CADDY = """
{{
    admin off
    auto_https disable_redirects
}}
{block}
"""


class Proxy:
    """One on loopback, for `localhost`; it can be stopped and started again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.program, package = PROGRAMS[kind], {"nginx": "nginx-light"}.get(kind, kind)
        if not self.program:
            pytest.skip(f"no {kind}: apt-get install {package}")
        folder.mkdir(mode=0o700)
        self.kind, self.folder, self.port = kind, folder, find_free_port()
        self.url = f"https://localhost:{self.port}"
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"
        names = ["-addext", "subjectAltName=DNS:localhost"]
        into = ["-keyout", str(self.key), "-out", str(self.certificate)]
        subprocess.run([*KEY, *names, *into], check=True, capture_output=True)
        self.trust = ssl.create_default_context(cafile=str(self.certificate))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, upstream: str) -> None:
        """Offer the server at `upstream`."""
        make = {"nginx": self._set_up_nginx, "caddy": self._set_up_caddy}[self.kind]
        command = make(upstream)
        home = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=home)
        wait_for(self._answers, self.kind)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=HANG_S)
            self.process = None

    def _set_up_nginx(self, upstream: str) -> list[str]:
        block = self._read_block(
            "nginx",
            ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
            ("server_name sm.example.org", "server_name localhost"),
            ("/etc/ssl/sm.example.org.pem", str(self.certificate)),
            ("/etc/ssl/sm.example.org.key", str(self.key)),
            ("http://127.0.0.1:8420", upstream),
        )
        user = "user root;" if os.geteuid() == 0 else ""
        file = self.folder / "nginx.conf"
        file.write_text(NGINX.format(user=user, folder=self.folder, block=block))
        return [self.program, "-p", str(self.folder), "-c", str(file), "-e", "stderr"]

    def _set_up_caddy(self, upstream: str) -> list[str]:
        here = f"{self.url} {{\n    bind 127.0.0.1\n    tls {self.certificate} {self.key}"
        upstream = upstream.replace("http://unix:", "unix/").removesuffix(":/")
        block = self._read_block(
            "caddyfile",
            ("sm.example.org {", here),
            ("127.0.0.1:8420", upstream.removeprefix("http://")),
        )
        file = self.folder / "Caddyfile"
        file.write_text(CADDY.format(block=block))
        return [self.program, "run", "--config", str(file), "--adapter", "caddyfile"]

    def _read_block(self, language: str, *meant: tuple[str, str]) -> str:
        """The documented block, for this machine."""
        text = (REPOSITORY / "docs" / "PAGE.md").read_text()
        found = re.search(rf"```{language}\n(.+?)```", text, re.DOTALL)
        assert found
        block = found[1]
        for said, other in meant:
            assert block.count(said) == 1, said
            block = block.replace(said, other)
        return block

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0
