"""`sm` started by a process that may fork for it: it is as one of a new Python would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import wait_for

CODE = """
import json, os, signal, sys, threading
from pathlib import Path
from sm.adapters import own_start

folder = Path(sys.argv[1])
os.environ["TOKEN"] = "secret"
held = os.open(folder / "held", os.O_RDWR | os.O_CREAT)
kept = os.open(folder / "kept", os.O_RDWR | os.O_CREAT)

def run(words):
    opened = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            opened[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass
    found = {"words": words, "leads": os.getsid(0) == os.getpid(), "open": opened}
    found |= {"environment": dict(os.environ), "forked_by": os.getppid()}
    (folder / "told.new").write_text(json.dumps(found))
    os.rename(folder / "told.new", folder / "told")
    print("said")
    return 7

own_start.fork_by(run)
sys.stdout.write("mine ")
if len(sys.argv) > 2:
    threading.Thread(target=signal.pause, daemon=True).start()
own_start.start("--version", log=folder / "log", env={"PATH": "/bin"}, kept=(kept,))
print("over", flush=True)
if len(sys.argv) == 2:
    print(os.WEXITSTATUS(os.wait()[1]))
"""


def start(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-Ic", CODE, str(folder), *more]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)


def test_a_fork_has_its_own_session_log_and_environment_and_nothing_of_ours_open(
    tmp_path: Path,
) -> None:
    done = start(tmp_path)
    assert (done.stdout, done.stderr) == ("mine over\n7\n", "")
    told = json.loads((tmp_path / "told").read_text())
    assert told["words"] == ["--version"]
    assert told["leads"]
    assert told["environment"] == {"PATH": "/bin"}
    log, kept = str(tmp_path / "log"), str(tmp_path / "kept")
    assert sorted(told["open"].values()) == sorted([os.devnull, log, log, kept])
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_process_with_threads_starts_a_new_python(tmp_path: Path) -> None:
    """Another thread may hold a lock, which nothing would let go of in the fork."""
    log = tmp_path / "log"
    start(tmp_path, "threads")
    wait_for(lambda: log.exists() and log.read_text().startswith("sm "), "the version", 60)
    assert not (tmp_path / "told").exists()
