"""Plugin of `sm top`: all sessions on one screen of a terminal, where a person steers them."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "top": Verb(
            "sm.plugins.top.verb:command",
            "See all sessions live, and answer, send, pause and attach there.",
            after="needs",
        )
    }
)
