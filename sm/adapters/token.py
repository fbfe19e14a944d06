"""Reads the secret for a service from a command, a private file, or a variable.

Its value is in this process and in its requests, nowhere else.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from pathlib import Path

from msgspec import Struct

from sm.adapters.process import ask
from sm.base.errors import SmError, TemporaryError
from sm.base.redact import MARK, hide_address
from sm.store.files import open_guarded

COMMAND_S = 30.0
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LIMIT = 10_000
"""Characters of a token. An App's are long."""


class TokenError(TemporaryError):
    """No usable token is where the configuration says; the next try may find one there."""


class TokenSource(Struct, frozen=True):
    """Places that the configuration names; the first one that is not empty counts.

    `what` is the secret, and `whose` it is, for people. The keys of the configuration begin with
    `key`.
    """

    command: str = ""
    file: Path | None = None
    variable: str = ""
    what: str = "token"
    key: str = "forge.token"
    whose: str = "the forge"

    @property
    def name(self) -> str:
        """The place that is meant, for people; '' if there is none."""
        if self.command:  # its arguments may be secrets, as a person might have written them
            program, *more = self.command.split(maxsplit=1)
            return f"the command '{hide_address(program)}{' …' if more else ''}'"
        if self.file is not None:
            return f"'{hide_address(str(self.file))}'"
        if not self.variable:
            return ""
        # What is no name may be the secret itself.
        is_name = VARIABLE.fullmatch(self.variable)
        return f"the variable '{self.variable if is_name else MARK}'"


class Token:
    """A token. What prints it, prints its fingerprint."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        """Keep the secret."""
        self.secret = secret

    @property
    def fingerprint(self) -> str:
        """Word by which caches tell one token from another."""
        return hashlib.sha256(b"sm:" + self.secret.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"<token {self.fingerprint}>"


def read_token(source: TokenSource) -> Token:
    """Read the token now.

    Raises:
        TokenError: there is none, it is no word, or its file is not private.

    """
    if source.command:
        return _check(_from_command(source), source)
    if source.file is not None:
        return _check(_from_file(source.file, source.what), source)
    if source.variable:
        return _check(os.environ.get(source.variable, ""), source)
    command, file, variable = (f"{source.key}_{place}" for place in ("command", "file", "env"))
    raise TokenError(f"{source.whose} has no {source.what}: set {command}, {file} or {variable}")


def _check(text: str, source: TokenSource) -> Token:
    """Return the token in `text`; an error about it does not show it."""
    found = text.strip()
    if not found:
        raise TokenError(f"there is no {source.what} in {source.name}: put one there")
    if not found.isascii() or not found.isprintable() or " " in found or len(found) > LIMIT:
        raise TokenError(f"what is in {source.name} is no {source.what}: it must be one word")
    return Token(found)


def _from_command(source: TokenSource) -> str:
    try:
        argv = shlex.split(source.command)
    except ValueError as error:
        raise TokenError(f"cannot read {source.key}_command: {str(error).lower()}") from error
    try:
        return ask(*argv, env=os.environ, timeout_s=COMMAND_S).stdout
    except SmError:  # what the command said may hold the token
        raise TokenError(f"{source.name} gives no {source.what}: run it by hand") from None


def _from_file(path: Path, what: str) -> str:
    shown = hide_address(str(path))
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            if stat.S_IMODE(os.fstat(fd).st_mode) & 0o077:
                raise TokenError(f"others can read the {what} in '{shown}': chmod 600 it")
            return os.read(fd, LIMIT + 100).decode("utf-8", "replace")
    except FileNotFoundError:
        raise TokenError(f"there is no {what} file '{shown}'") from None
