"""Whether a delivery was signed with the secret. Pure.

Each check compares bytes in a time that does not depend on where they differ. What a client sends
may be of any length, and need not be ASCII.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

STANDARD = "whsec_"
"""How a key of Standard Webhooks begins (https://www.standardwebhooks.com)."""
KEY_BYTES = 24
"""The shortest key that Standard Webhooks allows."""
TOLERANCE_S = 300
"""How old a delivery with a time may be, and how far ahead the sender's clock."""
SIGNATURES = 8
"""A sender signs with two keys while one replaces the other; more are not looked at."""
SHORTEST = 16
"""Characters of a secret."""
SECONDS = re.compile(rb"[0-9]{1,12}")


def is_hmac(secret: str, body: bytes, given: bytes, prefix: bytes = b"") -> bool:
    """Whether `given` is `prefix` and the HMAC-SHA256 of the body in hexadecimal digits."""
    right = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given, prefix + right.encode())


def is_standard(secret: str, signed: tuple[bytes, bytes, bytes], given: bytes, now: float) -> bool:
    """Whether one of the signatures in `given` is that of `signed`, which is new.

    `signed` is the id, the time in seconds since the epoch, as `now` is, and the body. `secret`
    begins with `whsec_`.
    """
    ident, at, _ = signed
    digest = hmac.new(decode_key(secret), b".".join(signed), hashlib.sha256).digest()
    right = b"v1," + base64.b64encode(digest)
    some = given.split(b" ", SIGNATURES)[:SIGNATURES]
    matches = [hmac.compare_digest(one, right) for one in some]
    is_new = bool(SECONDS.fullmatch(at)) and abs(now - int(at)) <= TOLERANCE_S
    return any(matches) and is_new and ident != b""


def is_token(secret: str, given: bytes) -> bool:
    """Whether the secret itself was sent."""
    return hmac.compare_digest(given, secret.encode())


def decode_key(secret: str) -> bytes:
    """The key in a secret of Standard Webhooks; b"" if it has none."""
    try:
        return base64.b64decode(secret.removeprefix(STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return b""


def find_weakness(secret: str) -> str:
    """Why this secret must not be used; '' if it is strong enough to try."""
    if secret.startswith(STANDARD) and len(decode_key(secret)) < KEY_BYTES:
        return f"behind '{STANDARD}' is no key of {KEY_BYTES} bytes or more in Base64"
    if len(secret) < SHORTEST:
        return f"it is shorter than {SHORTEST} characters: 'openssl rand -hex 32' makes a good one"
    return ""
