"""Finds the configuration and reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sm.config.schema import Config


def load(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Config:
    """The configuration that `--config`, the environment or the folders lead to.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    raise NotImplementedError
