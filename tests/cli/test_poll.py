"""What `sm poll` tells dev-poll."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.hub import make_hub


@pytest.mark.parametrize(
    ("interval", "expected"), [("12d", "1036800"), ("1m", "60"), ("2.5", "2.5"), ("0.00001", "0")]
)
def test_the_interval_is_a_plain_number(
    tmp_path: Path, root: Root, interval: str, expected: str
) -> None:
    assert root.path.is_dir()
    hub = make_hub(tmp_path)
    with hub.config.open("a") as file:
        file.write(f"poll_interval: {interval}\n")
    said = hub.sm("poll", "--dry-run")
    assert (said.stdout.splitlines()[-1:], said.stderr) == ([expected], "")
