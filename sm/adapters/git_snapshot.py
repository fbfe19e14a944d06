"""Makes a commit of a worktree as it is, and leaves its index, its files and its branch alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import submodules
from sm.adapters.git import CHECKOUT_S, Git
from sm.adapters.git_call import call
from sm.base.nonce import make_nonce

LARGE = 50 * 1024 * 1024
"""Bytes of an untracked file that is left out: forges refuse files of 100 MB."""

SIGNATURE = "sm <sm@localhost> 946684800 +0000"
"""Fixed author and time, so that the same content makes the same commit."""

SETTINGS = (
    ("advice.addEmbeddedRepo", "false"),
    ("core.safecrlf", "false"),
    # Large files go into the commit itself: nobody uploads to LFS what is not pushed yet.
    ("filter.lfs.clean", ""),
    ("filter.lfs.process", ""),
    ("filter.lfs.required", "false"),
)


class Taken(Struct, frozen=True):
    """A worktree as it was.

    `commit` has all its files that git does not ignore; its parents are `head`, the `tip` of the
    branch if that is another one, and what was being merged (`merging`). `unfinished` names what
    git was in the middle of. `left_out` are the paths that are not in it.
    """

    commit: str
    head: str
    tip: str
    merging: tuple[str, ...] = ()
    unfinished: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the snapshot is whole: nothing would be lost with the worktree."""
        return not self.left_out


def take(tree: Git, branch: str) -> Taken | None:
    """Return the worktree as it is now; None if it has no commit.

    Raises:
        GitLockedError: another git changes it in this moment.

    """
    head = tree.rev_parse("HEAD")
    if head is None:
        return None
    tip = tree.rev_parse(f"refs/heads/{branch}") or head
    git_dir = tree.git_dir()
    merging = _read_merging(git_dir)
    with _own_index(git_dir) as index:
        left_out = _add_all(tree, index)
        files = call(tree.repo, "write-tree", index=index).stdout.strip()
    parents = tuple(dict.fromkeys((head, tip, *merging)))
    commit = commit_tree(tree, files, parents, f"Work in progress on {branch}")
    return Taken(commit, head, tip, merging, _name_unfinished(git_dir), left_out)


def commit_tree(git: Git, tree: str, parents: tuple[str, ...], message: str) -> str:
    """Return the commit of a tree; the same arguments make the same one."""
    lines = [f"tree {tree}", *(f"parent {one}" for one in parents)]
    lines += [f"author {SIGNATURE}", f"committer {SIGNATURE}", "", message, ""]
    return git.write_object("commit", "\n".join(lines).encode())


def find_tree(git: Git, commit: str) -> str:
    """Return the tree of a commit."""
    return call(git.repo, "rev-parse", "--verify", f"{commit}^{{tree}}").stdout.strip()


@contextlib.contextmanager
def _own_index(git_dir: Path) -> Iterator[Path]:
    """Make a copy of the worktree's index, which knows what has not changed."""
    import shutil  # which most passes do without

    copy = git_dir / f"sm-index-{make_nonce(6)}"
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(git_dir / "index", copy)
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _add_all(tree: Git, index: Path) -> tuple[str, ...]:
    """Add every file that git does not ignore; return what could not be, or must not be, added."""
    left_out = [*_list_unfit(tree), *_list_changed_submodules(tree)]
    paths = [".", *(f":(exclude,top,literal){path.rstrip('/')}" for path in _list_unfit(tree))]
    args = ("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    result = call(
        tree.repo,
        *args,
        stdin=os.fsencode("\0".join(paths)),
        accept=(0, 1),
        timeout_s=CHECKOUT_S,
        settings=SETTINGS,
        index=index,
    )
    if result.code:  # such as a file that nobody may read
        left_out += ["what git could not read"]
    return tuple(left_out)


def _list_unfit(tree: Git) -> list[str]:
    """Return the untracked files that are too large, and repositories of their own."""
    args = ("ls-files", "--others", "--exclude-standard", "-z")
    raw = call(tree.repo, *args).raw
    names = [os.fsdecode(name) for name in raw.split(b"\0") if name]
    return [name for name in names if name.endswith("/") or _is_large(tree.repo / name)]


def _is_large(path: Path) -> bool:
    try:
        return path.lstat().st_size > LARGE
    except OSError:
        return False


def _list_changed_submodules(tree: Git) -> list[str]:
    """Return the submodules with work in their own clones (git-status(1), Porcelain v2)."""
    if not submodules.list_submodules(tree.repo):
        return []
    args = ("status", "--porcelain=v2", "-z", "--ignore-submodules=none", "--untracked-files=no")
    entries = call(tree.repo, *args).stdout.split("\0")
    fields = [entry.split(" ", 8) for entry in entries if entry.startswith("1 ")]
    return [words[8] for words in fields if len(words) == 9 and words[2].startswith("S")]


def _read_merging(git_dir: Path) -> tuple[str, ...]:
    try:
        return tuple((git_dir / "MERGE_HEAD").read_text("ascii").split())
    except (OSError, UnicodeDecodeError):
        return ()


def _name_unfinished(git_dir: Path) -> str:
    """Name what git is in the middle of, by the files that git's own prompt looks for."""
    found = (
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    )
    return next((word for name, word in found if (git_dir / name).exists()), "")


def put_back(tree: Git, taken: Taken) -> bool:
    """Bring what was not committed in `taken` into a clean worktree, uncommitted; False: conflicts.

    It is merged into what the branch is by now. Where that does not fit, files have git's markers.
    """
    mainline = ("-m", "1") if len({taken.head, taken.tip, *taken.merging}) > 1 else ()
    if find_tree(tree, taken.commit) == find_tree(tree, taken.head):
        fits = True
    else:
        args = ("cherry-pick", "--no-commit", "--allow-empty", *mainline, taken.commit)
        fits = call(tree.repo, *args, accept=(0, 1), timeout_s=CHECKOUT_S).code == 0
        call(tree.repo, "reset", "--quiet", "--mixed", accept=(0, 1))
    if taken.merging and taken.unfinished == "merge":  # which goes on
        git_dir = tree.git_dir()
        (git_dir / "MERGE_MSG").write_text(f"Merge {taken.merging[0][:12]}\n")
        (git_dir / "MERGE_MODE").write_text("")
        (git_dir / "MERGE_HEAD").write_text("".join(f"{one}\n" for one in taken.merging))
    return fits
