"""Claude Code, as measured with 2.1.329; `sm doctor --probe` checks another version."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

CLAUDE = Profile(
    name="claude",
    program="claude",
    command="claude --dangerously-skip-permissions",
    system_prompt=("--append-system-prompt-file", "{file}"),
    settings=("--settings", "{file}"),
    unattended={  # all read in the program of 2.1.332, and tried (tests/real/test_untamed.py)
        "DISABLE_AUTOUPDATER": "1",  # not DISABLE_UPDATES: a person may still run `claude update`
        # It asks how it does, in five ways, and takes a digit for the answer.
        "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY": "1",
        "DISABLE_COST_WARNINGS": "1",  # else a dialog, once, at five dollars of an API key
    },
    # It ends in a question, whose only "yes" is "switch to default (ask each time)", also for one
    # that was started to ask nothing (2.1.332).
    withheld_tools=("EnterPlanMode",),
    hooks="claude",
    resume=("--resume", "{context}"),
    glyph="❯",
    frame="─",
    idle_colour="39",  # busy: 246, or 241 in the light theme
    dim_placeholder=True,
    dialog=(
        r"\bEsc to (cancel|exit|go back|reject)\b",
        r"\bEnter to (confirm|select|continue|save|submit)\b",
        r"^ +{glyph} ",  # a choice; earlier words stand at the margin
    ),
    # At a limit of a subscription that it does not wait out by itself: more than a day, or
    # `autoContinueAtUsageLimit` is false (2.1.332). Escape is its "stop and wait".
    menu=(r"^ +(?:{glyph} )?[0-9]\. (?:Stop and wait|Wait) for limit to reset$",),
    trust=r"\bYes, I trust this folder\b",
    # Its first start of all, from top to bottom: a login is the second thing that it asks for, and
    # it stays there when somebody has logged in elsewhere (2.1.332, tests/real/test_login_menu.py).
    login=(
        r"^ *Choose the text style that looks best with your terminal$",
        r"^ *Select login method:$",
        r"^ *Browser didn't open\? Use the URL below to sign in\b",
    ),
    scrolled=(r"↑ [0-9]+ more\b",),
    elided=(r"\[\.\.\.Truncated text #[0-9]+ \+[0-9]+ lines\.\.\.\]",),
    stash_key="C-s",
    stashed=(r"\bdraft stashed\b",),
    interrupt_key="Escape",
    # The interrupted turn's subagents go on in the background; the second time is its confirmation.
    # A draft stays (tests/real/test_spending.py, with 2.1.332).
    background_keys=("C-x", "C-k", "C-x", "C-k"),
    erase_key="C-u",
    clear="/clear",
    tells_of_clear=True,
    spending="claude",
    paste_lines=3,
    paste_characters=800,
    mention='@"{file}"',  # up to 256 KB; it escapes what would end the mark around the text
    hook_characters=9000,  # from 10,100 on the model gets a preview, and a file
    hook_escapes=r"(?i)<\s*+(?:/\s*+)?system-reminder",  # of which `<` becomes `&lt;`
    command_characters="/!",
    leave=("exit", "quit", ":q", ":q!", ":wq", ":wq!"),
)
