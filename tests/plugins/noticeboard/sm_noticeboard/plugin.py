"""A board in the hall: issues hang on it, and what people have to know is pinned to it."""

from __future__ import annotations

from sm.base.plugin import ForgeKind, Plugin, TrackerKind, Verb

PLUGIN = Plugin(
    forges={
        "noticeboard": ForgeKind("sm_noticeboard.forge", "sm_noticeboard.forge:NoticeboardForge")
    },
    agents={"scribe": "sm_noticeboard.agent:SCRIBE"},
    channels={"noticeboard": "sm_noticeboard.channel:open_board"},
    sections={"noticeboard": "sm_noticeboard.settings:Noticeboard"},
    verbs={
        "notices": Verb(
            "sm_noticeboard.verb:command", "Show what is pinned to the board.", after="status"
        )
    },
    checks={"noticeboard": "sm_noticeboard.check:CHECK"},
    files={"noticeboard": "sm_noticeboard.files:list_files"},
    events={"notice-pinned": "sm_noticeboard.words:tell_pinned"},
    sites={"noticeboard": "sm_noticeboard.site:SITE"},
    ticks={"noticeboard": "sm_noticeboard.tick:LISTENER"},
    followers={"noticeboard": "sm_noticeboard.follower:FOLLOWER"},
    figures={"noticeboard": "sm_noticeboard.figures:FIGURES"},
    meters={"noticeboard": "sm_noticeboard.meter:METER"},
    variables={"noticeboard": "sm_noticeboard.variables:make_variables"},
    runners={"noticeboard": "sm_noticeboard.runner:RUNNER"},
    services={"noticeboard": "sm_noticeboard.service:SERVICE"},
    sandboxes={"noticeboard": "sm_noticeboard.sandbox:SANDBOX"},
    trackers={"cards": TrackerKind("sm_noticeboard.cards", "sm_noticeboard.cards:CardSettings")},
)
