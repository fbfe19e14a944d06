"""Place of a session on another machine: everything is asked of, or done by, that machine's `sm`.

What a node says is foreign: it is read by its shape, and whoever shows it clears it as any text.
What the session changes, and the document with which its context began, are read from what its node
has pushed, also while that does not answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

import msgspec
from msgspec import structs

from sm.adapters.foreground import run_in_foreground
from sm.adapters.git_call import call as call_git
from sm.base.act import Act, ActKind
from sm.base.decoder import decode
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.foreign import NUMBER_LIMIT
from sm.base.redact import redact
from sm.base.refusal import Status
from sm.base.text import one_line, printable
from sm.issues import meters
from sm.issues.act.unblock import spell_unblock
from sm.issues.by_hand import label_blocked, recover
from sm.issues.meters import SetLimit
from sm.issues.placements import list_placements, read_seen
from sm.issues.runners import (
    Elsewhere,
    NoAnswerError,
    NodeAnswer,
    Piper,
    Placement,
    Runner,
    Standing,
    load_runner,
)
from sm.issues.work import wip
from sm.messages.display import summarise
from sm.messages.queue import MessageFolder, make_id
from sm.messages.send import PLACES, QueuedMessage, check_text
from sm.plugins.hosts.messages import awaited_turns, outbox, replies
from sm.sessions.caller import Caller, CallerError
from sm.sessions.project import Project
from sm.store import events
from sm.views.contexts import Gauge
from sm.views.documents import BYTES, Document
from sm.views.open_need import OpenNeed
from sm.views.place import Bounds, Change, SentThere
from sm.views.trace import Story

LOOK_S = 5.0
"""Time that somebody who only looks waits for a node, in seconds."""
ACT_S = 15.0
"""Time that a node is waited for at each step of an act, in seconds: the person looks on."""
TEXT_LIMIT = 2000
"""Greatest number of characters of a node's line."""
STDIN = "-"

T = TypeVar("T")


