"""`sm poll`: called by bin/dev-poll."""

from __future__ import annotations

import time

import click

from sm.cli.options import pass_config, projects_option
from sm.config.schema import Config, Project
from sm.errors import SmError, TemporaryError
from sm.output import say
from sm.store.paths import Root
from sm.store.rootcheck import check_root


@click.command("poll", help="One tick; the last line is the seconds until the next one is due.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@projects_option
@pass_config
@click.pass_context
def command(
    click_context: click.Context, config: Config, projects: tuple[Project, ...], dry_run: bool
) -> None:
    """Tick every project; one that cannot be used does not keep the others waiting."""
    from sm.workflow.adhoc import keep_watched
    from sm.workflow.context import Context
    from sm.workflow.poll import tick

    code, root = 0, check_root(Root(config.state_root))
    for project in projects:
        now = time.strftime("%H:%M:%S")
        try:
            for line in tick(Context(config, project), dry_run=dry_run):
                say(f"{now} {project.name}: {line}")
        except SmError as error:
            say(f"{now} {project.name}: {error.message}", err=True)
            if not isinstance(error, TemporaryError):
                # Of several projects the others are worth going on for.
                code = error.exit_code if len(projects) == 1 else 1
    if not dry_run:
        for line in keep_watched(root):
            say(f"{time.strftime('%H:%M:%S')} {line}")
    say(f"{min(project.poll_interval_s for project in projects):g}")
    click_context.exit(code)
