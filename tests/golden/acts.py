"""What people do in the states, one after the other, and what is told for it to whom."""

from __future__ import annotations

import shlex

from tests.golden import posts
from tests.golden.calling import call, write_down
from tests.golden.clock import CLOCK
from tests.golden.states import BEN, World, list_told

ISSUES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15)

ACTS: tuple[str, ...] = (
    "send harb#1 'Take weeks, too.'",
    "send harb#5 'Look again.' --mode important",
    "send harb#4 'It is open.' --json",
    "send harb#7 'Stop.' --mode urgent",
    "send harb#2 'Wait.' --wait 0",
    "send ann 'Yes, the docs.' --notify-on-stop",
    "send s-000000b2 'Say when you are done.'",
    "send nobody 'Hello.'",
    "queue harb#1 --cancel 0000000000000000",
    "reply harb 3 'SIGHUP.'",
    "reply harb 3 'Or SIGUSR1.'",
    "reply harb 1 'Nothing was asked.'",
    "reply harb 99 'Nobody is there.'",
    "review harb#20 --request-changes -m 'Too long.'",
    "review harb#20 --approve",
    "review harb#77 --approve",
    "pr comment 20 --body 'Well done.' --project harb",
    "pr merge 20 --project harb",
    "pr merge 21 --project harb",
    "pr checkout 77 --project harb",
    "pr close 23 --project harb",
    "pr close 77 --project harb",
    "ci rerun harb 15",
    "ci rerun harb 1",
    "issue add 'Sort the list' --body 'By name.' --project harb",
    "issue edit 17 --title 'Show the total of all' --project harb",
    "issue label 17 --add urgent --project harb",
    "issue label 17 --add urgent --new --project harb",
    "issue comment 17 --body 'In euros.' --project harb",
    "issue close 18 --project harb",
    "issue reopen 18 --project harb",
    "issue close 77 --project harb",
    "budget raise harb 8 5",
    "budget lower harb 8 5",
    "budget raise harb 8 words",
    "context enable harb#2 --cycle 70",
    "context disable harb#2",
    "pause harb#7 --reason 'until tomorrow'",
    "pause",
    "pause harb",
    "status --project harb",
    "needs",
    "resume",
    "resume harb#7",
    "resume harb#7",
    "cycle harb#2",
    "handoff /nowhere.md",
    "recover harb 1",
    "attach harb 1",
    "new --name ann -- true",
    "new --name cyd --json --provider generic --dir {folder}/place --command 'tail -f /dev/null'",
    "kill cyd",
    "bridge create 'A second one' 'More words.' --as chat --json",
    "bridge add {thread} decision 'By a cookie.' --as chat",
    "bridge add {thread} question 'How long?' --as chat --json",
    "bridge bind {thread} harb 11",
    "bridge bind {thread} harb 3 --json",
    "bridge read {thread} --as chat",
    "bridge close {thread} --json",
    "bridge close {thread}",
    "worktree drop harb 2",
    "worktree drop harb 99",
    f"kill {BEN}",
    "kill harb#13",
    "kill --all",
    "kill harb 99",
    "notify --test nothing",
    "mcp revoke nothing",
    "mcp uninstall claude-code",
    "mcp install --print",
    "host remove box",
    "git-credential --place https://example.com/a/b get",
    "statsu",
)
"""What is typed, in order."""


def carry_out(world: World) -> dict[str, str]:
    """Act, and have a pass over each session before and afterwards; return all that is said.

    Those who ask the server act first.
    """
    known = set[tuple[str, str]]()
    passes = [_make_passes(), _list_new(world, known)]
    asked = [posts.carry_out(world), _list_new(world, known)]
    parts = []
    for line in ACTS:
        CLOCK.at += 1
        argv = shlex.split(
            line.replace("{thread}", world.thread).replace("{folder}", str(world.folder))
        )
        parts.append(write_down(argv, call(argv)) + _list_new(world, known))
    passes += [_make_passes(), _list_new(world, known)]
    files = {"passes": passes, "server": asked, "verbs": parts}
    return {f"acts/{name}.txt": "\n".join(said) for name, said in files.items()}


def _make_passes() -> str:
    """A pass of the reactor over each session."""
    argvs = (["react", "harb", str(issue)] for issue in ISSUES)
    return "".join(write_down(argv, call(argv)) for argv in argvs)


def _list_new(world: World, known: set[tuple[str, str]]) -> str:
    """What has been told since to whom."""
    found = sorted(one for one in list_told(world) if one not in known)
    known.update(found)
    return "".join(f"> {whose}:\n{_indent(text)}\n" for whose, text in found)


def _indent(text: str) -> str:
    return "\n".join(f"  | {line}".rstrip() for line in text.splitlines())
