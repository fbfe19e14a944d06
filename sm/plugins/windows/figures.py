"""Figures of each account's usage windows, in one file for all sessions of this user.

The status line's hook writes the figures into the line `usage` of its session. When anybody asks,
they are taken over from there; by the time of each line, only new ones are read. A client shows old
figures again whenever it draws its line again, so figures are as old as when they were first seen
in a session. For an account the youngest figures count.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sm.adapters.agent.account import find_account_folder, read_login
from sm.base.errors import StateError
from sm.plugins.windows.rules import find_hold
from sm.sessions import registry, window
from sm.sessions.failure import FARTHEST_S, LIMIT_WORDS, Usage, parse_usage
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, read_harmless, write_json
from sm.store.paths import Root, SessionDir

FILE = Path(".local/share/sm/usage-windows.json")
"""File below the user's home, as a reboot does not begin new windows."""
AGAIN_S = 0.5
REREAD = 16
"""Lines that are read again each time at most: reading them costs less than noting that they were
read."""
LINE_LIMIT = 400


class SeenLine(Struct, frozen=True):
    """Figures of a session's line, which was written at `line_ns`; they are there since `at`.

    `account` is the folder of the agent CLI, '' as long as that is not known.
    """

    account: str
    figures: str
    at: float
    line_ns: int


class AccountFigures(Struct, frozen=True):
    """Youngest figures of an account, from `at` (seconds since 1970), and who was logged in."""

    usage: Usage
    at: float
    login: str = ""


class WindowFigures(Struct, frozen=True):
    """All known figures: by the folder of an account, and by the directory of a session."""

    accounts: dict[str, AccountFigures] = {}
    sessions: dict[str, SeenLine] = {}


def locate() -> Path:
    """Return where the file is.

    Raises:
        StateError: the user has no home.

    """
    try:
        return Path.home() / FILE
    except RuntimeError as error:
        raise StateError("you have no home directory: set HOME") from error


def read_figures() -> WindowFigures:
    """Read the figures that were known last."""
    return read_rebuildable(locate(), WindowFigures) or WindowFigures()


def gather(root: Root, hold: int) -> WindowFigures:
    """Take over what the sessions of this state root have told since; return all that is known.

    `hold` is the percentage from which the caller holds: the sessions of an account that crosses it
    are woken. Some callers ask for one session after another: this is done twice a second at most.
    """
    now = time.monotonic()
    if _last and _last[0].root == root and now < _last[0].at + AGAIN_S:
        return _last[0].figures
    _last[:] = [_Gathered(root, now, _gather(root, hold))]
    return _last[0].figures


class _Gathered(NamedTuple):
    root: Root
    at: float
    figures: WindowFigures


_last: list[_Gathered] = []


def _gather(root: Root, hold: int) -> WindowFigures:
    """Gather, and keep the result; if another process is doing so, or writing fails, next time."""
    known = read_figures()
    new = dict(_list_new(root, known))
    before = known.sessions
    has_told = any(one not in before or before[one].figures != new[one].figures for one in new)
    if not has_told and len(new) <= REREAD:
        return known
    with contextlib.suppress(StateError, OSError):
        ensure_private_dir(locate().parent)
        with lock.try_hold(locate().with_suffix(".lock")) as ours:
            if ours:
                last = read_figures()
                after = _drop_old(_enter(last, new), root, time.time())
                write_json(locate(), after)
                _wake_concerned(root, last, after, hold)
                return after
    return _enter(known, new)


def _list_new(root: Root, known: WindowFigures) -> Iterator[tuple[str, SeenLine]]:
    """List what was written into lines since, by the directory of the session."""
    for folder, changed_ns in _list_lines(root):
        before = known.sessions.get(folder)
        if before and before.line_ns == changed_ns:
            continue
        words = read_harmless(Path(folder, "usage"), LINE_LIMIT).decode("utf-8", "replace").split()
        figures = " ".join(words[LIMIT_WORDS])
        if before and before.account and before.figures == figures:
            yield folder, SeenLine(before.account, figures, before.at, changed_ns)
            continue
        conversation = window.read(SessionDir(Path(folder))).conversation
        account = find_account_folder(conversation) if conversation else None
        yield folder, SeenLine(str(account or ""), figures, changed_ns / 1e9, changed_ns)


def _list_lines(root: Root) -> Iterator[tuple[str, int]]:
    """List the directory of each session that has such a line, and when that was written (ns)."""
    with contextlib.suppress(OSError), os.scandir(root.sessions) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                yield entry.path, os.lstat(f"{entry.path}/usage").st_mtime_ns


def _enter(known: WindowFigures, new: dict[str, SeenLine]) -> WindowFigures:
    """Add what is new; for an account the youngest figures stay."""
    accounts = dict(known.accounts)
    for seen in new.values():
        usage = parse_usage(f"- - - - {seen.figures}")
        before = accounts.get(seen.account)
        if not seen.account or usage == Usage() or (before and before.at >= seen.at):
            continue
        login = read_login(Path(seen.account))
        if before and login == before.login:
            usage = _fill_up(usage, before.usage)
        accounts[seen.account] = AccountFigures(usage, seen.at, login)
    return WindowFigures(accounts, known.sessions | new)


def _fill_up(now: Usage, before: Usage) -> Usage:
    """Fill in old figures of a window without new ones: after its reset, clients tell nothing.

    If a clock is ahead, they stop before it. Its figures become void by themselves.
    """
    five, week = now.five_hours, now.seven_days
    return Usage(
        five if five.percent is not None else before.five_hours,
        week if week.percent is not None else before.seven_days,
    )


def _wake_concerned(root: Root, before: WindowFigures, after: WindowFigures, hold: int) -> None:
    """Wake all sessions of an account whose hold has begun, ended, or ends at another time."""
    now = time.time()
    accounts = {
        name
        for name, one in after.accounts.items()
        if _name_hold(one, now, hold) != _name_hold(before.accounts.get(name), now, hold)
    }
    ours = f"{root.sessions}/"
    for folder, seen in after.sessions.items():
        if seen.account in accounts and folder.startswith(ours):
            registry.poke(SessionDir(Path(folder)))


def _name_hold(known: AccountFigures | None, now: float, hold: int) -> str:
    """Name the window that holds the account, and about until when; '' for none."""
    held = find_hold(known.usage, known.at, now, hold=hold) if known else None
    return held.matter if held else ""


def _drop_old(known: WindowFigures, root: Root, now: float) -> WindowFigures:
    """Drop sessions that are gone, and figures that no window can reach."""
    ours = f"{root.sessions}/"
    return WindowFigures(
        {name: one for name, one in known.accounts.items() if one.at > now - FARTHEST_S},
        {
            folder: seen
            for folder, seen in known.sessions.items()
            if (os.path.isdir(folder) if folder.startswith(ours) else seen.at > now - FARTHEST_S)  # noqa: PTH112
        },
    )
