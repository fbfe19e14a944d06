from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import GENERIC
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen, read
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from tests.helpers import REPOSITORY, wait_for

SCREENS = REPOSITORY / "tests" / "real" / "screens"
"""What Claude Code has shown: `python -m tests.real.screens.capture`."""

THREE = "one line\nand a second\nand a third"
CLAUDE_SHOWS = {
    "idle_started": (Prompt.IDLE, ""),
    "idle_empty": (Prompt.IDLE, ""),
    "idle_draft": (Prompt.IDLE, "a draft of mine"),
    "idle_draft_three_lines": (Prompt.IDLE, THREE),
    "idle_draft_scrolled": (
        Prompt.NONE,
        "\n".join([*(f"line {n}" for n in range(46, 60)), "the end"]),
    ),
    "idle_pasted": (Prompt.IDLE, "[Pasted text #1 +39 lines]"),
    "idle_stashed": (Prompt.IDLE, ""),
    "idle_survey": (Prompt.IDLE, ""),
    "idle_limit": (Prompt.IDLE, ""),
    "copy_mode": (Prompt.IDLE, "a draft of mine"),
    "menu_slash": (Prompt.IDLE, "/cle"),
    "removed_invisible": (Prompt.IDLE, "left  right  left"),
    "busy_empty": (Prompt.BUSY, ""),
    "busy_tool": (Prompt.BUSY, ""),
    "busy_draft": (Prompt.BUSY, "a draft of mine"),
    "busy_queued": (Prompt.BUSY, ""),
    "bash_mode": (Prompt.NONE, ""),
    "dialog_permission": (Prompt.DIALOG, ""),
    "dialog_question": (Prompt.DIALOG, ""),
    "dialog_trust": (Prompt.DIALOG, ""),
    "dialog_configuration": (Prompt.DIALOG, ""),
    "dialog_key": (Prompt.DIALOG, ""),
    "dialog_bypass": (Prompt.DIALOG, ""),
    "dialog_server": (Prompt.DIALOG, ""),
    "dialog_limit": (Prompt.DIALOG, ""),
}

CODEX_SHOWS = {
    "codex_started": (Prompt.IDLE, ""),
    "codex_idle": (Prompt.IDLE, ""),
    "codex_draft": (Prompt.IDLE, "a draft of mine"),
    "codex_draft_three_lines": (Prompt.IDLE, "one line"),  # without a frame, no more is certain
    "codex_menu": (Prompt.IDLE, "/cle"),
    "codex_busy": (Prompt.IDLE, ""),  # nothing tells, in mid-text: its hooks have to
    "codex_busy_draft": (Prompt.BUSY, "a draft of mine"),
    "codex_busy_tool": (Prompt.BUSY, ""),
    "codex_shell_mode": (Prompt.NONE, ""),
    "codex_dialog_hooks": (Prompt.DIALOG, ""),
    "codex_dialog_permission": (Prompt.DIALOG, ""),
    "codex_dialog_update": (Prompt.DIALOG, ""),
    "codex_dialog_login": (Prompt.DIALOG, ""),
    "codex_dialog_first_login": (Prompt.DIALOG, ""),
    "codex_dialog_trust": (Prompt.DIALOG, ""),
    "codex_starting": (Prompt.NONE, ""),
}


def shown(name: str, profile: Profile = CLAUDE) -> Screen:
    return read(profile, (SCREENS / f"{name}.txt").read_text())


def test_no_screen_that_was_kept_is_forgotten() -> None:
    assert {path.stem for path in SCREENS.glob("*.txt")} == {*CLAUDE_SHOWS, *CODEX_SHOWS}


@pytest.mark.parametrize("name", CODEX_SHOWS)
def test_a_screen_of_codex_is_read(name: str) -> None:
    screen = shown(name, CODEX)
    assert (screen.prompt, screen.draft) == CODEX_SHOWS[name]
    assert bool(screen.question) == (screen.prompt is Prompt.DIALOG)
    assert bool(screen.login) == (name in ("codex_dialog_login", "codex_dialog_first_login"))


