"""A cluster for all tests of a worker, and installations whose sessions are its jobs."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.slurm.cluster import Cluster, ClusterError
from tests.slurm.world import MakeWorld, living

REST_S = 30.0
"""So long a cluster may have to come to rest: a job that ends has `KillWait` of it."""


class Lasting:
    """The cluster of a worker, and another one after a test that left it with something to do.

    Tests kill and freeze its daemons. On a busy machine the controller may lose a word to a node,
    and says it again only a minute later; a node that could not end a job is drained for good.
    """

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    def provide(self) -> Cluster:
        """One with two idle nodes."""
        if self._cluster:
            try:
                self._cluster.wait_until_idle(REST_S)
            except ClusterError as error:
                print(f"another cluster: {error}")
                self.end()
        if self._cluster is None:
            folder = Path(tempfile.mkdtemp(prefix="sm-slurm-"))
            folder.chmod(0o755)
            self._cluster = Cluster(folder)
            self._cluster.start()
        return self._cluster

    def end(self) -> None:
        if self._cluster:
            self._cluster.stop()
            shutil.rmtree(self._cluster.folder)
            self._cluster = None


@pytest.fixture(scope="session")
def lasting() -> Iterator[Lasting]:
    made = Lasting()
    yield made
    made.end()


@pytest.fixture
def cluster(lasting: Lasting, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = lasting.provide()
    monkeypatch.setenv("SLURM_CONF", str(made.config))
    return made


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str, cluster: Cluster) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, cluster, **how))
