"""A change as it is shown: what is folded, what is coloured, and what would be hidden."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from sm.adapters.process import Beginning
from sm.base.text import name_hidden
from sm.plugins.page.changes import highlighter as module
from sm.plugins.page.changes.generated import is_generated
from sm.plugins.page.changes.highlighter import Highlighter
from sm.plugins.page.changes.shown import (
    AT_ONCE,
    KEPT,
    LARGE,
    WIDEST,
    ChangeStore,
    show_change,
    show_hunks,
)
from sm.views.change import read_files


@pytest.fixture
def highlighter() -> Iterator[Highlighter]:
    found = Highlighter()
    yield found
    found.close()


def make_patch(name: str, *added: str) -> bytes:
    lines = "".join(f"+{line}\n" for line in added)
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
        f"@@ -0,0 +1,{len(added)} @@\n{lines}"
    ).encode()


def test_files_are_open_until_there_is_much_to_read() -> None:
    patch = b"".join(make_patch(name, *["x"] * (AT_ONCE // 2)) for name in ("a", "b", "c", "d"))
    shown, _ = show_change(Beginning(patch, is_whole=True))
    assert [file.opens for file in shown.files] == [True, True, False, False]
    assert shown.total == "4 files, +800 −0"


@pytest.mark.parametrize(
    ("path", "is_made"),
    [
        ("package-lock.json", True),
        ("web/yarn.lock", True),
        ("go.sum", True),
        ("static/app.min.js", True),
        ("api/v1/shop_pb2.py", True),
        ("lock.py", False),
        ("src/admin.js", False),
    ],
)
def test_what_a_program_has_made_is_folded(path: str, is_made: bool) -> None:
    assert is_generated(path) is is_made
    shown, _ = show_change(Beginning(make_patch(path, "x"), is_whole=True))
    assert shown.files[0].opens is not is_made


def test_code_is_coloured_and_stays_what_it_is(highlighter: Highlighter) -> None:
    (file,) = read_files(make_patch("a.py", "def f() -> str:", "", '    return "<b>&"'))
    [hunk], _ = show_hunks(file, highlighter)
    html = [str(line.html) for line in hunk.lines]
    assert '<span class="k">def</span>' in html[0]
    assert html[1] == ""
    assert "&lt;b&gt;&amp;" in html[2]
    assert [line.new for line in hunk.lines] == [1, 2, 3]


def test_code_of_no_known_language_is_plain(highlighter: Highlighter) -> None:
    assert highlighter.colour("a.unheard-of", ["<b>"]) == ["&lt;b&gt;"]


@pytest.mark.parametrize(
    "program", ["import time; time.sleep(600)", "print('no JSON')", "raise SystemExit"]
)
def test_a_lexer_that_hangs_or_ends_costs_its_process_and_no_more(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_S", 0.5)
    highlighter = Highlighter((sys.executable, "-c", program))
    begun = time.monotonic()
    for _ in range(2):
        assert highlighter.colour("a.py", ["x < 1"]) == ["x &lt; 1"]
    assert time.monotonic() - begun < 60


def test_what_a_reader_cannot_see_is_named(highlighter: Highlighter) -> None:
    assert name_hidden("a\u202eb\u200b\tc\x1b[31m") == "a‹U+202E›b‹U+200B›\tc‹U+001B›[31m"
    assert name_hidden("\u3164 \U000e0101 \u2028") == "‹U+3164› ‹U+E0101› ‹U+2028›"
    assert name_hidden("❤️ 👩‍🔧 ü\n") == "❤️ 👩‍🔧 ü\n"
    (file,) = read_files(make_patch("a.py", "if admin:  # \u202e\u2066 nothing"))
    [hunk], _ = show_hunks(file, highlighter)
    assert "‹U+202E›‹U+2066›" in hunk.lines[0].html


def test_an_end_of_line_is_shown_where_it_changes(highlighter: Highlighter) -> None:
    (file,) = read_files(make_patch("a.txt", "one\r", "two\r"))
    [hunk], _ = show_hunks(file, highlighter)
    assert [line.html for line in hunk.lines] == ["one", "two"]
    (file,) = read_files(make_patch("a.txt", "one\r", "two"))
    [hunk], _ = show_hunks(file, highlighter)
    assert [line.html for line in hunk.lines] == ["one‹U+000D›", "two"]


def test_long_lines_and_files_say_what_is_left_out(highlighter: Highlighter) -> None:
    (file,) = read_files(make_patch("a.py", "x" * (WIDEST + 1_500)))
    [hunk], _ = show_hunks(file, highlighter)
    assert hunk.lines[0].html.endswith("… 1,500 more characters")
    (file,) = read_files(make_patch("a.py", *["x"] * (LARGE + 1_500)))
    [hunk], left_out = show_hunks(file, highlighter)
    assert len(hunk.lines) == LARGE
    assert left_out == "1,500 more lines are left out."


def test_the_changes_that_were_shown_last_are_kept() -> None:
    store = ChangeStore()
    line = "x" * (KEPT // 2)
    shown = [store.show(Beginning(make_patch(f"{n}.py", line), is_whole=True)) for n in range(2)]
    assert store.find(shown[0].id, 0) is None
    assert store.find(shown[1].id, 1) is None
    found = store.find(shown[1].id, 0)
    assert found
    assert found.path == "1.py"
