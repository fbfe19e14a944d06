"""Has a person's own `notify_command` told what is needed elsewhere, each thing once.

A session of this machine keeps on its own record what it was told of. Of one elsewhere there is
none here, so one file has it for all.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from sm.base.errors import SmError
from sm.channels.command import start_aside
from sm.plugins.notify.model import Held
from sm.plugins.notify.outbox import TOLD_S, Post
from sm.store import events, journal
from sm.store.files import ensure_private_dir, read_json, write_json


def tell(post: Post, command: str, words: Iterable[Held]) -> None:
    """Run the command for each word of which it was not told; a failure is noted, no more.

    Raises:
        StateError: nobody would know what it was told.

    """
    now, known = time.time(), _read(post)
    told = {ident: at for ident, at in known.items() if now - at < TOLD_S}
    needed = {word.id: word for word in words}
    new = [word for ident, word in needed.items() if ident not in told]
    # As long as it is needed it is remembered; and on a full disk nothing is told at each tick.
    told |= dict.fromkeys(needed.keys() & told.keys(), now)
    if told != known:
        _write(post, told)
    for word in new:
        _run(post, command, word)
        told[word.id] = now
        _write(post, told)


def _run(post: Post, command: str, word: Held) -> None:
    said = " ".join(filter(None, (word.address, word.sentence)))
    end = "" if said.endswith((".", "!", "?", "…")) else "."
    try:
        start_aside(post.root, word.session, f"{said}{end} {word.command}", command, log=post.log)
    except SmError as error:
        problem = events.Problem(session=word.session, text=f"notify_command: {error.message}")
        journal.record(post.root.journal, problem)


def _read(post: Post) -> dict[str, float]:
    with contextlib.suppress(SmError):  # damaged: better told twice than not at all
        return read_json(post.commanded, dict[str, float]) or {}
    return {}


def _write(post: Post, told: dict[str, float]) -> None:
    ensure_private_dir(post.path)
    write_json(post.commanded, told)
