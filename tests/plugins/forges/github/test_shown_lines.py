"""Which lines a patch shows, as git writes patches."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.forge.model import InlineComment
from sm.plugins.forges.github.forge import add_to_text, find_shown, is_shown
from tests.helpers import git


def test_the_lines_that_git_shows_are_found(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    text = [f"line {number}" for number in range(1, 41)]
    (tmp_path / "a b.txt").write_text("\n".join(text))
    (tmp_path / "gone.txt").write_text("x\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    text[9] = "+++ b/none.txt"  # what looks like a head within a hunk is none
    text[29] = "-- changed"
    (tmp_path / "a b.txt").write_text("\n".join(text))
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "new.txt").write_text("1\n2\n")
    git(tmp_path, "add", ".")
    shown = find_shown(git(tmp_path, "diff", "--cached"))
    assert shown["a b.txt"] == [range(7, 14), range(27, 34)]
    assert shown["new.txt"] == [range(1, 3)]
    assert set(shown) == {"a b.txt", "new.txt", "/dev/null"}
    assert is_shown(InlineComment("a b.txt", 13, ""), shown)
    assert not is_shown(InlineComment("a b.txt", 14, ""), shown)
    assert not is_shown(InlineComment("other.txt", 1, ""), shown)


def test_a_remark_stands_in_the_text_with_its_place() -> None:
    assert add_to_text("", [InlineComment("a.py", 3, "why?")]) == "`a.py:3`: why?"
