"""Files of the faults of accounts: one for each account, for all sessions of a state root.

Every pass over a session that has met a fault, or has worked since, brings the file up to date. Who
was logged in with which key is not in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.agent.account import (
    describe_account,
    digest_keys,
    find_account_folder,
    guess_account_folder,
    list_credentials,
    trace_login,
)
from sm.adapters.agent.profile import Profile
from sm.base.errors import SmError
from sm.base.foreign import read_seconds
from sm.sessions import account_fault, agent_state, hook_events, registry, turn, window
from sm.sessions.account_fault import AccountCourse, AccountFault, Consequence, Resting
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import Failure, FailureCause
from sm.sessions.launch import read_environment, select_environment
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session
from sm.sessions.signs import PATIENCE_S, Signs
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import (
    discard,
    ensure_private_dir,
    find_mtime,
    list_names,
    read_guarded,
    write_atomic,
    write_json,
)
from sm.store.paths import Root, SessionDir

LOOK_S, TRIED_S = 30.0, 5.0
"""Seconds between two looks of one of the resting sessions: whether another one has had an answer
meanwhile; and, for the session that tries, whether it has had one."""
PROVING = ("Stop", "PostToolUse")
"""Hooks that are called after an answer of the model only."""
ASKING = ("UserPromptSubmit", "PostToolUse")
"""Hooks behind which the client sends a request."""


class Account(Struct, frozen=True):
    """An account of an agent CLI: its name in files and for people, and the client's folder."""

    id: str
    name: str
    folder: Path


def find_account(session: Session) -> Account | None:
    """Return the account of the session's agent; None where a client is not known so well."""
    if not session.profile.hooks or not session.profile.spending:
        return None
    env = read_environment(session.dir)
    conversation = window.read(session.dir).conversation
    folder = find_account_folder(conversation) if conversation else None
    return _make_account(session.profile, folder, env)


def _make_account(profile: Profile, known: Path | None, env: Mapping[str, str]) -> Account | None:
    folder = known or guess_account_folder(profile, env)
    if folder is None:
        return None
    said = f"{profile.spending}\0{folder}\0{digest_keys(env)}"
    ident = hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Account(ident, describe_account(profile, folder, env), folder)


def list_faults(root: Root) -> list[tuple[str, AccountFault]]:
    """List the accounts with a fault, by their ids."""
    found = ((name, _read(root, name)) for name in list_names(root.account_faults))
    return [(name, one) for name, one in found if one]


def read_fault(session: Session) -> tuple[str, AccountFault] | None:
    """Return the fault of the session's account, with the account's id; None for none."""
    if not list_names(session.root.account_faults):
        return None
    account = find_account(session)
    known = _read(session.root, account.id) if account else None
    return (account.id, known) if account and known else None


def find_holding(project: Project) -> AccountFault | None:
    """Return the fault that one more session of the project would meet; None for none."""
    if not list_names(project.root.account_faults):
        return None
    env = select_environment(project.settings.agent)
    account = _make_account(project.profile, None, env)
    known = _read(project.root, account.id) if account else None
    return known if known and not known.works else None


def read_standing(session: Session, failure: Failure | None, *, gone: bool) -> Consequence | None:
    """Return what a fault of its account means for the session; None for nothing.

    `failure` is why its last turn failed; `gone`: its agent does not run.
    """
    if gone:
        found = read_fault(session)
        if found is None or found[1].fault is not FailureCause.ACCESS:
            return None
        known = found[1]
        rests = not (known.works or known.changed_at)
        return (
            Consequence(AccountCourse.REST, known.until, known.name, known.fault) if rests else None
        )
    if failure is None or not failure.fault.is_of_account:
        return None
    account = find_account(session)
    if account is None:
        return None
    noted = _read(session.root, account.id)
    one = noted.sessions.get(session.name) if noted else None
    if noted is None or one is None or one.at < failure.at:  # the next pass notes it
        until = time.time() + account_fault.NOTED_S
        return Consequence(AccountCourse.REST, until, account.name, failure.fault)
    return judge(session, noted)


def update(session: Session, told: AgentState) -> tuple[str, AccountFault] | None:
    """Bring the fault of the session's account up to date; return it, None for none.

    `told` is what the session's agent has said of itself. Sessions for which something has changed
    by that are woken.
    """
    signs = turn.read(session.dir, told)
    failure = signs.failure if signs.failure and signs.failure.fault.is_of_account else None
    if failure is None and not list_names(session.root.account_faults):
        return None
    account = find_account(session)
    if account is None:
        return None
    root, now = session.root, time.time()
    ensure_private_dir(root.account_faults)
    with lock.hold(root.account_faults_lock):
        before = _read(root, account.id)
        after = before
        if failure:
            after = _note_failure(session, account, after, failure)
        if after:
            after = _note_answers(session, account, after)
            after = account_fault.note_login(after, trace_login(account.folder), now)
            if _has_left(session, after, signs):
                after = account_fault.leave(after, {session.name})
        _write(root, account.id, before, after)
    if failure:
        _watch(session, account)
    if before and (after is None or _stage(after) != _stage(before)):
        for name in before.sessions:
            if name != session.name:
                registry.poke(root.session(name))
    return (account.id, after) if after else None


def _stage(known: AccountFault) -> tuple[bool, float, float]:
    """Return what decides for the resting sessions, and for the one that tells people."""
    return known.works, known.changed_at, known.asks_at


