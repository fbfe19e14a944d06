"""Git: one object for a clone, or for one of its worktrees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from sm.adapters.git_call import call, call_for_beginning, read_first_line
from sm.adapters.git_push import RefMovedError, Update, push
from sm.adapters.process import Beginning
from sm.base.errors import SmError

CHECKOUT_S = 600.0
"""Seconds for a worktree's files; large files may come over the network."""

FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-prune",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
)

PLAIN = ("--no-ext-diff", "--no-textconv")
"""A diff runs no program that a branch or a user's settings may name."""

AS_PATCH = (
    *PLAIN,
    *("--no-color", "--src-prefix=a/", "--dst-prefix=b/"),
    *("--submodule=short", "--ignore-submodules=none"),
)
"""A patch in the form that `sm` reads, whatever a user's settings are: `diff.noprefix` and
`diff.mnemonicPrefix` change its names, `diff.submodule` and `diff.ignoreSubmodules` what it has of
submodules (git-config(1))."""

WHOLE_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
ANCESTRY: dict[tuple[Path, str, str], bool] = {}
"""Known answers about ancestors, which never change. A pass asks the same several times."""


class WorktreeEntry(Struct, frozen=True):
    """Git's record of a worktree. `branch` is None while HEAD is detached.

    `locked` is git's reason, or None.
    """

    path: Path
    head: str = ""
    branch: str | None = None
    bare: bool = False
    locked: str | None = None


