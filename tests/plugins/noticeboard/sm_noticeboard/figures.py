"""How many notices on the board are about a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sm_noticeboard.notices import list_notices
from sm_noticeboard.settings import Noticeboard

from sm.config.schema import MachineSettings
from sm.config.shapes import read_section
from sm.views.figures import Figure, Figures, Subject


def read_counts(settings: MachineSettings, subjects: Sequence[Subject]) -> Mapping[str, Figure]:
    """Return the number of notices about each issue that has any."""
    board = read_section(settings, Noticeboard).board
    texts = [notice.read_text("utf-8") for notice in list_notices(board)] if board else []
    counts = {
        one.session: sum(text.startswith(f"{one.project}#{one.issue}:") for text in texts)
        for one in subjects
    }
    return {name: Figure(str(count), {"count": count}) for name, count in counts.items() if count}


def tell_count(settings: MachineSettings, subject: Subject) -> Sequence[str]:
    """Return the same as a sentence."""
    return [f"notices: {one.shown}" for one in read_counts(settings, [subject]).values()]


FIGURES = Figures("Notices", read=read_counts, tell=tell_count)
