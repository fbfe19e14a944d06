"""No regular expression of the code takes more time than in proportion to what it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from sm.adapters.agent.first_start import DIALOGS
from sm.adapters.agent.profiles import BUILTIN, PATTERNS
from sm.base import redact
from tests import patterns
from tests.patterns import Use, calls, held, hostile, is_compile, target, uses, worse_than_linear

Patterns = Iterator[re.Pattern[str]]


def of_profiles() -> Patterns:
    """Those of the agent CLIs that are known: of the others, their users write them."""
    for profile in BUILTIN.values():
        glyph = re.escape(profile.glyph)
        texts = [text for field in PATTERNS for text in getattr(profile, field)]
        for text in (*texts, profile.context_pattern):
            yield re.compile(text.replace("{glyph}", glyph))


def of_hook_escapes() -> Patterns:
    yield from (
        re.compile(profile.hook_escapes) for profile in BUILTIN.values() if profile.hook_escapes
    )


def of_composers() -> Patterns:
    for profile in BUILTIN.values():
        yield re.compile(" *" + re.escape(profile.glyph))


def of_redacting() -> Patterns:
    yield from (pattern for _, pattern in redact.compile_patterns())
    if literal := redact._literal(["secret one", "secrets"]):
        yield literal


def of_tmux() -> Patterns:
    from sm.adapters.tmux import ERRORS

    yield from (re.compile(pattern) for pattern, _ in ERRORS)


def of_start_dialogs() -> Patterns:
    for dialogs in DIALOGS.values():
        yield from (re.compile(text, re.M) for one in dialogs for text in (one.pattern, one.choice))


def of_choices() -> Patterns:
    answers = [one.choice for dialogs in DIALOGS.values() for one in dialogs if one.choice]
    for profile in BUILTIN.values():
        for answer in filter(None, (profile.trust, *answers)):
            yield re.compile(answer, re.M)
            yield re.compile(rf"^ *{re.escape(profile.glyph)} .*{answer}")


def of_names() -> Patterns:
    yield re.compile(re.escape("dev-harb-") + r"([1-9]\d{0,17})")


def of_words() -> Patterns:
    yield re.compile(r"\bharb\b")


MADE: dict[tuple[str, str], Callable[[], Patterns]] = {
    ("adapters/agent/profiles.py", "_context"): of_profiles,
    ("adapters/agent/profiles.py", "_patterns"): of_profiles,
    ("adapters/agent/screen.py", "_composer"): of_composers,
    ("adapters/agent/screen.py", "_found"): of_profiles,
    ("adapters/agent/screen.py", "split_draft"): of_profiles,
    ("adapters/tmux.py", "_error"): of_tmux,
    ("plugins/doctor/subject.py", "choose"): of_choices,
    ("adapters/agent/first_start.py", "find_start_dialog"): of_start_dialogs,
    ("plugins/notify/rules.py", "find_cause"): of_words,
    ("base/redact.py", "compile_patterns"): of_redacting,
    ("base/redact.py", "_literal"): of_redacting,
    ("context/usage.py", "find_percent"): of_profiles,
    ("adapters/agent/prompt_text.py", "make_hook_answer"): of_hook_escapes,
}
"""Functions that make patterns of what they are given, and examples of each."""


APPLIED = {of_composers: {"match"}, of_redacting: {"sub"}}
"""How; the others are searched for."""


def made() -> list[Use]:
    makers = dict.fromkeys(MADE.values())
    return [
        Use(
            f"{maker.__name__}: {number}",
            pattern,
            APPLIED.get(maker, {"search"}),
        )
        for maker in makers
        for number, pattern in enumerate(maker())
    ]


def judged(use: Use) -> list[str]:
    """What is wrong with a pattern: method, hostile input, and how its time grows."""
    for method in sorted(use.methods):
        for shape in hostile(use.pattern):
            if said := worse_than_linear(use, method, shape):
                return [f"{use.name} {use.pattern.pattern!r:.200}.{method}, {shape}: {said}"]
    return []


@pytest.fixture(scope="module")
def found() -> list[Use]:
    """All patterns of the code: to find them takes seconds, as every module is read for it."""
    return uses(made())


@pytest.mark.timeout(900)
def test_no_pattern_is_more_than_linear(found: list[Use]) -> None:
    assert len(found) > 100
    assert [said for use in found for said in judged(use)] == []


def test_every_python_matches_the_patterns_alike(found: list[Use]) -> None:
    assert [use.name for use in found if patterns.misread_before_3_11_5(use.pattern)] == []


@pytest.mark.parametrize(
    ("text", "is_misread"),
    [("(?:a|bc)++d", True), ("x(y(?:a+b)*+)", True), ("[ab]++", False), ("(?:ab)*+(?:a|b)", False)],
)
def test_what_an_old_python_misreads_is_found_out(text: str, is_misread: bool) -> None:
    assert patterns.misread_before_3_11_5(re.compile(text)) is is_misread


def test_no_pattern_escapes_the_check() -> None:
    within = {(call.file, call.function) for call in calls() if call.function and not call.text}
    assert within == set(MADE), "patterns made in functions: enter each in MADE"
    names = {use.name for use in held()}
    for file, tree in patterns._trees().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) or not any(map(is_compile, ast.walk(node))):
                continue
            assert f"{file}: {target(node)}" in names, "held by no name that the check looks at"


@pytest.mark.parametrize("name", ["re", "regex"])
def test_patterns_are_made_by_re_alone_and_under_its_own_name(name: str) -> None:
    for file, tree in patterns._trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert node.module != name, file
            if isinstance(node, ast.Import):
                assert all(one.name != name or not one.asname for one in node.names), file
                assert all(one.name != "regex" for one in node.names), file


@pytest.mark.parametrize(
    ("text", "flags", "method"),
    [
        (r"^\s*[-*]?\s*depends on:?\s+(.*)$", re.I | re.M, "findall"),
        (r"\r+\n", 0, "sub"),
        (r"\s*([0-9]{1,3}(?:\.[0-9]+)?)\s*%?\s*", 0, "fullmatch"),
        (r"(\d+(?:\.\d+)?)([dhms])", 0, "findall"),
        (r"could not lock config file (?P<file>\S.*): File exists", 0, "search"),
        (r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?", re.S, "fullmatch"),
        (r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+", 0, "sub"),
        (r"(a+)+b", 0, "match"),
    ],
)
def test_patterns_that_were_too_slow_are_found_out(text: str, flags: int, method: str) -> None:
    assert judged(Use("before", re.compile(text, flags), {method}))
