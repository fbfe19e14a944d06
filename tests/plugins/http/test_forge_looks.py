"""How often a forge is looked at for its webhooks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from sm.adapters.forge.errors import UnreachableError
from sm.base.errors import SmError
from sm.plugins.http.forge_looks import APART_S, ForgeLooks
from tests.helpers import HANG_S, wait_for


@dataclass
class Forge:
    """A forge whose looks, and the pauses between them, end when the test lets them."""

    started: int = 0
    pauses: list[float] = field(default_factory=list)
    look_over: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    pause_over: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: Exception | None = None

    def look(self) -> None:
        self.started += 1
        assert self.look_over.acquire(timeout=HANG_S)
        if self.error:
            raise self.error

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        assert self.pause_over.acquire(timeout=HANG_S)


def test_a_storm_makes_one_look_and_one_to_come() -> None:
    forge = Forge()
    looks = ForgeLooks(forge.look, forge.sleep)
    for _ in range(1000):
        looks.ask()
    wait_for(lambda: forge.started == 1, "the look")
    for _ in range(1000):
        looks.ask()
    assert forge.started == 1, "one at a time"
    forge.look_over.release()
    wait_for(lambda: forge.pauses, "the pause after it")
    for _ in range(1000):
        looks.ask()
    assert (forge.started, forge.pauses) == (1, [APART_S]), "and not at once the next"
    forge.pause_over.release()
    wait_for(lambda: forge.started == 2, "the one to come")
    forge.look_over.release()
    forge.pause_over.release(10)
    wait_for(lambda: len(forge.pauses) == 2, "its end")
    looks.ask()
    wait_for(lambda: forge.started == 3, "a look after a quiet time")
    forge.look_over.release()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnreachableError("it is down"), ""),
        (SmError("no such clone"), "sm: no such clone\n"),
        (RuntimeError("a mistake"), "RuntimeError: a mistake\n"),
    ],
)
def test_a_look_that_fails_does_not_keep_the_next_one_from_it(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forge = Forge(error=error)
    looks = ForgeLooks(forge.look, forge.sleep)
    for count in (1, 2):
        looks.ask()
        wait_for(lambda count=count: forge.started == count, "the look")  # type: ignore[misc]
        forge.look_over.release()
        wait_for(lambda count=count: len(forge.pauses) == count, "its end")  # type: ignore[misc]
        forge.pause_over.release()
    assert capsys.readouterr().err.endswith(said)


def test_a_thread_that_cannot_be_started_does_not_keep_the_next_one_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forge = Forge()
    looks = ForgeLooks(forge.look, forge.sleep)

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            looks.ask()
    looks.ask()
    wait_for(lambda: forge.started == 1, "the look")
    forge.look_over.release()
    forge.pause_over.release(10)
