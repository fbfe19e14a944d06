"""Plugin of `sm serve`: sessions, messages and handoffs over HTTP."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "serve": Verb(
            "sm.plugins.http.verb:command",
            "Offer sessions, messages and handoffs over HTTP.",
            after="hooks",
        ),
    },
)
