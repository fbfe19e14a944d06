"""How long a service is waited for, and what is said of one that fails."""

from __future__ import annotations

import pytest

from sm.plugins.notify import service
from sm.plugins.notify.address import hide


@pytest.mark.parametrize(("options", "waited_s"), [("", service.ANSWER_S), ("?rto=5", 5.0)])
def test_a_service_may_take_a_minute_unless_its_address_says_otherwise(
    options: str, waited_s: float
) -> None:
    [opened] = service._open(f"json://127.0.0.1:9/{options}")
    assert opened.socket_read_timeout == waited_s
    assert waited_s < 60 or waited_s > 75


def test_no_part_of_an_address_is_said() -> None:
    address = "json://ada:pass-word@127.0.0.1:9/secret-path?token=secret-value"
    outcome = service.send(address, "title", "text")
    assert "onnection error" in outcome.reason
    assert not outcome.unsure
    said = f"no ada, pass-word, secret-path, secret-value, {address}"
    assert hide(said, address) == ("no ada, [redacted], [redacted], [redacted], [redacted]")


def test_an_address_of_no_service_is_not_said() -> None:
    with pytest.raises(service.AddressError) as refused:
        service.name_service("slack://secret-token")
    assert "secret" not in refused.value.message
