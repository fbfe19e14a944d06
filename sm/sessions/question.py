"""Tells whether an agent's last words ask a person something. Pure.

The rule, which docs/PROTOCOL.md has for people: the last paragraph asks. Choices that are listed
below a question, and code and quotations of others, are no paragraph. It is enough that one
sentence of it ends with a question mark, as a proposal often follows ("Postgres or SQLite? I would
take SQLite."). A mark within a word, an address or code is none.

What only sounds like a question ("let me know if …") is not taken for one. Most such words end a
report, and an agent that wants an answer and has not put a question is reminded that there is a
phase for that.
"""

from __future__ import annotations

import re

FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
CHOICE = re.compile(r"(?:[-*+•]|\(?(?:[0-9]{1,2}|[A-Za-z])[.):])(?:[*_]{0,2})\s")
"""Beginning of a line of choices: `- `, `2. `, `b) `, `(A) `."""
INDENTED = re.compile(r" {2,}|\t")
ENDS = "?？؟"
"""Question marks at the end of a sentence: Latin, Chinese and Japanese, Arabic."""
CLOSING = re.compile(rf"[{ENDS}][!.…]*[*_\"'”’»」』)\]}}]*(?=\s|$)|[？؟]")
LIMIT = 400
"""Characters of a question that people are shown."""


def find_question(said: str) -> str:
    """Return the question with which the agent has ended its turn, in one line; '' for none."""
    plain = FENCED.sub("\n\n", said.replace("\r\n", "\n"))
    for paragraph in reversed(re.split(r"\n[ \t]*\n", plain)):
        if _is_aside(paragraph):
            continue
        words = " ".join(line.strip() for line in _own_lines(paragraph))
        if not CLOSING.search(CODE.sub("``", words)):
            return ""
        return words if len(words) <= LIMIT else f"… {words[-LIMIT:]}"
    return ""


def list_choices(said: str) -> tuple[str, ...]:
    """List the choices that stand with the agent's question, each in one line; () for none.

    They are the last list of its words, without its numbers and signs.
    """
    found: list[list[str]] = []
    within = False
    for line in FENCED.sub("\n\n", said.replace("\r\n", "\n")).splitlines():
        if begin := CHOICE.match(line.lstrip()):
            if not within:
                found = []
            found.append([line.lstrip()[begin.end() :]])
            within = True
        elif within and line.strip():
            within = bool(INDENTED.match(line))
            if within:
                found[-1].append(line)
    texts = (" ".join(" ".join(lines).split()) for lines in found)
    return tuple(text for text in texts if text) if find_question(said) else ()


def drop_choices(said: str) -> str:
    """Return what is said without a list of choices at its very end."""
    lines = said.rstrip().splitlines()
    kept = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        if CHOICE.match(line.lstrip()):
            kept = at
        elif line.strip() and not INDENTED.match(line):
            break
    return "\n".join(lines[:kept]).rstrip()


def _own_lines(paragraph: str) -> list[str]:
    """Return the lines that are no choice, no further line of one, and no quotation."""
    found, within = [], False
    for line in paragraph.splitlines():
        begins = bool(CHOICE.match(line.lstrip())) or line.lstrip().startswith(">")
        within = begins or (within and bool(INDENTED.match(line)))
        if not within:
            found.append(line)
    return found


def _is_aside(paragraph: str) -> bool:
    """Say whether it is blank, or only a list, a quotation or a rule: its words stand above it."""
    return not any(any(map(str.isalnum, line)) for line in _own_lines(paragraph))
