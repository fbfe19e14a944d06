"""Words that no forge should answer with, and all that is read and told of a forge that does."""

from __future__ import annotations

import contextlib
import time

from hypothesis import strategies as st

from sm.base.errors import SmError
from sm.cli.table import list_plain_lines
from sm.issues.act.compose import gather
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import last_snapshot, look
from sm.issues.poll import tick
from sm.issues.rules.material import GitState
from sm.issues.rules.notices import NOTICES, write_notice
from sm.issues.rules.prompts import PROMPTS, write_prompt
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.files import write_json
from sm.views import trace
from sm.views.project import read_overview

PIECES = (
    "\n", "\r", "\n\n\n\n", "\r\n",
    "!!x ", " ", "\t", "---\n", "---", ":", ": ", "#", "# ", "- ", "'", '"',
    "\\", "\x00", "\x1b[2J", "\x1b]52;c;AAAA\x07", "\x7f", "\x80", "\x85", "\u2028", "\u202e",
    "\u200b", "\ufeff", "\ud800", "\udc80", "٣", "👩\u200d", "[", "{", "]", "}", "&a ", "*a",
    "<<: ", "? ", "| ", "> ", "%", "@", "`", "$(id)", "{0}", "%s", "Depends on ", "depends on: #",
    "#1", "#0", "#" + "9" * 4301, "9" * 4301, "-1", "1e999", "nan", "0x10", "2026-01-02",
    "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "2026-01-02T03:04:05Z", "24:00",
    "## Comment by ", "## Review by ", "### On a.py:3", "### On :999999999", ", ", "approved",
    ": approved", "<!-- sm:", " marker=%00%ff", " id=x head=y", "-->", "[sm] PHASE:done",
    "--- begin issue", "../../etc", "--help", "null", "true", "~", "open", "closed",
    "[" * 900, "{" * 900, "\n" * 3000, "\r" * 3000, " " * 3000, "x" * 3000, "- " * 900,
    "Depends on " + "#1 " * 900, "eyJ-" * 700, "`" * 3000,
)  # fmt: skip
junk = st.one_of(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=8).map("".join),
    st.text(max_size=40),
)
numbers = st.one_of(junk, st.integers().map(str), st.floats().map(str))


def values(*good: str) -> st.SearchStrategy[str]:
    """What is mostly right, so that the other fields of the file are looked at too."""
    return st.one_of(st.sampled_from(good), st.sampled_from(good), junk)


def read_all(project: Project, session: IssueSession) -> list[str]:
    """All that is read and told: a tick, the status, every text; what was bad."""
    list(tick(project, dry_run=True))
    seen = look(project)
    assert seen.issue(1), "the others go on"
    write_json(project.directory.snapshot, seen)
    assert last_snapshot(project.directory) == seen
    shown = read_overview(project, time.time())
    list_plain_lines(shown.sessions)
    problems = [problem.encode().decode() for problem in shown.problems]
    observed = recall(session, seen)
    with contextlib.suppress(SmError):  # its own issue may be the bad one
        material = gather(session, observed, GitState())
        for name in PROMPTS:
            write_prompt(name, material).encode()
        for name in NOTICES:
            write_notice(name, material).encode()
    trace.read_story(project, session.issue)
    return problems
