"""Ends the process behind a view: it is asked to leave, and soon made to."""

from __future__ import annotations

import subprocess

from anyio import to_thread

LEAVES_S = 2.0
"""Time that a process may take to leave before it is killed, in seconds."""


async def end_process(process: subprocess.Popen[bytes]) -> None:
    """End the process, and wait until it has ended."""
    process.terminate()
    await to_thread.run_sync(_reap, process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(LEAVES_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
