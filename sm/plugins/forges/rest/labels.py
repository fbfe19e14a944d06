"""Makes the labels by which a project shows the state of its issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import Reader


def make_labels(forge: RestForge[Reader], wanted: Iterable[str]) -> Iterator[str]:
    """Make those that the repository lacks; a line for each."""
    there = forge.issues.list_labels()
    for label in wanted:
        if label not in there:
            forge.reader.make_label(label)
            yield f"made the label '{label}' in '{forge.site.settings.repository}'"
