"""Bare repository beside the forge: branches, what they contain, and merging them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.errors import BaseMovedError, NotFoundError
from sm.adapters.git_call import NO_HOOKS, find_lock, make_environment, refuse_foreign_hooks
from sm.adapters.process import ANY_CODE, CommandError, Result, ask, read_beginning
from sm.base.act_guard import before_act
from sm.base.errors import SmError

CHECKOUT_S = 600.0
DIFF_S = 30.0
"""Time that git has for the beginning of a diff, in seconds."""
UNRELATED = "unrelated histories"


class MergeTry(Struct, frozen=True):
    """Result of a trial merge: a tree, or the files that conflict."""

    tree: str
    conflicts: tuple[str, ...] = ()


PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "0"}
"""Environment without a person's settings, as some make a patch that cannot be applied
(diff.noprefix)."""


class BareRepository(Struct, frozen=True):
    """Git in a repository without a work tree; commits are full object names."""

    path: Path

    def git(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        accept: tuple[int, ...] = (0,),
        timeout_s: float = 120.0,
    ) -> Result:
        """Run git in it, undisturbed by a repository that the caller may be in.

        Raises:
            GitLockedError: another git holds a lock file, or was killed and has left it.
            CommandError: git failed for another reason.

        """
        own = make_environment(self.path, os.environ) | dict(env or {})
        git = ("git", f"--git-dir={self.path}")
        argv = (*git, *refuse_foreign_hooks(git, args, own), *args)
        try:
            return ask(*argv, env=own, stdin=stdin, accept=accept, timeout_s=timeout_s)
        except CommandError as error:
            raise find_lock(error, self.path) or error from error

    def fingerprint(self) -> str:
        """Return a text that differs whenever a branch may have moved; no git is started for it."""
        places = [self.path / "packed-refs", self.path / "reftable" / "tables.list"]
        # A ref is written beside its file and renamed, which changes its folder.
        places += [Path(folder) for folder, _, _ in os.walk(self.path / "refs")]
        found = [(str(place), _mtime_ns(place)) for place in sorted(places)]
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def heads(self) -> dict[str, str]:
        """Return the branches and their commits."""
        form = "--format=%(objectname) %(refname:lstrip=2)"
        lines = self.git("for-each-ref", form, "refs/heads").lines
        return {branch: commit for commit, branch in (line.split(" ", 1) for line in lines)}

    def resolve(self, name: str) -> str:
        """Return the commit that `name` means, such as its first digits.

        Raises:
            NotFoundError: there is no such commit.

        """
        args = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = self.git(*args, accept=(0, 1, 128)).stdout.strip()
        if not found:
            raise NotFoundError(f"there is no commit '{name}' on the forge: push it first")
        return found

    def heads_within(self, commit: str) -> frozenset[str]:
        """Return the commits of those branches that `commit` contains entirely."""
        args = ("--format=%(objectname)", f"--merged={commit}", "refs/heads")
        return frozenset(self.git("for-each-ref", *args).stdout.split())

    def contains(self, whole: str, part: str) -> bool:
        """Whether the commit `whole` has `part` in its past, or is it."""
        args = ("merge-base", "--is-ancestor", part, whole)
        return self.git(*args, accept=(0, 1, 128)).code == 0

    def try_merge(self, base: str, head: str) -> MergeTry:
        """Merge two commits in memory.

        Raises:
            SmError: this git is too old.

        """
        args = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head)
        result = self.git(*args, accept=(0, 1, 128, 129))
        if result.code == 129:
            said = self.git("--version").stdout.strip()
            raise SmError(f"this is {said}: merging on the forge needs git 2.38 or later")
        if result.code == 128:
            if UNRELATED in result.stderr:
                return MergeTry("", ("(unrelated histories)",))
            raise CommandError(("git", *args), result)
        tree, *files = result.stdout.split("\0")
        return MergeTry(tree, tuple(dict.fromkeys(filter(None, files))) if result.code else ())

    def find_conflicting(self, base: str, heads: Sequence[str]) -> list[bool]:
        """Whether merging each of `heads` into `base` would conflict, from one git.

        There are fewer answers than heads where git cannot try one of them, or is too old.
        """
        args = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "--stdin")
        lines = "".join(f"{base} {head}\n" for head in heads)
        result = self.git(*args, stdin=lines.encode(), accept=(0, 1, 128, 129))
        # An answer is 1 for a clean merge, else 0, a tree and the files, and ends with two NULs.
        return [not answer.startswith("1") for answer in result.stdout.split("\0\0")[:-1]]

    def commit_merge(self, tree: str, parents: tuple[str, str], message: str, author: str) -> str:
        """Make a merge commit; return it."""
        mail = self.git("config", "user.email", accept=(0, 1)).stdout.strip() or "sm@localhost"
        who = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", author), ("EMAIL", mail))
        }
        args = ("commit-tree", tree, "-F", "-", "-p", parents[0], "-p", parents[1])
        return self.git(*args, env=who, stdin=message.encode("utf-8", "replace")).stdout.strip()

    def advance(self, base: str, new: str, old: str, branch: str, head: str) -> None:
        """Move the branch `base` from `old` to `new`, if `branch` is still at `head`, at once.

        Raises:
            BaseMovedError: one of them has moved.

        """
        lines = (
            "start",
            f"verify refs/heads/{branch} {head}",
            f"update refs/heads/{base} {new} {old}",
            "prepare",
            "commit",
            "",
        )
        before_act()
        try:
            self.git("update-ref", "--stdin", stdin="\n".join(lines).encode())
        except CommandError as error:
            if "cannot lock ref" in error.result.stderr:
                raise BaseMovedError(f"'{base}' or '{branch}' has moved: merge again") from error
            raise

    def find_merge(self, head: str, base: str) -> str:
        """Find the commit that brought `head` into `base`: a merge of it, else `head` itself."""
        args = ("rev-list", "--merges", "--parents", "--ancestry-path", f"{head}..{base}")
        for line in reversed(self.git(*args).lines):
            merge, _, *merged = line.split()
            if head in merged:
                return merge
        return head

    def check_out(self, commit: str, folder: Path) -> None:
        """Make `folder` a clone whose working tree is at `commit`; objects are shared."""
        self.git("clone", "-q", "--shared", "--no-checkout", str(self.path), str(folder))
        place = (f"--work-tree={folder}", *NO_HOOKS)
        BareRepository(folder / ".git").git(
            *place, "checkout", "-q", "--detach", commit, timeout_s=CHECKOUT_S
        )

    def files_changed(self, base: str, head: str) -> list[str]:
        """List the files that `head` has changed since it left `base`; those it removes too."""
        args = ("diff", "--name-only", "--no-renames", "-z", f"{base}...{head}", "--")
        return self.git(*args).stdout.split("\0")[:-1]

    def count_between(self, since: str, head: str) -> int:
        """Count the commits that `head` has and `since` lacks."""
        return int(self.git("rev-list", "--count", f"{since}..{head}", "--").stdout)

    def diff(self, base: str, head: str, *options: str, limit: int | None = None) -> bytes:
        """Return the change of `head` since it left `base`, whatever settings a person has.

        With a `limit`, in bytes, git is stopped after that.
        """
        args = (
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            *options,
            f"{base}...{head}",
            "--",
        )
        if limit is None:
            return self.git(*args, env=PLAIN).raw
        own = make_environment(self.path, os.environ) | PLAIN
        argv = ("git", f"--git-dir={self.path}", *args)
        return read_beginning(*argv, limit=limit, timeout_s=DIFF_S, env=own).data


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def is_bare(path: Path) -> bool:
    """Whether `path` is a bare repository."""
    args = ("rev-parse", "--is-bare-repository")
    return BareRepository(path).git(*args, accept=tuple(ANY_CODE)).stdout.strip() == "true"
