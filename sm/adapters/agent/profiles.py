"""Finds profiles: ours and those of plugins, with the configuration's changes and additions."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.base import plugin
from sm.base.errors import SmError, UsageError
from sm.config.convert import FoundSection, convert
from sm.config.read import ConfigDocument
from sm.config.schema import AgentSettings
from sm.store.paths import check_name

GENERIC = Profile(name="generic", interrupt_key="Escape")
"""Any program with an input line: it has no hooks, so only its screen shows its state."""
CODEX_APP = Profile(name="codex-app", terminal=False, prompt=(), leave=(), command_characters="")
"""The Codex app: a session that runs elsewhere, known by name, without a terminal."""

Overrides = Mapping[str, Mapping[str, Any]]
"""`profiles` of the configuration: the names, and the fields that each one sets."""

BUILTIN = {profile.name: profile for profile in (CLAUDE, CODEX, CODEX_APP, GENERIC)}
DEFAULT = CLAUDE.name
"""The profile of a project without a profile and a command."""

LIKE = "like"
PATTERNS = (
    *("busy", "placeholders", "dialog", "menu", "gone"),
    *("scrolled", "elided", "stashed", "clear_refused", "login"),
)
TEMPLATES = {
    "prompt": ("{prompt}",),
    "system_prompt": ("{file}", "{text}"),
    "settings": ("{file}", "{hooks}"),
    "resume": ("{context}",),
}
"""Fields with arguments, each with its placeholders: the arguments must contain at least one."""


class NoTerminalError(SmError):
    """The agent has no terminal, so sm cannot type into it or clear it."""


def resolve(agent: AgentSettings, overrides: Overrides) -> Profile:
    """Return the profile of a project's agent: the named one, else the one of its program.

    Raises:
        UsageError: there is no such profile, or one cannot be used.

    """
    if agent.profile:
        return find(agent.profile, overrides)
    return find_by_command(agent.command, overrides) if agent.command else find(DEFAULT, overrides)


def find_by_command(command: str, overrides: Overrides) -> Profile:
    """Return the profile of the program at the start of a command line, else the generic.

    Raises:
        UsageError: the profile cannot be used.

    """
    try:
        words = shlex.split(command)
    except ValueError:  # the check of the command reports it
        words = command.split()
    program = Path(words[0]).name if words else ""
    for profile in list_all(overrides):  # a person's own profiles come first
        if profile.program and profile.program == program:
            return profile
    return find(GENERIC.name, overrides)


def list_all(overrides: Overrides) -> Iterator[Profile]:
    """Yield all profiles, those of the configuration first, those of plugins last.

    Raises:
        UsageError: one of the configuration cannot be used.

    """
    for name in (*overrides, *(name for name in BUILTIN if name not in overrides)):
        yield find(name, overrides)
    for name, _ in plugin.load_parts("agents"):
        if name not in overrides and name not in BUILTIN:
            with contextlib.suppress(UsageError):  # sm doctor tells of it
                yield _find_given(name)


def find(name: str, overrides: Overrides) -> Profile:
    """Return the profile of that name.

    Raises:
        UsageError: there is none, or the configuration of it is invalid.

    """
    if name not in overrides:
        if _is_given(name):
            return _find_given(name)
        known = ", ".join(sorted({*BUILTIN, *plugin.list_parts("agents"), *overrides}))
        raise UsageError(f"no profile '{name}': there are {known}; others belong under 'profiles'")
    check_name(name, "profile")
    own = dict(overrides[name])
    like = own.pop(LIKE, name if _is_given(name) else GENERIC.name)
    if not isinstance(like, str) or not _is_given(like):
        names = ", ".join((*BUILTIN, *plugin.list_parts("agents")))
        raise UsageError(
            f"wrong value for 'profiles.{name}.{LIKE}': expected one of {names}, got '{like}'"
        )
    if "name" in own:
        raise UsageError(f"'profiles.{name}.name' cannot be set: its key is its name")
    entry = FoundSection(ConfigDocument(Path(), f"profiles.{name}", own), (), own, own)
    found = convert(entry, Profile)
    changes = {key: getattr(found, key) for key in own}
    profile = structs.replace(_find_given(like), **changes, name=name)
    for key, problem in _problems(profile):
        raise UsageError(f"wrong value for {entry.key((key,))}: {problem}")
    return profile


def _is_given(name: str) -> bool:
    return name in BUILTIN or name in plugin.list_parts("agents")


def _find_given(name: str) -> Profile:
    """Return our profile, or a plugin's, as it is without the configuration.

    Raises:
        UsageError: the plugin's cannot be used.

    """
    if name in BUILTIN:
        return BUILTIN[name]
    profile = plugin.load_part("agents", name)
    if not isinstance(profile, Profile):
        raise UsageError(f"the plugin's '{name}' is no sm.adapters.agent.profile.Profile")
    for field, problem in _problems(profile):
        raise UsageError(f"the plugin's profile '{name}' cannot be used: {field}: {problem}")
    return profile


def check_terminal(profile: Profile, what: str) -> None:
    """Refuse an act that needs a terminal if the agent has none; `what` names the act.

    Raises:
        NoTerminalError: the profile has none.

    """
    if not profile.terminal:
        raise NoTerminalError(
            f"{what} is not possible with '{profile.name}': it has no terminal that sm could type "
            "into, so do it in the app itself"
        )


def _problems(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield each field with a right type that still cannot be used, and the reason."""
    for check in CHECKS:
        yield from check(profile)


