"""Which browsers may act: each has a secret in a cookie, of which only a hash is kept on disk.

So a server that is started anew knows its browsers, and nobody who reads the file can be one.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from pathlib import Path

from msgspec import Struct

from sm.base.nonce import make_nonce
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, write_json

LASTS_S = 7 * 24 * 3600.0
"""So long a browser may act before it needs another link."""
KEY_S = 600.0
"""So long a link can be used."""
MOST = 50
"""Browsers that are remembered; the oldest is forgotten first."""
DIGITS = 64


class Book(Struct, frozen=True):
    """Until when each browser may act, in seconds since 1970, by the hash of its secret."""

    until: dict[str, float] = {}


class Logins:
    """The browsers of one server. `key` is in the first link, '' for none."""

    def __init__(self, file: Path, token: str = "", key: str = "") -> None:
        """Know those that the file names."""
        self._file, self._token = file, token
        self._lock = threading.Lock()
        self._keys: dict[str, float] = {}
        self._book = read_rebuildable(file, Book) or Book()
        if key:
            self._keys[_hash(key)] = time.monotonic() + KEY_S

    def make_key(self) -> str:
        """The key of one more link, for another browser."""
        key = make_nonce(32)
        with self._lock:
            self._keys[_hash(key)] = time.monotonic() + KEY_S
        return key

    def log_in(self, secret: str) -> str:
        """Return the secret of a new browser for a link's key or the token; '' if it is neither.

        A key is used up by that.
        """
        with self._lock:
            if not (self._take_key(secret) or self._is_token(secret)):
                return ""
            browser = make_nonce(DIGITS // 2)
            now = time.time()
            known = {one: at for one, at in self._book.until.items() if at > now}
            newest = sorted(known.items(), key=lambda entry: entry[1])[-(MOST - 1) :]
            self._save(Book({**dict(newest), _hash(browser): now + LASTS_S}))
            return browser

    def log_out(self, browser: str) -> None:
        """Forget the browser."""
        with self._lock:
            left = {one: at for one, at in self._book.until.items() if one != _hash(browser)}
            self._save(Book(left))

    def knows(self, browser: str) -> bool:
        """Whether that is the secret of a browser that may act."""
        return self._book.until.get(_hash(browser), 0.0) > time.time()

    def _take_key(self, key: str) -> bool:
        until = self._keys.pop(_hash(key), 0.0)
        return until > time.monotonic()

    def _is_token(self, secret: str) -> bool:
        return self._token != "" and hmac.compare_digest(secret.encode(), self._token.encode())

    def _save(self, book: Book) -> None:
        ensure_private_dir(self._file.parent)
        write_json(self._file, book)
        self._book = book


def _hash(secret: str) -> str:
    """Enough for a secret of 256 bits: nobody can try them out."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def make_pledge(browser: str) -> str:
    """What each form of that browser carries (CSRF token): no other page can know it."""
    return hmac.new(browser.encode(), b"form", hashlib.sha256).hexdigest()