class Git(Struct, frozen=True, dict=True):
    """Git in the folder `repo`, a clone or a worktree. Errors: see `sm.adapters.git_call.call`.

    `access` are git's settings for its remotes, see `sm.adapters.forge.git_access`. A checkout
    needs them, too: Git LFS fetches the large files then.
    """

    repo: Path
    access: tuple[tuple[str, str], ...] = ()

    def at(self, folder: Path) -> Git:
        """Return git in another folder of the repository, such as one of its worktrees."""
        return Git(folder, self.access)

    # The remote

    def fetch(self, remote: str, *refspecs: str, timeout_s: float | None = None) -> None:
        """Fetch the refspecs and nothing else: no tags, no pruning, FETCH_HEAD untouched."""
        args = (*FETCH, "--", remote, *refspecs)
        call(self.repo, *args, remote=remote, timeout_s=timeout_s, settings=self.access)

    def fetch_branch(
        self, remote: str, branch: str, *, at: str = "", timeout_s: float | None = None
    ) -> str:
        """Update `refs/remotes/{remote}/{branch}`; return its commit.

        `at` is the commit that the remote was just seen to have there: if this repository has it,
        too, nothing is fetched.

        Raises:
            NoSuchBranchError: the remote has no such branch.

        """
        tracking = f"refs/remotes/{remote}/{branch}"
        if at and self.rev_parse(tracking) == at:
            return at
        self.fetch(remote, f"+refs/heads/{branch}:{tracking}", timeout_s=timeout_s)
        return self._out("rev-parse", "--verify", tracking)

    def ls_remote(self, remote: str, *patterns: str) -> dict[str, str]:
        """Return the remote's matching refs (all without a pattern): full name to SHA."""
        args = ("ls-remote", "--refs", "--", remote, *patterns)
        result = call(self.repo, *args, remote=remote, settings=self.access)
        rows = (line.split("\t", 1) for line in result.lines)
        return {ref: sha for sha, ref in rows}

    def push(
        self, remote: str, *updates: Update, verify: bool = False, timeout_s: float | None = None
    ) -> frozenset[str]:
        """Make all updates on the remote, or none; return the refs that this push changed.

        A ref that already has its new value is not among them, whatever was expected. With `verify`
        the user's pre-push hook may refuse the push.

        Raises:
            RefExistsError: a ref exists that must not.
            RefMovedError: a ref has another value than the expected one.
            PushRefusedError: the remote refuses; its words are in the message.

        """
        return push(
            self.repo, remote, updates, verify=verify, timeout_s=timeout_s, settings=self.access
        )

    def delete_ref(self, remote: str, ref: str, expect: str) -> None:
        """Delete `ref` on the remote if it is at `expect`; a missing ref is fine.

        Raises:
            RefMovedError: the ref is at another commit.

        """
        try:
            self.push(remote, Update(ref, "", expect))
        except RefMovedError:
            if ref in self.ls_remote(remote, ref):
                raise

    # Commits

    def rev_parse(self, rev: str) -> str | None:
        """Return the full SHA of the commit `rev`; None if there is none."""
        args = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        return call(self.repo, *args, accept=(0, 1)).stdout.strip() or None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor; None if the histories are unrelated."""
        return call(self.repo, "merge-base", one, other, accept=(0, 1)).stdout.strip() or None

    def is_ancestor(self, ancestor: str, rev: str) -> bool:
        """Say whether `rev` contains `ancestor`; a commit contains itself.

        Also False if this repository does not know one of the two (it was never fetched).
        """
        return self.ancestry(ancestor, rev) or False

    def ancestry(self, ancestor: str, rev: str) -> bool | None:
        """Answer as `is_ancestor`, but None if this repository does not know one of the two."""
        known = (self.repo, ancestor, rev)
        if known in ANCESTRY:
            return ANCESTRY[known]
        args = ("merge-base", "--is-ancestor", ancestor, rev)
        result = call(self.repo, *args, accept=(0, 1, 128))
        if result.code == 128:
            if self.rev_parse(rev) and self.rev_parse(ancestor):
                said = read_first_line(result)
                raise SmError(f"git cannot compare commits in '{self.repo}': {said}")
            return None
        if WHOLE_NAME.fullmatch(ancestor) and WHOLE_NAME.fullmatch(rev):
            ANCESTRY[known] = result.code == 0
        return result.code == 0

    def ahead(self, base: str, rev: str = "HEAD") -> int:
        """Count the commits that `rev` has and `base` lacks."""
        return int(self._out("rev-list", "--count", f"{base}..{rev}"))

    def list_missing_from(self, tips: Iterable[str], holders: Iterable[str]) -> tuple[str, ...]:
        """Return commits of `tips` that none of `holders` contains, newest first.

        Holders that this repository does not know are skipped.
        """
        lines = [*tips, *(f"^{sha}" for sha in holders)]
        result = call(
            self.repo,
            *("rev-list", "--ignore-missing", "--stdin"),
            stdin="".join(f"{line}\n" for line in lines).encode(),
        )
        return tuple(result.stdout.split())

    def diff_stat(self, base: str, rev: str = "HEAD") -> str:
        """Return what `rev` has changed since it left `base`, a line for each file.

        With two dots, what others have merged into `base` meanwhile would read as taken back.
        """
        args = ("diff", *PLAIN, "--stat", f"{base}...{rev}", "--")
        return self._out(*args)

    def read_diff(self, base: str, *, tip: str = "HEAD", limit: int, timeout_s: float) -> Beginning:
        """Return the first `limit` bytes of what `tip` has changed since it left `base`."""
        args = ("diff", *AS_PATCH, f"{base}...{tip}", "--")
        return call_for_beginning(self.repo, *args, limit=limit, timeout_s=timeout_s)

    def read_diff_stat(
        self, base: str, *, tip: str = "HEAD", files: int, limit: int, timeout_s: float
    ) -> Beginning:
        """Return a line for each of the first `files` that `tip` has changed, and their sum."""
        args = ("diff", *PLAIN, f"--stat=100,70,{files}", f"{base}...{tip}", "--")
        return call_for_beginning(self.repo, *args, limit=limit, timeout_s=timeout_s)

    def log_oneline(self, base: str, rev: str = "HEAD", limit: int = 50) -> str:
        """Return short SHA and subject of the commits that `base` lacks, newest first."""
        args = ("log", f"--max-count={limit}", "--no-show-signature", "--format=%h %s")
        return self._out(*args, f"{base}..{rev}", "--")

    def write_object(self, kind: str, content: bytes) -> str:
        """Store an object and return its SHA; the same content gives the same SHA."""
        args = ("hash-object", "-t", kind, "-w", "--stdin")
        return call(self.repo, *args, stdin=content).stdout.strip()

    @cached_property
    def empty_tree(self) -> str:
        """The SHA of the tree without a file, which is stored."""
        return self.write_object("tree", b"")

    def commit_text(self, sha: str) -> str:
        """Return the raw commit object: headers, an empty line, the message."""
        return call(self.repo, "cat-file", "commit", sha).stdout

    # Branches and worktrees

    def create_branch(self, name: str, sha: str) -> None:
        """Create the local branch `name`, which must not exist, at `sha`."""
        call(self.repo, "update-ref", f"refs/heads/{name}", sha, "0" * len(sha))

    def find_branch_in_the_way(self, branch: str, where: str = "refs/heads") -> str:
        """Return the branch beside which git cannot make `branch`; '' for none.

        A ref is a file, or a folder of others: no `fix/7` can be beside `fix` or `fix/7/a`.
        """
        parts = branch.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        patterns = (f"{where}/{name}" for name in (*above, f"{branch}/"))
        found = call(self.repo, "for-each-ref", "--format=%(refname)", *patterns).lines
        names = (ref.removeprefix(f"{where}/") for ref in found)
        return next((n for n in names if n in above or n.startswith(f"{branch}/")), "")

    def move_branch(self, name: str, new: str, expected: str) -> None:
        """Move the local branch `name`, which no worktree may have checked out."""
        call(self.repo, "update-ref", f"refs/heads/{name}", new, expected)

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete the local branch `name` with its settings, provided it is at `expected`."""
        call(self.repo, "update-ref", "-d", f"refs/heads/{name}", expected)
        call(self.repo, "config", "--remove-section", f"branch.{name}", accept=(0, 128))

    def track(self, branch: str, remote: str) -> None:
        """Let `branch` pull from and push to the branch of the same name on `remote`.

        Settings are written because `--track` refuses in a clone that fetches a single branch. The
        last one is for a person's `remote.pushDefault`, which would lead a push elsewhere.
        """
        args = ("config", "-z", "--get-regexp", r"^branch\..*\.(remote|merge|pushremote)$")
        entries = call(self.repo, *args, accept=(0, 1)).stdout.split("\0")
        # git tells a key in small letters.
        known = dict(entry.partition("\n")[::2] for entry in entries)
        values = (("remote", remote), ("merge", f"refs/heads/{branch}"), ("pushRemote", remote))
        for key, value in values:
            if known.get(f"branch.{branch}.{key.lower()}") != value:
                call(self.repo, "config", "--replace-all", f"branch.{branch}.{key}", value)

    def setting(self, name: str) -> str:
        """Return the value that git's configuration has for `name`, the last of several; or ''."""
        said = call(self.repo, "config", "--get", name, accept=(0, 1)).stdout
        return said.removesuffix("\n")

    def worktrees(self) -> tuple[WorktreeEntry, ...]:
        """Return every worktree on record, the clone itself first."""
        records = self._out("worktree", "list", "--porcelain", "-z").split("\0\0")
        return tuple(_worktree_entry(record) for record in records if record.strip("\0"))

    def add_worktree(self, path: Path, branch: str) -> None:
        """Check the local `branch` out at `path`, which must be missing or empty."""
        args = ("worktree", "add", "--quiet", str(path), branch)
        call(self.repo, *args, timeout_s=CHECKOUT_S, settings=self.access)

    def remove_worktree(self, path: Path, *, force: bool = False) -> None:
        """Remove a clean worktree, or the record of a missing one; a dirty one by `force`."""
        call(self.repo, "worktree", "remove", *(["--force"] if force else []), str(path))

    def unlock_worktree(self, path: Path) -> None:
        """Undo `git worktree lock`, also git's own one while it makes a worktree."""
        call(self.repo, "worktree", "unlock", str(path))

    def repair_worktrees(self) -> None:
        """Have the worktrees find the clone again after that was moved: git-worktree(1)."""
        call(self.repo, "worktree", "repair")

    def restore(self) -> None:
        """Give every tracked file the content of HEAD, after an interrupted checkout."""
        args = ("reset", "--quiet", "--hard", "HEAD")
        call(self.repo, *args, timeout_s=CHECKOUT_S, settings=self.access)

    def status(self) -> tuple[str, ...]:
        """Return paths with uncommitted changes, with untracked ones that are not ignored."""
        return tuple(line[3:] for line in self.status_lines())

    def status_lines(self) -> tuple[str, ...]:
        """Return them as `git status --short` does: two letters and a blank before each path."""
        args = ("--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=none")
        result = call(self.repo, "status", "--no-renames", *args)
        return tuple(entry for entry in result.stdout.split("\0") if entry)

    def find_conflicts(self, base: str, head: str) -> tuple[str, ...]:
        """Return the files that would conflict if `head` was merged into `base`."""
        args = ("--write-tree", "--name-only", "--no-messages", "-z", base, head)
        result = call(self.repo, "merge-tree", *args, accept=(0, 1))
        files = result.stdout.split("\0")[1:] if result.code else ()
        return tuple(dict.fromkeys(filter(None, files)))

    def make_merge(self, ours: str, theirs: str, message: str) -> str:
        """Commit a merge of `theirs` into `ours` that has no conflict; no branch or file changes.

        It is signed if the user's commits are.
        """
        tree = self._out("merge-tree", "--write-tree", "--no-messages", ours, theirs)
        is_signed = self.setting("commit.gpgsign").lower() in ("true", "yes", "on", "1")
        parents = ("-p", ours, "-p", theirs)
        return self._out("commit-tree", *["-S"] * is_signed, *parents, "-m", message, tree)

    def git_dir(self) -> Path:
        """Return where git keeps what belongs to this worktree alone."""
        return Path(self._out("rev-parse", "--absolute-git-dir"))

    def common_dir(self) -> Path:
        """Return where git keeps what all worktrees of the repository share."""
        args = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        return Path(self._out(*args))

    def forward(self, rev: str) -> None:
        """Move the checked out branch and its files forward to `rev`."""
        args = ("merge", "--quiet", "--ff-only", rev)
        call(self.repo, *args, timeout_s=CHECKOUT_S, settings=self.access)

    def switch_to(self, rev: str) -> None:
        """Check `rev` out without a branch; git refuses to overwrite a file."""
        args = ("switch", "--quiet", "--detach", rev)
        call(self.repo, *args, timeout_s=CHECKOUT_S, settings=self.access)

    def _out(self, *args: str) -> str:
        return call(self.repo, *args).stdout.rstrip("\n")


def _worktree_entry(record: str) -> WorktreeEntry:
    fields: dict[str, str] = {}
    for line in record.strip("\0").split("\0"):
        key, _, value = line.partition(" ")
        fields[key] = value
    return WorktreeEntry(
        path=Path(fields["worktree"]),
        head=fields.get("HEAD", ""),
        branch=fields["branch"].removeprefix("refs/heads/") if "branch" in fields else None,
        bare="bare" in fields,
        locked=fields.get("locked"),
    )
