"""Tells what sessions elsewhere need a person for, if their own machine tells nobody.

It is done after each tick of dev-poll, which is when their machines were asked. The words go into
the outboxes of here, and to `notify_command`, each once; those whose need is over by the time they
are sent go again. What keeps a host from having sessions is told in the same way.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels.command import start_aside
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.plugins.notify import wakeup
from sm.plugins.notify.channel import SENTENCE_LIMIT
from sm.plugins.notify.model import HeldWord
from sm.plugins.notify.outbox import TOLD_S, Destination, Outbox, Post
from sm.plugins.notify.settings import Notify, NotifyChannel
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.files import ensure_private_dir, read_json, write_json
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from sm.views.place import begin_remote_rows, list_remote_needs
from sm.views.records import read_or
from sm.views.session import NOTHING_SEEN, read_last_look
from sm.views.session_row import SessionRow

OURS = "there:"
"""The ids of words about sessions begin with it."""
OF_HOSTS = "hosts:"
"""The ids of words about hosts begin with it."""


class Untold(Struct, frozen=True):
    """A need of a person, and how often its own machine has reminded of it."""

    need: OpenNeed
    reminders: int = 0


class Box(Struct, frozen=True):
    """An outbox, all that is to be told by it, and the variables that its sender needs."""

    outbox: Outbox
    words: list[HeldWord]
    variables: tuple[str, ...]


def tell(root: Root, config: Config, projects: Iterable[Project]) -> None:
    """Have all that is needed told, and drop what is not needed any more.

    `projects` are those whose sessions are to be asked for. Of hosts all is known in any case.
    """
    asked = {one.name: _list_of_sessions(one) for one in projects}
    boxes, wanted = dict[Path, Box](), dict[str, HeldWord]()
    for settings in config.projects:
        notify = read_section(settings, Notify)
        untold = list(asked.get(settings.name, ()))
        untold += map(Untold, list_remote_needs(Project(config, settings)))
        words = [make_word(notify, one) for one in untold]
        wanted |= {word.id: word for word in words}
        for name, channel in notify.channels.items():
            outbox = _open(root, config, settings.name, name, channel)
            box = boxes.setdefault(outbox.path, Box(outbox, [], notify.variables))
            box.words.extend(word for word in words if word.need in channel.needs)
    if _put_all(boxes.values(), asked):
        variables = dict.fromkeys(name for box in boxes.values() for name in box.variables)
        wakeup.wake(Post(root), variables)
    if config.notify_command:
        tell_command(Post(root), config.notify_command, wanted.values())


def _list_of_sessions(project: Project) -> list[Untold]:
    known = read_or(_pass_over, lambda: read_last_look(project), NOTHING_SEEN)
    return list(list_untold(begin_remote_rows(project)(time.time(), known, _pass_over)))


def _pass_over(_: SmError) -> None:
    """A host that is silent needs nobody for this; `sm status` names it."""


def list_untold(rows: Iterable[SessionRow]) -> Iterator[Untold]:
    """The needs of these sessions of which their own machine tells nobody."""
    for row in rows:
        if row.need and row.told is False:
            yield Untold(row.need, row.reminders)


def make_word(settings: Notify, untold: Untold) -> HeldWord:
    """Return what leaves the machine of a need: one line, without secrets."""
    need, times = untold.need, untold.reminders
    asks = f"{'still ' if times else ''}needs a person: " if need.session else ""
    again = f":again:{times}" if times else ""
    return HeldWord(
        id=f"{OURS if need.session else OF_HOSTS}{need.key}{again}",
        at=time.time(),
        need=need.kind,
        session=need.session,
        address=need.name,
        sentence=one_line(redact(f"{asks}{need.text}"), SENTENCE_LIMIT),
        command=one_line(redact(need.command)),
        links=(need.link,) if need.link else (),
        page=settings.link_to(need.session) if need.session else settings.page,
    )


def _put_all(boxes: Iterable[Box], asked: Collection[str]) -> bool:
    """Put the words into the outboxes; say whether any is new."""
    is_new = False
    for box in boxes:
        _drop_others(box, asked)
        for word in box.words:
            is_new |= box.outbox.put(word)
    return is_new


def _open(root: Root, config: Config, project: str, name: str, channel: NotifyChannel) -> Outbox:
    shared = read_section(config, Notify).channels.get(name) == channel
    return Post(root).open(Destination(str(config.source), "" if shared else project, name))


def _drop_others(box: Box, asked: Collection[str]) -> None:
    """Drop what waits there and is needed no more, as far as that is known."""
    ids = {word.id for word in box.words}
    for word in box.outbox.list_waiting():
        is_ours = word.id.startswith(OURS) and word.address.rpartition("#")[0] in asked
        if (is_ours or word.id.startswith(OF_HOSTS)) and word.id not in ids:
            box.outbox.move(word, box.outbox.new, box.outbox.told)


def tell_command(post: Post, command: str, words: Iterable[HeldWord]) -> None:
    """Run a person's own `notify_command` for each word of which it was not told.

    A failure is noted, no more. A session of this machine keeps on its own record what the command
    was told of. Of one elsewhere there is none here, so one file has it for all.

    Raises:
        StateError: nobody would know what it was told.

    """
    now, known = time.time(), _read_told(post)
    told = {ident: at for ident, at in known.items() if now - at < TOLD_S}
    needed = {word.id: word for word in words}
    new = [word for ident, word in needed.items() if ident not in told]
    # As long as it is needed it is remembered; and on a full disk nothing is told at each tick.
    told |= dict.fromkeys(needed.keys() & told.keys(), now)
    if told != known:
        _write_told(post, told)
    for word in new:
        _run(post, command, word)
        told[word.id] = now
        _write_told(post, told)


def _run(post: Post, command: str, word: HeldWord) -> None:
    said = " ".join(filter(None, (word.address, word.sentence)))
    end = "" if said.endswith((".", "!", "?", "…")) else "."
    try:
        start_aside(post.root, word.session, f"{said}{end} {word.command}", command, log=post.log)
    except SmError as error:
        problem = events.Problem(session=word.session, text=f"notify_command: {error.message}")
        journal.record(post.root.journal, problem)


def _read_told(post: Post) -> dict[str, float]:
    with contextlib.suppress(SmError):  # damaged: better told twice than not at all
        return read_json(post.commanded, dict[str, float]) or {}
    return {}


def _write_told(post: Post, told: dict[str, float]) -> None:
    ensure_private_dir(post.path)
    write_json(post.commanded, told)
