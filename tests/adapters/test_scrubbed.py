"""What is written to a forge elsewhere holds no well-known secret, and not our own token."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.forge.model import CheckState, InlineComment, ReviewState
from tests.forges.sides import remote_side
from tests.hub import Hub

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.mark.parametrize("kind", ["github", "forgejo"])
def test_no_text_takes_a_secret_to_the_forge(kind: str, hub: Hub, tmp_path: Path) -> None:
    with remote_side(kind, hub, tmp_path / "state") as side:
        forge = side.open()
        ours = side.token_file("sm").read_text()
        text = f"See {SECRET} and {ours}."
        issue = forge.issues.add(f"Title {SECRET}", text, author="sm").number
        assert forge.issues.read(issue).body == "See [redacted] and [redacted]."
        forge.issues.edit(issue, body=text + " Again.")
        forge.issues.comment(issue, text, author="sm", marker="m1")
        side.finish(side.push("fix/1"), CheckState.SUCCESS)
        number = forge.pulls.open("fix/1", "main", f"Pull {SECRET}", text, author="sm").number
        remark = InlineComment("work.txt", 1, text)
        forge.pulls.review(number, ReviewState.COMMENTED, text, [remark], author="sm")
        forge.pulls.merge(number, author="sm", message=f"Merge\n\n{text}")
        sent = b"".join(asked.body for asked in side.site.asked)
        assert b"[redacted]" in sent
        assert SECRET.encode() not in sent
        assert ours.encode() not in sent
