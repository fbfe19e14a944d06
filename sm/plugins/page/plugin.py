"""Plugin with a page in a browser: what needs a person, with its answers, and every session."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sites={"page": "sm.plugins.page.site:SITE"},
    verbs={
        "terminal": Verb(
            "sm.plugins.page.terminal.verb:command",
            "Show a terminal to the page of another machine.",
            hidden=True,
        ),
    },
)
