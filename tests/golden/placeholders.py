"""What differs from run to run, and the word that stands for it in the golden files."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

from tests.golden.states import World

PATTERNS = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "{secret}"),
    (re.compile(r'(data-version=")[0-9a-f]{8}"'), r'\1{version}"'),
    (re.compile(r'(data-position=")\d+"'), r'\1{position}"'),
    (re.compile(r'(["#]n(?:eed-)?)[0-9a-f]{8}"'), r'\1{key}"'),
    (re.compile(r'^(  "monitor": )(?:true|false)', re.MULTILINE), r"\1{whether it is up yet}"),
    (re.compile(r"\bs-(?!000000)[0-9a-f]{8}\b"), "{new session}"),
    (re.compile(r'("name": ")[0-9a-f]{24}"'), r'\1{name}"'),
    (re.compile(r'("a)[0-9a-f]{8}(?=\d[-"])'), r"\1{key}"),
    (re.compile(r"(· process )\d+"), r"\1{pid}"),
    (re.compile(r'("what": )"\d+"'), r'\1"{pid}"'),
    (re.compile(r"^((?:  \| )?--- (?:begin|end) .*?)\b[0-9a-f]{8}\b", re.MULTILINE), r"\1{nonce}"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "{id}"),
    (re.compile(r"\bhof_[\w-]{21}"), "{another thread}"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "{moment}"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "{minute} UTC"),
)
"""Random ids, by their shape."""


def settle(text: str, world: World) -> str:
    """Put words in the place of what is another one in each run, or on each machine."""
    for found, word in _list_words(world):
        text = text.replace(found, word)
    for pattern, word in PATTERNS:
        text = pattern.sub(word, text)
    return text.replace("\x1b", "␛").replace("\r", "␍")


def _list_words(world: World) -> list[tuple[str, str]]:
    """Longest first, as one may be within another."""
    words = [
        *world.words.items(),
        (str(world.folder), "{folder}"),
        (world.folder.name, "{socket}"),
        (os.environ["HOME"], "{home}"),
        (str(Path(__file__).parents[2]), "{clone}"),
        (sys.executable, "{python}"),
        (f"sm-{os.geteuid()}", "sm-{uid}"),
        (f"@{socket.gethostname()}", "@{host}"),
    ]
    return sorted(words, key=lambda one: len(one[0]), reverse=True)
