"""Text by others as the agent knows it, in parts with keys: an issue, a review.

It was taken while trusted people vouched for it, and is kept. Each part of a later edit is judged
alone: what a trusted person has saved is told to the agent as a change, all else is passed over,
and people are told of that once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, structs

from sm.adapters.forge.model import hash_text
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.files import discard, write_json


class KeptPart(Struct, frozen=True):
    """Part as the forge has it; `editor` has saved it last, '' if the forge does not say who."""

    text: str
    editor: str = ""


class Heeded(Struct, frozen=True):
    """Outcome of an edit. `changed` are the parts that the agent is told of, by whom.

    `strangers` has the editor of each part that is passed over without people's knowledge so far.
    """

    changed: dict[str, str]
    editors: tuple[str, ...]
    passed_over: dict[str, str]
    strangers: dict[str, str]


class KeptText(Struct, frozen=True, kw_only=True):
    """Text that is kept.

    `seen` says which state of the forge was dealt with last. `passed_over` has the hash of each
    edited part that was passed over.
    """

    seen: str = ""
    passed_over: dict[str, str] = {}

    def list_parts(self) -> dict[str, str]:
        """Return the text of each part, as the agent knows it."""
        raise NotImplementedError

    def heed(self, now: Mapping[str, KeptPart], is_trusted: Callable[[str], bool]) -> Heeded:
        """Compare the text with the forge's; `is_trusted` judges who has saved a part."""
        known, passed_over = self.list_parts(), dict(self.passed_over)
        changed, editors, strangers = dict[str, str](), list[str](), dict[str, str]()
        for key, part in now.items():
            if part.text == known.get(key):
                passed_over.pop(key, None)
            elif is_trusted(part.editor):
                passed_over.pop(key, None)
                changed[key] = part.text
                editors.append(part.editor)
            elif pass_over(passed_over, key, part.text):
                strangers[key] = part.editor
        return Heeded(changed, tuple(dict.fromkeys(editors)), passed_over, strangers)

    def take_over(self, *, is_last: bool, **texts: Any) -> Self:
        """Return the record with the texts that the agent was told; `is_last`: nothing newer waits.

        If it was edited again meanwhile, the forge's text is compared with this one again.
        """
        return structs.replace(self, **texts, seen=self.seen if is_last else "")


def pass_over(passed_over: dict[str, str], key: str, text: str) -> bool:
    """Note that this part is kept from the agent; False if that was noted before."""
    mark = hash_text(key, text)
    is_new = passed_over.get(key) != mark
    passed_over[key] = mark
    return is_new


def keep_edited(path: Path, edited: Struct | None) -> None:
    """Keep the edit that the agent is still to be told of, in place of an earlier one."""
    if edited is None:
        discard(path)
    else:
        write_json(path, edited)


def note_passed_over(session: IssueSession, what: str, author: str) -> None:
    """Tell people that words were kept from the agent.

    `author` is '' if the forge does not say whose they are.
    """
    session.project.record(events.PassedOver(session=session.name, what=what, author=author))
