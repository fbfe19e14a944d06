"""Plugin with metrics for Prometheus: what is going on, what waits, and what it costs."""

from __future__ import annotations

from sm.base.plugin import Plugin

PLUGIN = Plugin(sites={"metrics": "sm.plugins.metrics.site:SITE"})