class There:
    """Place of a session elsewhere: `RemotePlace` of sm/views/place.py."""

    confirms = True
    """What its node lists as delivered, its agent has."""

    def __init__(self, project: Project, placement: Placement) -> None:
        """Ask nothing yet."""
        self.project, self.placement = project, placement
        self.session, self.host = placement.session, placement.host
        self.name = f"{placement.project}#{placement.issue}"

    @property
    def _runner(self) -> Runner:
        return load_runner(self.placement.runner)

    # What its node is asked

    def call(
        self, argv: Sequence[str], stdin: str = "", patience_s: float | None = None
    ) -> NodeAnswer:
        """Run the node's own `sm` with these arguments.

        Raises:
            TemporaryError: the node does not answer; the text says if it may have been done.

        """
        try:
            return self._runner.call(
                self.project, self.placement, argv, stdin, patience_s=patience_s
            )
        except NoAnswerError as error:
            if not error.sent:
                raise
            doubt = f"{error.message}; it may be done all the same: look before you say it again"
            raise NoAnswerError(doubt, sent=True) from error

    def stream(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs the node's `sm`, and passes on its output as it comes."""
        return self._runner.stream(self.project, self.placement, argv)

    def pipe(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs the node's `sm` between two pipes.

        Raises:
            UsageError: its runner is no `Piper`.
            TemporaryError: the node is not reached.

        """
        runner = self._runner
        if not isinstance(runner, Piper):
            raise UsageError(f"the runner '{self.placement.runner}' cannot show it live")
        return runner.pipe(self.project, self.placement, argv)

    def prepare_attachment(self, *, read_only: bool = False) -> Callable[[], int]:
        """Return a function that shows its terminal at ours; the node has been reached by then."""
        argv = self._runner.attach(self.project, self.placement, read_only=read_only)
        return partial(run_in_foreground, argv, os.environ)

    def read_screen(self, count: int) -> str:
        """Return the last lines of its screen; without a screen, those of its log.

        Raises:
            SmError: the node does not answer, or refuses it. The other readers raise it, too.

        """
        return self._ask("tail", "--lines", str(count)).rstrip("\n")

    def read_messages(self, _delivered: int) -> list[QueuedMessage]:
        """Return its messages: those that its node lists, then those that wait here for its host.

        If the node is silent, those that wait here are known all the same.
        """
        waiting = self._list_kept()
        try:
            found = self._decode(self._ask("queue", "--json"), list[QueuedMessage])
        except SmError:
            if waiting:  # the session's row says that the host is silent
                return waiting
            raise
        return [*found, *waiting]

    def _list_kept(self) -> list[QueuedMessage]:
        return [
            QueuedMessage(
                id=one.id,
                place=PLACES[MessageFolder.WAITING],
                mode="sequential",
                age_s=max(0.0, time.time() - one.at),
                sender="",
                first_line=summarise(one.stdin or one.argv[-1]),
                characters=len(one.stdin),
                why=f"its host '{self.host}' has not taken it yet",
            )
            for one in outbox.list_kept(self.project.directory, self.session)
        ]

    def read_story(self) -> Story:
        """Return its story, as `sm trace` tells it."""
        return self._decode(self._ask("trace", "--json"), Story)

    def read_past_story(self, ours: Story) -> Story:
        """Return the story of a session that has ended there: what its node tells, among ours."""
        theirs = self.read_story()
        entries = sorted((*ours.entries, *theirs.entries), key=lambda entry: entry.at)
        timed = (
            structs.replace(entry, elapsed_s=entry.at - before.at)
            for before, entry in pairwise([entries[0], *entries])
        )
        log = f"{self.host}:{theirs.log}" if theirs.log else ""
        return structs.replace(theirs, entries=tuple(timed), log=log)

    def read_past_log(self, count: int, *, raw: bool) -> str:
        """Return the last lines in its terminal, once it has ended."""
        return self._ask("logs", "--lines", str(count), *["--raw"] * raw)

    def read_gauge(self) -> Gauge:
        """Return how full its context is, as `sm context` has it."""
        return self._decode(self._ask("context", "--json"), Gauge)

    def _ask(self, verb: str, *options: str) -> str:
        answer = self.call((verb, self.session, *options), patience_s=LOOK_S)
        if answer.code:
            raise explain_failure(answer)
        return answer.stdout

    def _decode(self, said: str, shape: type[T]) -> T:
        try:
            return decode(said, shape)
        except (msgspec.DecodeError, RecursionError) as error:
            raise SmError(
                f"what '{self.host}' says is not understood: is it the same version?"
            ) from error

    # What its node has pushed

    def read_change(self, head: str | None, bounds: Bounds) -> Change:
        """Return what it had changed at the end of its last turn, also what was not committed then.

        With `head`, the part of that which its pull request lacks: its branch is read again.
        """
        project, settings = self.project, self.project.settings
        branch = settings.branch(self.placement.issue)
        tip = self._find_saved().about.taken.commit
        base = project.git.fetch_branch(
            settings.remote, settings.primary_branch if head is None else branch
        )
        size, files, timeout_s = bounds
        git = project.git
        return Change(
            git.read_diff(base, tip=tip, limit=size, timeout_s=timeout_s),
            git.read_diff_stat(base, tip=tip, files=files, limit=size, timeout_s=timeout_s),
        )

    def list_documents(self) -> list[Document]:
        """Return the document with which its context began, as its node has pushed it."""
        git, found = self.project.git, self._find_saved()
        names = call_git(git.repo, "ls-tree", "--name-only", found.commit).lines
        if wip.HANDOFF not in names:
            return []
        data = call_git(git.repo, "cat-file", "blob", f"{found.commit}:{wip.HANDOFF}").raw
        text = printable(redact(data[:BYTES].decode("utf-8", "replace")))
        said = call_git(git.repo, "log", "-1", "--format=%ct", found.commit).stdout.strip()
        return [Document(float(said or 0), found.ref, text, is_cut=len(data) > BYTES)]

    def _find_saved(self) -> wip.SavedWork:
        project, issue = self.project, self.placement.issue
        found = wip.find(project.git, project.settings.remote, issue, up_to=NUMBER_LIMIT)
        if found is None:
            raise SmError("its node has pushed nothing of it yet: it does so when a turn has ended")
        return found

    # What its node does

    def carry_out(self, act: Act, text: str, caller: Caller) -> list[str]:
        """Carry the act out; return what the node says of it.

        Raises:
            TemporaryError: the node does not answer; the text says if it may be done all the same.
            SmError: it is refused, there or because an agent asks for it.

        """
        if act.kind is ActKind.SEND:
            return [self._send(caller, text)]
        if caller.session:
            raise CallerError(
                f"'{caller.session.label}' may only send messages to sessions on other machines: "
                "ask a person"
            )
        if act.kind is ActKind.REPLY:
            return _read_lines(self.reply(text, ACT_S))
        return _read_lines(self.call(VERBS[act.kind](self.placement), patience_s=ACT_S))

    def reply(self, text: str, patience_s: float | None = None) -> NodeAnswer:
        """Answer its question; the same text said again counts once."""
        return replies.reply(self.project, self.placement, self._runner, text, patience_s)

    def send(
        self,
        caller: Caller,
        words: Sequence[str],
        text: str,
        *,
        notify: bool = False,
        patience_s: float | None = None,
    ) -> SentThere:
        """Send a message: it has its id from now on, and is kept while its host does not answer.

        `words` are the arguments of `sm send` there, with which the id and the sender go.

        Raises:
            UsageError: a person wants to be told of the turn's end.
            StateError: it can neither be handed on nor kept.

        """
        ident, directory = make_id(), self.project.directory
        if notify:
            if caller.session is None:
                raise UsageError("--notify-on-stop tells a session: a person waits with 'sm wait'")
            one = awaited_turns.AwaitedTurn(ident, self.session, caller.name)
            awaited_turns.add(directory, one)
        sender = ("--from", caller.session.address) if caller.session else ()
        argv = ("send", "--id", ident, *sender, *words)
        message = outbox.make_message(self.session, argv, text, ident)
        answer = outbox.send(self.project, self.placement, self._runner, message, patience_s)
        if answer is None:
            return SentThere(ident, None, f"its host '{self.host}' does not answer")
        if answer.code not in outbox.DELIVERED:
            awaited_turns.remove(directory, ident)  # nothing comes of it
        return SentThere(ident, answer)

    def _send(self, caller: Caller, text: str) -> str:
        check_text(text)
        sent = self.send(caller, ("--json", self.name, STDIN), text, patience_s=ACT_S)
        if sent.answer is None:
            return f"Message to {self.name} queued: {sent.why}, and gets it then."
        if sent.answer.code not in outbox.DELIVERED:
            raise explain_failure(sent.answer)
        try:
            said = json.loads(sent.answer.stdout)
            status, why = Status(said["status"]), one_line(str(said.get("reason", "")), TEXT_LIMIT)
        except (ValueError, KeyError, TypeError, AttributeError):
            return f"Message to {self.name} taken by its host."
        return f"Message to {self.name} {status}{': ' + why if why else ''}."

    def end_lost(self, verb: str) -> list[str] | None:
        """Carry out `kill` or `recover` here, if its host is lost; None if it is not.

        With `kill`, the label has the next tick give the claim up. Without the claim, what still
        runs there ends by itself.
        """
        seen = read_seen(self.project.directory).get(self.session)
        if verb not in ("kill", "recover") or seen is None or seen.standing is not Standing.LOST:
            return None
        project, issue = self.project, self.placement.issue
        if verb == "recover":
            return [f"'{self.host}' is lost: recovering {recover(project, issue).name} here"]
        said = label_blocked(project, issue)
        project.record(events.Kill(session=self.session))
        return [
            f"{said}; '{self.host}' is lost: dev-poll gives the claim up, and what may still run "
            "there ends by itself",
            f"to have the issue worked on again: {spell_unblock(project.settings, issue)}",
        ]

    # Limits

    def list_limits(self, need: OpenNeed | None) -> list[SetLimit]:
        """Return the limits of the session: those set here, and that which the need is about.

        A limit that was set here is raised here, also if its node has told of it.
        """
        ours = meters.list_limits(Elsewhere(self.project, self.placement))
        if need is None or need.act.kind is not ActKind.RAISE:
            return ours
        if any(limit.act == need.act for limit in ours):
            return ours
        change = partial(self._change_limit, need.act.limit)
        limit = SetLimit(
            key=f"there:{need.act.limit}",
            act=need.act,
            shown=need.text,
            proposal="",
            raised="",
            raise_by=change,
            lower_by=change,
        )
        return [*ours, limit]

    def _change_limit(self, limit: str, text: str) -> str:
        amount = text.split()
        if not amount or any(word.startswith("-") for word in amount):
            raise UsageError("by how much? write an amount, such as 5 or 2M")
        argv = ("budget", "raise", *limit.split(), *amount)
        return " ".join(_read_lines(self.call(argv, patience_s=ACT_S)))


Words = Callable[[Placement], tuple[str, ...]]


def _by_name(verb: str) -> Words:
    return lambda placement: (verb, f"{placement.project}#{placement.issue}")


def _by_issue(verb: str) -> Words:
    return lambda placement: (verb, placement.project, str(placement.issue))


VERBS: dict[ActKind, Words] = {
    ActKind.PAUSE: _by_name("pause"),
    ActKind.RESUME: _by_name("resume"),
    ActKind.ROTATE: _by_name("cycle"),
    ActKind.RECOVER: _by_issue("recover"),
    ActKind.KILL: _by_issue("kill"),
}
"""Words with which the node's `sm` is called; a person's text is its stdin, never an option."""


def _read_lines(answer: NodeAnswer) -> list[str]:
    if answer.code:
        raise explain_failure(answer)
    return [one_line(line, TEXT_LIMIT) for line in answer.stdout.splitlines() if line.strip()]


def explain_failure(answer: NodeAnswer) -> SmError:
    """Return the error that the node's `sm` has reported."""
    lines = [one_line(line, TEXT_LIMIT) for line in answer.stderr.splitlines() if line.strip()]
    said = lines[-1].removeprefix("sm: ") if lines else f"it ended with {answer.code} there"
    kind = TemporaryError if answer.code == TemporaryError.exit_code else SmError
    return kind(said)


def tell_nodes(project: Project, argv: Sequence[str]) -> Iterator[str | SmError]:
    """Run `sm` on each node with sessions of the project; yield its words, or why not."""
    nodes = {
        (one.runner, one.host): one for one in list_placements(project.root.project(project.name))
    }
    for one in nodes.values():
        try:
            answer = load_runner(one.runner).call(project, one, argv)
        except SmError as error:
            yield error
            continue
        said = (answer.stderr if answer.code else answer.stdout).strip().splitlines()
        yield from (f"on '{one.host}': {line}" for line in said)
