"""How entries look, at each width, whatever their words are."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.base.text import printable
from sm.plugins.top import lines
from sm.plugins.top.lines import ASCII, UNICODE, Glyphs, Line, Look, lay_out
from sm.plugins.top.listing import ListEntry
from sm.plugins.top.story import Nearby, draw_nearby, draw_peek
from sm.plugins.top.widgets import make_strip
from sm.views.figures import Figure
from sm.views.states import ShownState
from tests.plugins.top.rows import a_need, a_row

NOW = 1_800_000_000.0
HOSTILE = (
    "[bold red]no markup[/] \x1b[31mred\x1b]52;c;eA==\x07 \x9b2J\r\n\t"
    "日本語 e\u0301 👩\u200d👩\u200d👧 \u202eabc "
)
HARD = a_row(
    7,
    name=HOSTILE,
    title=HOSTILE * 3,
    words=HOSTILE,
    problem="",
    waits_for=HOSTILE,
    event=HOSTILE,
    state_since=NOW - 90,
    percent=91.4,
    fixes=2,
    rounds=1,
    pull=12,
    ci=HOSTILE,
    review=HOSTILE,
    figures={HOSTILE: Figure(HOSTILE)},
)
HEADERS = {HOSTILE: HOSTILE, "none": "None"}
ENTRIES = (
    ListEntry("1", HARD),
    ListEntry("2", structs.replace(HARD, problem=HOSTILE), over=HOSTILE),
    ListEntry("3", structs.replace(HARD, person=HOSTILE)),
    ListEntry("4", need=a_need(0, text=HOSTILE, command=HOSTILE, project=HOSTILE)),
    ListEntry("5", HARD, a_need(7, text=HOSTILE, command=HOSTILE)),
)


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


def is_harmless(line: Line) -> bool:
    text = text_of(line)
    return text == printable(text) and "\n" not in text and "\u200d" not in text


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("width", [1, 5, 20, 35, 44, 60, 80, 92, 100, 132, 200, 360])
def test_a_line_fills_its_width_and_nothing_in_it_is_obeyed(width: int, glyphs: Glyphs) -> None:
    look = Look(NOW, glyphs)
    layout = lay_out(ENTRIES, width, look, HEADERS)
    drawn = [lines.draw_entry(one, layout, look) for one in ENTRIES]
    for line in (lines.draw_header(layout), *drawn):
        assert is_harmless(line)
        assert lines.measure(line) <= max(width, len(layout.columns))
        assert make_strip(line, width).cell_length == width
    for one in ENTRIES:
        for line in (*lines.draw_detail(one, look), *draw_peek(one, None, width, 9)):
            assert is_harmless(line)


def test_a_peek_shows_the_choices_of_a_question_and_its_command() -> None:
    said = "\n".join([*(f"line {n}" for n in range(30)), "1. Postgres", "2. SQLite"])
    entry = ListEntry("1", a_row(1), a_need(1, whole=said))
    shown = [text_of(line).strip() for line in draw_peek(entry, None, 80, 9)]
    assert len(shown) == 9
    assert shown[1] == "sm reply shop 1 TEXT"
    assert shown[-2:] == ["1. Postgres", "2. SQLite"]


def test_markup_is_shown_as_it_was_written() -> None:
    look = Look(NOW, UNICODE)
    entry = ListEntry("1", a_row(1, title="[bold]x[/bold]", words="[/] [@click=app.quit]q[/]"))
    line = lines.draw_entry(entry, lay_out([entry], 132, look), look)
    assert "[bold]x[/bold]" in text_of(line)
    assert "[/] [@click=app.quit]q[/]" in make_strip(line, 132).text


def test_a_row_says_what_counts() -> None:
    look = Look(NOW, UNICODE)
    row = a_row(
        7,
        state=ShownState.AWAITING_REVIEW,
        state_since=NOW - 200,
        ci="failed",
        percent=41.4,
        fixes=2,
        restarts=1,
        waits_for="a review of pull request #12",
        words="Pushed.",
    )
    entry = ListEntry("1", row)
    text = text_of(lines.draw_entry(entry, lay_out([entry], 132, look), look))
    for part in ("shop#7", "Mend 7", "✓✗▸.", "awaiting review", " 3m ", "2f 1x", "41%"):
        assert part in text
    assert "a review of pull request #12 · Pushed." in text


def test_figures_of_plugins_have_columns_if_there_is_room() -> None:
    look = Look(NOW, UNICODE)
    entries = [
        ListEntry(str(issue), a_row(issue, words="Pushed.", figures={"cost": Figure(shown)}))
        for issue, shown in ((1, "$1.20"), (2, "$1234.50"), (3, "$123456789.00"))
    ]
    told: dict[int, list[str]] = {}
    for width in (109, 110):
        layout = lay_out([*entries, ListEntry("4", a_row(4))], width, look, {"cost": "Cost"})
        drawn = [lines.draw_header(layout), *(lines.draw_entry(o, layout, look) for o in entries)]
        told[width] = [text_of(line) for line in drawn]
    assert not any("Cost" in line or "$" in line for line in told[109])
    head, *rows = told[110]
    ends = {head.index("Cost") + 4, *(row.index(" Pushed.") for row in rows)}
    assert len(ends) == 1
    assert "$1.20 Pushed." in rows[0]
    assert "$1234.50 Pushed." in rows[1]
    assert "$123" not in rows[2], "a part of a number is another number"


def test_a_clock_that_was_set_back_shows_no_age_below_nought() -> None:
    look = Look(NOW, UNICODE)
    entry = ListEntry("1", a_row(1, state_since=NOW + 3600, begun_at=NOW + 7200))
    assert " 0s " in text_of(lines.draw_entry(entry, lay_out([entry], 80, look), look))
    assert "0s old" in text_of(lines.draw_detail(entry, look)[0])


def test_the_selected_line_is_marked_without_a_colour() -> None:
    look = Look(NOW, UNICODE)
    line = lines.draw_entry(ENTRIES[4], lay_out(ENTRIES, 80, look), look, selected=True)
    assert lines.measure(line) == 80
    assert {style for _, style in line} <= {"reverse", "bold reverse"}


def test_what_changes_all_the_time_moves_no_column() -> None:
    look = Look(NOW, UNICODE)
    row = a_row(1, title="A title " * 9, words="x", state_since=NOW - 5)
    aged = structs.replace(row, words="y" * 90, state_since=NOW - 9 * 86400, percent=9.0, fixes=3)
    entry, later = ListEntry("1", row), ListEntry("1", aged)
    assert lay_out([entry], 120, look).widths == lay_out([later], 120, look).widths


@pytest.mark.parametrize("width", [8, 20, 40, 60, 80, 120])
def test_help_and_quit_are_named_as_long_as_there_is_room(width: int) -> None:
    for keys in (lines.KEYS, lines.BACK):
        text = text_of(lines.draw_keys(keys, width)).rstrip()
        assert len(text) <= width or text == "? help  q quit"
        assert text.endswith("? help  q quit")


def test_a_session_from_near_is_harmless_and_fits() -> None:
    near = Nearby(key="1", screen=f"{HOSTILE}\n" * 50, worktree=HOSTILE, problem=HOSTILE)
    for width in (20, 80, 200):
        for entry in ENTRIES:
            drawn = draw_nearby(entry, near, width, 24, Look(NOW, UNICODE))
            assert all(map(is_harmless, drawn))
            assert len(drawn) < 60
