"""What an issue costs from its pick-up to its merge: seconds by the clock, and of a processor.

The agents are a shell script that follows the protocol and works half a second. Their work in git
and their clients' processes are part of what is measured, with tmux and all that `sm` runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from sm.store.paths import Root  # noqa: E402
from tests.bench.measure import Bench, Figure, Spent, run  # noqa: E402
from tests.e2e.stage import Stage, make_stage  # noqa: E402
from tests.helpers import git, wait_for  # noqa: E402

AT_ONCE = 100
"""Slots; with more issues than that some wait for one."""
DEADLINE_S = 900.0
PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""

AGENT = r"""
stty raw -echo
printf '\033[?2004h\r\n❯ '
sleep 0.5
echo "work on issue $ISSUE" >"work-$ISSUE.txt"
git add -A
git commit -q -m "Do issue $ISSUE"
git push -q origin HEAD
echo PHASE:awaiting_ci >"$PHASE_FILE"
while IFS= read -r -d $'\r' message; do
  printf '\r\nworking ...\r\n'
  [[ $message != *'CI passed'* ]] || echo PHASE:awaiting_review >"$PHASE_FILE"
  printf '\r\n❯ '
done < <(exec cat) # at a terminal it would have it turn CR into LF
"""

BY_HAND = r"""
set -eu
cd "$1"
for ((n = 1; n <= $2; n++)); do
  git fetch -q origin
  git worktree add -q -b "fix/$n" "../by-hand-$n" origin/main
  cd "../by-hand-$n"
  echo "work on issue $n" >"work-$n.txt"
  git add -A
  git commit -q -m "Do issue $n"
  git push -q origin HEAD
  git worktree add -q --detach "../ci-$n" HEAD
  (cd "../ci-$n" && sh -c true)
  git worktree remove "../ci-$n"
  git checkout -q --detach origin/main
  git merge -q --no-ff -m "Merge issue $n" "fix/$n"
  git push -q origin HEAD:main
  git push -q --delete origin "fix/$n"
  cd "$1"
  git worktree remove "../by-hand-$n"
  git branch -q -D "fix/$n"
done
"""
"""The same work in git and the same CI, one issue after the other, and nobody to look after it."""


def figures(bench: Bench) -> Iterator[Figure]:
    """As many issues as there are, all ready at once, until the last one is merged."""
    (count,) = bench.sizes((200,), quick=(20,))
    by_hand = make_stage(bench.folder / "by-hand", auto=False).repository.clone
    beside = run(["bash", "-c", BY_HAND, "by-hand", str(by_hand), str(count)])
    spent = _measure(_make(bench.folder / "issues", count), count)
    yield Figure(
        name=f"{count} issues, from ready to merged",
        unit="s",
        samples=[spent.wall_s],
        beside="the git alone, one by one",
        others=[beside.wall_s],
    )
    yield Figure(
        name="    of a processor, for each issue",
        unit="s",
        samples=[spent.cpu_s / count],
        beside="the git alone",
        others=[beside.cpu_s / count],
    )


def _make(folder: Path, count: int) -> Stage:
    """A project with that many issues that are ready."""
    state = folder / "state"
    state.mkdir(mode=0o700, parents=True)
    agent = folder / "agent.sh"
    agent.write_text(AGENT)
    client = folder / "client"
    client.symlink_to("/bin/bash")  # to no shell would a message be typed
    stage = make_stage(
        folder,
        auto=False,
        settings={
            "state_root": str(state),
            "max_sessions": AT_ONCE,
            "agent": {
                "command": shlex.join([str(client), str(agent)]),
                "env": {name: os.environ[name] for name in os.environ if name.startswith("GIT_")},
            },
            "ci": {"command": "true", "poll": "1s"},
            "merge": {"by": "sm"},
            "review": {"required": False},
        },
    )
    for _ in range(count):
        stage.file_issue()
    return stage


def _measure(stage: Stage, count: int) -> Spent:
    """Have a process of its own see to it, in which what has lost its parent is collected."""
    done = subprocess.run(
        [sys.executable, __file__, str(stage.folder), str(count)],
        env=stage.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Spent(*json.loads(done.stdout))


def _work_off(folder: Path, count: int) -> Spent:
    """Let dev-poll work until all is merged, end what it has started, and count it all."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    hub = folder / "hub.git"
    sessions = Root(folder / "state").sessions
    started = time.perf_counter()
    poll = subprocess.Popen(
        ["bash", str(ROOT / "bin" / "dev-poll"), "--loop"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )

    def is_over() -> bool:
        return not any(sessions.glob("dev-*")) and _count_merged(hub) == count

    try:
        wait_for(is_over, f"{count} issues to be merged", DEADLINE_S, every_s=0.2)
        took = time.perf_counter() - started
    finally:
        poll.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            poll.wait(20)
        subprocess.run(
            ["tmux", "-L", os.environ["SM_TMUX_SOCKET"], "kill-server"],
            capture_output=True,
            check=False,
        )
        _end_all()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(took, used.ru_utime + used.ru_stime)


def _count_merged(hub: Path) -> int:
    files = git(hub, "ls-tree", "--name-only", "main").split()
    return sum(name.startswith("work-") for name in files)


def _end_all() -> None:
    """End every process that is left, and collect them, so that the kernel has counted them."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    deadline = time.monotonic() + 20
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            for child in map(int, mine.read_text().split()):
                os.kill(child, signal.SIGKILL)
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)


if __name__ == "__main__":
    spent = _work_off(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps([spent.wall_s, spent.cpu_s]))
