"""Account of a session, or of one more issue, and what the windows of that account leave."""

from __future__ import annotations

import time
from pathlib import Path

from sm.adapters.agent import codex_rollout
from sm.adapters.agent.account import find_account_folder, guess_account_folder, read_login
from sm.context import usage
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.plugins.windows.figures import LINE_LIMIT, WindowFigures, gather
from sm.plugins.windows.rules import judge
from sm.sessions import window
from sm.sessions.failure import Usage, UsageLimit, parse_usage
from sm.sessions.launch import select_environment
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session
from sm.store.files import read_harmless
from sm.store.paths import SessionDir, prefix_sessions

UNHELD = Allowance(LimitStage.FREE, matter="limits", shown="is not held")
FIRST = Allowance(LimitStage.FREE, matter="limits", shown="its client has told nothing yet")


def judge_session(session: Session, hold: int) -> Allowance | None:
    """Return what holds the session, or that it may soon; None for nothing."""
    conversation = window.read(session.dir).conversation
    if conversation and session.profile.spending == "codex":
        _note_codex(session.dir, conversation)
    known = gather(session.root, hold)
    account = str((conversation and find_account_folder(conversation)) or "")
    if not account and isinstance(session, IssueSession):
        account = _guess_account(known, session.project)
    is_silent = account not in known.accounts and str(session.dir.path) not in known.sessions
    if is_silent and session.profile.spending:
        return FIRST
    found = _judge(known, account, hold)
    # What a session of `sm new` tells counts; a person has begun it, and decides.
    return UNHELD if found and not isinstance(session, IssueSession) else found


def judge_project(project: Project, hold: int) -> Allowance | None:
    """Return what holds an issue that is to be begun; None for nothing."""
    known = gather(project.root, hold)
    found = _judge(known, _guess_account(known, project), hold)
    return found if found and found.stage is LimitStage.HELD else None


def _judge(known: WindowFigures, account: str, hold: int) -> Allowance | None:
    """Judge what holds an account. Figures from before another login say nothing."""
    told = known.accounts.get(account)
    found = judge(told.usage, told.at, time.time(), hold=hold) if told else None
    if found is None or told is None or found.stage is LimitStage.FREE:
        return found
    login = read_login(Path(account))
    return None if login and told.login and login != told.login else found


def _guess_account(known: WindowFigures, project: Project) -> str:
    """Guess the account of agents that are about to begin, by their environment.

    A command may be a wrapper that chooses another. Then the project's own sessions know it.
    """
    guessed = guess_account_folder(project.profile, select_environment(project.settings.agent))
    if str(guessed) in known.accounts:
        return str(guessed)
    prefix = f"{project.root.sessions}/{prefix_sessions(project.name)}"
    ours = [one for folder, one in known.sessions.items() if folder.startswith(prefix)]
    return max(ours, key=lambda one: one.at).account if ours else ""


def _note_codex(directory: SessionDir, rollout: Path) -> None:
    """Write the limits that Codex tells to where the status line's hook writes those of others."""
    found = codex_rollout.read_limits(rollout)
    if found is None:
        return
    line = read_harmless(directory.usage, LINE_LIMIT).decode("utf-8", "replace")
    five, week = found.five_hours, found.week
    now = Usage(UsageLimit(five.percent, five.resets_at), UsageLimit(week.percent, week.resets_at))
    if parse_usage(line) != now:
        usage.note_limits(directory, (five.percent, five.resets_at, week.percent, week.resets_at))
