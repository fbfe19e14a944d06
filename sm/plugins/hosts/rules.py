"""The rules by which work is merged, and whether those of a node are weaker than ours. Pure.

A node merges by its own configuration. So an installation names its rules with each attempt that it
places, and the node begins none under rules that would let more through.
"""

from __future__ import annotations

from msgspec import DecodeError, Struct, json

from sm.base.decoder import decode
from sm.base.errors import UsageError
from sm.base.text import one_line
from sm.config.schema import ProjectSettings


class MergeTerms(Struct, frozen=True, kw_only=True):
    """Whether a review and CI have to come before a merge, and whose word counts.

    Without `trusted` it is that of all who may push.
    """

    review: bool
    ci: bool
    trusted: tuple[str, ...] = ()


def read_rules(project: ProjectSettings) -> MergeTerms:
    """Return the rules of a configuration."""
    forge = project.forge
    has_ci = forge.has_ci if forge.is_elsewhere else bool(project.ci.command)
    return MergeTerms(review=project.review.required, ci=has_ci, trusted=project.trusted)


def spell_rules(rules: MergeTerms) -> str:
    """Return the rules as an argument of `sm host begin`."""
    return json.encode(rules).decode()


def list_weaker(ours: MergeTerms, theirs: MergeTerms) -> list[str]:
    """Return what the node lets through that we would not: a few words for each."""
    found = list[str]()
    if ours.review and not theirs.review:
        found.append("'review.required' is false there, and true here")
    if ours.ci and not theirs.ci:
        found.append("no CI is required there, and it is here")
    known = {name.lower() for name in ours.trusted}
    more = [name for name in theirs.trusted if name.lower() not in known]
    if ours.trusted and not theirs.trusted:
        found.append(f"'trusted' is empty there, and {_name(ours.trusted)} here")
    elif more:
        here = f"and only {_name(ours.trusted)} here" if known else "and it is empty here"
        found.append(f"'trusted' has {_name(more)} there, {here}")
    return found


def _name(people: tuple[str, ...] | list[str]) -> str:
    return one_line(", ".join(people), 120)


def check(project: ProjectSettings, text: str) -> None:
    """Refuse an attempt if it would be merged by weaker rules here than whoever placed it has.

    Raises:
        UsageError: that is so, or `text` is no rules.

    """
    try:
        asked = decode(text.encode(), MergeTerms)
    except DecodeError as error:
        raise UsageError(f"expected the rules of a merge as JSON: {error}") from error
    if weaker := list_weaker(asked, read_rules(project)):
        raise UsageError(
            f"'{project.name}' would merge by weaker rules on this host ({'; '.join(weaker)}): "
            "give it the same ones"
        )
