"""Asks a node how its sessions stand, and explains what went wrong there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import structs

from sm.base.errors import SmError, TemporaryError
from sm.base.text import one_line
from sm.helper.lines import decode_line
from sm.issues.runners import Placement
from sm.plugins.hosts import wire
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.rules import list_weaker, read_rules
from sm.plugins.hosts.ssh.asked import Patience
from sm.plugins.hosts.ssh.client import Node, ask
from sm.sessions.project import Project

TEMPORARY = TemporaryError.exit_code


def ask_report(
    node: Node,
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


def explain(node: Node, answer: wire.Answer) -> SmError:
    """What the node's `sm` has said went wrong there."""
    lines = [one_line(line).removeprefix("sm: ") for line in answer.stderr.splitlines()]
    said = next(filter(None, reversed(lines)), f"it ended with {answer.code}")
    kind = TemporaryError if answer.code == TEMPORARY else SmError
    return kind(f"host '{node.name}': {said}")
