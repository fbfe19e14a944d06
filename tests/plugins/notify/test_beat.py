"""How a heartbeat is worded for each service."""

from __future__ import annotations

from sm.plugins.notify.beat import Beat, BeatRequest, make_call, was_refused

WELL = Beat(failed=False, troubles=(), projects=("shop", "blog"), took_s=1.25)
ILL = Beat(
    failed=True, troubles=("shop: no route to the forge", "blog: ghp_" + "a" * 36), projects=()
)
PING = "https://hc-ping.com/5bf66975"
PUSH = "https://kuma.example.com/api/push/abc123"


def test_a_check_hears_of_success_and_of_failure() -> None:
    assert make_call(PING, WELL) == BeatRequest("POST", PING, b"dev-poll: shop, blog, in 1.2 s")
    failed = make_call(PING, ILL)
    assert failed.url == f"{PING}/fail"
    assert failed.body == b"shop: no route to the forge\nblog: [redacted]"


def test_what_stands_behind_an_address_stays_there() -> None:
    assert make_call(f"{PING}/?create=1", ILL).url == f"{PING}/fail?create=1"
    assert make_call(f"{PING}?create=1", WELL).url == f"{PING}?create=1"


def test_a_push_monitor_hears_it_in_its_own_words() -> None:
    call = make_call(f"{PUSH}?status=up&msg=OK&ping=", WELL)
    assert (call.method, call.body, call.pushes) == ("GET", None, True)
    assert call.url == f"{PUSH}?status=up&msg=dev-poll%3A+shop%2C+blog%2C+in+1.2+s&ping=1250"
    assert make_call(PUSH, ILL).url.startswith(f"{PUSH}?status=down&msg=shop%3A+no+route")
    assert "ghp_" not in make_call(PUSH, ILL).url


def test_a_push_monitor_that_is_not_there_answers_as_if_all_were_well() -> None:
    said = '{"ok":false,"msg":"Monitor not found or not active."}'
    assert was_refused(make_call(PUSH, WELL), said)
    assert not was_refused(make_call(PUSH, WELL), '{"ok":true}')
    assert not was_refused(make_call(PING, WELL), said)