@pytest.mark.parametrize("name", CLAUDE_SHOWS)
def test_a_screen_of_claude_is_read(name: str) -> None:
    screen = shown(name)
    assert (screen.prompt, screen.draft) == CLAUDE_SHOWS[name]
    assert screen.stashed == (name == "idle_stashed")
    assert bool(screen.question) == (screen.prompt is Prompt.DIALOG)
    assert screen.menu == (name == "dialog_limit")
    assert not screen.gone
    assert not screen.login


def test_the_row_is_as_tmux_has_it() -> None:
    assert shown("idle_empty").row == "❯\u00a0"
    assert shown("busy_queued").row == "❯\u00a0Press up to edit queued messages"
    three = shown("idle_draft_three_lines").row
    assert three == "❯\u00a0one line\n  and a second\n  and a third"


def test_a_question_is_told_in_its_own_words() -> None:
    assert shown("dialog_question").question.splitlines()[1:3] == [
        "Which way shall it go?",
        "❯ 1. Left",
    ]
    permission = shown("dialog_permission").question
    assert permission.startswith("Bash command\n")
    assert "Do you want to proceed?\n❯ 1. Yes\n" in permission
    assert "❯ No, exit" in shown("dialog_trust").question


@pytest.mark.parametrize(
    "rows",
    [
        (
            " Choose the text style that looks best with your terminal",
            " To change this later, run /theme",
            " ❯ ✔ Auto (match terminal)",
            "     Dark mode",
        ),
        (
            " Select login method:",
            " ❯ 1. Claude account with subscription · Individual, Team, or Enterprise",
            "   2. Anthropic Console account · API usage billing",
        ),
        (
            " Browser didn't open? Use the URL below to sign in (c to copy)",
            " Paste code here if prompted",
            " Esc to go back",
        ),
    ],
)
def test_the_menus_by_which_claude_begins_without_a_login_ask_for_one(
    rows: tuple[str, ...],
) -> None:
    screen = read(CLAUDE, "\n".join(("Welcome to Claude Code v2.1.332", *rows)))
    assert screen.prompt is Prompt.DIALOG
    assert screen.login == rows[0].strip()


def test_a_menu_is_known_by_its_choice_and_not_by_a_question_of_the_same_words() -> None:
    menu = (SCREENS / "dialog_limit.txt").read_text()
    assert "Stop and wait for limit to reset" in shown("dialog_limit").row
    other = menu.replace("Stop and wait for limit to reset", "Stop")
    assert read(CLAUDE, other).prompt is Prompt.DIALOG
    assert not read(CLAUDE, other).menu


def claude(*rows: str, glyph: str = "\x1b[39m❯\u00a0") -> Screen:
    rule = "\x1b[38;5;244m" + "─" * 20
    return read(
        CLAUDE, "\n".join(["❯ said before", rule, glyph + rows[0], *rows[1:], rule, "  on"])
    )


def test_any_colour_but_the_terminals_own_means_busy() -> None:
    assert claude("", glyph="\x1b[38;5;241m❯\u00a0").prompt is Prompt.BUSY  # the light theme
    assert claude("", glyph="\x1b[38;2;153;153;153m❯\u00a0").prompt is Prompt.BUSY
    assert claude("", glyph="\x1b[0m❯\u00a0").prompt is Prompt.IDLE
    assert claude("", glyph="\x1b[1;39m❯\u00a0").prompt is Prompt.IDLE


def test_a_numbered_draft_is_no_dialog() -> None:
    assert claude("1. first").draft == "1. first"
    assert claude("Yes, Esc to cancel").prompt is Prompt.IDLE


def test_a_draft_keeps_its_lines_and_their_indent() -> None:
    assert (
        claude("def f():", "      return 1", "", "  f()").draft == "def f():\n    return 1\n\nf()"
    )
    assert claude("──────────", "  ──────────").draft == "──────────\n──────────"