def judge(session: Session, known: AccountFault) -> Consequence:
    """Return what becomes of a session that has met this fault."""
    renewed = _has_other_login(session)
    return account_fault.judge(known, session.name, time.time(), has_other_login=renewed)


def take_turn(session: Session) -> bool:
    """Have the session go on, if it is its turn; say whether it is."""
    account = find_account(session)
    if account is None:
        return True
    root, renewed = session.root, _has_other_login(session)
    with lock.hold(root.account_faults_lock):
        known = _read(root, account.id)
        if known is None or session.name not in known.sessions:
            return True
        taken = account_fault.take_turn(known, session.name, time.time(), has_other_login=renewed)
        if taken:
            _write(root, account.id, known, taken)
    return taken is not None


def note_told(root: Root, ident: str, times: int) -> None:
    """Note how often people have been told of the fault."""
    with lock.hold(root.account_faults_lock):
        if known := _read(root, ident):
            _write(root, ident, known, structs.replace(known, told=times))


def _read(root: Root, ident: str) -> AccountFault | None:
    """Return the fault without sessions that are over meanwhile; None if no session is left."""
    known = read_rebuildable(root.account_faults / ident, AccountFault)
    if known is None:
        return None
    over = {name for name in known.sessions if _is_over(root.session(name))}
    return account_fault.leave(known, over) if over else known


def _is_over(directory: SessionDir) -> bool:
    return not directory.identity.exists() or directory.over.exists()


def _write(root: Root, ident: str, before: AccountFault | None, after: AccountFault | None) -> None:
    if after is None:
        discard(root.account_faults / ident)
    elif after != before:
        write_json(root.account_faults / ident, after)


def _note_failure(
    session: Session, account: Account, known: AccountFault | None, failure: Failure
) -> AccountFault:
    before = known.sessions.get(session.name) if known else None
    if known and before and before.at >= failure.at:
        return known
    others = [
        one for one in _list_others(session, account) if not (known and one.name in known.sessions)
    ]
    others_work = any(_works(one, failure.at) for one in others)
    return account_fault.note_failure(
        known,
        account.name,
        session.name,
        Resting(session.address, failure.at, failure.until, at_menu=failure.at_menu),
        failure,
        notice=turn.read_notice(session.dir),
        login=trace_login(account.folder),
        # If others are at work, they soon show whether it is these sessions alone.
        asks_at=failure.at + (PATIENCE_S if others_work else 0.0),
    )


def _list_others(session: Session, account: Account) -> Iterator[Session]:
    """Yield the other sessions of the account."""
    for one in registry.list_all(session.root, lambda _: None):
        if one.name == session.name or one.is_over:
            continue
        with contextlib.suppress(SmError):
            found = find_account(one)
            if found and found.id == account.id:
                yield one


def _works(session: Session, failed_at: float) -> bool:
    """Say whether its agent is at work, or was just before another one has failed."""
    told = agent_state.read(session.dir)
    is_fresh = told.active_at > failed_at - PATIENCE_S
    return told.state is State.BUSY or (told.state in (State.IDLE, State.WAITING) and is_fresh)


def _note_answers(session: Session, account: Account, known: AccountFault) -> AccountFault:
    """Note the last success of the session, or of all sessions of the account if it rests."""
    found = find_success(session.dir, known.at)
    if session.name in known.sessions and not known.works:
        answers = (find_success(one.dir, known.at) for one in _list_others(session, account))
        found = max(found, *answers, 0.0)
    return account_fault.note_success(known, found)


def find_success(directory: SessionDir, after: float) -> float:
    """Return when a request that was sent after that moment last had an answer; 0 for never.

    What a hook tells after one of those requests proves that. Tools that the model has called at
    once may prove it too early: then a session goes on, and rests again.
    """
    asked_at: dict[str, float] = {}
    found = 0.0
    if find_mtime(directory.events) <= after:
        return 0.0
    for at, event, context, detail in hook_events.read_events(directory):
        moment = read_seconds(at) or 0.0
        if moment <= after or detail == "stale":
            continue
        if event in PROVING and context in asked_at:
            found = moment
        if event in ASKING:
            asked_at[context] = moment
    return found


def _has_left(session: Session, known: AccountFault, signs: Signs) -> bool:
    """Say whether the fault no longer concerns the session: it works, or has nothing to do."""
    one = known.sessions.get(session.name)
    if one is None or signs.failure is not None:
        return False
    rests = signs.doing in (State.IDLE, State.WAITING)
    return rests or find_success(session.dir, one.at) > 0


def _has_other_login(session: Session) -> bool:
    """Say whether the configuration gives a new client another key than the session's has."""
    if not isinstance(session, IssueSession):
        return False
    now = digest_keys(select_environment(session.project.settings.agent))
    return now not in ("", digest_keys(read_environment(session.dir)))


def _watch(session: Session, account: Account) -> None:
    """Have the session's monitor look at the login on disk."""
    said = read_guarded(session.dir.watch) or b""
    known = said.decode("utf-8", "surrogateescape").splitlines()
    new = [str(path) for path in list_credentials(account.folder) if str(path) not in known]
    if new:
        text = "".join(f"{line}\n" for line in [*known, *new])
        write_atomic(session.dir.watch, text.encode("utf-8", "surrogateescape"))
