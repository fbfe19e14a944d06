"""Root of the command line: a table of verbs, each imported only when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.nearest import advise
from sm.base.output import say
from sm.base.plugin import Verb
from sm.cli.invocation import Invocation, import_msgspec

COMMANDS: dict[str, Verb] = {
    "init": Verb("init", "Set a repository up: finds what it can, asks for the rest."),
    "config": Verb("config", "Check, show or allow the configuration."),
    "issue": Verb("issue", "File, list, show, edit and close issues."),
    "pr": Verb("pr", "List, show, check out and merge pull requests."),
    "ci": Verb("ci", "Have CI run again."),
    "sync": Verb("sync", "Exchange finished work with people on another remote."),
    "review": Verb("review", "Approve a pull request or request changes."),
    "reply": Verb("reply", "Answer an agent that waits for a person."),
    "status": Verb("status", "Show every session: phase, CI, review, age."),
    "needs": Verb("needs", "Show what waits for you, and the command that answers it."),
    "trace": Verb("trace", "Tell the whole story of a session, in order."),
    "events": Verb("events", "Print what happens, an event a line, for people and programs."),
    "logs": Verb("logs", "Show what a session's terminal said."),
    "attach": Verb("attach", "Enter a session's terminal."),
    "worktree": Verb("worktree", "List worktrees, drop those that were kept."),
    "recover": Verb("recover", "Restart a session's agent in its worktree."),
    "pause": Verb("pause", "Have agents rest: all, a project's, or one."),
    "resume": Verb("pause:resume", "Let go on what was paused."),
    "kill": Verb("kill", "End a session, or all; no work is lost."),
    "new": Verb("new", "Begin a session of your own, for no issue."),
    "send": Verb("send", "Send a message to a session's agent."),
    "queue": Verb("queue", "Show the messages of a session."),
    "wait": Verb("wait", "Wait until a session is idle, asks, or has ended."),
    "tail": Verb("tail", "Show the last lines of a session's screen."),
    "children": Verb("children", "Show which session has begun which."),
    "whoami": Verb("whoami", "Show which session this is."),
    "context": Verb("context", "Show how full the contexts are; set when that matters."),
    "handoff": Verb("handoff", "Replace your own context by a document."),
    "cycle": Verb("cycle", "Have a session write a handoff and go on in a new context."),
    "health": Verb("health", "Show what became of each replacement of a context."),
    "hooks": Verb("hooks", "Set up the agent CLI's hooks in your own settings."),
    "uninstall": Verb("uninstall", "Take away what sm has made on this machine."),
    "react": Verb("pass_verbs:react", "React to what happened in one session.", hidden=True),
    "react-server": Verb(
        "pass_verbs:serve_passes", "React, once for each line of input.", hidden=True
    ),
    "rotate": Verb("pass_verbs:rotate", "Carry on a session's rotation.", hidden=True),
    "watch": Verb("pass_verbs:watch", "Start the monitor of a session.", hidden=True),
    "news": Verb("pass_verbs:news", "Tell what has happened meanwhile.", hidden=True),
    "poll": Verb("poll", "One tick of dev-poll.", hidden=True),
    "start-session": Verb("start_session", "Start the session of one issue.", hidden=True),
    "service": Verb("service", "Be the service of a plugin.", hidden=True),
    "ci-run": Verb("ci_run", "Run the CI command for one commit.", hidden=True),
}
"""Verbs of the core: each the `command` of a module of this package, or what is named there."""


def list_verbs() -> dict[str, Verb]:
    """List every verb, in the order of the help: the core's, and those of plugins among them."""
    added = {
        name: part.entry
        for name, part in plugin.list_parts("verbs").items()
        if name not in COMMANDS
    }
    return arrange(COMMANDS, added)


def arrange(verbs: Mapping[str, Verb], added: Mapping[str, Verb]) -> dict[str, Verb]:
    """Put each verb that is `added` behind the one that it names, or else at the end."""
    order = list(verbs)
    waiting = dict(added)
    while ready := [name for name, verb in waiting.items() if verb.after in order]:
        for name in reversed(ready):
            order.insert(order.index(waiting.pop(name).after) + 1, name)
    known = {**verbs, **added}
    return {name: known[name] for name in [*order, *waiting]}


def knows(name: str) -> bool:
    """Whether a verb has that name; plugins are asked only if the core has none."""
    return name in COMMANDS or name in plugin.list_parts("verbs")


def load_verb(name: str) -> click.Command:
    """Return the command of a verb, imported now.

    Raises:
        UsageError: its module is missing, or the plugin that brings it has a fault.

    """
    if name not in COMMANDS:
        command = plugin.load_part("verbs", name)
    else:
        module, _, attribute = f"sm.cli.{COMMANDS[name].place}".partition(":")
        try:
            command = plugin.load(f"{module}:{attribute or 'command'}")
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise UsageError(f"'sm {name}' is missing from this installation") from error
    assert isinstance(command, click.Command)
    return command


class Verbs(click.Group):
    """Group whose commands are found by name; its help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names that a person may use, in the order of the help."""
        return [name for name, verb in list_verbs().items() if not verb.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, imported now."""
        if not knows(cmd_name):
            return None
        import_msgspec()
        return load_verb(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; an unknown name is answered with the nearest one."""
        if args and not args[0].startswith("-") and not knows(args[0]):
            meant = advise(args[0], self.list_commands(ctx), "see 'sm --help'")
            raise UsageError(f"no such command '{args[0]}': {meant}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Write help as click does.

        Click would import shutil with three archive formats for the width.
        """
        if ctx.terminal_width is None:
            ctx.terminal_width = max(min(_find_columns(), HELP_COLUMNS) - 2, 50)
        return super().get_help(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help without importing a verb."""
        rows = [(name, verb.help) for name, verb in list_verbs().items() if not verb.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


HELP_COLUMNS = 80
"""Width of click's help: no line is longer (`click.formatting.HelpFormatter`)."""


def _find_columns() -> int:
    """Find the width of the terminal, as `shutil.get_terminal_size` has it."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or HELP_COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # there is no stdout, or it is no terminal
        return HELP_COLUMNS


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    from sm.base.version import version

    if wanted and not ctx.resilient_parsing:
        say(f"sm {version()}")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Use this configuration; SM_CONFIG does the same.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context, config: Path | None) -> None:
    """Run coding agents, one tmux session and one git worktree per issue."""
    ctx.ensure_object(Invocation).explicit = config
