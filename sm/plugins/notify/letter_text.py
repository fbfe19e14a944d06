"""Text of a message: a title, what happened, the command that answers, and the links. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sm.base.need import NeedKind
from sm.plugins.notify.model import HeldWord

MOST = 10
"""Lines about single sessions. `sm needs` has all of them."""
LIST = "sm needs"

TITLES = {
    NeedKind.QUESTION: "an agent asks",
    NeedKind.DIALOG: "a dialog is open",
    NeedKind.LOGIN: "an agent has no access",
    NeedKind.REVIEW: "a review waits",
    NeedKind.MERGE: "a merge waits",
    NeedKind.CI: "CI is broken",
    NeedKind.BUDGET: "a budget is used up",
    NeedKind.LIMITS: "a limit is reached",
    NeedKind.BLOCKED: "an issue is blocked",
    NeedKind.FAILED: "an agent has failed",
    NeedKind.REFUSED: "something was refused",
    NeedKind.POLL: "dev-poll does not run",
    NeedKind.MACHINE: "this machine needs a look",
    NeedKind.HOST: "another machine needs a look",
}
MARKUP = re.compile(r"(?<=@)(?=[\w*_!&#])|(?<=<)(?=[^\s=])|(?<=\])(?=[(\[])")
"""The places at which a mention falls apart (`@all`, `@**all**`, `<!channel>`, `<users/all>`,
`<at …>`), and a link with other words than its address (`[…](…)`, `<…|…>`).

As documented by Slack (docs.slack.dev, formatting message text) and by Google Chat
(developers.google.com, text messages), and as apprise 2.3 reads Slack's and Discord's itself. Those
of Mattermost, Zulip and Lark are unproven, and no service was asked.
"""
NOTHING = "\u200b"
"""A space without width: what stands before and behind it is read as two words."""

BEFORE = " (perhaps told before)"
"""The last try to send it was cut short, and may have reached the service."""


def write_letter(words: Sequence[HeldWord], *, is_one_cause: bool) -> tuple[str, str]:
    """Return title and text of a message that tells these words, the oldest first."""
    if len(words) == 1:
        title, lines = _write_one(words[0])
    elif is_one_cause:
        title, lines = _write_equal(words)
    else:
        title, lines = _write_several(words)
    if any(word.is_perhaps_told for word in words):
        title += BEFORE
    return title, "\n".join(lines)


def _write_one(word: HeldWord) -> tuple[str, list[str]]:
    said = TITLES[word.need]
    title = f"{word.address}: {said}" if word.address else said[:1].upper() + said[1:]
    # What needs a review has its page for a command.
    return title, [*dict.fromkeys(filter(None, (_say(word), word.command, word.page, *word.links)))]


def _write_equal(words: Sequence[HeldWord]) -> tuple[str, list[str]]:
    title = f"{_count(words)}: {TITLES[words[0].need]}"
    names = list(dict.fromkeys(word.address for word in words))
    lines = [_say(words[0])]
    if len(names) > 1:
        lines.append(f"The same of {_list(names[1:])}.")
    return title, [*lines, *_once(word.command for word in words), *_list_pages(words)]


def _write_several(words: Sequence[HeldWord]) -> tuple[str, list[str]]:
    title = f"{len(words)} things need you"
    lines = [f"{_say(word)} {word.command}".rstrip() for word in words[:MOST]]
    return title, [*lines, *_more(len(words) - MOST), *_list_pages(words)]


def _list_pages(words: Sequence[HeldWord]) -> list[str]:
    """Return the page that has them all; of several installations each has its own."""
    return list(dict.fromkeys(word.page.partition("#")[0] for word in words if word.page))


def _say(word: HeldWord) -> str:
    """Return a word's sentence with its session before it, without the command at its end."""
    said = word.sentence.removesuffix(word.command).rstrip() if word.command else word.sentence
    said = f"{word.address} {take_markup_off(said)}".strip()
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def take_markup_off(text: str) -> str:
    """Return the text with its mentions and links broken; for a reader it looks the same.

    An agent or an issue's author has written it. Services read markup also in plain text.
    """
    return MARKUP.sub(NOTHING, text)


def _count(words: Sequence[HeldWord]) -> str:
    number = len({word.address for word in words})
    return f"{number} sessions" if number > 1 else f"{words[0].address}, {len(words)} times"


def _list(names: Sequence[str]) -> str:
    if len(names) > MOST:
        return f"{', '.join(names[:MOST])} and {len(names) - MOST} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _once(commands: Iterable[str]) -> list[str]:
    """Return each command once, as far as they fit."""
    found = list(dict.fromkeys(filter(None, commands)))
    return [*found[:MOST], *_more(len(found) - MOST)]


def _more(number: int) -> list[str]:
    return [f"and {number} more: {LIST}"] if number > 0 else []
