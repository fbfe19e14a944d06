"""Each hook with nothing to do, beside a bash that does nothing; the status line beside jq."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from sm.store.paths import Root
from tests.bench.measure import Bench, Figure, Take, in_turns
from tests.hooks import CONTEXT, FILES, PROMPT, Hooks, payload

BUDGET = 1.5
"""Times starting bash."""

QUIET = {
    "SessionStart": ("SessionStart_compact", "busy"),
    "UserPromptSubmit": ("UserPromptSubmit", "busy"),
    "PostToolUse": ("PostToolUse", "busy"),
    "PermissionRequest": ("PermissionRequest", "dialog"),
    "Notification": ("Notification_idle_prompt", "idle"),
    "PreCompact": ("PreCompact_auto", "busy"),
    "PostCompact": ("PostCompact_auto", "busy"),
    "Stop": ("Stop", "busy"),
    "StopFailure": ("StopFailure_rate_limit", "busy"),
    "SessionEnd": ("SessionEnd_clear", "idle"),
    "statusline": ("statusline_50", "busy"),
}
"""What each hook is called with, and the state that the agent is in."""

AFTER_STOP = "hook user-prompt-submit, removes the idle marker"

BY_HAND = r"""
json=$(cat)
field() { printf '%s' "$json" | jq -r "$1"; }
session=$(field '.session_id // ""')
percent=$(field '.context_window.used_percentage // 0')
read_in=$(field '.context_window.total_input_tokens // 0')
written=$(field '.context_window.total_output_tokens // 0')
window=$(field '.context_window.context_window_size // 200000')
if [ -n "$session" ] && [ "$percent" != 0 ]; then
  body=$(jq -n --arg id "$NAME" --argjson p "$percent" --argjson i "$read_in" \
    --argjson o "$written" --argjson w "$window" '{$id, $p, $i, $o, $w}')
  curl -s -m 0.5 -X POST -H 'Content-Type: application/json' -d "$body" \
    http://127.0.0.1:9/usage >/dev/null 2>&1 &
fi
echo "$percent% of the context"
"""
"""A status line as it is usually written: jq for each value, and curl to tell a server of it."""


def figures(bench: Bench) -> Iterator[Figure]:
    """All hooks in turns with bash, then the status line in turns with the usual script."""
    hooks = Hooks(Root(bench.folder / "state")).make()
    rounds = bench.rounds(200, 20)
    bash = ["bash", "-p", "-c", ":"]
    takes = [_hook(hooks, kind) for kind in FILES]
    nothing, *found = in_turns(rounds, _run(bash, b"", os.environ), *takes)
    for kind, samples in zip(FILES, found, strict=True):
        yield _figure(f"hook {FILES[kind]}, nothing to do", samples, "bash -c :", nothing)
    hooks.dir.threshold.write_text("50\n")
    crossed, nothing = in_turns(rounds, _hook(hooks, "statusline"), _run(bash, b"", os.environ))
    yield _figure("hook status-line, threshold crossed", crossed, "bash -c :", nothing)
    prompt = _hook(hooks, "UserPromptSubmit", marked=True)
    samples, nothing = in_turns(rounds, prompt, _run(bash, b"", os.environ))
    yield _figure(AFTER_STOP, samples, "bash -c :", nothing, budget=None)
    large = _hook(hooks, "PostToolUse", tool_response={"stdout": 'x"y\n' * 75_000})
    samples, nothing = in_turns(bench.rounds(40, 10), large, _run(bash, b"", os.environ))
    yield _figure("hook post-tool-use, 375 KB payload", samples, "bash -c :", nothing, budget=None)
    if missing := [each for each in ("jq", "curl") if not shutil.which(each)]:
        print(f"not compared with a status line by {missing[0]}: not installed", file=sys.stderr)
        return
    script = bench.folder / "status.sh"
    script.write_text(BY_HAND)
    env = hooks.environment() | {"NAME": hooks.name}
    usual = _run(["bash", str(script)], payload("statusline_50"), env)
    ours, theirs = in_turns(bench.rounds(40, 10), _hook(hooks, "statusline"), usual)
    yield _figure("hook status-line", ours, "jq for each value, curl", theirs, budget=None)


def _figure(
    name: str,
    samples: list[float],
    beside: str,
    others: list[float],
    budget: float | None = BUDGET,
) -> Figure:
    figure = Figure(name=name, unit="ms", samples=samples, beside=beside, others=others)
    limit = None if budget is None else budget * figure.other
    return Figure(name=name, unit="ms", samples=samples, budget=limit, beside=beside, others=others)


def _hook(hooks: Hooks, kind: str, marked: bool = False, **changes: object) -> Take:
    """`marked`: after a turn that has ended, with the idle marker."""
    sample, state = QUIET[kind]
    run = _run(hooks.argv(kind), payload(sample, **changes), hooks.environment())

    def take() -> float:
        if marked:
            hooks.marker.write_text("1000\n")
        else:
            hooks.marker.unlink(missing_ok=True)
        hooks.dir.compacting.write_text("")
        hooks.dir.state.write_text(f"{state} 1000.0 {CONTEXT} {PROMPT}".ljust(159) + "\n")
        return run()

    return take


def _run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> Take:
    def take() -> float:
        started = time.perf_counter()
        done = subprocess.run(argv, input=data, env=env, capture_output=True)
        took = time.perf_counter() - started
        assert done.returncode == 0, done.stderr.decode()
        return took * 1000

    return take
