"""`sm service`: what the process of a plugin's service is."""

from __future__ import annotations

import click

from sm.cli.options import pass_config
from sm.config.schema import Config
from sm.store.paths import Root
from sm.store.root_check import check_root


@click.command("service")
@click.argument("name")
@pass_config
def command(config: Config, name: str) -> None:
    """Be the service NAME of a plugin until it is to end; where it runs already, end at once."""
    from sm.helper.services import be_service

    be_service(check_root(Root(config.state_root)), name, config)
