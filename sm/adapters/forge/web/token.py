"""Where the token for a forge comes from: a command, a private file, or a variable.

Its value is in this process and in the header of its requests, nowhere else.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from pathlib import Path

from msgspec import Struct

from sm.adapters.process import ask
from sm.errors import SmError, TemporaryError
from sm.store.files import open_guarded

COMMAND_S = 30.0
LIMIT = 10_000
"""Characters of a token. An App's are long."""


class TokenError(TemporaryError):
    """There is no usable token where the configuration says; the next try may find one there."""


class TokenSource(Struct, frozen=True):
    """The places that the configuration names; the first that is not empty is meant."""

    command: str = ""
    file: Path | None = None
    variable: str = ""


class Token:
    """A token. What prints it, prints its fingerprint."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        """Keep the secret."""
        self.secret = secret

    @property
    def fingerprint(self) -> str:
        """A word by which caches tell one token from another."""
        return hashlib.sha256(b"sm:" + self.secret.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"<token {self.fingerprint}>"


def read_token(source: TokenSource) -> Token:
    """Read the token now.

    Raises:
        TokenError: there is none, it is no word, or its file is not private.

    """
    if source.command:
        return _check(_from_command(source.command), f"the command '{source.command}'")
    if source.file is not None:
        return _check(_from_file(source.file), f"'{source.file}'")
    if source.variable:
        return _check(os.environ.get(source.variable, ""), f"the variable '{source.variable}'")
    raise TokenError(
        "the forge has no token: set forge.token_command, forge.token_file or forge.token_env"
    )


def _check(text: str, where: str) -> Token:
    """The token in `text`; what is wrong with it is told without it."""
    found = text.strip()
    if not found:
        raise TokenError(f"there is no token in {where}: put one there")
    if not found.isascii() or not found.isprintable() or " " in found or len(found) > LIMIT:
        raise TokenError(f"what is in {where} is no token: it must be one word")
    return Token(found)


def _from_command(line: str) -> str:
    try:
        argv = shlex.split(line)
    except ValueError as error:
        raise TokenError(f"cannot read forge.token_command: {str(error).lower()}") from error
    try:
        return ask(*argv, env=os.environ, timeout_s=COMMAND_S).stdout
    except SmError:  # what the command said may hold the token
        raise TokenError(f"the command '{line}' gives no token: run it by hand") from None


def _from_file(path: Path) -> str:
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            if stat.S_IMODE(os.fstat(fd).st_mode) & 0o077:
                raise TokenError(f"others can read the token in '{path}': chmod 600 it")
            return os.read(fd, LIMIT + 100).decode("utf-8", "replace")
    except FileNotFoundError:
        raise TokenError(f"there is no token file '{path}'") from None
