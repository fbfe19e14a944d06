"""Check of a host: what is missing there, and how to get it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator

from sm.adapters.process import ask as run
from sm.base.errors import SmError
from sm.base.text import one_line
from sm.plugins.hosts.findings import PROGRAMS, compare, judge_doctor, judge_project
from sm.plugins.hosts.node.facts import read_primary
from sm.plugins.hosts.ssh import command, master
from sm.plugins.hosts.ssh.client import SshNode, ask, greet
from sm.plugins.hosts.ssh.twins import recall_ident
from sm.sessions.project import Project
from sm.setup.finding import Finding, fail, ok

PROBE = (
    f"for one in {' '.join(PROGRAMS)}; do command -v $one >/dev/null || echo $one; done; date +%s"
)
CLOCK = re.compile(r"[0-9]{9,11}")
PROBE_S = 20.0
FACTS_S = 60.0
DOCTOR_S = 120.0
INSTALL = "install the same version there: docs/HOSTS.md says how; or say where it is by --sm"


def examine(
    node: SshNode, projects: Collection[Project], others: Collection[SshNode] = ()
) -> Iterator[Finding]:
    """Yield what is found, each after what it needs; one that breaks all is the last.

    It must not be the machine of one of the `others`, which stand before it.
    """
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
    yield from compare(hello.sm, off_s)
    yield from _find_same(node, hello.ident, others)
    for project in projects:
        yield from _examine_project(node, project)
    yield from judge_doctor(ask(node, ("doctor", "--json"), within_s=DOCTOR_S).stdout)


def _find_same(node: SshNode, ident: str, others: Collection[SshNode]) -> Iterator[Finding]:
    same = [one.name for one in others if ident == recall_ident(one.folder)]
    if ident and same:
        yield fail(
            f"it is the machine of host '{same[0]}', with the same state root",
            f"have it once: sm host remove {node.name}, or give it a state root of its own",
        )


def _advise_login(node: SshNode, said: str) -> str:
    if "Host key verification failed" in said:
        return f"log in once by hand, and compare the key: ssh {node.host.address}"
    if "Permission denied" in said:
        return f"have a key of yours let in there: ssh-copy-id {node.host.address}"
    return f"try it by hand: ssh {node.host.address}"


def _probe(node: SshNode) -> tuple[list[str], float]:
    """The programs that are missing there, and how far its clock is ahead of ours, in seconds."""
    argv = command.run_there(node.host, f"exec /bin/sh -c '{PROBE}'")
    began = time.time()
    said = run(*argv, cwd=node.folder.path, timeout_s=PROBE_S, accept=tuple(range(256)))
    words = said.stdout.split()
    theirs = next((int(word) for word in reversed(words) if CLOCK.fullmatch(word)), None)
    off_s = 0.0 if theirs is None else theirs - (began + time.time()) / 2
    return [name for name in PROGRAMS if name in words], off_s


def _examine_project(node: SshNode, project: Project) -> Iterator[Finding]:
    name = project.name
    before = read_primary(project)
    answer = ask(node, ("host", "facts", name), project=name, within_s=FACTS_S)
    if answer.code:
        said = one_line(answer.stderr.strip().removeprefix("sm: "), 300)
        yield fail(
            f"no project '{name}' there: {said}", f"clone it there, then: sm init --name {name}"
        )
        return
    yield from judge_project(project, answer.stdout, before)
