"""The section `slurm` of the configuration: how sessions run as jobs of a cluster."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from sm.config.duration import Seconds
from sm.config.section import Positive, Section

Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:,+@%&|-]*$|^$", max_length=255)]
"""What is one value of an option of sbatch."""
Option = Annotated[str, Meta(pattern=r"^--[a-z][a-z-]*(=[^\x00-\x1f\x7f]*)?$")]
Place = Annotated[str, Meta(pattern=r"^(/[^\x00-\x1f\x7f]*)?$")]
NODE = "%N"
"""Stands for the name of the node in a path, as in sbatch(1), "filename pattern"."""


KEEP_S = 7 * 24 * 3600.0
NAMES = {"time_limit_s": "time_limit", "notice_s": "notice", "keep_s": "keep"}


class Slurm(Section, frozen=True, rename=NAMES):
    """A cluster with Slurm, on whose nodes sessions run; each of them is a job."""

    sessions: Annotated[
        Positive, Meta(description="how many jobs of a project there are at most, also waiting")
    ] = 4
    partition: Annotated[Word, Meta(description="as sbatch has it; empty: the usual one")] = ""
    account: Annotated[Word, Meta(description="as sbatch has it; empty: your usual one")] = ""
    qos: Annotated[Word, Meta(description="quality of service, as sbatch has it")] = ""
    cpus: Annotated[Positive, Meta(description="processors of a session")] = 2
    memory: Annotated[Word, Meta(description="memory of a session, such as 4G; empty: any")] = ""
    licenses: Annotated[
        tuple[Word, ...],
        Meta(
            description="licenses that each session takes, such as 'claude:1': so the cluster caps "
            "how many use one account"
        ),
    ] = ()
    time_limit_s: Annotated[
        Seconds,
        Meta(description="how long a job may run; its session goes on in another; 0: no limit"),
    ] = Seconds(0)
    notice_s: Annotated[
        Seconds,
        Meta(description="so long before that limit a session ends its turn and pushes its work"),
    ] = Seconds(300)
    options: Annotated[
        tuple[Option, ...], Meta(description="more options of sbatch, such as '--constraint=ssd'")
    ] = ()
    sm: Annotated[
        Place, Meta(description="path of sm on the nodes; empty: on the PATH, or in ~/.local/bin")
    ] = ""
    config: Annotated[
        Place,
        Meta(description="configuration on the nodes; %N is the node's name; empty: ~/.config/sm"),
    ] = ""
    state: Annotated[
        Place, Meta(description="folder on a disk of each node, for the state of its sessions")
    ] = "/tmp"  # noqa: S108 (each session has a guarded folder of its own in it)
    keep_s: Annotated[
        Seconds,
        Meta(
            description="so long that folder stays once its session has ended; the next job on the "
            "node removes it"
        ),
    ] = Seconds(KEEP_S)
    prepare: Annotated[
        str,
        Meta(description="shell lines that run first on the node, such as 'module load git'"),
    ] = ""
