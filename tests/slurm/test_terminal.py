"""The terminal of a session in a job, on the page of the submit host."""

from __future__ import annotations

import pytest

from sm.adapters.tmux import Tmux
from sm.plugins.hosts.slurm.queue import name_job
from tests.helpers import wait_for
from tests.plugins.page.watcher import Watcher
from tests.serving import serving
from tests.slurm.cluster import MISSING
from tests.slurm.world import MakeWorld, begin

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_it_is_shown_live_and_nothing_is_left_in_the_job(
    world_of: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(auto=False)
    issue = begin(world)
    monkeypatch.setenv("TMUX_TMPDIR", str(world.cluster.folder / world.find_node(issue)))
    tmux, name = Tmux(name_job(world.project.root, f"dev-harb-{issue}")), f"dev-harb-{issue}"

    def facts() -> list[str]:
        said = "#{window_width} #{window_height} #{session_attached}"
        return tmux.command("display-message", "-p", "-t", f"={name}:", said).split()

    columns, rows, nobody = facts()
    assert nobody == "0"
    base = world.stage.environment
    with serving(world.folder, "--open", base=base, clean=False) as server:
        watchers = [Watcher(server, name) for _ in range(2)]
        for watcher in watchers:
            size = {"columns": int(columns), "rows": int(rows) + 1, "below": 1}
            assert watcher.wait_for_word("begin")["size"] == size
            watcher.wait_for("❯".encode())
        assert facts() == [columns, rows, "2"]
        world.stage.sm("send", f"harb#{issue}", "only the cart")
        for watcher in watchers:
            watcher.wait_for(b"working")
            watcher.close()
        wait_for(lambda: facts() == [columns, rows, "0"], "nobody to look there")
