"""Receipts: whatever a line has become, the others count."""

from __future__ import annotations

import pytest

from sm.sessions import plan
from sm.sessions.history import Receipt
from sm.store.paths import Root, SessionDir


@pytest.fixture
def directory(root: Root) -> SessionDir:
    found = root.session("dev-shop-7")
    found.path.mkdir(parents=True, mode=0o700)
    return found


DAMAGED = [b"half a li", b'{"at": 1, "plan": "\xff"}', b'{"more": ' + b"[" * 100_000]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_is_no_receipt_and_the_others_are(
    directory: SessionDir, line: bytes
) -> None:
    first, second = Receipt(1.0, "start", "start"), Receipt(2.0, "push", "push")
    plan.add_receipt(directory, first)
    with directory.receipts.open("ab") as receipts:
        receipts.write(line + b"\n")
    plan.add_receipt(directory, second)
    assert plan.read_receipts(directory) == [first, second]
