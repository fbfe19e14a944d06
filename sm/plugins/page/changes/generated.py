"""Files that a program has made: they are folded at first."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

NAMES = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
        *("deno.lock", "Cargo.lock", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock"),
        *("Gemfile.lock", "composer.lock", "go.sum", "Gopkg.lock", "flake.lock", "mix.lock"),
        *("MODULE.bazel.lock", "Package.resolved", "gradle.lockfile", "pixi.lock"),
    }
)
"""Lock files (those of github-linguist, from memory: unproven)."""
ENDINGS = re.compile(r"[.-]min\.(js|css)$|\.(js|css)\.map$|\.pb\.go$|_pb2(_grpc)?\.pyi?$", re.ASCII)
"""Endings of packed and translated files: unproven, too."""


def is_generated(path: str) -> bool:
    """Tell by its name whether a program makes the file."""
    return PurePosixPath(path).name in NAMES or bool(ENDINGS.search(path))
