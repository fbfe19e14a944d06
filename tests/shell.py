"""Driving the shell half: real bash, and a stand-in for the core where only the call matters."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.helpers import HANG_S
from tests.helpers import REPOSITORY as REPOSITORY

BIN = REPOSITORY / "bin"
FOR_SCRIPTS = ("agent-session",)
"""What people's own scripts source."""
FOR_MONITORS = ("passes", "monitor")
"""What `bin/agent-session monitor` sources."""


def bash(
    script: str,
    *args: str | Path,
    sources: Sequence[str] = FOR_SCRIPTS,
    **environment: str | Path,
) -> subprocess.CompletedProcess[str]:
    """Run a strict bash script that has sourced these files of lib/; `$1` … are `args`."""
    return subprocess.run(
        ["bash", "-c", strict(script, sources), "script", *map(str, args)],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def strict(script: str, sources: Sequence[str] = FOR_SCRIPTS) -> str:
    """`script` as most people's scripts begin: strict, with these files of lib/ sourced."""
    sourced = "".join(f"source '{REPOSITORY}/lib/{name}.sh'\n" for name in sources)
    return f"set -euo pipefail\n{sourced}{script}\n"


def stand_in(path: Path, body: str) -> Path:
    """An executable in the place of the interpreter: `$*` is `-Im sm VERB …`."""
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)
    return path


SERVER = """
private=$SM_STATE_ROOT/sm-$EUID
for fd in /dev/fd/*; do
  fd=${fd##*/}
  ((fd < 3 || fd == 9 || fd == 255)) || eval "exec $fd>&-"
done
echo "$BASHPID" >"$SM_STATE_ROOT/server"
exec <"$private/passes"
while read -r name ident; do
  [[ -n $name ]] || continue
  dir=$private/sessions/$name
  exec {answer}>"$dir/pass.answer"
  exec {told}<>"$dir/pass.caller"
  echo "$ident" >&"$answer"
  caller=()
  while IFS= read -r -d '' -u "$told" entry; do
    caller+=("$entry")
    ((${#caller[@]} == 1)) || [[ $entry != "$ident" ]] || break
  done
  exec {told}>&-
  (
    for entry in "${caller[@]:5:${#caller[@]}-6}"; do export "${entry?}" 2>/dev/null || :; done
    umask "${caller[1]}"
    set -- "$@" "$name"
    exec 9>&- {answer}>&- </dev/null >>"$dir/monitor.log" 2>&1
    BODY
  )
  echo "$ident $?" >&"$answer"
  exec {answer}>&-
done
"""


def stand_in_server(path: Path, body: str) -> Path:
    """An executable in the place of `-Im sm react-server`; `body` is each of its passes.

    A pass has the session's name as one word more. The server's number is in `server` of the root.
    """
    return stand_in(path, SERVER.replace("BODY", body))


def lines(path: Path) -> list[str]:
    """The lines of a file that may not be there yet."""
    return path.read_text().splitlines() if path.exists() else []
