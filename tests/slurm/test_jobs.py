"""Issues that are worked on in jobs of a real Slurm, with two nodes on this machine."""

from __future__ import annotations

import json

import pytest
import yaml

from sm.adapters import procfs
from sm.adapters.forge.model import BOT
from sm.issues.look import look_share
from sm.issues.runners import Standing
from sm.plugins.hosts.slurm import carrier
from sm.plugins.hosts.slurm.queue import name_job
from sm.plugins.hosts.slurm.runner import RUNNER
from sm.sessions import agent
from tests.forges.sides import remote_side
from tests.helpers import git, wait_for
from tests.hub import Hub
from tests.slurm.cluster import MISSING, NODES
from tests.slurm.world import MakeWorld, World, begin, begin_half, has_half, poll_until

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_an_issue_becomes_a_merge_in_a_job(world_of: MakeWorld) -> None:
    world = world_of(auto=True)
    issue = world.stage.file_issue()
    poll_until(world, lambda: world.stage.merged(issue), "the merge")
    poll_until(world, lambda: not world.placed, "the end")
    wait_for(lambda: world.cluster.list_jobs()[-1].startswith("COMPLETED"), "the job's end")


def test_a_session_in_a_job_is_seen_and_steered_from_here(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue = begin(world)
    node = world.find_node(issue)
    sm = world.stage.sm
    poll_until(world, lambda: node in [one.host for one in world.seen], "a look")
    sm("send", f"harb#{issue}", "only", "the cart")
    wait_for(lambda: "only the cart" in "".join(world.stage.told()), "the message")
    assert sm("send", f"harb#{issue}", "--mode", "urgent", "", check=False).returncode == 2
    assert "started" in sm("trace", "harb", str(issue)).stdout
    wait_for(lambda: "Add a file" in sm("status").stdout, "its row")
    (row,) = json.loads(sm("status", "--json").stdout)[0]["sessions"]
    assert (row["issue"], row["title"], row["host"]) == (issue, "Add a file", node)
    world.root_on(node, issue).phase("harb", issue).write_text("PHASE:escalate\nReason: which?\n")
    wait_for(lambda: "which?" in sm("needs", check=False).stdout, "the question", every_s=0.5)
    sm("kill", "harb", str(issue))
    wait_for(lambda: world.cluster.list_jobs()[-1].startswith("COMPLETED"), "the job's end")
    poll_until(world, lambda: not world.placed, "the end")


def test_a_full_queue_says_what_it_waits_for(world_of: MakeWorld) -> None:
    world = world_of(auto=False, licenses=["agents:2"], sessions=2)
    begin(world)
    waiting = [world.stage.file_issue(), world.stage.file_issue()]
    world.stage.poll()
    world.stage.poll()
    assert [one.issue for one in world.placed] == [1, waiting[0]], "as many as are wanted"
    states = [line.split()[0] for line in world.cluster.list_jobs()[-2:]]
    assert states == ["RUNNING", "PENDING"]
    options = [f"--job-name={name_job(world.project.root, world.placed[0].session)}"]
    options += ["--dependency=singleton", "--output=/dev/null", "--wrap=true"]
    second = world.cluster.call("sbatch", "--parsable", *options).strip()
    wait_for(lambda: reason_of(world, second) == "Dependency", "that no two of a name run")
    world.cluster.call("scancel", second)
    poll_until(world, lambda: "Licenses" in [one.words for one in world.seen], "the reason")
    assert "in the queue (Licenses)" in world.stage.sm("status").stdout
    world.project.forge.issues.close(waiting[0])
    poll_until(world, lambda: waiting[0] not in [one.issue for one in world.placed], "its end")
    assert world.cluster.list_jobs()[-3].startswith("CANCELLED"), "the third has its place"


def test_an_agent_that_writes_no_document_in_time_leaves_its_work_alone(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False, time_limit="1h", notice="4s")
    issue = begin_half(world)
    world.cluster.call("scancel", "--batch", "--signal=USR1", world.placed[0].handle)
    poll_until(world, lambda: "You take over" in world.stage.told()[-1], "the next attempt")
    assert "handoff document" not in world.stage.told()[-1]
    assert has_half(world, issue)


def test_a_job_that_is_cancelled_or_put_back_goes_on_in_another(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue, call = begin_half(world), world.cluster.call
    call("scancel", world.placed[0].handle)
    poll_until(world, lambda: len(world.stage.told()) > 1, "the next attempt")
    assert [one.attempt for one in world.placed] == [2]
    assert "Attempt 1 at this issue was cut off" in world.stage.told()[-1]

    job = world.placed[0].handle
    call("scontrol", "requeue", job)
    assert world.cluster.list_jobs()[-1].startswith("RUNNING"), "Slurm is told not to do that"
    call("scontrol", "update", f"jobid={job}", "requeue=1")
    call("scontrol", "requeue", job)
    poll_until(world, lambda: len(world.stage.told()) > 2, "the third attempt")
    assert [one.attempt for one in world.placed] == [3]
    assert world.cluster.list_jobs()[-2].startswith("CANCELLED"), "it never begins again"
    assert has_half(world, issue), "nothing is lost"


def reason_of(world: World, job: str) -> str:
    """Why a job waits."""
    return world.cluster.call("squeue", "--noheader", f"--jobs={job}", "--format=%r").strip()


def test_a_node_that_is_lost_in_mid_turn_is_overtaken(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue = begin(world)
    node = world.find_node(issue)
    world.cluster.kill(node)
    try:
        wait_for(lambda: world.cluster.list_jobs()[-1].startswith("NODE_FAIL"), "Slurm to notice")
        old = world.session_on(node, issue)
        assert old, "what the lost node had begun runs on"
        agent_before = agent.load(old.dir)
        assert agent_before
        assert procfs.is_running(agent_before.process)
        poll_until(world, lambda: len(world.stage.told()) > 1, "the next attempt")
        assert [one.attempt for one in world.placed] == [2]
        new = world.session_on(world.find_other(node, issue), issue)
        assert new
        wait_for(lambda: world.session_on(node, issue) is None, "the old one to end by itself")
        assert not procfs.is_running(agent_before.process)
        (new.worktree / "work.txt").write_text("done\n")
        git(new.worktree, "add", "-A")
        git(new.worktree, "commit", "-q", "-m", f"work on {issue}")
        git(new.worktree, "push", "-q", "origin", "HEAD")
        new.root.phase("harb", issue).write_text("PHASE:awaiting_review\n")
        poll_until(world, lambda: not world.placed, "the end")
    finally:
        world.cluster.start_node(node)
    assert world.project.forge.issues.read(issue).state == "closed"


def test_a_frozen_node_finds_itself_overtaken(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue = begin(world)
    node = world.find_node(issue)
    world.freeze(node)
    try:
        poll_until(world, lambda: [one.attempt for one in world.placed] == [2], "the next attempt")
        wait_for(lambda: len(world.stage.told()) > 1, "the next agent")
        assert world.session_on(node, issue)
    finally:
        world.thaw(node)
    wait_for(lambda: world.session_on(node, issue) is None, "the old one to end by itself")
    assert [one.attempt for one in world.placed] == [2]
    assert world.find_node(issue) not in ("", node)


def test_a_controller_that_is_away_loses_nothing(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue = begin(world)
    world.cluster.stop_controller()
    try:
        seen = RUNNER.follow(world.project, world.placed)[world.placed[0].session]
        assert seen.standing is Standing.SILENT
        later = world.stage.file_issue()
        world.stage.poll()
        assert [one.issue for one in world.placed] == [issue]
    finally:
        world.cluster.start_controller()
    poll_until(world, lambda: [one.issue for one in world.placed] == [issue, later], "the next")
    poll_until(world, lambda: len(world.stage.told()) == 2, "both agents")
    assert [one.attempt for one in world.placed] == [1, 1]


def test_a_job_is_brought_what_was_seen_of_the_forge(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    hub = Hub(world.stage.config, world.project.settings, world.stage.repository)
    with remote_side("github", hub, world.folder / "server") as side:
        side.admit("ada", "rita")
        place = {"kind": "github", "repository": side.state.name, "url": side.site.url}
        place["token_file"] = str(side.token_file(BOT))
        for folder, every in ((world.folder, "1s"), *((world.folder / n, "1h") for n in NODES)):
            config = folder / "sm.yaml"
            said = yaml.safe_load(config.read_text()) | {"forge": place, "ci": {"poll": every}}
            config.write_text(yaml.safe_dump(said))
        issue = side.state.add("Mend it", "It is broken.", "ada")
        side.state.label(issue, ["backlog"])
        poll_until(world, world.stage.told, "the first prompt")
        node = world.find_node(issue.number)
        session = world.session_on(node, issue.number)
        assert session

        def is_brought() -> bool:
            came = look_share.read(session.root.project("harb"))
            return came is not None and came.is_about(session)

        poll_until(world, is_brought, "a look to be brought")
        came = look_share.read(session.root.project("harb"))
        assert came
        assert [one.number for one in came.seen.issues] == [issue.number]
        assert came.seen.taken_at < came.came_at - carrier.CARRY_S + 1
        side.state.label(issue, ["blocked"])
        poll_until(world, lambda: not world.find_node(issue.number), "the end of the session")


def test_the_cluster_is_looked_at_from_here_and_on_a_node(world_of: MakeWorld) -> None:
    world = world_of(auto=False, time_limit="1h")
    sm = world.stage.sm
    found = sm("host", "check", check=False).stdout
    assert "ok    slurm, harb: partition 'main': 2 idle\n" in found
    assert "ok    slurm, harb: license 'agents': 2 of it, so 2 sessions at a time\n" in found
    assert "ok    slurm, harb: 'harb': a clone there with the same remote\n" in found
    assert "fail" not in found
    (row,) = json.loads(sm("host", "list", "--json").stdout)
    assert (row["name"], row["room"], row["sessions"]) == ("slurm, harb", 4, 0)
    assert "partition main: 2 idle" in sm("host", "list").stdout
    assert not list((world.folder / "one" / "state").iterdir()), "the look leaves nothing there"
    assert not list((world.folder / "two" / "state").iterdir())
    world.cluster.stop_controller()
    try:
        away = sm("host", "check", "slurm", check=False)
        assert away.returncode == 1
        assert "fail  slurm, harb: Slurm does not answer: " in away.stdout
        assert "scontrol ping" in away.stdout
    finally:
        world.cluster.start_controller()
