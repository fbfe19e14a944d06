"""At home: asks all machines at once what was used there, and tells them what is left.

It goes by the runner of a session that the machine has, as any command for that does. A machine
that does not answer keeps no other waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

import msgspec

from sm.base import plugin
from sm.base.clock import Deadline
from sm.base.decoding import decode
from sm.base.errors import SmError, UsageError
from sm.config.schema import Config
from sm.issues import runners
from sm.issues.runners import Placement
from sm.plugins.cost.budget.balances import Book
from sm.plugins.cost.ledger import nodes
from sm.plugins.cost.ledger.entries import Ledger, open_ledger
from sm.plugins.cost.ledger.nodes import Contact
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync import limiting
from sm.plugins.cost.sync.hearing import hear, read_known
from sm.plugins.cost.sync.limiting import Meant
from sm.plugins.cost.sync.telling import read_identity
from sm.plugins.cost.sync.wire import Account, Inquiry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store.failpoint import crash_point
from sm.store.paths import Root

ARGV = ("ledger", "tell")
"""What a node is called with."""
UNKNOWN_VERB = "no such command"
MOST = 10_000
"""Answers of a machine that are heard one after another; each has about a thousand requests."""
PATIENCE_S = 5.0
"""So long all are waited for together."""
SHOW_S = 2.0
"""The same, for people."""


class TooOldError(SmError):
    """The node's `sm` does not know the question."""


def ask_all(config: Config, root: Root, patience_s: float = PATIENCE_S) -> int:
    """Ask every machine that has sessions, or has had some; return how many changes were heard.

    What answers later is heard the next time.
    """
    if not nodes.may_be_any(root, [one.name for one in config.projects]):
        return 0
    placed = nodes.list_sessions(config, root)
    asked = [
        Asked(config, root, host, one, placed.get(host, ()), patience_s)
        for host, one in nodes.list_contacts(config, root).items()
    ]
    for one in asked:
        one.start()
    deadline = Deadline(patience_s)
    for one in asked:
        one.join(max(0.0, deadline.left_s))
        if one.is_alive():
            more = "it has more to tell, which is heard at the next ticks"
            why = more if one.heard else f"no answer within {patience_s:g} s"
            nodes.note_silent(root, one.host, one.contact, why)
    return sum(one.heard for one in asked)


def ask_for_person(config: Config, warn: Callable[[str], object]) -> None:
    """Have the ledger know what was used elsewhere by now; `warn` is told what it does not."""
    root = Machine(config).root
    ask_all(config, root, SHOW_S)
    for note in nodes.list_unheard(root):
        warn(note)


class Asked(threading.Thread):
    """A machine that is asked, until it has no more to tell."""

    def __init__(
        self,
        config: Config,
        root: Root,
        host: str,
        contact: Contact,
        placed: Collection[Placement],
        patience_s: float,
    ) -> None:
        """Nothing was heard yet. It ends with us, wherever it is: what is entered is whole."""
        super().__init__(daemon=True)
        self.config, self.root, self.host = config, root, host
        self.contact, self.heard, self.patience_s = contact, 0, patience_s
        self.meant = limiting.list_meant(config, placed)
        known = {one.project for one in (*placed, contact.placement)}
        meant = {one.name for one in config.projects if runners.list_runners(one)}
        self.projects = ("", *sorted(known | meant))  # '': what agents begin is of no project

    def run(self) -> None:
        """Ask it, and note how that went."""
        try:
            with open_ledger(find_ledger(self.config)) as ledger:
                for _ in range(MOST):
                    if not self._ask(ledger):
                        break
            nodes.note_heard(self.root, self.host, self.contact)
        except TooOldError:
            nodes.note_too_old(self.root, self.host, self.contact)
        except UsageError as error:  # it is not in the configuration any more
            nodes.note_gone(self.root, self.host, self.contact, error.message)
        except Exception as error:  # whatever is wrong with a runner, others are heard
            nodes.note_silent(self.root, self.host, self.contact, plugin.describe(error))

    def _ask(self, ledger: Ledger) -> bool:
        """Ask once; say whether it is to be asked again at once."""
        inquiry = make_inquiry(ledger, self.host, self.projects, self.meant)
        said = call(self.config, self.contact, inquiry, self.patience_s)
        crash_point("node:answered")
        self.heard += hear(ledger, self.host, inquiry, said)
        is_untold = inquiry.limits is None and bool(said.totals)
        return said.more or is_untold


def make_inquiry(
    ledger: Ledger, host: str, projects: Collection[str], meant: Collection[Meant]
) -> Inquiry:
    """Return what a machine is asked, and told."""
    known = read_known(ledger, host)
    return Inquiry(
        home=read_identity(ledger),
        ledger=known.ledger,
        after={name: known.after.get(name, 0) for name in projects},
        spans=tuple(dict.fromkeys(one.span for one in meant)),
        limits=limiting.tell(Book(ledger.connection), meant, known.totals),
    )


def call(config: Config, contact: Contact, inquiry: Inquiry, patience_s: float) -> Account:
    """Ask a machine; what it has begun when we lose patience it finishes.

    Raises:
        TooOldError: it does not know the question.
        SmError: it does not answer, or nothing that we understand.

    """
    placement = contact.placement
    settings = config.project(placement.project)
    if settings is None:
        raise UsageError(f"'{placement.project}' is no project of the configuration any more")
    runner = runners.load_runner(placement.runner)
    asked = msgspec.json.encode(inquiry).decode()
    project = Project(config, settings)
    answer = runner.call(project, placement, ARGV, asked, patience_s=patience_s)
    if answer.code:
        if UNKNOWN_VERB in answer.stderr:
            raise TooOldError("the sm there is too old to tell")
        said = answer.stderr.strip().splitlines() or [f"it ended with {answer.code}"]
        raise SmError(said[-1].removeprefix("sm: "))
    try:
        return decode(answer.stdout.encode(), Account)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SmError(f"what it tells is no account of costs: {error}") from error