def test_a_placeholder_is_no_draft_and_a_cursor_on_a_draft_is() -> None:
    assert claude("\x1b[7mP\x1b[0;2mress up\x1b[0m").draft == ""
    assert claude("\x1b[7mP\x1b[0mress up").draft == "Press up"
    assert claude("\x1b[7mP\x1b[0m").draft == "P"
    assert claude("/cle\x1b[7m\x1b[2ma\x1b[27mr\x1b[0m").draft == "/cle"


def test_a_screen_without_a_composer_has_no_prompt() -> None:
    for text in ("", "\n\n", "❯ said before\n● an answer", "─" * 20 + "\nno glyph\n" + "─" * 20):
        assert read(CLAUDE, text) == Screen(Prompt.NONE)
    # A shell that came back below the last screen of a client that is gone, its frame cut off.
    assert read(CLAUDE, "─" * 20 + "\n❯\u00a0\nada@host:~$ ").prompt is Prompt.NONE


def test_a_narrow_frame_with_a_name_in_it_is_one() -> None:
    top = "──── my-name ──"
    assert read(CLAUDE, f"{top}\n❯\u00a0x\n{'─' * 15}").draft == "x"


def test_links_and_odd_escapes_are_no_text() -> None:
    link = "\x1b]8;;http://x\x1b\\there\x1b]8;;\x1b\\"
    assert claude(f"see {link}\x0f now").draft == "see there now"


# -- a program of which nothing is known ---------------------------------------------------------


def test_the_last_row_with_the_glyph_is_the_composer() -> None:
    screen = read(GENERIC, "❯ said\nanswer\n  ❯ a draft\n  a menu\n")
    assert screen == Screen(Prompt.IDLE, draft="a draft", row="  ❯ a draft")
    assert read(GENERIC, "❯\u00a0\n") == Screen(Prompt.IDLE, row="❯\u00a0")
    assert read(GENERIC, "❯draft").draft == "draft"


def test_a_composer_far_up_is_none() -> None:
    assert read(GENERIC, "❯ old\n" + "output\n" * 12 + "end").prompt is Prompt.NONE


def test_a_choice_at_the_glyph_is_a_dialog() -> None:
    screen = read(GENERIC, "❯ do it\nMay I?\n ❯ 1. Yes\n   2. No\n")
    assert screen == Screen(Prompt.DIALOG, question="❯ do it\nMay I?\n❯ 1. Yes\n2. No")
    above = "❯ 1. this\n" + "output\n" * 12 + "❯"
    assert read(GENERIC, above).prompt is Prompt.IDLE


def test_patterns_of_a_profile_tell_busy_gone_and_what_nobody_typed() -> None:
    profile = structs.replace(
        GENERIC, glyph="$}", busy=("^working",), gone=("bye$",), placeholders=("^Ask anything$",)
    )
    assert read(profile, "working …\n$} x") == Screen(Prompt.BUSY, draft="x", row="$} x")
    assert read(profile, "$} Ask anything").draft == ""
    assert read(profile, "bye\n").gone


PROGRAM = r"""printf '\e[2mhello\e[0m\r\n\e[38;5;246m❯\e[0m \e[2mType here\e[0m'; exec cat"""


@pytest.mark.parametrize(
    ("dim", "draft"), [(False, "Type here"), (True, "")], ids=["unknown", "known"]
)
def test_a_real_terminal_is_read(tmux: Tmux, tmp_path: Path, dim: bool, draft: str) -> None:
    profile: Profile = structs.replace(GENERIC, dim_placeholder=dim, idle_colour="39")
    pane = start_session(tmux, "t", tmp_path, ["bash", "-c", PROGRAM])
    wait_for(lambda: "Type here" in tmux.capture(pane.id), "the screen")
    found, text = tmux.look(pane.id, escapes=True)
    assert found.id == pane.id
    assert read(profile, text) == Screen(Prompt.BUSY, draft=draft, row="❯ Type here")
