"""The demo's agent: a terminal program that behaves like an agent CLI, its model a script.

Started as `python3 lib/demo/agent PROMPT`, in the worktree of an issue, it does what the prompt
says and then waits for messages in its composer. Only the standard library is needed.
"""

from __future__ import annotations

import sys

from script import Script
from terminal import Terminal


def main() -> None:
    """Do as the prompt says, then as every message says, until the terminal closes or Ctrl-C."""
    with Terminal() as terminal:
        script = Script(terminal)
        message = " ".join(sys.argv[1:])
        while True:
            if message:
                terminal.show_prompt(message)
                script.hear(message)
            message = terminal.ask()


if __name__ == "__main__":
    try:
        main()
    except (EOFError, KeyboardInterrupt):
        sys.exit(0)
