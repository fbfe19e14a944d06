"""Git LFS: the filters that a commit asks for, and the transfer of large files to a remote."""

from __future__ import annotations

import re
from pathlib import Path

from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.process import CommandError
from sm.base.errors import SmError
from sm.base.text import one_line

TRANSFER_S = 3600.0
"""Seconds for large files, which may be slow to come."""
FILTER = re.compile(r"(?:^|\s)filter=([A-Za-z0-9_-]+)", re.MULTILINE)
NAME = "lfs"
REFUSED = re.compile(r"batch response: (.*)")
"""Words of git-lfs about a server that refuses it; it has others for a file that the server lacks
(asked of 3.3 with Gitea 1.26.0-dev and Forgejo 12.0.0-dev)."""


class LfsError(SmError):
    """Large files could not be brought along."""


def list_filters(repo: Path, rev: str) -> frozenset[str]:
    """Return the filters that the `.gitattributes` of a commit name (gitattributes(5))."""
    args = ("-h", "-I", "-E", "filter=", rev, "--", ":(glob)**/.gitattributes")
    said = call(repo, "grep", "--no-color", *args, accept=(0, 1, 128)).stdout
    return frozenset(FILTER.findall(said))


def is_used(repo: Path, rev: str) -> bool:
    """Say whether a commit has files of Git LFS."""
    return NAME in list_filters(repo, rev)


def is_installed() -> bool:
    """Say whether git can call `git lfs`."""
    import shutil  # only where a file is missing: it takes a pass longer to load

    return shutil.which("git-lfs") is not None


def carry(git: Git, source: str, target: str, ref: str) -> None:
    """Bring the large files of `ref` from the remote `source`, '' for none, to the remote `target`.

    A push without the user's hooks carries none of them. Files of earlier commits go along as far
    as the clone has them: `--all`, as git-lfs takes what the tracking branch has for pushed.

    Raises:
        LfsError: Git LFS says that it cannot be done.

    """
    steps: list[tuple[str, ...]] = [("lfs", "fetch", source, ref)] if source else []
    steps.append(("lfs", "push", "--all", target, ref))
    for step in steps:
        try:
            args = ("-c", "lfs.allowincompletepush=true", *step)
            call(git.repo, *args, timeout_s=TRANSFER_S, settings=git.access)
        except CommandError as error:
            raise LfsError(
                f"the files of Git LFS did not reach '{target}': {error.message}: when that is "
                f"mended, run git lfs push --all {target} {ref} in '{git.repo}'"
            ) from error


def advise(error: SmError, clone: Path) -> str:
    """Return what helps if a checkout has failed for a large file, as the end of a sentence."""
    said = error.result.stderr if isinstance(error, CommandError) else ""
    if "smudge filter lfs failed" not in said and "git-lfs" not in said:
        return ""
    if not is_installed():
        return ": install git-lfs"
    if found := REFUSED.search(said):
        return f": Git LFS was answered: {one_line(found[1], 200)}"
    return f": its large files were not pushed: run git lfs push --all REMOTE BRANCH in '{clone}'"


def list_missing(repo: Path, bare: Path, rev: str) -> tuple[str, ...]:
    """Return the files of a commit whose contents the repository `bare` on this machine lacks."""
    lines = call(repo, "lfs", "ls-files", "--long", rev, accept=(0, 1, 2, 128)).lines
    rows = (line.split(" ", 2) for line in lines if line.count(" ") >= 2)
    # Where Git LFS keeps an object: its specification, "The Server".
    objects = bare / "lfs" / "objects"
    return tuple(
        path for oid, _, path in rows if not (objects / oid[:2] / oid[2:4] / oid).is_file()
    )
