"""The act that a command does, for tests that are easier to read with the command."""

from __future__ import annotations

import shlex

from sm.base.act import Act, ActKind, run


def read_act(command: str) -> Act:
    """Return the act whose command that is; its spelling proves it."""
    words = shlex.split(command)
    act = run(command)
    match words:
        case ["sm", "reply", project, number, "TEXT"]:
            act = Act(ActKind.REPLY, project, int(number))
        case ["sm", "send", address, "TEXT"]:
            act = Act(ActKind.SEND, address=address)
        case ["sm", "review", address, "--approve"]:
            act = _of_pull(ActKind.REVIEW, address)
        case ["sm", "pr", "merge", address]:
            act = _of_pull(ActKind.MERGE, address)
        case ["sm", "ci", "rerun", project, number]:
            act = Act(ActKind.RERUN, project, int(number))
        case ["sm", "budget", "raise", *limit, "AMOUNT"]:
            act = Act(ActKind.RAISE, limit=" ".join(limit))
        case ["sm", "attach", *place]:
            act = Act(ActKind.ATTACH, address="#".join(place))
        case ["sm", "issue", "label", address, "--remove", off, "--add", on]:
            project, _, number = address.partition("#")
            act = Act(ActKind.ALLOW, project, int(number), label_off=off, label_on=on)
    assert act.command == command, (act, command)
    return act


def _of_pull(kind: ActKind, address: str) -> Act:
    project, _, number = address.partition("#")
    return Act(kind, project, int(number))
