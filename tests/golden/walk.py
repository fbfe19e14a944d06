"""Makes the states, and writes what each face says of them: `python -m tests.golden.walk FOLDER`.

It is a process of its own, whose clock stands still before `sm` is imported. What is compared with
the files in `expected` it writes into FOLDER.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import string
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.golden.clock import stop_clock


def main(said: Path) -> None:
    """Make the states, and write down what is said."""
    stop_clock()
    from tests.golden import faces, states, texts

    files = texts.read()
    with _claimed() as place:
        os.environ["SM_TMUX_SOCKET"] = place.name
        os.chdir(place)
        with states.made(place) as world:
            files |= faces.read(world)
    for name, text in files.items():
        path = said / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextmanager
def _claimed() -> Iterator[Path]:
    """A folder whose path is always as long: columns are as wide as paths, and cut them off.

    Each run has another letter at its end. What a killed run has left behind is removed.
    """
    for letter in string.ascii_lowercase:
        place = Path(f"/tmp/sm-golden-{letter}")
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # another user's
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another run's
            os.close(fd)
            continue
        _empty(place)
        try:
            yield place
        finally:
            os.chdir("/")
            _empty(place)
            place.rmdir()
            os.close(fd)
        return
    raise AssertionError("all folders '/tmp/sm-golden-?' are taken")


def _empty(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
