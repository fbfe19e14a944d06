"""A cluster for all tests of a worker, and installations whose sessions are its jobs."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.slurm.cluster import Cluster
from tests.slurm.world import MakeWorld, living


@pytest.fixture(scope="session")
def running() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="sm-slurm-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


@pytest.fixture
def cluster(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("SLURM_CONF", str(running.config))
    running.wait_until_idle()
    return running


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str, cluster: Cluster) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, cluster, **how))
