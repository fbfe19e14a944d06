"""Page of a session that runs elsewhere: its row says some things at once, its node all others.

Only who has opened a part waits for it. What the session changes, and the document with which its
context began, are read from what its node has pushed, also while the node does not answer.
"""

from __future__ import annotations

import time
from functools import partial

from sm.adapters.git_call import call
from sm.base.errors import SmError
from sm.base.foreign import NUMBER_LIMIT
from sm.base.redact import redact
from sm.base.text import printable
from sm.issues.kept_messages import list_kept
from sm.issues.reaching import Elsewhere
from sm.issues.work import wip
from sm.messages.display import summarise
from sm.messages.queue import Place
from sm.messages.send import PLACES, QueuedMessage
from sm.plugins.page.documents import BYTES, ShownDocument
from sm.plugins.page.patch import BYTES as PATCH_BYTES
from sm.plugins.page.patch import FILES, GIT_S, Patch, make_patch
from sm.plugins.page.session_parts import ShownMessage, Stage, Told, shorten
from sm.views import there as looks


def read_told(there: Elsewhere) -> Told:
    """Read its story, as its node tells it.

    Raises:
        SmError: the node does not answer; the other functions raise this, too.

    """
    return shorten(looks.read_story(there))


def list_messages(there: Elsewhere) -> list[ShownMessage]:
    """List its messages, the newest first: those that wait here for its host, and those there."""
    now = time.time()
    kept = [_show_kept(there, one, now) for one in reversed(list_kept_here(there))]
    try:
        found = looks.read_messages(there)
    except SmError:
        if kept:  # what is known is said; the row says that the host is silent
            return kept
        raise
    return [*kept, *(_show(one, now) for one in reversed(found))]


def list_kept_here(there: Elsewhere) -> list[QueuedMessage]:
    """List the messages that its host has not taken yet."""
    return [
        QueuedMessage(
            id=one.id,
            place=PLACES[Place.WAITING],
            mode="sequential",
            age_s=max(0.0, time.time() - one.at),
            sender="",
            first_line=summarise(one.stdin or one.argv[-1]),
            characters=len(one.stdin),
        )
        for one in list_kept(there.project.directory, there.placement.session)
    ]


def _show_kept(there: Elsewhere, one: QueuedMessage, now: float) -> ShownMessage:
    why = f"its host '{there.placement.host}' has not taken it yet"
    return ShownMessage(one, Stage.WAITING, round(now - one.age_s, 1), why)


def _show(one: QueuedMessage, now: float) -> ShownMessage:
    """Show how far a message is; what its node lists as delivered, its agent has."""
    if one.place == PLACES[Place.WAITING]:
        stage, tells = Stage.WAITING, one.why or "the agent gets it as soon as it can"
    elif one.place == PLACES[Place.HANDED]:
        stage, tells = Stage.TYPED, "the agent has not confirmed it yet"
    else:
        stage, tells = Stage.SEEN, ""
    return ShownMessage(one, stage, round(now - one.age_s, 1), tells)


def _find_saved(there: Elsewhere) -> wip.Found:
    project, one = there.project, there.placement
    found = wip.find(project.git, project.settings.remote, one.issue, up_to=NUMBER_LIMIT)
    if found is None:
        raise SmError("its node has pushed nothing of it yet: it does so when a turn has ended")
    return found


def read_patch(there: Elsewhere) -> Patch:
    """Read what it had changed at the end of its last turn, also what was not committed then."""
    return _read_since(there, there.project.settings.primary_branch)


def read_unpushed(there: Elsewhere) -> Patch:
    """Read the part of that which its pull request lacks."""
    return _read_since(there, there.project.settings.branch(there.placement.issue))


def _read_since(there: Elsewhere, branch: str) -> Patch:
    project, found = there.project, _find_saved(there)
    git, tip = project.git, found.about.taken.commit
    base = git.fetch_branch(project.settings.remote, branch)
    read = partial(git.read_diff, base, tip=tip, limit=PATCH_BYTES, timeout_s=GIT_S)
    stat = git.read_diff_stat(base, tip=tip, files=FILES, limit=PATCH_BYTES, timeout_s=GIT_S)
    overview = printable(stat.data.decode("utf-8", "replace")) if stat.is_whole else ""
    return make_patch(read(), overview)


def list_documents(there: Elsewhere) -> list[ShownDocument]:
    """List the document with which its context began, as its node has pushed it."""
    git, found = there.project.git, _find_saved(there)
    names = call(git.repo, "ls-tree", "--name-only", found.commit).lines
    if wip.HANDOFF not in names:
        return []
    data = call(git.repo, "cat-file", "blob", f"{found.commit}:{wip.HANDOFF}").raw
    text = printable(redact(data[:BYTES].decode("utf-8", "replace")))
    at = float(call(git.repo, "log", "-1", "--format=%ct", found.commit).stdout.strip() or 0)
    return [ShownDocument(at, found.ref, text, is_cut=len(data) > BYTES)]
