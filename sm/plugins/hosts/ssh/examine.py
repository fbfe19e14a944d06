"""Looks at a host: what is missing there, and how to get it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator

from msgspec import Struct

from sm.adapters.process import ask as run
from sm.base.errors import SmError
from sm.base.text import one_line
from sm.cli.root import version
from sm.plugins.hosts import wire
from sm.plugins.hosts.node.facts import Facts, name_forge, read_primary
from sm.plugins.hosts.ssh import command, master
from sm.plugins.hosts.ssh.asking import Node, ask, greet
from sm.sessions.project import Project
from sm.setup.finding import Finding, Level, fail, ok, warn

PROGRAMS = {
    "git": "install it there: apt-get install git, or what that system has",
    "tmux": "install it there: apt-get install tmux, or what that system has",
    "bash": "install it there: apt-get install bash, or what that system has",
    "python3": "install Python 3.11 or newer there",
}
PROBE = (
    f"for one in {' '.join(PROGRAMS)}; do command -v $one >/dev/null || echo $one; done; date +%s"
)
CLOCK = re.compile(r"[0-9]{9,11}")
PROBE_S = 20.0
FACTS_S = 60.0
DOCTOR_S = 120.0
OF_CONTROLLER = "dev-poll"
"""The doctor of a node misses one, which is not to run there."""
SKEW_S = 5.0
"""A clock that is so far off makes ages wrong that people read."""
INSTALL = "install the same version there: docs/HOSTS.md says how; or say where it is by --sm"


class Told(Struct, frozen=True):
    """A finding of the node's own doctor, as its `--json` has it."""

    level: Level
    what: str
    advice: str = ""
    where: str = ""


def examine(node: Node, projects: Collection[Project]) -> Iterator[Finding]:
    """Yield what is found, each after what it needs; one that breaks all is the last."""
    began = time.monotonic()
    try:
        master.ensure(node.folder, node.host)
    except SmError as error:
        yield fail(f"cannot log in: {error.message}", _advise_login(node, error.message))
        return
    yield ok(f"login by ssh in {time.monotonic() - began:.1f} s")
    missing, off_s = _probe(node)
    yield from (fail(f"no {name} there", PROGRAMS[name]) for name in missing)
    if missing:
        return
    try:
        hello = greet(node)
    except SmError as error:
        yield fail(error.message.partition(": ")[2] or error.message, INSTALL)
        return
    yield from _compare(hello, off_s)
    for project in projects:
        yield from _examine_project(node, project)
    yield from _ask_doctor(node)


def _advise_login(node: Node, said: str) -> str:
    if "Host key verification failed" in said:
        return f"log in once by hand, and compare the key: ssh {node.host.address}"
    if "Permission denied" in said:
        return f"have a key of yours let in there: ssh-copy-id {node.host.address}"
    return f"try it by hand: ssh {node.host.address}"


def _probe(node: Node) -> tuple[list[str], float]:
    """The programs that are missing there, and how far its clock is ahead of ours, in seconds."""
    argv = command.run_there(node.host, f"exec /bin/sh -c '{PROBE}'")
    began = time.time()
    said = run(*argv, cwd=node.folder.path, timeout_s=PROBE_S, accept=tuple(range(256)))
    words = said.stdout.split()
    theirs = next((int(word) for word in reversed(words) if CLOCK.fullmatch(word)), None)
    off_s = 0.0 if theirs is None else theirs - (began + time.time()) / 2
    return [name for name in PROGRAMS if name in words], off_s


def _compare(hello: wire.Hello, off_s: float) -> Iterator[Finding]:
    ours, theirs = version(), one_line(hello.sm, 40)
    if theirs == ours:
        yield ok(f"sm {theirs} there, as here")
    else:
        yield warn(f"sm {theirs} there, and {ours} here", "install the same version on both")
    if abs(off_s) > SKEW_S:
        how = "ahead" if off_s > 0 else "behind"
        yield warn(f"its clock is {abs(off_s):.0f} s {how}", "have both synchronised: timedatectl")


def _examine_project(node: Node, project: Project) -> Iterator[Finding]:
    name = project.name
    answer = ask(node, ("host", "facts", name), project=name, within_s=FACTS_S)
    if answer.code:
        said = one_line(answer.stderr.strip().removeprefix("sm: "), 300)
        yield fail(
            f"no project '{name}' there: {said}", f"clone it there, then: sm init --name {name}"
        )
        return
    facts = wire.decode(answer.stdout.encode(), Facts)
    if facts.unreadable:
        yield fail(f"'{name}': {one_line(facts.unreadable, 300)}", "let git there reach the remote")
    elif facts.primary != read_primary(project):
        branch = project.settings.primary_branch
        yield fail(
            f"'{name}': the remote there has another '{branch}' than ours",
            "have both clones push to the same repository",
        )
    else:
        yield ok(f"'{name}': a clone there with the same remote")
    if facts.forge != name_forge(project):
        told = one_line(facts.forge, 200)
        yield fail(f"'{name}': its forge there is {told}", f"set it to {name_forge(project)} there")
    agent = one_line(facts.agent, 40)
    for one in facts.troubles:
        tell = fail if one.is_certain else warn
        yield tell(
            f"'{name}': agent '{agent}': {one_line(one.what, 300)}", one_line(one.advice, 300)
        )
    if not facts.troubles and facts.is_tried:
        yield ok(f"'{name}': agent '{agent}' is logged in there, and reaches its model's API")


def _ask_doctor(node: Node) -> Iterator[Finding]:
    """What the node's own doctor has to say, but for what is well."""
    answer = ask(node, ("doctor", "--json"), within_s=DOCTOR_S)
    try:
        found = _decode(answer.stdout)
    except wire.WireError as error:
        yield warn(
            f"its sm doctor says what nobody understands: {error.message}", "log in, and call it"
        )
        return
    found = [one for one in found if not one.advice.startswith(OF_CONTROLLER)]
    for one in found:
        if one.level is not Level.OK:
            what = f"{one_line(one.where, 60)}: {one_line(one.what, 500)}"
            yield Finding(one.level, what, one_line(one.advice, 500))
    if all(one.level is Level.OK for one in found):
        yield ok(f"its own sm doctor: {len(found)} checks, all well")


def _decode(text: str) -> list[Told]:
    import msgspec

    try:
        return msgspec.json.decode(text.encode(), type=list[Told])
    except msgspec.DecodeError as error:
        raise wire.WireError(str(error)) from error
