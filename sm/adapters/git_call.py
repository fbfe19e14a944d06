"""Calls git: limits the user's settings that it sees, names its failures, and retries some.

A person's own hooks run in the calls, those among the files of a branch do not. With a relative
`core.hooksPath`, as husky sets it, git takes hooks from the files that are checked out, or, in a
bare repository, from the folder that `sm` was called in. Then the author of a branch could have a
program run at each fetch, push, merge or checkout of `sm`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sm.adapters.process import (
    ANY_CODE,
    Beginning,
    CommandError,
    CommandTimeoutError,
    Result,
    ask,
    read_beginning,
)
from sm.adapters.retry import try_again
from sm.base.errors import SmError, TemporaryError
from sm.base.redact import redact

LOCAL_S = 120.0
"""Seconds for a call that stays on this machine; hooks of the user run within it."""

REMOTE_S = 60.0
"""Seconds for a call that talks to a remote."""

OPTIONS = ("-c", "color.ui=false", "-c", "core.fsmonitor=false")
"""A hook for fsmonitor may be a file of the branch, and its daemon would stay in each worktree."""

RETRIES = 4
RETRY_FOR_S = 15.0

KEPT = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
    }
)
"""Variables for how git behaves for this user. Every other GIT_* says where (a hook's GIT_DIR, an
index, object folders) and would lead us into another repository, or writes traces into what we
read."""

KEPT_PREFIXES = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSL_",
)

LOCK_FILE = re.compile(
    r"Unable to create '(?P<file>(?:(?!Unable to create ').)+\.lock)': File exists"
)
LOCK_CONFIG = re.compile(
    r"could not lock config file (?P<file>(?! )(?:(?!could not lock config file ).)+): File exists"
)
LOCK_RACE = re.compile(r"^error: cannot lock ref '(?P<file>.+)': is at ", re.MULTILINE)
"""Another git of this clone changed the ref just then; a remote's lines begin with `remote:`."""

HALF_MADE = re.compile(r"^fatal: failed to read (?P<folder>.+)/commondir: ", re.MULTILINE)
"""Another git just makes a worktree: while that file is empty, most commands fail so. Measured with
git 2.39.5, whose reason is `Success` then."""


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


class GitLockedError(TemporaryError):
    """Another git is at work on what we need, or was killed, and has left a lock behind."""


class RemoteUnreachableError(TemporaryError):
    """The remote does not answer, or refuses us."""


class NotARepositoryError(SmError):
    """The folder is missing or is no repository."""


class NoSuchRemoteError(SmError):
    """The repository has no remote of that name."""


class NoSuchBranchError(SmError):
    """The remote has no such branch or ref."""


