"""The authorities by whose certificates a server elsewhere is known: read once in a process."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables that name others than those of the machine; the first one is preferred."""


def load() -> ssl.SSLContext:
    """Return what connections are checked by. To read it takes longer than most requests."""
    return _load(*(os.environ.get(name, "") for name in NAMED))


@cache
def _load(_file: str, _folder: str) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def list_sources() -> tuple[str, ...]:
    """Return the files and folders that `load` reads."""
    import ssl

    paths = ssl.get_default_verify_paths()
    named = tuple(filter(None, (os.environ.get(name) for name in NAMED)))
    return named or (paths.openssl_cafile, paths.openssl_capath)
