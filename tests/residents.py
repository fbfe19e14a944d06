"""Sessions on record without an agent, for tests of what is noted and told about them."""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import find
from sm.adapters.tmux import Tmux
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder
from sm.sessions import registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, AnySession, Session
from sm.sessions.settings import Settings
from sm.store.paths import Root


def settle(
    root: Root, cwd: Path, name: str, *, parent: str = "", provider: str = "generic"
) -> AdHocSession:
    """A session that works on no issue; this very process stands in for its agent."""
    session = AdHocSession(
        AdHocRecord(
            name=name,
            provider=provider,
            cwd=cwd,
            config=None,
            state_root=root.path,
            created_at=1000.0,
            command="",
            parent=parent,
        )
    )
    registry.create(root, session)
    agent = procfs.find(os.getpid())
    assert agent
    session.dir.agent_pid.write_text(f"{agent.pid} {agent.started}\n")
    session.dir.agent_pid.chmod(0o600)
    return session


def target(session: Session, profile: Profile | None = None) -> Session:
    """The session without a terminal: nothing is typed anywhere. The default settings hold."""
    profile = profile or find("generic", {})
    return session.change().provide(tmux=Tmux(None), profile=profile, settings=Settings())


def waiting(session: AnySession) -> list[Message]:
    """What waits for the session's agent."""
    return queue.list_messages(session.dir, MessageFolder.WAITING)


def texts(session: AnySession) -> list[str]:
    """The texts of those."""
    return [message.text for message in waiting(session)]
