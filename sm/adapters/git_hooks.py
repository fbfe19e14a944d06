"""Hooks in git calls of `sm`: a person's own run, those among the files of a branch do not.

With a relative `core.hooksPath`, as husky sets it, git takes hooks from the files that are checked
out, or, in a bare repository, from the folder that `sm` was called in. Then the author of a branch
could have a program run at each fetch, push, merge or checkout of `sm`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sm.adapters.process import ANY_CODE, ask

NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
ASK_S = 20.0

HOOKLESS = frozenset(
    {
        *("cat-file", "check-ignore", "commit-tree", "config", "diff", "for-each-ref", "grep"),
        *("hash-object", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "merge-tree"),
        *("mktree", "rev-list", "rev-parse", "status"),
    }
)
"""Commands that change no ref and no index, and so run no hook. (`git status` would write the
index, but for GIT_OPTIONAL_LOCKS.) Measured with git 2.39.5: most others that we call run one or
several, `reference-transaction` and `post-index-change` most of all."""


def refuse_foreign_hooks(
    git: Sequence[str], args: Sequence[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the options with which the call runs no hook that is a file of a branch.

    `git` is the program with the options that say where it works, `args` what follows. Hooks in the
    clone's own `.git/hooks`, and in a folder of the user's outside of the work trees, still run.
    """
    if _find_command(args) in HOOKLESS:
        return ()
    asked = ("config", "--type=path", "--get", "core.hooksPath")
    path = ask(*git, *asked, env=env, accept=tuple(ANY_CODE), timeout_s=ASK_S).stdout.strip("\n")
    if not path:
        return ()
    is_foreign = not path.startswith("/") or _is_in_work_tree(Path(path), git, env)
    return NO_HOOKS if is_foreign else ()


def _find_command(args: Sequence[str]) -> str:
    words = iter(args)
    for word in words:
        if word in ("-c", "-C"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def _is_in_work_tree(path: Path, git: Sequence[str], env: Mapping[str, str]) -> bool:
    """Say whether `path` is among the files that the clone or one of its worktrees checks out."""
    asked = ("worktree", "list", "--porcelain", "-z")
    said = ask(*git, *asked, env=env, accept=tuple(ANY_CODE), timeout_s=ASK_S).stdout
    real = path.resolve()
    for record in said.split("\0\0"):
        entry, *rest = record.strip("\0").split("\0")
        tree = Path(entry.removeprefix("worktree ")).resolve()
        if entry and "bare" not in rest and real.is_relative_to(tree):
            return real.relative_to(tree).parts[:1] != (".git",)
    return False
