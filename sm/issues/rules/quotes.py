"""Words of others as an agent gets them: fenced as data, and cut if they are long. Pure.

After a cut stands the command that shows all of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.model import Check, Comment, InlineComment, Review
from sm.base.quotation import PEER, PERSON, QUOTE_LIMIT, SENTENCE_LIMIT, fence, first_part
from sm.base.text import one_line
from sm.issues.rules.material import Material, cite_pull

COMPARED = 1_000_000
"""Greatest number of pairs of lines of two texts whose order counts in a comparison."""
GIT_LIMIT = 5_000
"""Greatest number of characters of the output of a git command."""


def name_issue_command(m: Material) -> str:
    """Return the command that shows the issue."""
    return f"sm issue show {m.issue.number} --project {m.project}"


def name_pull_command(m: Material) -> str:
    """Return the command that shows the pull request."""
    return f"sm pr show {cite_pull(m)} --project {m.project}"


def quote_issue(m: Material) -> str:
    """Quote its title and text, as they were trusted."""
    body = first_part(m.issue.body.strip() or "(no text)", name_issue_command(m))
    title = fence("issue title", m.issue.title, m.nonce)
    return f"{title}\n\n{fence('issue', body, m.nonce)}"


def quote_answer(m: Material) -> str:
    """Quote the answer of a person, or of the session that was asked first."""
    whose = PEER if m.answered_by else PERSON
    return fence("answer", first_part(m.reply.strip(), name_issue_command(m)), m.nonce, whose)


def quote_git(m: Material, command: str, said: str, nothing: str) -> str:
    """Quote a git command's output: file names and subjects of commits are words of others, too."""
    if not said:
        return f"{command}: ({nothing})"
    return f"{command}:\n{fence('git', first_part(said, command, GIT_LIMIT), m.nonce)}"


def quote_log(m: Material, check: Check) -> str:
    """Quote the end of CI's log, below the step that failed and where to see all of it."""
    named = (("step", check.step), ("address", check.url), ("the whole log", check.file))
    head = [f"{what}: {one_line(words, SENTENCE_LIMIT)}" for what, words in named if words]
    lines = check.log.rstrip().splitlines()
    cut = len(lines) - m.log_lines
    shown = "\n".join([f"… {cut} lines above", *lines[-m.log_lines :]] if cut > 0 else lines)
    log = shown if len(shown) <= QUOTE_LIMIT else f"… cut\n{shown[-QUOTE_LIMIT:]}"
    return fence("CI log", "\n".join([*head, *([""] if head else []), log]), m.nonce)


def quote_comments(m: Material, said: Iterable[Comment]) -> str:
    """Quote what people say on the pull request outside of reviews."""
    texts = (
        fence(f"comment by {c.author}", first_part(c.body, name_pull_command(m)), m.nonce)
        for c in said
    )
    return "\n".join(texts)


def quote_review(m: Material, review: Review) -> str:
    """Quote the text of a review, and its remarks on lines."""
    text = first_part(_said(review) or "(no text)", name_pull_command(m))
    return fence(f"review by {review.author}", text, m.nonce)


def _said(review: Review) -> str:
    lines = [review.body.strip()] if review.body.strip() else []
    return "\n\n".join([*lines, *map(_remark_text, review.comments)])


def _remark_text(remark: InlineComment) -> str:
    """Return a remark on a line, with the code that it is about."""
    since = " (the code has changed since)" if remark.outdated else ""
    said = f"{remark.path}:{remark.line}{since}: {remark.body.strip()}"
    hunk = "\n".join(f"    {line}" for line in remark.hunk.splitlines())
    return "\n".join(filter(None, [said, hunk]))


def quote_edit(m: Material) -> str:
    """Quote what an edit of the issue has changed."""
    before, after = ([one.title, "", *one.body.splitlines()] for one in (m.issue, m.edited))
    changed = first_part(_list_changes(before, after) or "(no line)", name_issue_command(m))
    return fence("changes", changed, m.nonce)


def quote_review_edit(m: Material) -> str:
    """Quote what an edit of a review has changed."""
    edited = m.edited_review
    before, after = (_said(one).splitlines() for one in (edited.before, edited.now))
    changed = first_part(_list_changes(before, after) or "(no line)", name_pull_command(m))
    return fence(f"changes of the review by {edited.now.author}", changed, m.nonce)


def _list_changes(before: list[str], after: list[str]) -> str:
    """Return the lines that are gone (-) and new (+), with some around them."""
    import difflib

    if len(before) * len(after) > COMPARED:
        # The time grows with the product, up to its cube (Python's documentation of difflib).
        old, new = set(before), set(after)
        gone = [f"-{line}" for line in before if line not in new]
        return "\n".join([*gone, *(f"+{line}" for line in after if line not in old)])
    lines = difflib.unified_diff(before, after, lineterm="", n=2)
    return "\n".join(list(lines)[2:])
