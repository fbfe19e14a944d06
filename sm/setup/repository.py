"""Troubles of a clone that keep agents from working on it as its owner does, and their remedies.

`sm init` and `sm doctor` name them before an agent meets them. A trouble that `sm` can settle by
itself is not here: it is settled where the worktree, the hub or the configuration is made.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import lfs, submodules
from sm.adapters.forge.local.entry import find_bare
from sm.adapters.git import Git
from sm.adapters.git_call import call, make_environment
from sm.adapters.git_files import list_tracked
from sm.adapters.process import ANY_CODE, CommandTimeoutError, ask
from sm.adapters.push_guard import list_open
from sm.adapters.tmux import select_plain_environment
from sm.base.errors import SmError
from sm.base.text import one_line
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.setup import discover

SIGN_S = 10.0
SHELL_WORDS = re.compile(r"[|&;<>()$`\\\"'\s]")


class Trouble(Struct, frozen=True):
    """Obstacle, and what helps."""

    what: str
    advice: str


class Clone(Struct, frozen=True):
    """Clone of a project, as the checks look at it."""

    project: ProjectSettings

    @property
    def git(self) -> Git:
        """Git in the clone."""
        return Git(self.project.repo)

    @property
    def words(self) -> str:
        """Beginning of a command line about the clone."""
        return f"git -C {shlex.quote(str(self.project.repo))}"

    @property
    def tip(self) -> str:
        """Ref that agents begin from, as far as the clone has it; '' for none."""
        name = self.project.primary_branch
        refs = (f"refs/remotes/{self.project.remote}/{name}", f"refs/heads/{name}")
        return next((ref for ref in refs if self.git.rev_parse(ref)), "")

    @property
    def hub(self) -> Path | None:
        """Repository on this machine that agents push to, if the forge is the embedded one."""
        if not isinstance(self.project.forge, LocalSettings):
            return None
        return find_bare(self.project.repo, self.read_url())

    def read_url(self, *, push: bool = False) -> str:
        """Return where the remote leads, with a person's `insteadOf`; '' if there is none."""
        args = ("remote", "get-url", *(["--push"] if push else []), self.project.remote)
        said = call(self.project.repo, *args, accept=tuple(ANY_CODE))
        return said.stdout.removesuffix("\n") if said.code == 0 else ""


def list_troubles(project: ProjectSettings) -> Iterator[Trouble]:
    """Yield all troubles; for a check that fails itself, the reason."""
    clone = Clone(project)
    for look in LOOKS:
        try:
            yield from look(clone)
        except SmError as error:
            yield Trouble(one_line(error.message), "mend it, and run sm doctor again")


def _bareness(clone: Clone) -> Iterator[Trouble]:
    """Find a clone that calls itself bare, as an editor or a script has set it by mistake."""
    if clone.git.setting("core.bare") == "true" and (clone.project.repo / ".git").is_dir():
        yield Trouble(
            f"'{clone.project.repo}' has files, and calls itself bare: git status fails there",
            f"{clone.words} config core.bare false",
        )


def _branch_names(clone: Clone) -> Iterator[Trouble]:
    project = clone.project
    branch = project.branch(0)
    where = ("refs/heads", f"refs/remotes/{project.remote}")
    others = (clone.git.find_branch_in_the_way(branch, one) for one in where)
    if other := next(filter(None, others), ""):
        yield Trouble(
            f"git cannot have the branches '{project.branch_prefix}/…' beside '{other}'",
            f"rename it: git branch -m {other} NEW; or set another 'branch_prefix'",
        )


def is_relative(url: str) -> bool:
    """Say whether a remote is a path that leads elsewhere from each folder, as from a worktree."""
    return bool(url) and not url.startswith("/") and not re.match(r"[^/]*:", url)


