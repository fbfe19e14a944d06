"""Plays the demo and keeps its table, `sm top` and the page, each at the moment that shows most.

.venv/bin/python demo/picture.py docs
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from page_picture import PagePicture
from person import People
from progress import Progress
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI
from show import Board
from stage import Stage
from top_picture import draw_top

from demo import play
from sm.base.need import NeedKind

WIDTH = 108
"""Columns; as many as stay legible in the width that a README is given."""

PLACE = Path("/tmp/sm-demo")
"""The same for everybody, as it can be read in the picture."""

# An address in a picture would be asked for by everybody who looks at it; and some programs take
# blanks at the ends of a text for none.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "<svg ", '<svg xml:space="preserve" ', 1
)


WAIT_S = 25.0
"""So long what needs a person is to be seen."""


class Picture(Board):
    """The live table, which nobody watches, and the best moments so far."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(Console(file=io.StringIO(), force_terminal=True, width=WIDTH), stage)
        self._best: tuple[int, Sequence[RenderableType]] = (0, ())
        self._top = ""
        self._page = PagePicture()

    def keep(self, text: str) -> None:
        """Open the page: the link is the last word."""
        self._page.open(text.split()[-1])

    def update(self, progress: Progress, people: People) -> None:
        """Draw the table anew; the later of two moments that show as much is the better one."""
        super().update(progress, people)
        self._left = {}  # which is only with the page
        asks = any(need.kind is NeedKind.QUESTION for need in progress.needs)
        worth = _worth(progress) + len(self._entries) + 20 * asks
        if worth >= self._best[0]:
            self._best = worth, list(self._parts(progress))
        if asks:
            self._top = draw_top(progress.stage) or self._top
        self._page.look()

    def save(self, folder: Path) -> None:
        """Write the best moments."""
        console = Console(file=io.StringIO(), record=True, width=WIDTH)
        console.print(*self._best[1], sep="\n")
        status = str(folder / "status.svg")
        console.save_svg(
            status, title="bin/demo", theme=MONOKAI, code_format=FORMAT, unique_id="sm"
        )
        (folder / "top.svg").write_text(self._top, "utf-8")
        for scheme, picture in self._page.found.items():
            (folder / f"page-{scheme}.png").write_bytes(picture)

    def close(self) -> None:
        """End the browser."""
        self._page.close()


def _worth(progress: Progress) -> int:
    """How much there is to see: how different the rows are, and that some are yet to come."""
    rows = progress.rows
    shown = {row.state for row in rows} | {row.ci for row in rows} | {row.review for row in rows}
    tried = sum(bool(row.fixes or row.rounds or row.restarts) for row in rows)
    return len(shown) + 2 * tried + 2 * bool(progress.next)


def main(folder: Path) -> None:
    """Play the demo to its end, then write the pictures."""
    stage = Stage(PLACE)
    picture = Picture(stage)
    try:
        played = play(stage, picture, WAIT_S)
    finally:
        picture.close()
        stage.clear()
        stage.remove()
    if played.problems:
        sys.exit("\n".join(played.problems))
    picture.save(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
