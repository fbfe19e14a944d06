"""Policy of a project that configures nothing: the defaults of the schema."""

from __future__ import annotations

from pathlib import Path

from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.issues.look.observe import read_policy

POLICY = read_policy(ProjectSettings(name="harb", repo=Path("/c"), forge=LocalSettings(Path("/f"))))
