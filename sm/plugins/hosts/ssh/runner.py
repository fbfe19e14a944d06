"""The runner `ssh`: sessions on the machines of `hosts.ssh`."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import structs

from sm.base.errors import SmError, TemporaryError
from sm.base.text import one_line
from sm.config.shapes import read_section
from sm.helper.lines import decode_line
from sm.issues.placements import list_placements, read_seen
from sm.issues.runners import (
    SILENT_S,
    Hindrance,
    KnownState,
    NoAnswerError,
    NodeAnswer,
    NodeRefusedError,
    NodeRow,
    Placement,
    Standing,
)
from sm.plugins.hosts import health, hindrances, wire
from sm.plugins.hosts.dispatch.bearer import MakeShare
from sm.plugins.hosts.health import KeptReport
from sm.plugins.hosts.messages.outbox import TICK_S, hand_on
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.rules import list_weaker, read_rules, spell_rules
from sm.plugins.hosts.settings import Hosts
from sm.plugins.hosts.ssh import command, look_push, master
from sm.plugins.hosts.ssh.client import NONE, Patience, SshNode, ask, read_trouble
from sm.plugins.hosts.ssh.node import find_node, list_nodes
from sm.plugins.hosts.ssh.twins import find_twins
from sm.sessions.project import Project
from sm.store import lock

RUNNER_NAME = "ssh"
BEGIN_S = 60.0
CALL_S = 600.0
LOOK_S = 10.0
"""Longest time of a look at all hosts, for a tick, in seconds."""
KNOWN_S = 3.0
"""Time of a look at a host whose trouble is on record: others need not wait for it each time. Its
link goes on with opening a channel, and a later tick finds it open."""
SHOW_S = 0.5
"""Longest time of a look for people, in seconds."""
YOUNG_S = 0.3
"""Age of a report that is not asked for again, in seconds."""
NOTICED = Patience(silent_s=SILENT_S)
"""Patience for what a later tick does again."""
AGAIN_S = 5.0
"""A host that was asked in vain is left alone for so long by those who show something again and
again."""
RETURN_S = 20.0
"""Pause before a host without sessions is asked that did not answer, or lacked something."""


class SshRunner:
    """A `Runner` of `sm.issues.runners`."""

    def __init__(self) -> None:
        """Begin without a host that was asked in vain."""
        self._in_vain: dict[str, tuple[float, str]] = {}

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return a host for each free place: the one with the most of them first.

        One that could not begin a session comes last, once it is to be tried again.
        """
        used, now = _count_used(project), time.time()
        free, tried = dict[str, int](), list[str]()
        nodes = list_nodes(project.config)
        twins = find_twins(nodes)
        for twin, first in twins.items():  # what it still has takes room there
            used[first] = used.get(first, 0) + used.get(twin, 0)
        for node in nodes:
            left = max(0, node.host.sessions - used.get(node.name, 0))
            if node.name in twins or not left or not _takes_more(node, project):
                continue
            refusal = health.read_refusal(node.folder, project.name)
            if refusal is None:
                free[node.name] = left
            elif refusal.is_to_be_tried(now):
                tried.append(node.name)
        order = [(left, name) for name, count in free.items() for left in range(count, 0, -1)]
        return [name for left, name in sorted(order, key=lambda one: (-one[0], one[1]))] + tried

    def place(self, project: Project, placement: Placement) -> Placement:
        """Have the session begun on its host; again has no effect."""
        node = find_node(project.config, placement.host)
        words = (project.name, str(placement.issue), "--attempt", str(placement.attempt))
        rules = spell_rules(read_rules(project.settings))
        argv = ("host", "begin", *words, "--claim", placement.claim, "--rules", rules)
        try:
            answer = ask(node, argv, project=project.name, within_s=BEGIN_S, patience=NOTICED)
        except NoAnswerError as error:
            health.note_silence(node.folder, error.message, time.time())
            raise
        if answer.code:
            raise _explain_refusal(node, project, answer)
        health.end_refusal(node.folder, project.name)
        handle = one_line(answer.stdout.strip(), 100)
        return structs.replace(placement, handle=handle, placed_at=time.time())

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Ask all hosts at once, each for its sessions, and those that did not answer before."""
        lost_after_s = read_section(project.settings, Hosts).lost_after_s
        is_due = partial(_is_overdue, project.name)
        found: dict[str, KnownState] = {}
        for node, there, kept, why in self._look(project, placements, LOOK_S, is_due):
            silence = health.note_silence(node.folder, why, time.time()) if why else None
            if not silence:
                with contextlib.suppress(lock.HeldError):  # the next tick does it
                    hand_on(project, there, self, TICK_S)
            for one in there:
                found[one.session] = health.judge(one, kept, silence, lost_after_s, time.time())
        for one in placements:
            if one.session not in found:
                gone = f"'{one.host}' is no host of the configuration any more"
                found[one.session] = KnownState(Standing.SILENT, one.host, 0.0, gone)
        return found

    def show(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, NodeRow]:
        """Ask all hosts at once; who does not answer soon has its last words shown."""
        found: dict[str, NodeRow] = {}
        seen = read_seen(project.root.project(project.name))
        for node, there, kept, why in self._look(project, placements, SHOW_S):
            refusal = health.read_refusal(node.folder, project.name)
            lacking = [*(kept.report.short if kept else ()), *([refusal.why] if refusal else ())]
            for one in there:
                row = kept.report.rows.get(one.session) if kept else None
                words = hindrances.tell_refusal(one, seen.get(one.session))
                at = kept.at if kept else 0.0
                found[one.session] = NodeRow(row, at, why, words, short=", ".join(lacking))
        return found

    def call(
        self,
        project: Project,
        placement: Placement,
        argv: Sequence[str],
        stdin: str = "",
        *,
        patience_s: float | None = None,
        silent_s: float | None = None,
    ) -> NodeAnswer:
        """Have the node's own `sm` do it."""
        node = find_node(project.config, placement.host)
        found = ask(
            node,
            argv,
            stdin=stdin,
            project=placement.project,
            within_s=CALL_S,
            patience=Patience(patience_s, silent_s, silent_s),
        )
        more = "sm: there was more than is passed on\n" if found.cut else ""
        return NodeAnswer(found.code, found.stdout, found.stderr + more)

    def attach(
        self, project: Project, placement: Placement, *, read_only: bool = False
    ) -> list[str]:
        """Return the command that enters its terminal, by the connection that is there."""
        words = ["attach", f"{placement.project}#{placement.issue}", *["-r"] * read_only]
        return self.stream(project, placement, words)

    def stream(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that runs there in a terminal of its own, which ends with it."""
        return self._run_there(project, placement, argv, terminal=True)

    def pipe(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that runs there without a terminal, by the connection that is there.

        sshd closes the stdin of what runs there when ssh has ended, and does not end it.
        """
        return self._run_there(project, placement, argv, terminal=False)

    def _run_there(
        self, project: Project, placement: Placement, argv: Sequence[str], *, terminal: bool
    ) -> list[str]:
        node = find_node(project.config, placement.host)
        master.ensure(node.folder, node.host)
        called = command.call_sm(node.host, argv)
        there = command.run_there(node.host, called, terminal=terminal)
        return ["env", "-C", str(node.folder.path), *there]

    def end(self, project: Project, placement: Placement) -> None:
        """Have the session look whose its issue is; one that was overtaken ends itself."""
        node = find_node(project.config, placement.host)
        argv = ("react", placement.session)
        ask(node, argv, project=project.name, within_s=BEGIN_S, patience=NOTICED)

    def bring(self, project: Project, placements: Sequence[Placement], make: MakeShare) -> None:
        """Bring each node what was seen of the forge, all at once."""
        look_push.bring_all(list_nodes(project.config), project, placements, make)

    def list_hindrances(self, project: Project) -> list[Hindrance]:
        """Return which hosts are lost, do not let us in, or lack something."""
        return list(_list_hindrances(project))

    def _look(
        self,
        project: Project,
        placements: Iterable[Placement],
        within_s: float,
        is_due: Callable[[SshNode], bool] = lambda _: False,
    ) -> list[tuple[SshNode, list[Placement], KeptReport | None, str]]:
        """What each node with any of these says, or said last, and why it says nothing now.

        `is_due` chooses others that are asked, too.
        """
        from concurrent.futures import ThreadPoolExecutor

        by_host: dict[str, list[Placement]] = {}
        for one in placements:
            by_host.setdefault(one.host, []).append(one)
        nodes = [
            node for node in list_nodes(project.config) if node.name in by_host or is_due(node)
        ]
        if not nodes:
            return []
        look = partial(self._look_at, project, by_host, within_s)
        with ThreadPoolExecutor(len(nodes)) as pool:
            return list(pool.map(look, nodes))

    def _look_at(
        self,
        project: Project,
        by_host: Mapping[str, list[Placement]],
        within_s: float,
        node: SshNode,
    ) -> tuple[SshNode, list[Placement], KeptReport | None, str]:
        there, folder = by_host.get(node.name, []), node.folder
        kept = health.read_report(folder, project.name)
        if within_s < LOOK_S:
            if kept and 0 <= time.time() - kept.at < YOUNG_S:
                return node, there, kept, ""
            tried_at, why = self._in_vain.get(node.name, (0.0, ""))
            if tried_at and time.monotonic() < tried_at + AGAIN_S:
                return node, there, kept, why
        patience = Patience(within_s, SILENT_S)
        if read_trouble(folder):
            patience = Patience(KNOWN_S, SILENT_S) if within_s >= LOOK_S else NONE
        try:
            report = ask_report(node, project, there, within_s, patience)
            kept = health.keep_report(folder, project.name, report)
        except SmError as error:
            self._in_vain[node.name] = time.monotonic(), error.message
            return node, there, kept, error.message
        self._in_vain.pop(node.name, None)
        return node, there, kept, ""


def _list_hindrances(project: Project) -> Iterator[Hindrance]:
    lost_after_s = read_section(project.settings, Hosts).lost_after_s
    nodes, name = list_nodes(project.config), project.name
    for node in nodes:
        silence, kept = health.read_silence(node.folder), health.read_report(node.folder, name)
        if silence:
            found = hindrances.explain_silence(node.name, silence, lost_after_s, time.time())
        else:
            found = hindrances.explain_shortage(node.name, name, kept) if kept else None
            refusal = health.read_refusal(node.folder, name)
            if refusal and not found:  # what it lacks may be why it refuses
                found = hindrances.explain_refusal(node.name, name, refusal, time.time())
        if found:
            yield found
    yield from hindrances.list_twins(find_twins(nodes))
    placed = list_placements(project.root.project(name))
    of_ours = [one for one in placed if one.runner == RUNNER_NAME]
    yield from hindrances.list_unknown((node.name for node in nodes), of_ours)
    directory = project.root.project(name)
    yield from hindrances.list_unfit(of_ours, read_seen(directory), time.time())


def _explain_refusal(node: SshNode, project: Project, answer: wire.CallAnswer) -> SmError:
    """What the node says of a session that it does not begin; kept if it could begin no other."""
    error = explain(node, answer)
    if answer.code == wire.SETTLED:
        return TemporaryError(error.message)
    of_host = answer.code != wire.OF_ISSUE
    if of_host:
        health.note_refusal(node.folder, project.name, error.message, time.time())
    return NodeRefusedError(error.message, of_host=of_host)


def _count_used(project: Project) -> dict[str, int]:
    """Count the sessions that each host has of ours, whatever project they are of."""
    used: dict[str, int] = {}
    for settings in project.config.projects:
        for one in list_placements(project.root.project(settings.name)):
            if one.runner == RUNNER_NAME:
                used[one.host] = used.get(one.host, 0) + 1
    return used


def _is_overdue(project: str, node: SshNode) -> bool:
    """Whether it did not answer some time ago, lacked something, or had what is to end.

    Unless it is asked again, it would get nothing any more, and nothing there would end that: a
    machine that was started again has no monitors, and a look at it may come when it cannot act.
    """
    if silence := health.read_silence(node.folder):
        return not 0 <= time.time() - silence.last_at < RETURN_S
    kept = health.read_report(node.folder, project)
    if kept is None or not (kept.report.short or kept.report.strays):
        return False
    return not 0 <= time.time() - kept.at < RETURN_S


def _takes_more(node: SshNode, project: Project) -> bool:
    """Whether the host has answered when it was last asked, and lacks nothing."""
    if health.read_silence(node.folder):
        return False
    kept = health.read_report(node.folder, project.name)
    return kept is None or not kept.report.short


RUNNER = SshRunner()


TEMPORARY = TemporaryError.exit_code


def ask_report(
    node: SshNode,
    project: Project,
    placements: Sequence[Placement],
    within_s: float,
    patience: Patience,
) -> NodeReport:
    """Return what the node says of these sessions. Rules that are weaker than ours it lacks, too.

    Raises:
        SmError: it does not answer, or has no such project.

    """
    asked = json.dumps([[one.session, one.attempt] for one in placements])
    answer = ask(
        node,
        ("host", "report", project.name),
        stdin=asked,
        project=project.name,
        within_s=within_s,
        patience=patience,
    )
    if answer.code:
        raise explain(node, answer)
    report = decode_line(answer.stdout.encode(), NodeReport)
    weaker = list_weaker(read_rules(project.settings), report.rules) if report.rules else []
    words = [f"it merges by weaker rules than here: {'; '.join(weaker)}"] if weaker else []
    return structs.replace(report, short=(*report.short, *words))


def explain(node: SshNode, answer: wire.CallAnswer) -> SmError:
    """Return the error that the node's `sm` has reported."""
    lines = [one_line(line).removeprefix("sm: ") for line in answer.stderr.splitlines()]
    said = next(filter(None, reversed(lines)), f"it ended with {answer.code}")
    kind = TemporaryError if answer.code == TEMPORARY else SmError
    return kind(f"host '{node.name}': {said}")
