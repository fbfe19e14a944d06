"""People are told by services of theirs: ntfy, Slack, Matrix, e-mail and whatever apprise knows."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    channels={"notify": "sm.plugins.notify.entry:open_notify"},
    sections={"notify": "sm.plugins.notify.settings:Notify"},
    checks={"notify": "sm.plugins.notify.checks:CHECK"},
    ticks={
        "heartbeat": "sm.plugins.notify.listener:LISTENER",
        "there": "sm.plugins.notify.listener:THERE",
    },
    verbs={
        "notify": Verb(
            "sm.plugins.notify.verb:command",
            "Show the channels by which you are told, and test them.",
            after="doctor",
        ),
        "notifier": Verb(
            "sm.plugins.notify.notifier_verb:command", "Send what waits.", hidden=True
        ),
    },
)
