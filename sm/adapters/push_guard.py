"""Keeps an agent's git from pushing to other remotes of the clone than the one it works with.

The settings go into the agent's environment alone (git-config(1), GIT_CONFIG_COUNT), so a person's
pushes from the same clone are as before. An agent that removes them, or spells the address in a way
of its own, is not stopped: it runs as its user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sm.adapters.git_call import call
from sm.adapters.process import ANY_CODE

Settings = tuple[tuple[str, str], ...]

ADDRESS = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]+@)?(?P<host>[^/:@]+)/"
    r"|(?:[^/@:]+@)?(?P<scp>[^/:@]+):(?!/))(?P<path>.+)"
)
"""A repository on a server: as a URL without a port, or as ssh and scp name it."""

SPELLINGS = (
    *("https://{host}/{path}", "http://{host}/{path}", "git://{host}/{path}"),
    *("ssh://git@{host}/{path}", "ssh://{host}/{path}", "git@{host}:{path}", "{host}:{path}"),
)


class Remote(Struct, frozen=True):
    """A remote: its addresses as the clone's configuration has them, and as git expands them.

    `pushed` are those of `remote.NAME.pushurl`, `target` is where a push goes.
    """

    name: str
    urls: tuple[str, ...]
    pushed: tuple[str, ...] = ()
    expanded: tuple[str, ...] = ()
    target: str = ""

    @property
    def addresses(self) -> frozenset[str]:
        """All addresses of it."""
        return frozenset((*self.urls, *self.pushed, *self.expanded))


def list_push_settings(repo: Path, used: str) -> Settings:
    """Return the settings for an agent's git that pushes to the remote `used`.

    Raises:
        SmError: git cannot read the clone.

    """
    return refuse_pushes(list_remotes(repo), used)


def list_remotes(repo: Path) -> tuple[Remote, ...]:
    """Return the remotes of the clone.

    Raises:
        SmError: git cannot read the clone.

    """
    asked = ("config", "--null", "--get-regexp", r"^remote\..+\.(url|pushurl)$")
    found: dict[str, dict[str, list[str]]] = {}
    for entry in call(repo, *asked, accept=(0, 1)).stdout.split("\0")[:-1]:
        key, _, value = entry.partition("\n")
        name, _, kind = key.removeprefix("remote.").rpartition(".")
        found.setdefault(name, {}).setdefault(kind, []).append(value)
    return tuple(_open(repo, name, kinds) for name, kinds in found.items())


def _open(repo: Path, name: str, kinds: Mapping[str, list[str]]) -> Remote:
    fetched, pushed = (
        call(repo, "remote", "get-url", "--all", *option, name, accept=tuple(ANY_CODE)).lines
        for option in ((), ("--push",))
    )
    return Remote(
        name,
        urls=tuple(kinds.get("url", ())),
        pushed=tuple(kinds.get("pushurl", ())),
        expanded=(*fetched, *pushed),
        target=next(iter(pushed), ""),
    )


def refuse_pushes(remotes: Iterable[Remote], used: str) -> Settings:
    """Return the settings that make each push to a remote but `used` fail with a sentence."""
    every = {one.name: one for one in remotes}
    ours = every.pop(used, Remote(used, ()))
    return tuple(dict.fromkeys(_refuse(every.values(), ours)))


def _refuse(others: Collection[Remote], ours: Remote) -> Iterator[tuple[str, str]]:
    fetched = {url for one in (*others, ours) for url in one.urls} | ours.addresses
    for other in others:
        place = make_refusal(other.name, ours.name)
        prefixes = {text for url in other.addresses for text in _spell(url)} - ours.addresses
        for prefix in sorted(prefixes):
            yield f"url.{place}.pushInsteadOf", prefix
            # The longest match counts: what is pushed to our remote goes where it went before.
            for url in sorted(ours.addresses):
                if url.startswith(prefix) and ours.target:
                    yield f"url.{ours.target}.pushInsteadOf", url
        for url in other.pushed:  # git looks for no pushInsteadOf where there is a pushurl
            if not any(one.startswith(url) for one in fetched):
                yield f"url.{place}.insteadOf", url


def _spell(url: str) -> Iterator[str]:
    """Yield the beginnings of the ways to write a repository's address, with and without `.git`."""
    if not (found := ADDRESS.fullmatch(url)):
        yield url
        return
    host, path = found["host"] or found["scp"], found["path"].rstrip("/").removesuffix(".git")
    yield url.rstrip("/").removesuffix(".git")
    for form in SPELLINGS:
        yield form.format(host=host, path=path)


def make_refusal(other: str, used: str) -> str:
    """Return the address that such a push is sent to: a path that nobody has, and a sentence.

    Git quotes it as it fails. It needs no program, which an agent's shell might not find. The
    slashes have git take it for a path (git-push(1), GIT URLS).
    """
    return f"/sm: agents do not push to {other}, push to {used} instead: git push {used} HEAD/"


def list_open(repo: Path, used: str) -> list[str]:
    """Return the remotes that an agent's push by name would reach all the same, as git tells it."""
    remotes = list_remotes(repo)
    settings = refuse_pushes(remotes, used)
    return [one.name for one in remotes if one.name != used and _reaches(repo, one.name, settings)]


def _reaches(repo: Path, name: str, settings: Settings) -> bool:
    said = call(repo, "remote", "get-url", "--push", "--all", name, settings=settings)
    return any(not line.startswith("/sm: ") for line in said.lines)
