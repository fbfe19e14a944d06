"""Takes messages back: those that wait, and those that were handed over and never confirmed.

It is not known whether the agent has read the latter: their typing was not heard of, and they were
looked for in vain. They stay under way until a person decides.
"""

from __future__ import annotations

import contextlib

from sm.base.clock import is_within
from sm.base.errors import SmError
from sm.messages import notification, queue
from sm.messages.draft import read_last_typed
from sm.messages.queue import Message, MessageFolder
from sm.sessions import registry
from sm.sessions.caller import Caller, CallerError
from sm.sessions.session import AnySession
from sm.store import events, journal, lock
from sm.store.files import read_guarded, write_atomic
from sm.store.paths import SessionDir

HANDED_S = 60.0
"""Time after its hand-over in which a message may still be on its way to the agent, in seconds."""


def cancel(caller: Caller, session: AnySession, ident: str) -> bool:
    """Take a message back; return whether the agent may have read it all the same.

    A session takes back only what it has sent itself.

    Raises:
        SmError: the agent has it, or may be about to, or there is no such message.
        CallerError: it is another one's.
        HeldError: something is handed to the agent all the time.

    """
    directory = session.dir
    was_handed = False
    if not _withdraw(caller, directory, ident, MessageFolder.WAITING):
        with lock.hold(directory.delivery_lock):  # no process is typing it, or putting it back
            was_handed = not _withdraw(caller, directory, ident, MessageFolder.WAITING)
            if was_handed and not _withdraw(caller, directory, ident, MessageFolder.HANDED):
                raise _refusal(directory, ident)
    notification.unsubscribe(directory, ident)
    told = events.Cancelled(session=session.name, id=ident, handed=was_handed)
    journal.record(session.root.journal, told)
    registry.poke(directory)  # others may have waited behind it
    return was_handed


def _withdraw(caller: Caller, directory: SessionDir, ident: str, place: MessageFolder) -> bool:
    message = queue.find(directory, place, ident)
    if message is None:
        return False
    if caller.session and message.sender != caller.name:
        raise CallerError(f"message '{ident}' is not yours: its sender may take it back")
    if place is MessageFolder.HANDED:
        _check_given_up(directory, message)
        _expect_no_more(directory, ident)
    return queue.withdraw(directory, ident, place)


def _check_given_up(directory: SessionDir, message: Message) -> None:
    if queue.is_accepted(directory, message.id):
        raise _refusal(directory, message.id)
    if is_within(HANDED_S, _handed_at(directory, message)):
        raise SmError(
            f"message '{message.id}' cannot be taken back now, it is just being handed over: "
            "if it is still under way in a minute, try again"
        )


def _handed_at(directory: SessionDir, message: Message) -> float:
    typed = read_last_typed(directory)
    if typed and typed.id == message.id:
        return typed.at
    # A hook has handed it over, or another one was typed since: its file was moved at that time.
    path = directory.queue / MessageFolder.HANDED / message.name
    with contextlib.suppress(FileNotFoundError):  # another process has just put it away
        return path.stat().st_ctime
    return 0.0


def _expect_no_more(directory: SessionDir, ident: str) -> None:
    """Keep the prompt hook from adding anything to a line that may still stand in the composer."""
    if (read_guarded(directory.expect) or b"").startswith(f"{ident} ".encode()):
        write_atomic(directory.expect, "")


def _refusal(directory: SessionDir, ident: str) -> SmError:
    known = queue.find_place(directory, ident)
    why = "it is delivered already" if known else "there is none of this id"
    return SmError(f"message '{ident}' cannot be taken back: {why}")
