"""Version of the installed distribution."""

from __future__ import annotations


def version() -> str:
    """Return the version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("sm-orchestrator")
    except PackageNotFoundError:
        return "(not installed)"
