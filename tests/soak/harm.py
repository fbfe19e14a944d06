"""Carries the plan of `bin/soak hosts` out: what happens to which host, and when it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.soak.fleet import Fleet
from tests.soak.trouble import Kind, Trouble


@dataclass(frozen=True)
class Under:
    """A trouble that goes on until `until_s`; `over` ends it."""

    until_s: float
    host: str
    over: Callable[[], None]


@dataclass
class Harm:
    """`struck` is what was done."""

    fleet: Fleet
    plan: tuple[Trouble, ...]
    say: Callable[[str], None]
    struck: Counter[Kind] = field(default_factory=Counter)
    is_away: bool = False
    _next: int = 0
    _under: list[Under] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """How many troubles are still to come, or to end."""
        return len(self.plan) - self._next + len(self._under)

    def look(self, elapsed_s: float) -> None:
        """End what is over, and do what is due."""
        for one in [one for one in self._under if one.until_s <= elapsed_s]:
            one.over()
            self._under.remove(one)
            self.say(f"{elapsed_s:6.1f} s  {one.host or 'controller'}: over")
        while self._next < len(self.plan) and self.plan[self._next].at_s <= elapsed_s:
            if not self._strike(self.plan[self._next], elapsed_s):
                return
            self._next += 1

    def _strike(self, trouble: Trouble, elapsed_s: float) -> bool:
        """Whether it could be done: a host is in one trouble at a time."""
        busy = {one.host for one in self._under}
        if trouble.kind is Kind.AWAY:
            host, well = "", [""] * (not self.is_away)
        else:
            well = [name for name in self.fleet.machines if name not in busy]
            host = well[int(trouble.pick * len(well))] if well else ""
        if not well:
            return False
        over = self._begin_away() if not host else DEEDS[trouble.kind](self, host)
        self._under.append(Under(elapsed_s + trouble.for_s, host, over))
        self.struck[trouble.kind] += 1
        what = f"{host or 'controller'}: {trouble.kind}, for {trouble.for_s:.0f} s"
        self.say(f"{elapsed_s:6.1f} s  {what}")
        return True

    def _begin_away(self) -> Callable[[], None]:
        self.is_away = True
        self.fleet.room.kill_all()

        def over() -> None:
            self.is_away = False

        return over

    def cut(self, host: str) -> Callable[[], None]:
        """Nobody gets in any more; what runs there goes on."""
        machine = self.fleet.machines[host]
        machine.sshd.stop(cut=True)
        return machine.sshd.start

    def kill(self, host: str) -> Callable[[], None]:
        """Everything there ends at once."""
        machine = self.fleet.machines[host]
        machine.kill()
        return machine.sshd.start

    def boot(self, host: str) -> Callable[[], None]:
        """The same, and what was in the state root is gone, as after a start of the machine."""
        over = self.kill(host)
        self.fleet.lose_state(self.fleet.machines[host])
        return over

    def freeze(self, host: str) -> Callable[[], None]:
        """Everything there stands still."""
        machine = self.fleet.machines[host]
        self.fleet.freeze(machine)
        return machine.thaw


DEEDS: dict[Kind, Callable[[Harm, str], Callable[[], None]]] = {
    Kind.CUT: Harm.cut,
    Kind.DEAD: Harm.kill,
    Kind.BOOT: Harm.boot,
    Kind.FROZEN: Harm.freeze,
}
