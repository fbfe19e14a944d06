"""A page in a browser: what needs a person, with its answer there, and every session."""

from __future__ import annotations

from sm.base.plugin import Plugin

PLUGIN = Plugin(sites={"page": "sm.plugins.page.site:SITE"})
