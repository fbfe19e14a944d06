"""The cluster of the tests: what it says of itself, and that one that is broken is replaced."""

from __future__ import annotations

import pytest

from tests.helpers import wait_for
from tests.slurm.cluster import MISSING, ClusterError
from tests.slurm.conftest import Lasting

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_a_cluster_that_does_not_come_to_rest_says_why_and_is_replaced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lasting = Lasting()
    try:
        first = lasting.provide()
        assert lasting.provide() is first
        first.call("scontrol", "update", "nodename=two", "state=drain", "reason=unkillable")
        with pytest.raises(ClusterError, match=r"two idle nodes .*two drained \(unkillable\)"):
            first.wait_until_idle(0.5)
        first.running["one"].terminate()
        wait_for(first.list_ended, "the end of a node")
        assert lasting.provide() is not first
    finally:
        lasting.end()
    said = capsys.readouterr().out
    assert said.startswith("another cluster: one ended: ")
    assert "Slurmd shutdown completing" in said