def _patterns(profile: Profile) -> Iterator[tuple[str, str]]:
    single = {"starting": (profile.starting,)} if profile.starting else {}
    for field, patterns in ({one: getattr(profile, one) for one in PATTERNS} | single).items():
        for pattern in patterns:
            try:
                compiled = re.compile(pattern.replace("{glyph}", re.escape(profile.glyph)))
            except (re.error, OverflowError) as error:
                yield field, f"'{pattern}' is no regular expression ({error})"
                continue
            if compiled.search(""):
                yield field, f"'{pattern}' is found in every row"


def _context(profile: Profile) -> Iterator[tuple[str, str]]:
    pattern = profile.context_pattern
    if not pattern:
        return
    try:
        compiled = re.compile(pattern.replace("{glyph}", re.escape(profile.glyph)))
    except (re.error, OverflowError) as error:
        yield "context_pattern", f"'{pattern}' is no regular expression ({error})"
        return
    if not compiled.groups:
        yield "context_pattern", f"'{pattern}' has no group around the percentage"


def _templates(profile: Profile) -> Iterator[tuple[str, str]]:
    for field, places in TEMPLATES.items():
        arguments = getattr(profile, field)
        if arguments and not any(place in one for place in places for one in arguments):
            yield field, f"{' or '.join(places)} must be in one of its arguments"


def _glyph(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.terminal and not profile.glyph.strip():
        yield "glyph", "it has no visible character"
    if len(profile.frame) > 1:
        yield "frame", "it must be a single character"
    if profile.terminal and not profile.submit_keys:
        yield "submit_keys", "without a key nothing can be sent"


KEY = re.compile(r"(?:[CMS]-)*[A-Za-z0-9]+")


def _keys(profile: Profile) -> Iterator[tuple[str, str]]:
    ones = {field: getattr(profile, field) for field in ("stash_key", "interrupt_key", "erase_key")}
    for field, key in (*ones.items(), *(("submit_keys", key) for key in profile.submit_keys)):
        if (key and not KEY.fullmatch(key)) or (not key and field == "submit_keys"):
            yield field, f"'{key}' is no key of tmux: C-s, Enter, Escape"


CHECKS: tuple[Callable[[Profile], Iterator[tuple[str, str]]], ...] = (
    _glyph,
    _keys,
    _patterns,
    _context,
    _templates,
)
