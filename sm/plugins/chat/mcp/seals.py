"""Signs values that others keep for us, so that they come back unchanged.

sm stores nothing for values that never come back. Their holders can read them: there is no secret
in them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TypeVar

import msgspec
from msgspec import Struct

from sm.base.decoder import decode

S = TypeVar("S", bound=Struct)

KEY_BYTES = 32


class Seals(Struct, frozen=True):
    """Signs with `key`. A signed value of one kind is not accepted as another kind."""

    key: bytes

    def close(self, value: Struct) -> str:
        """Return `value` as a word of letters, digits, `_`, `-` and a dot."""
        data = msgspec.json.encode(value)
        return f"{_word(data)}.{_word(self._signature(type(value).__name__, data))}"

    def open(self, sealed: str, shape: type[S]) -> S | None:
        """Return the value that `close` got; None for any other word."""
        data, _, signature = sealed.partition(".")
        try:
            known = _bytes(data)
            if not hmac.compare_digest(_bytes(signature), self._signature(shape.__name__, known)):
                return None
            return decode(known, shape)
        except (binascii.Error, UnicodeError, msgspec.DecodeError):
            return None

    def derive(self, purpose: str, value: str) -> str:
        """Return a secret for `value`: always the same, and only we can make it."""
        return _word(self._signature(purpose, value.encode()))

    def _signature(self, kind: str, data: bytes) -> bytes:
        return hmac.digest(self.key, kind.encode() + b"\0" + data, hashlib.sha256)


def _word(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(word: str) -> bytes:
    return base64.b64decode(word.encode("ascii") + b"=" * (-len(word) % 4), b"-_", validate=True)
