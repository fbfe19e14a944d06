"""The authorities by whose certificates a server elsewhere is known: read once in a process."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from sm.base import at_hand

if TYPE_CHECKING:
    import ssl

NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables that name others than those of the machine; the first one is preferred."""


def load() -> ssl.SSLContext:
    """Return what connections are checked by. To read it takes longer than most requests."""
    named = [os.environ.get(name, "") for name in NAMED]
    at_hand.note(f"{__name__}:{read.__name__}", *named)
    return _load(*named)


def read(*named: str) -> tuple[str, ...]:
    """Read what `load` is to find where the variables are these; returns what was read.

    The environment must be this process's own to change: it is a server of passes.
    """
    for name, value in zip(NAMED, named, strict=True):
        os.environ.pop(name, None)  # OpenSSL takes an empty one for a name
        if value:
            os.environ[name] = value
    _load(*named)
    return list_sources(*named)


@cache
def _load(_file: str, _folder: str) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def list_sources(*named: str) -> tuple[str, ...]:
    """Return the files and folders that are read where the variables are these."""
    import ssl

    paths = ssl.get_default_verify_paths()
    return tuple(filter(None, named)) or (paths.openssl_cafile, paths.openssl_capath)
