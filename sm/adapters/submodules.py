"""Submodules of a worktree: filled from what the user's clone has of them, and from nowhere else.

A branch's `.gitmodules` is the word of whoever has pushed it. Only its names and paths are used; a
submodule is fetched from where the user's own clone has it from, if the user has set it up there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.git import Git
from sm.adapters.git_call import call, read_first_line
from sm.adapters.process import CommandError
from sm.base.errors import SmError
from sm.base.text import one_line

FETCH_S = 600.0
KEY = re.compile(r"submodule\.(?P<name>.+)\.(?P<what>path|url)", re.DOTALL)
UNSAFE = re.compile(r"[\x00-\x1f\x7f=]|^[-/]|(?:^|/)\.\.?(?:/|$)|^$")
"""A name or a path that git itself refuses (CVE-2018-11235, CVE-2018-17456), or that
`-c NAME=VALUE` would cut in two."""


class SubmoduleError(SmError):
    """A submodule cannot be checked out."""


class Submodule(Struct, frozen=True):
    """A submodule as a commit describes it."""

    name: str
    path: str = ""
    url: str = ""


def list_submodules(repo: Path, rev: str = "HEAD") -> tuple[Submodule, ...]:
    """Return what the `.gitmodules` of a commit names, without what git would refuse."""
    args = ("--no-includes", "--blob", f"{rev}:.gitmodules", "-z", "--get-regexp", r"^submodule\.")
    said = call(repo, "config", *args, accept=(0, 1, 128)).stdout
    found: dict[str, dict[str, str]] = {}
    for entry in said.split("\0"):
        key, _, value = entry.partition("\n")
        if match := KEY.fullmatch(key):
            found.setdefault(match["name"], {})[match["what"]] = value
    every = [Submodule(name, **keys) for name, keys in found.items()]
    return tuple(one for one in every if not any(map(UNSAFE.search, (one.name, one.path))))


def find_url(store: Path, name: str) -> str:
    """Return where the repository `store`, a git directory, has a submodule from; or ''."""
    args = ("--git-dir=.", "config", "--get", f"submodule.{name}.url")
    return call(store, *args, accept=(0, 1)).stdout.removesuffix("\n")


def fill(tree: Path, store: Path, rev: str = "HEAD") -> tuple[str, ...]:
    """Check out those submodules of `tree`, and theirs, that the clone has; return their paths.

    `store` is the clone's git directory. What it has of a submodule is copied by hard links; only
    a commit that is missing there is fetched, from where the clone has the submodule from. A
    submodule that is checked out already stays as it is.

    Raises:
        SubmoduleError: one cannot be checked out.

    """
    return tuple(_fill(tree, store, rev))


def _fill(tree: Path, store: Path, rev: str) -> Iterator[str]:
    for one in list_submodules(tree, rev):
        url, home = find_url(store, one.name), store / "modules" / one.name
        if not url or not _is_recorded(tree, one.path, rev):
            continue
        if not _is_checked_out(tree / one.path):
            _check_out(tree, one, url, home)
        yield one.path
        if _is_repository(home):
            yield from (f"{one.path}/{path}" for path in _fill(tree / one.path, home, "HEAD"))


def _is_recorded(tree: Path, path: str, rev: str) -> bool:
    """Say whether the commit has a submodule there, and no file or folder of its own."""
    args = ("--literal-pathspecs", "ls-tree", "-z", rev, "--", path)
    return call(tree, *args).stdout.startswith("160000 ")


def _is_checked_out(folder: Path) -> bool:
    """Say whether a checkout of the submodule was ever finished: git writes the index last."""
    if folder.is_symlink() or not (folder / ".git").exists():
        return False
    said = call(folder, "rev-parse", "--path-format=absolute", "--git-path", "index").stdout
    return Path(said.removesuffix("\n")).exists()


def _is_repository(home: Path) -> bool:
    return (home / "HEAD").is_file() and (home / "objects").is_dir()


def _check_out(tree: Path, one: Submodule, url: str, home: Path) -> None:
    if _is_repository(home) and not (tree / one.path / ".git").exists():
        try:
            # Git fetches a submodule from a folder only if told to (protocol.file.allow); this
            # folder is the clone's own.
            _update(tree, one, str(home), "-c", "protocol.file.allow=always")
        except SubmoduleError:
            if not (tree / one.path / ".git").exists():
                raise
        call(tree / one.path, "remote", "set-url", "origin", url)
    if not _is_checked_out(tree / one.path):
        _update(tree, one, url)


def _update(tree: Path, one: Submodule, url: str, *options: str) -> None:
    settings = (*options, "-c", f"submodule.{one.name}.url={url}", "--literal-pathspecs")
    args = (*settings, "submodule", "--quiet", "update", "--checkout", "--", one.path)
    try:
        call(tree, *args, timeout_s=FETCH_S)
    except CommandError as error:
        said = one_line(read_first_line(error.result))
        raise SubmoduleError(f"submodule '{one.path}' cannot be checked out: {said}") from error


def list_unsaved(git_dir: Path, store: Path) -> Iterator[str]:
    """Yield the submodules in the git directory of a worktree that have commits nowhere else.

    Elsewhere is the remote that they come from, as far as it is known, and the clone at `store`.
    """
    for name, home in _list_modules(git_dir / "modules"):
        if _has_unsaved(home, store / "modules" / name):
            yield name


def has_any(git_dir: Path) -> bool:
    """Say whether a submodule was ever checked out in the worktree of this git directory."""
    return next(_list_modules(git_dir / "modules"), None) is not None


def _list_modules(folder: Path, above: str = "") -> Iterator[tuple[str, Path]]:
    """Yield name and git directory of each; names may have slashes, and modules have modules."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        name = f"{above}{entry.name}"
        if _is_repository(entry):
            yield name, entry
            yield from _list_modules(entry / "modules", f"{name}/modules/")
        elif entry.is_dir() and not entry.is_symlink():
            yield from _list_modules(entry, f"{name}/")


def _has_unsaved(module: Path, counterpart: Path) -> bool:
    ours = _list_refs(module, "refs/heads", "refs/stash", head=True)
    known = _list_refs(module, "refs/remotes", "refs/tags")
    kept = _list_refs(counterpart, head=True) if _is_repository(counterpart) else []
    return bool(Git(module).list_missing_from(ours, [*known, *kept]))


def _list_refs(git_dir: Path, *patterns: str, head: bool = False) -> list[str]:
    args = ("--git-dir=.", "for-each-ref", "--format=%(objectname)", *patterns)
    refs = [line for line in call(git_dir, *args).lines if line]
    own = call(git_dir, "--git-dir=.", "rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1))
    return [*refs, *([own.stdout.strip()] if head and own.stdout.strip() else [])]