def _remote(clone: Clone) -> Iterator[Trouble]:
    project, url, push = clone.project, clone.read_url(), clone.read_url(push=True)
    for one, option in ((url, ""), (push, "--push ")):
        if is_relative(one) and (one != url or not option):
            place = shlex.quote(os.path.normpath(project.repo / one))
            yield Trouble(
                f"remote '{project.remote}' is '{one}', which leads elsewhere from a worktree",
                f"{clone.words} remote set-url {option}{project.remote} {place}",
            )
    if (hub := clone.hub) and push != url and find_bare(project.repo, push) != hub:
        yield Trouble(
            f"what is pushed to '{project.remote}' goes to '{one_line(push)}', not to the hub "
            f"'{hub}': the work of agents never arrives",
            f"{clone.words} remote set-url --push {project.remote} {shlex.quote(str(hub))}; "
            "a 'pushInsteadOf' in your git configuration does the same",
        )


def _other_remotes(clone: Clone) -> Iterator[Trouble]:
    """Find a `pushurl` that is also fetched from: it cannot be turned away by itself."""
    for name in list_open(clone.project.repo, clone.project.remote):
        yield Trouble(
            f"agents are only asked not to push to '{name}': its push address is also fetched from",
            f"if its 'pushurl' is its 'url': {clone.words} config --unset-all "
            f"remote.{name}.pushurl",
        )


def _remote_head(clone: Clone) -> Iterator[Trouble]:
    name = f"refs/remotes/{clone.project.remote}/HEAD"
    said = call(clone.project.repo, "symbolic-ref", "--quiet", name, accept=tuple(ANY_CODE))
    target = said.stdout.strip()
    if said.code == 0 and clone.git.rev_parse(target) is None:
        yield Trouble(
            f"'{clone.project.remote}/HEAD' is '{target.removeprefix('refs/remotes/')}', which "
            "is no branch any more",
            f"{clone.words} remote set-head {clone.project.remote} --auto",
        )


def _submodules(clone: Clone) -> Iterator[Trouble]:
    project, store = clone.project, clone.git.common_dir()
    every = submodules.list_submodules(project.repo, clone.tip or "HEAD")
    if missing := [one.path for one in every if not submodules.find_url(store, one.name)]:
        shown = ", ".join(f"'{one_line(path)}'" for path in missing[:3])
        yield Trouble(
            f"your clone has not set up {shown}, so agents and CI get empty folders",
            f"{clone.words} submodule update --init --recursive",
        )


def _large_files(clone: Clone) -> Iterator[Trouble]:
    if not clone.tip or not lfs.is_used(clone.project.repo, clone.tip):
        return
    if not lfs.is_installed():
        yield Trouble(
            "it has files of Git LFS, and git-lfs is not installed: agents and CI get pointers",
            f"install git-lfs, then {clone.words} lfs install && {clone.words} lfs pull",
        )
        return
    if not clone.git.setting("filter.lfs.process") and not clone.git.setting("filter.lfs.smudge"):
        yield Trouble(
            "it has files of Git LFS, and git is not set up for it: agents and CI get pointers",
            f"git lfs install, then {clone.words} lfs pull",
        )
        return
    path = ("rev-parse", "--path-format=absolute", "--git-path", "hooks/pre-push")
    hook = Path(call(clone.project.repo, *path).stdout.removesuffix("\n"))
    if not hook.is_file() or "lfs" not in hook.read_text(errors="replace"):
        yield Trouble(
            f"the hook '{hook}' does not call git lfs, so the large files that agents push stay "
            "behind",
            f"{clone.words} lfs install --local; with core.hooksPath, add git lfs pre-push to it",
        )
    hub = clone.hub
    has_server = hub is None or _has_server(clone)
    if hub and not has_server and (missing := lfs.list_missing(clone.project.repo, hub, clone.tip)):
        yield Trouble(
            f"the hub lacks large files, as '{one_line(missing[0])}': CI cannot check out",
            f"{clone.words} lfs push --all {clone.project.remote} {clone.project.primary_branch}",
        )


def _has_server(clone: Clone) -> bool:
    """Whether large files go to a server of their own, by configuration or by the branch."""
    if clone.git.setting("lfs.url"):
        return True
    args = ("config", "--no-includes", "--blob", f"{clone.tip}:.lfsconfig", "--get", "lfs.url")
    return bool(call(clone.project.repo, *args, accept=tuple(ANY_CODE)).stdout.strip())