def add_settings(env: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return `env` with names and values of git's configuration behind those that it has.

    They are in no file and no argument (git-config(1), ENVIRONMENT).
    """
    count = env.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdigit() else 0
    added = dict(env)
    for number, (name, value) in enumerate(settings, first):
        added |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return added | ({"GIT_CONFIG_COUNT": str(first + len(settings))} if settings else {})


def make_environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` for git: nothing that points elsewhere, no prompts, English texts."""
    kept = {
        name: value
        for name, value in env.items()
        if not name.startswith("GIT_") or name in KEPT or name.startswith(KEPT_PREFIXES)
    }
    return kept | {
        # A folder without a repository must not count as a part of the repository around it.
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        # `git status` must not take the index lock while the agent's git needs it.
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def call(
    folder: Path,
    *args: str,
    remote: str | None = None,
    stdin: bytes | None = None,
    accept: tuple[int, ...] = (0,),
    timeout_s: float | None = None,
    settings: Sequence[tuple[str, str]] = (),
    index: Path | None = None,
) -> Result:
    """Run git in `folder`; `remote` names the remote that it talks to, if any.

    `settings` are names and values of its configuration, beside those in its files. `index` is a
    file that it uses in place of the worktree's own index.
    It retries for a few seconds if a remote is unreachable or another git holds a lock.

    Raises:
        GitLockedError, RemoteUnreachableError: the last try failed, too.
        NotARepositoryError, NoSuchRemoteError, NoSuchBranchError: what the name says.
        CommandError: git failed for another reason.

    """

    def once() -> Result:
        return _once(folder, args, remote, stdin, accept, timeout_s, settings, index)

    passing = (GitLockedError, RemoteUnreachableError)
    return try_again(once, passing, tries=RETRIES, pauses_s=(0.1, 2), within_s=RETRY_FOR_S)


def call_for_beginning(folder: Path, *args: str, limit: int, timeout_s: float) -> Beginning:
    """Run git in `folder` for the first `limit` bytes of what it says.

    Raises:
        NotARepositoryError: what the name says.
        CommandError: git failed for another reason.

    """
    argv = ("git", "-C", str(folder), *OPTIONS, *args)
    env = make_environment(folder, os.environ)
    try:
        return read_beginning(*argv, limit=limit, timeout_s=timeout_s, env=env)
    except CommandError as error:
        raise _classify(error, folder, None) from error


def _once(
    folder: Path,
    args: tuple[str, ...],
    remote: str | None,
    stdin: bytes | None,
    accept: tuple[int, ...],
    timeout_s: float | None,
    settings: Sequence[tuple[str, str]],
    index: Path | None = None,
) -> Result:
    limit_s = timeout_s or (REMOTE_S if remote else LOCAL_S)
    try:
        return _git(folder, args, stdin, accept, limit_s, settings, index)
    except CommandTimeoutError as error:
        if remote is None:
            raise
        raise RemoteUnreachableError(f"remote '{remote}' of '{folder}': {error.message}") from error
    except CommandError as error:
        raise _classify(error, folder, remote) from error


def _git(
    folder: Path,
    args: tuple[str, ...],
    stdin: bytes | None,
    accept: tuple[int, ...],
    timeout_s: float,
    settings: Sequence[tuple[str, str]] = (),
    index: Path | None = None,
) -> Result:
    place = {"GIT_INDEX_FILE": str(index)} if index else {}
    env = add_settings(make_environment(folder, os.environ), settings) | place
    git = ("git", "-C", str(folder), *OPTIONS)
    return ask(
        *(*git, *refuse_foreign_hooks(git, args, env), *args),
        env=env,
        stdin=stdin,
        accept=accept,
        timeout_s=timeout_s,
    )


def _classify(error: CommandError, folder: Path, remote: str | None) -> SmError:
    """Return the failure by its name. If the exit code does not tell it, ask git."""
    said = error.result.stderr
    if locked := _find_locked(said, folder, (LOCK_FILE, LOCK_CONFIG, LOCK_RACE)):
        return locked
    if half_made := HALF_MADE.search(said):
        return GitLockedError(
            f"another git makes the worktree of '{half_made['folder']}', or was killed as it did: "
            "if nothing is at work there, remove that folder"
        )
    check = _git(folder, ("rev-parse", "--git-dir"), None, tuple(ANY_CODE), LOCAL_S)
    if check.code:
        return NotARepositoryError(
            f"'{folder}' cannot be used as a repository: {read_first_line(check)}"
        )
    if remote is None:
        return error
    return _named_remote(error, folder, remote)


def find_lock(error: CommandError, folder: Path) -> GitLockedError | None:
    """Return the failure as one of a lock file of the repository `folder`, if it is one."""
    return _find_locked(error.result.stderr, folder, (LOCK_FILE, LOCK_CONFIG))


def _find_locked(
    said: str, folder: Path, patterns: tuple[re.Pattern[str], ...]
) -> GitLockedError | None:
    if not (found := next((match for one in patterns if (match := one.search(said))), None)):
        return None
    return GitLockedError(
        f"'{found['file']}' is locked by another git, or by one that was killed: dev-poll removes "
        f"a lock that is a minute old and that no git in '{folder}' holds"
    )


def _named_remote(error: CommandError, folder: Path, remote: str) -> SmError:
    known = _git(folder, ("remote", "get-url", remote), None, tuple(ANY_CODE), LOCAL_S)
    if known.code:
        return NoSuchRemoteError(f"'{folder}' has no remote '{remote}': set 'remote' to one it has")
    reason = read_first_line(error.result)
    if "couldn't find remote ref" in reason:
        return NoSuchBranchError(f"remote '{remote}' of '{folder}': {reason}")
    if error.result.code == 128:
        return RemoteUnreachableError(f"cannot reach remote '{remote}' of '{folder}': {reason}")
    return error


def read_first_line(result: Result) -> str:
    """Return git's first complaint, without credentials; with its next line if that is a list."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if not line.lower().startswith("warning:"):
            listed = " ".join(lines[number + 1 : number + 2]) if line.endswith(":") else ""
            said = line.removeprefix("fatal: ").removeprefix("error: ")
            return redact(f"{said} {listed}".strip())
    return f"exit code {result.code}"


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
