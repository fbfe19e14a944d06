"""Ids that are made of what they stand for."""

from __future__ import annotations

import hashlib

LENGTH = 16


def derive_id(event: str) -> str:
    """Make the id of an event. The same text always gives the same id, so a repeat is found."""
    return hashlib.sha256(event.encode()).hexdigest()[:LENGTH]
