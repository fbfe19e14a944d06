"""Makes the labels by which a project shows the state of its issues."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.errors import RefusedError
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import Reader

KNOWN = "already_exists"
"""GitHub's word for a label that is there (docs.github.com, "Troubleshooting the REST API")."""


def make_labels(forge: RestForge[Reader], wanted: Iterable[str]) -> list[str]:
    """Make those that the repository lacks; return a line for each."""
    there = forge.issues.list_labels()
    missing = [label for label in wanted if label not in there]
    for label in missing:
        try:
            forge.reader.make_label(label)
        except RefusedError as error:
            if KNOWN not in error.said:  # by another process
                raise
    repository = forge.site.settings.repository
    return [f"made the label '{label}' in '{repository}'" for label in missing]
