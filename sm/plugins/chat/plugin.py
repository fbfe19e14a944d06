"""Threads that a chat client and coding agents share."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    channels={"chat": "sm.plugins.chat.channel:open_chat"},
    checks={"threads": "sm.plugins.chat.checks:CHECK"},
    files={"mcp-clients": "sm.plugins.chat.files:list_clients"},
    verbs={
        "bridge": Verb(
            "sm.plugins.chat.bridge_verb:command",
            "Share handoffs between a chat client and a coding client.",
            after="serve",
        ),
        "mcp": Verb(
            "sm.plugins.chat.mcp_verb:command", "Offer these handoffs as MCP tools.", after="bridge"
        ),
    },
)
