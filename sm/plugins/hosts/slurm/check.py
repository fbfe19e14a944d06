"""Check of a cluster for a project: what is missing there, and what to do about it."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping

from sm.adapters.process import CommandTimeoutError, MissingProgramError, ask
from sm.base.errors import SmError
from sm.base.foreign import read_number
from sm.base.text import one_line
from sm.issues.runners import list_runners
from sm.plugins.hosts.findings import PROGRAMS, compare, judge_doctor, judge_project
from sm.plugins.hosts.node.facts import read_primary
from sm.plugins.hosts.slurm import cluster, step
from sm.plugins.hosts.slurm.cluster import Partition
from sm.plugins.hosts.slurm.queue import list_wanted, name_job
from sm.plugins.hosts.slurm.script import MARK, write_check
from sm.plugins.hosts.slurm.settings import Slurm
from sm.sessions.project import Project
from sm.setup.finding import DoctorCheck, Finding, fail, ok, warn

NAME = "slurm"
COMMANDS = ("sbatch", "squeue", "scancel", "srun", "scontrol", "sinfo")
WAIT_S, CHECK_S = 30, 240.0
"""Time that a node is waited for, and that a look at it may take, in seconds."""
KEPT_S = 60
"""An end that Slurm has forgotten before the next look would count as a loss."""
NO_ACCOUNTS = "accounting_storage/none"
FIRST = re.compile(r"^\D*(\d+)")


def uses(project: Project) -> bool:
    """Whether sessions of the project may be jobs."""
    return NAME in list_runners(project.settings)


def examine(project: Project) -> Iterator[Finding]:
    """Yield what is found from here, without a job; one that breaks all is the last."""
    if not uses(project):
        return
    missing = [name for name in COMMANDS if not shutil.which(name)]
    if missing:
        yield fail(
            f"no {', '.join(missing)} here",
            "install the client programs of Slurm: apt-get install slurm-client, and have its "
            "slurm.conf here",
        )
        return
    try:
        partitions = cluster.list_partitions()
        setup, licenses = cluster.read_setup(), cluster.list_licenses()
    except SmError as error:
        yield fail(error.message, "look by hand: scontrol ping")
        return
    settings = step.read_settings(project)
    yield from judge_partition(settings, partitions)
    yield from judge_licenses(settings, licenses)
    yield from judge_setup(settings, setup)


CHECK = DoctorCheck(project=examine)


def judge_partition(settings: Slurm, partitions: list[Partition]) -> Iterator[Finding]:
    """Judge the partition of our jobs, and whether the time limit fits it."""
    found = cluster.find_partition(partitions, settings)
    if found is None:
        known = ", ".join(one.name for one in partitions)
        what = f"'{settings.partition}'" if settings.partition else "for jobs that name none"
        yield fail(f"Slurm has no partition {what}", f"set slurm.partition to one of: {known}")
        return
    if not found.is_up or not found.there:
        yield warn(
            f"partition '{found.name}' takes no jobs now: {found.told}",
            f"sessions wait until it does; sinfo --partition={found.name} --list-reasons says why",
        )
    else:
        limit = f", at most {found.limit_s / 3600:g} h each" if found.limit_s else ""
        yield ok(f"partition '{found.name}': {found.told}{limit}")
    if found.limit_s and settings.time_limit_s > found.limit_s:
        yield fail(
            f"slurm.time_limit is longer than partition '{found.name}' allows",
            f"set it to {found.limit_s / 60:g}m or less",
        )
    elif found.limit_s and not settings.time_limit_s:
        yield warn(
            f"partition '{found.name}' ends jobs after {found.limit_s / 60:g} min, and sessions do "
            "not know of it",
            f"set slurm.time_limit to {found.limit_s / 60:g}m: their work is pushed before that",
        )
    if settings.time_limit_s and settings.notice_s >= settings.time_limit_s:
        yield fail("slurm.notice is as long as slurm.time_limit", "make it shorter, such as 5m")


def judge_licenses(settings: Slurm, licenses: Mapping[str, int]) -> Iterator[Finding]:
    """Judge whether there are the licenses that each session takes."""
    for wanted in settings.licenses:
        name, _, count = wanted.partition(":")
        if name not in licenses:
            yield fail(
                f"Slurm has no license '{name}'",
                f"have its operator add 'Licenses={name}:NUMBER' to slurm.conf, or take it out of "
                "slurm.licenses",
            )
        else:
            at_once = licenses[name] // max(1, read_number(count) or 1)
            yield ok(f"license '{name}': {licenses[name]} of it, so {at_once} sessions at a time")


def judge_setup(settings: Slurm, setup: Mapping[str, str]) -> Iterator[Finding]:
    """Judge what of slurm.conf matters to sessions."""
    named = [key for key in ("account", "qos") if getattr(settings, key)]
    if named and setup.get("AccountingStorageType") == NO_ACCOUNTS:
        keys = " and ".join(f"slurm.{key}" for key in named)
        yield warn(
            f"Slurm keeps no accounts here, so {keys} may have no effect", f"leave out {keys}"
        )
    kept = FIRST.match(setup.get("MinJobAge", ""))
    if kept and int(kept[1]) < KEPT_S:
        yield warn(
            f"Slurm forgets a job {kept[1]} s after its end, and its end may be missed",
            f"have its operator set MinJobAge to {KEPT_S} or more",
        )


# A node


def examine_node(project: Project) -> Iterator[Finding]:
    """Have a node looked at by a short job, as its sessions find it.

    Raises:
        SmError: the job cannot be tried.

    """
    settings = step.read_settings(project)
    name = name_job(project.root, "check")
    script = write_check(settings, name, project.name, PROGRAMS)
    argv = ["srun", "--quiet", f"--job-name={name}", f"--immediate={WAIT_S}", "--time=5"]
    argv += [*list_wanted(settings), f"--export={step.EXPORTED}"]
    before, began = read_primary(project), time.time()
    try:
        said = ask(*argv, "bash", "-l", "-c", script, timeout_s=CHECK_S, accept=tuple(range(256)))
    except MissingProgramError:
        return  # that is told already
    except CommandTimeoutError as error:
        yield warn(f"no node could be looked at: {error.message}", "look by hand: squeue --me")
        return
    told = read_marks(said.stdout)
    if "node" not in told:
        yield judge_refusal(one_line(said.stderr or f"srun ended with {said.code}", 300))
        return
    yield from judge_node(project, told, (began + time.time()) / 2, before)


def read_marks(text: str) -> dict[str, list[str]]:
    """Read what a node has said: by each mark what followed it, up to the next."""
    found: dict[str, list[str]] = {}
    for part in f"\n{text}".split(f"\n{MARK}")[1:]:
        mark, _, rest = part.partition(" ")
        found.setdefault(mark.strip(), []).append(rest.strip())
    return found


def judge_refusal(said: str) -> Finding:
    """Judge why no node could be looked at."""
    if "Unable to allocate resources" in said and "immediate" in said.lower():
        return warn(f"no node was free within {WAIT_S} s, so none was looked at", "try it later")
    return fail(f"no node could be looked at: {said}", "look by hand: srun --pty bash -l")


def judge_node(
    project: Project, told: Mapping[str, list[str]], now: float, before: str
) -> Iterator[Finding]:
    """Judge what a node has said of itself; `before` is as for `judge_project`."""
    missing = told.get("missing", [])
    for name in missing:
        yield fail(f"no {one_line(name, 40)} on it", PROGRAMS.get(name, ""))
    for said in told.get("broken", []):
        yield fail(
            f"sm does not run on it: {one_line(said, 200)}",
            "install it on the nodes, and say where it is by slurm.sm: docs/HOSTS.md",
        )
    if missing or "version" not in told:
        return
    theirs = told["version"][0].rpartition(" ")[2]
    date = read_number(told.get("date", [""])[0])
    yield from compare(theirs, date - now if date else 0.0)
    for said in told.get("stranger", []):
        text = one_line(said.rpartition("sm: ")[2], 300)
        yield fail(
            f"no project '{project.name}' on it: {text}",
            "slurm.config says where it is set up on the nodes, slurm.prepare clones it: "
            "docs/HOSTS.md",
        )
    for said in told.get("facts", []):
        yield from judge_project(project, said, before)
    for said in told.get("doctor", []):
        yield from judge_doctor(said)
