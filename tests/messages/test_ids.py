from __future__ import annotations

from sm.messages.ids import derive_id


def test_an_id_is_that_of_earlier_versions_and_differs_between_events() -> None:
    assert derive_id("s@1.0:done") == "7f46aa5f9f51fd99"
    assert derive_id("s@1.0:done") != derive_id("s@1.0:failed")
