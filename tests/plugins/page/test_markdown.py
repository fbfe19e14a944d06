"""What an agent has said is shown as it said it, and can do nothing."""

from __future__ import annotations

import pytest

from sm.plugins.page.markdown import SHOWN, fold, render_markdown
from tests.plugins.page.client import Read


def test_markdown_is_shown_as_it_is_meant() -> None:
    html = render_markdown("**Which?**\n\n1. `a`\n2. b\n\n| x | y |\n|:-:|--|\n| 1 | 2 |\n")
    for part in ("<strong>Which?</strong>", "<li><code>a</code></li>", "<td>1</td>"):
        assert part in html
    assert "style" not in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](http://example.com/x.png)",
        "[x](javascript:alert(1))",
        "[x](data:text/html,x)",
        "[x]( javascript:alert(1))",
        '<http://example.com/" onmouseover=alert(1)>',
        '```" onload=alert(1)\nx\n```',
        "[x]: javascript:alert(1)\n\n[x]",
        ">" * 500 + "deep",
        "[" * 5000,
        "*" * 5000,
    ],
)
def test_nothing_of_it_runs_or_loads(text: str) -> None:
    html = render_markdown(text)
    for tag, attributes in Read(html).elements:
        assert tag not in ("script", "img", "iframe", "style", "object", "form", "input")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not str(attributes.get("href") or "").lower().startswith(("javascript:", "data:"))


def test_a_link_says_where_it_leads() -> None:
    html = render_markdown("[the bank](https://evil.example/)")
    assert 'href="https://evil.example/"' in html
    assert 'title="https://evil.example/"' in html
    assert 'rel="noreferrer noopener"' in html


def test_of_a_long_text_the_end_is_shown() -> None:
    text = "\n\n".join(f"Paragraph {n}" for n in range(20))
    before, end = fold(text)
    assert end.startswith("Paragraph 14")
    assert end.endswith("Paragraph 19")
    assert before.endswith("Paragraph 13")
    assert fold("short") == ("", "short")
    assert fold("") == ("", "")


def test_code_is_never_torn() -> None:
    code = "```\n" + "\n\n".join("x" * 3) * 10 + "\n```"
    before, end = fold(f"First.\n\n{code}\n\nWhich?")
    assert end == "Which?"
    assert before.endswith("```")


def test_a_list_is_never_without_its_question() -> None:
    choices = "\n".join(f"- Way {n}" for n in range(11))
    before, end = fold(f"{'word ' * 9}\n\nI looked.\n\nWhich?\n\n{choices}")
    assert end == f"Which?\n\n{choices}"
    assert before.endswith("I looked.")


def test_choices_that_are_buttons_are_not_shown_twice() -> None:
    choices = "\n".join(f"{n}. Way {n}" for n in range(1, 97))
    before, end = fold(f"I looked.\n\nWhich?\n\n{choices}\n", without_choices=True)
    assert (before, end) == ("", "I looked.\n\nWhich?")
    assert len(fold(f"Which?\n\n{choices}")[1].splitlines()) > SHOWN
