"""Random names, and marks that only their maker knows.

Not by `secrets`: its import costs each command 3 ms, for what the system gives in a line.
"""

from __future__ import annotations

import os


def make_nonce(size: int) -> str:
    """Return `size` random bytes as hexadecimal digits."""
    return os.urandom(size).hex()
