"""What hosts have written to a forge over HTTP, and pushed, beside whose the issue was then."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sm.issues.work.claim import ON
from tests.forges.server import Asked, Reply
from tests.helpers import git
from tests.soak.figures import read_text
from tests.soak.fleet import Fleet

UPDATE = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) (\S+)$", re.MULTILINE)
CLAIM, BRANCH, SAVED = "refs/sm/claims/", "refs/heads/fix/", "refs/sm/wip/"
ABOUT = re.compile(r"/(issues|pulls)/(\d+)")


@dataclass(frozen=True)
class Written:
    """A request that has changed something about an issue; `owner` had its claim then."""

    host: str
    issue: int
    line: str
    owner: str
    at: float

    def __str__(self) -> str:
        """Say it in a line."""
        when = time.strftime("%H:%M:%S", time.localtime(self.at))
        return f"{when} {self.host}, #{self.issue} is {self.owner}'s: {self.line}"


def list_late(written: Iterable[Written]) -> list[str]:
    """What was written by a host that did not have the issue any more."""
    return [str(one) for one in written if one.host != one.owner]


@dataclass
class Books:
    """Kept of all that a fleet does from its making on."""

    fleet: Fleet
    written: list[Written] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Have the forge ask here first, who asks the forge then."""
        side = self.fleet.side
        self._bare, self._refs = self.fleet.room.repository.bare, self.fleet.room.refs
        self._hosts = {side.token_file(name).read_text(): name for name in self.fleet.machines}
        side.site.respond = self.respond

    def respond(self, asked: Asked) -> Reply:
        """Answer as the forge does; note what a host has changed."""
        token = asked.headers.get("authorization", "").removeprefix("token ")
        host = self._hosts.get(token, "") if asked.method != "GET" else ""
        issue = self._find_issue(asked) if host else 0
        owner = self._read_owner(issue) if issue else ""
        reply = self.fleet.side.dialect.respond(asked)
        if owner and reply.status < 300:
            self.written.append(Written(host, issue, asked.line, owner, time.time()))
        return reply

    def find_pushed_late(self) -> dict[str, str]:
        """What hosts have pushed when they did not have the issue any more."""
        return find_pushed_late(self._bare, read_text(self._refs), self.fleet.machines)

    def list_lost(self) -> list[str]:
        """What hosts have pushed or saved, and the primary branch has not."""
        return list_lost(self._bare, read_text(self._refs), self.fleet.machines)

    def _find_issue(self, asked: Asked) -> int:
        """The issue that a request is about; 0 for none."""
        if asked.path.endswith("/pulls"):
            return int(asked.data["head"].rpartition("/")[2])
        found = ABOUT.search(asked.path)
        entry = self.fleet.side.state.entries.get(int(found[2])) if found else None
        if entry and entry.pull:
            return int(entry.pull.branch.rpartition("/")[2])
        return entry.number if entry else 0

    def _read_owner(self, issue: int) -> str:
        """The host that had the claim last."""
        ref = f"{CLAIM}{issue}"
        updates = read_updates(read_text(self._refs))
        held = [new for _, new, name in updates if name == ref and int(new, 16)]
        return read_host(self._bare, held[-1]) if held else ""


def read_updates(ledger: str) -> list[tuple[str, ...]]:
    """Every change of a ref: the old value, the new one, and its name."""
    return UPDATE.findall(ledger)


def read_host(bare: Path, claim: str) -> str:
    """The host that a claim is for."""
    facts = git(bare, "log", "-1", "--format=%b", claim)
    found = re.search(rf"^{ON}: (\S+)$", facts, re.MULTILINE)
    return found[1] if found else "home"


def find_pushed_late(bare: Path, ledger: str, hosts: Collection[str]) -> dict[str, str]:
    """Commits that a host has pushed when it did not have the issue any more, and where to.

    Who takes an issue over moves claim and branch at once, so the last commits of who had it are
    those of its owner.
    """
    owners, late = dict[str, str](), dict[str, str]()
    for old, new, ref in read_updates(ledger):
        if ref.startswith(CLAIM) and int(new, 16):
            owners[ref.removeprefix(CLAIM)] = read_host(bare, new)
        elif ref.startswith(BRANCH) and int(new, 16) and int(old, 16):
            owner = owners.get(ref.removeprefix(BRANCH), "")
            by = set(git(bare, "log", "--format=%cn", f"{old}..{new}").splitlines())
            for one in by & set(hosts) - {owner}:
                late[new] = f"{ref} {new[:12]} by {one}"
    return late


def list_lost(bare: Path, ledger: str, hosts: Collection[str]) -> list[str]:
    """Commits of hosts that were pushed or saved, and are not in the primary branch.

    Not those that were pushed late: they are in a branch of the host that made them.
    """
    late = find_pushed_late(bare, ledger, hosts)
    kept = {
        new
        for _, new, ref in read_updates(ledger)
        if int(new, 16) and ref.startswith((BRANCH, SAVED)) and new not in late
    }
    if not kept:
        return []
    log = git(bare, "log", "--format=%cn %h %s", *sorted(kept), "--not", "main")
    return [line for line in log.splitlines() if line.partition(" ")[0] in hosts]
