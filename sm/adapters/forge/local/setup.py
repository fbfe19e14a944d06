"""Sets a forge's folder up, and finds out what belongs to one that is there."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from sm.adapters.forge.local.repository import BareRepository
from sm.base.errors import SmError, StateError, UsageError
from sm.store.bounded import UnboundedError, parse_yaml_texts
from sm.store.files import follow_links, read_guarded, write_atomic

FORMAT = 1
HOOK_NAME = "post-receive"
HOOK_NOTE = "# sm: tells the monitors that something was pushed"
SETTINGS_LIMIT = 64 * 1024
"""Limit of `forge.yaml`, in bytes."""
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")


def create(folder: Path, repository: Path) -> bool:
    """Make `folder` the forge of the bare `repository`; do what is still missing.

    Returns whether the repository tells of pushes. It does not if it has a hook of its own that is
    no shell script; then a push is noticed when the forge is next looked at.

    Raises:
        UsageError: the folder is the forge of another repository.
        SmError: it cannot be written.

    """
    try:
        for name in ("issues", "pulls", "checks"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "stamp").touch(0o644)
        settings = folder / "forge.yaml"
        if not settings.exists():
            import yaml

            place = os.path.relpath(follow_links(repository), follow_links(folder))
            values = yaml.safe_dump({"format": FORMAT, "repository": place}, sort_keys=False)
            remark = "# The bare repository is named relative to this folder.\n"
            write_atomic(settings, remark + values, durable=True)
        elif follow_links(read_settings(folder)) != follow_links(repository):
            raise UsageError(f"'{folder}' is the forge of another repository: see '{settings}'")
        return _install_hook(BareRepository(repository), folder / "stamp")
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise SmError(f"cannot set up the forge '{folder}': {reason}") from error


def read_settings(folder: Path) -> Path:
    """Return the bare repository that belongs to the forge in `folder`.

    Raises:
        UsageError: there is no forge in that folder, or no repository beside it.
        StateError: its settings are damaged, or of a later version of sm.

    """
    import yaml

    path = folder / "forge.yaml"
    data = read_guarded(path, SETTINGS_LIMIT + 1)
    if data is None:
        raise UsageError(f"there is no forge in '{folder}': run 'sm init' to set one up")
    try:
        said = parse_yaml_texts(data.decode("utf-8-sig"), SETTINGS_LIMIT)
    except UnboundedError as error:
        raise StateError(f"'{path}' cannot be used: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StateError(f"'{path}' is no YAML: write 'format: {FORMAT}' into it") from error
    if not isinstance(said, dict) or not isinstance(said.get("repository"), str):
        raise StateError(f"'{path}' names no repository: add 'repository: ../repo.git'")
    if said.get("format") != str(FORMAT):
        raise StateError(f"'{path}' has a format other than {FORMAT}: use the sm that made it")
    repository = Path(os.path.abspath(folder / said["repository"]))  # noqa: PTH100 - links stay
    if not os.path.isfile(repository / "HEAD"):  # noqa: PTH113 - no error for what cannot be a path
        raise UsageError(
            f"there is no bare repository '{repository}', which '{path}' names: put it back"
        )
    return repository


def _install_hook(repository: BareRepository, stamp: Path) -> bool:
    found = repository.git("rev-parse", "--git-path", f"hooks/{HOOK_NAME}").stdout.strip()
    home = follow_links(repository.path)
    hook = follow_links(home / found)
    if not hook.is_relative_to(home):
        return False  # hooks that several repositories share are none of our business
    place = shlex.quote(os.path.relpath(follow_links(stamp), home))
    line = f"touch -- {place} 2>/dev/null || : {HOOK_NOTE}"
    text = hook.read_text("utf-8", "surrogateescape") if hook.exists() else "#!/bin/sh\n"
    if HOOK_NOTE not in text:
        first, _, rest = text.partition("\n")
        interpreter = Path(first.removeprefix("#!").split()[-1]).name if first[2:].strip() else ""
        if not first.startswith("#!") or interpreter not in SHELLS:
            return False
        # Above what is there: a hook of one's own may well end in 'exec' or 'exit'.
        hook.parent.mkdir(exist_ok=True)
        data = f"{first}\n{line}\n{rest}".encode("utf-8", "surrogateescape")
        write_atomic(hook, data)
    hook.chmod(0o755)
    return True