def _filters(clone: Clone) -> Iterator[Trouble]:
    """Find other filters, such as git-crypt.

    If a filter is `required`, git makes no worktree without it.
    """
    used = lfs.list_filters(clone.project.repo, clone.tip) - {lfs.NAME} if clone.tip else ()
    for name in sorted(used):
        process = clone.git.setting(f"filter.{name}.process")
        line = process or clone.git.setting(f"filter.{name}.smudge")
        program = SHELL_WORDS.split(line.strip(), maxsplit=1)[0]
        if program and shutil.which(program) is None:
            yield Trouble(
                f"filter '{name}' of .gitattributes runs '{program}', which is not on PATH",
                "install it: without it agents get unfiltered files, or no worktree at all",
            )


def _hooks(clone: Clone) -> Iterator[Trouble]:
    """Find hooks in a folder that only the clone has, as husky makes one."""
    repo, path = clone.project.repo, clone.git.setting("core.hooksPath")
    if not path or path.startswith(("/", "~")) or clone.project.new_worktree.setup is not None:
        return
    folder = repo / path
    if folder.is_dir() and any(folder.iterdir()) and not list_tracked(folder, "*"):
        yield Trouble(
            f"git's hooks are in '{path}', which git does not hold: no hook runs in a worktree",
            "have 'worktree.setup' make it (as npm ci does for husky), or set it to '' if agents "
            "need none",
        )


def _signing(clone: Clone) -> Iterator[Trouble]:
    """Try to sign something without a terminal or a display, as an agent has to; keep nothing."""
    if clone.git.setting("commit.gpgsign").lower() not in ("true", "yes", "on", "1"):
        return
    tree = clone.git.empty_tree
    line = ("commit-tree", "-S", "-m", "sm doctor tries a signature", tree)
    repo = clone.project.repo
    env = make_environment(repo, select_plain_environment())
    try:
        made = ask(
            *("git", "-C", str(repo), *line), env=env, timeout_s=SIGN_S, accept=tuple(ANY_CODE)
        )
    except CommandTimeoutError:
        said = "it waits for a passphrase"
    else:
        if made.code == 0:
            return
        said = one_line(made.stderr.strip().splitlines()[-1] if made.stderr.strip() else "")
    yield Trouble(
        f"commits are to be signed, and that fails without a person: {said}",
        "give agents a key that needs none, or set in 'agent.env': GIT_CONFIG_COUNT: '1', "
        "GIT_CONFIG_KEY_0: commit.gpgsign, GIT_CONFIG_VALUE_0: 'false'",
    )


def _needs(clone: Clone) -> Iterator[Trouble]:
    project, wanted = clone.project, clone.project.new_worktree
    if not wanted.copy and (found := discover.find_ignored(project.repo)):
        shown = ", ".join(f"'{one_line(name)}'" for name in found[:3])
        yield Trouble(
            f"worktrees of agents lack {shown}, which git ignores",
            "name what agents need in 'worktree.copy'",
        )
    if wanted.setup is None and (line := discover.guess_setup(project.repo)):
        yield Trouble(
            "worktrees of agents have no installed packages",
            f"set 'worktree.setup', perhaps to '{line}'; to '' if agents need none",
        )


def find_branch_prefix(repo: Path, remote: str, wanted: str) -> str:
    """Return a prefix that no other branch of the clone rules out: `wanted` if it will do."""
    git = Git(repo)
    for prefix in (wanted, *SPARE_PREFIXES):
        where = ("refs/heads", f"refs/remotes/{remote}")
        if not any(git.find_branch_in_the_way(f"{prefix}/0", one) for one in where):
            return prefix
    return wanted


SPARE_PREFIXES = ("agent", "sm")


LOOKS: tuple[Callable[[Clone], Iterator[Trouble]], ...] = (
    _bareness,
    _branch_names,
    _remote,
    _other_remotes,
    _remote_head,
    _submodules,
    _large_files,
    _filters,
    _hooks,
    _signing,
    _needs,
)
"""Checks in the order of the output."""
