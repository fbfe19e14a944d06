"""Numbers, moments and names from outside, at the doors where they enter."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.adapters.forge.local.parse import parse
from sm.base.errors import StateError, UsageError
from sm.base.foreign import NUMBER_LIMIT, read_number, read_seconds, read_time, tidy, tidy_name
from tests.helpers import git
from tests.hub import Hub, make_hub

FRONT = "---\ntitle: {title}\nstate: open\nlabels: [backlog]\n---\n"


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    found = make_hub(tmp_path)
    found.open().issues.add("a good one", author="x")
    return found


def put(hub: Hub, text: str | bytes, name: str = "issues/0007.md") -> str:
    """Put a file into the forge; returns what is said of it, when all others are read."""
    data = text.encode() if isinstance(text, str) else text
    (hub.folder / name).write_bytes(data)
    found = hub.open().observe(start_checks=False)
    assert [issue.number for issue in found.issues] == [1]
    assert found.pulls == ()
    [problem] = found.problems
    return problem


def test_thousands_of_blank_lines_are_read_at_once(hub: Hub) -> None:
    body = "a" + "\n" * 6000 + "b\n" + " " * 6000 + "c"
    filed = hub.open().issues.add("hang", body, author="x")
    began = time.process_time()
    assert hub.open().issues.read(filed.number).dependencies() == ()
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ("Depends on #3", (3,)),
        ("\n\n - depends on: #3, #4 and #3\r\n* DEPENDS ON #5\n", (3, 4, 5)),
        ("Depends on:\n\n#3", (3,)),
        ("Please wait: it depends on #3, #4 and #6, see #9.", (3, 4, 6)),
        ("it depends on how #3 ends", ()),
        ("It no longer depends on #3", ()),
        ("Depends on #x #", ()),
    ],
)
def test_dependencies_are_read_off_their_lines(
    hub: Hub, body: str, numbers: tuple[int, ...]
) -> None:
    assert hub.open().issues.add("t", body, author="x").dependencies() == numbers


def test_number_of_no_issue_is_named_and_the_others_go_on(hub: Hub) -> None:
    text = FRONT.format(title="t") + "one\n\nDepends on #" + "9" * 4301 + "\n"
    said = put(hub, text)
    assert "0007.md' line 6: it depends on '#99999" in said
    assert len(said) < 500
    hub.edit("issues/0007.md", "state: open", "state: closed")
    assert hub.open().issues.read(7).dependencies() == ()  # what is done waits for nothing


def test_too_many_dependencies_are_named(hub: Hub) -> None:
    many = " ".join(f"#{number}" for number in range(1, 5000))
    assert "4,999 issues, 100 at most" in put(hub, FRONT.format(title="t") + f"Depends on {many}\n")


@pytest.mark.parametrize(
    "at", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "9" * 150, "2026-13-01"]
)
def test_moment_that_is_no_date_is_named(hub: Hub, at: str) -> None:
    text = FRONT.format(title="t") + f"\n## Comment by x, {at}\n\nHi.\n"
    assert "is no time" in put(hub, text)
    front = FRONT.format(title="t").replace("state", f"created: {at}\nstate")
    assert "is no time" in put(hub, front)


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("x" * 100_000, "has 100,038 characters, 65,536 at most"),
        ('"' + "x" * 2000 + '"', "'title' has 2,000 characters, 1,000 at most: shorten it"),
        ('"\\e\\0\\x07"', "'title' is missing"),
        ("a\x80x", "does not allow"),
        (b"a\x80x".decode("latin-1"), "does not allow"),
        ("[" * 900, "nested too deeply: 64 levels at most"),
        ("[" * 60_000, "nest"),  # newer versions of the library refuse this one themselves
        ("&a [*a]", "it has an alias, '*a'"),
        ("\n" + "\n".join(f"{' ' * n}a:" for n in range(300)), "nested too deeply"),
    ],
)
def test_title_that_cannot_be_used_is_named(hub: Hub, title: str, said: str) -> None:
    assert said in put(hub, FRONT.format(title=title))


def test_title_that_is_not_utf_8_is_named(hub: Hub) -> None:
    assert "it is not UTF-8" in put(hub, b"---\ntitle: \x80x\nstate: open\n---\n")


def test_title_is_read_without_what_a_terminal_would_act_upon(hub: Hub) -> None:
    path = hub.folder / "issues" / "0007.md"
    path.write_text(FRONT.format(title='"\\e]52;c;AAAA\\aMend\\0 it\\x9b2J"'))
    assert hub.open().issues.read(7).title == "Mend it"


def test_title_that_is_no_text_is_filed_without_it(hub: Hub) -> None:
    done = hub.sm("issue", "add", b"\x80x".decode("utf-8", "surrogateescape"), "--as", "x")
    assert done.returncode == 0, done.stderr
    assert hub.open().issues.read(2).title == "x"


@pytest.mark.parametrize("name", ["٠٠٠٧.md", "00000007.md", "0000.md", "1234567890.md"])
def test_file_whose_name_is_no_number_is_named(hub: Hub, name: str) -> None:
    assert "is not named like '0007.md'" in put(hub, "", f"issues/{name}")


def test_file_whose_name_is_no_text_is_named(hub: Hub) -> None:
    (hub.folder / "issues" / b"\xff\x1b]0;x\x07.md".decode("utf-8", "surrogateescape")).touch()
    [said] = hub.open().issues.find()[1]
    assert said.isprintable()
    assert "/issues/\ufffd.md' is not named" in said
    assert said.encode()


def test_file_from_the_end_of_time_is_read(hub: Hub) -> None:
    import os

    path = hub.folder / "issues" / "0007.md"
    path.write_text(FRONT.format(title="t") + "\n## Comment by x\n\nHi.\n")
    os.utime(path, (2**40, 2**40))
    assert hub.open().issues.read(7).title == "t"


def test_last_number_is_not_followed_by_one_that_is_not_read(hub: Hub) -> None:
    (hub.folder / "issues" / f"{NUMBER_LIMIT}.md").write_text(FRONT.format(title="t"))
    with pytest.raises(StateError, match="last number there is"):
        hub.open().issues.add("next", author="x")


@pytest.mark.parametrize("key", ["head", "merged"])
@pytest.mark.parametrize("value", ["--help", "'a b'", '"x\\0"', "main"])
def test_commit_that_is_none_is_named(hub: Hub, key: str, value: str) -> None:
    text = f"---\ntitle: t\nstate: open\nbranch: fix/1\nbase: main\n{key}: {value}\n---\n"
    assert f"{key} is '" in put(hub, text, "pulls/0007.md")


def test_branch_with_a_line_separator_in_its_name_stops_nothing(hub: Hub) -> None:
    hub.push("fix/1")
    head = git(hub.repository.bare, "rev-parse", "fix/1")
    for name in ("fix/2\u2028x", "fix/3\x85y z".replace(" ", ""), "\u2029"):
        git(hub.repository.bare, "update-ref", f"refs/heads/{name}", head)
    pull = hub.open().pulls.open("fix/1", "main", "t", author="x")
    assert hub.open().pulls.find()[0] == [pull]
    from sm.adapters.git import Git

    refs = Git(hub.repository.clone).ls_remote("origin", "refs/heads/fix/*")
    assert refs["refs/heads/fix/2\u2028x"] == head


def test_what_the_forge_would_not_read_is_refused_at_the_door(hub: Hub) -> None:
    forge = hub.open()
    with pytest.raises(UsageError, match="the title has 1,001 characters, 1,000 at most"):
        forge.issues.add("x" * 1001, author="x")
    with pytest.raises(UsageError, match="a name has 201 characters"):
        forge.issues.comment(1, "x", author="x" * 201)
    with pytest.raises(UsageError, match="a label has 201 characters"):
        forge.issues.add_label(1, "x" * 201)
    with pytest.raises(UsageError, match="101 labels, 100 at most"):
        forge.issues.add("t", labels=[str(n) for n in range(101)], author="x")
    filed = forge.issues.add(
        "é" * 1000, labels=["ü" * 190 + str(n) for n in range(100)], author="x"
    )
    assert hub.open().issues.read(filed.number) == filed
    with pytest.raises(UsageError, match="has 100 labels already"):
        forge.issues.add_label(filed.number, "one more")


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.0", "²", "٣", " 1", "1\n", "9" * 10, "9" * 5000]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert read_number(text) is None


def test_numbers_are_read() -> None:
    assert [read_number(text) for text in ("0", "7", "007", "0" * 5000 + "7")] == [0, 7, 7, 7]
    assert [read_seconds(text) for text in ("0", "1.", "17.5")] == [0.0, 1.0, 17.5]
    assert [read_seconds(text) for text in ("nan", "inf", "1e9", "-1", "1" * 400)] == [None] * 5


def test_moments_are_read() -> None:
    assert read_time("2026-01-02T03:04:05Z") == read_time("2026-01-02T04:04:05+01:00")


def test_names_lose_what_nobody_sees_and_terminals_obey() -> None:
    assert tidy(" Ada\n\x1b[31mL\x00\udc80 ") == "Ada L"


@pytest.mark.parametrize(
    "text", ["[" * 900, "[" * 100_000, "{a: " * 500, "a: &a [*a]\n", "#" * 65_537]
)
def test_forge_settings_that_nest_without_end_are_refused(hub: Hub, text: str) -> None:
    (hub.folder / "forge.yaml").write_text(text)
    with pytest.raises(StateError, match=r"forge\.yaml' cannot be used: it "):
        hub.open()


def test_repository_whose_name_is_too_long_is_refused(hub: Hub) -> None:
    (hub.folder / "forge.yaml").write_text(f"format: 1\nrepository: {'x' * 5000}\n")
    with pytest.raises(UsageError, match="no bare repository"):
        hub.open()


def test_parse_of_the_deepest_brackets_leaves_the_process_alive() -> None:
    with pytest.raises(StateError):
        parse("7", b"---\ntitle: " + b"[" * 60_000 + b"\n---\n", 0)


def test_a_name_with_hidden_characters_is_nobody_elses() -> None:
    assert tidy_name(" sm ") == "sm"
    assert {tidy_name(name) == "sm" for name in ("sm\0", "s\x1b[0mm", "sm\u200b", "\x9bsm")} == {
        False
    }
