"""Tells what sessions elsewhere need a person for, if their own machine tells nobody.

It is done after each tick of dev-poll, which is when their machines were asked. The words go into
the outboxes of here, each once; those whose need is over by the time they are sent go again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.plugins.notify import starting
from sm.plugins.notify.channel import SENTENCE_LIMIT
from sm.plugins.notify.model import Held
from sm.plugins.notify.outbox import Destination, Outbox, Post
from sm.plugins.notify.settings import Notify, NotifyChannel
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.elsewhere import read_elsewhere
from sm.views.open_need import OpenNeed
from sm.views.session import NOTHING_SEEN, StatusRow

OURS = "there:"
"""The ids of these words begin with it."""


def tell(root: Root, projects: Iterable[Project]) -> None:
    """Have all that is needed told, and drop what is not needed any more."""
    for project in projects:
        settings = read_section(project.settings, Notify)
        rows = read_elsewhere(project, time.time(), NOTHING_SEEN, _pass_over)
        words = [make_word(settings, need) for need in list_untold(rows)]
        if _put_all(root, project, settings, words):
            starting.wake(Post(root), settings.variables)


def _pass_over(_: SmError) -> None:
    """A host that is silent needs nobody for this; `sm status` names it."""


def list_untold(rows: Iterable[StatusRow]) -> Iterator[OpenNeed]:
    """The needs of these sessions of which their own machine tells nobody."""
    for row in rows:
        if row.need and row.inside and not row.inside.told:
            yield row.need


def make_word(settings: Notify, need: OpenNeed) -> Held:
    """Return what leaves the machine of a need: one line, without secrets."""
    return Held(
        id=f"{OURS}{need.key}",
        at=time.time(),
        need=need.kind,
        session=need.session,
        address=need.name,
        sentence=one_line(redact(need.text), SENTENCE_LIMIT),
        command=one_line(redact(need.command)),
        links=(need.link,) if need.link else (),
        page=settings.link_to(need.session),
    )


def _put_all(root: Root, project: Project, settings: Notify, words: list[Held]) -> bool:
    """Put them into the outboxes of all services that want them; say whether any is new."""
    is_new = False
    for name, channel in settings.channels.items():
        outbox = _open(root, project, name, channel)
        wanted = [word for word in words if word.need in channel.needs]
        _drop_others(outbox, project, {word.id for word in wanted})
        for word in wanted:
            is_new |= outbox.put(word)
    return is_new


def _open(root: Root, project: Project, name: str, channel: NotifyChannel) -> Outbox:
    config: Config = project.config
    shared = read_section(config, Notify).channels.get(name) == channel
    return Post(root).open(Destination(str(config.source), "" if shared else project.name, name))


def _drop_others(outbox: Outbox, project: Project, ids: set[str]) -> None:
    for word in outbox.list_waiting():
        is_ours = word.id.startswith(OURS) and word.address.rpartition("#")[0] == project.name
        if is_ours and word.id not in ids:
            outbox.move(word, outbox.new, outbox.told)
