"""What the scripted agent writes down of its requests, in the form of Claude Code's transcripts.

Its model is a script, so there is nothing to pay. It counts as a model would: each step is a
request that reads all that was said before, and a token is four bytes.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path

MODEL = "script"
BYTES = 4
"""Of a token."""


class Records:
    """The transcript of one session; a restarted agent goes on with it."""

    def __init__(self) -> None:
        directory = Path(os.environ["SM_SESSION_DIR"])
        self._ident = directory.name
        self._path = Path.home() / "transcripts" / f"{self._ident}.jsonl"
        self._path.parent.mkdir(exist_ok=True)
        self._new, self._known = 0, 0
        started = {"session_id": self._ident, "source": "startup"}
        self._announce(directory, started | {"transcript_path": str(self._path)})

    def _announce(self, directory: Path, payload: dict[str, str]) -> None:
        """Tell sm where the transcript is, as the hook of a client does when it begins."""
        made = directory / f"context.{os.getpid()}"
        made.touch(0o600)
        made.write_text(json.dumps(payload))
        made.rename(directory / "context")

    def hear(self, text: str) -> None:
        """The model will read that with its next request."""
        self._new += _count(text)

    def step(self, text: str) -> None:
        """The model has answered with that; it and what came before are known from now on."""
        said = _count(text)
        usage = {
            "input_tokens": 0,
            "cache_creation_input_tokens": self._new,
            "cache_read_input_tokens": self._known,
            "output_tokens": said,
        }
        self._known += self._new + said
        self._new = 0
        ident = secrets.token_hex(8)
        message = {"id": ident, "model": MODEL, "stop_reason": "tool_use", "usage": usage}
        line = {
            "type": "assistant",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "sessionId": self._ident,
            "requestId": ident,
            "message": message,
        }
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _count(text: str) -> int:
    return -(-len(text.encode()) // BYTES)
