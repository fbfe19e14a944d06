"""`sm notifier`: what the process is that sends what waits."""

from __future__ import annotations

from pathlib import Path

import click

from sm.store.paths import Root
from sm.store.root_check import check_root


@click.command("notifier")
@click.argument("root", type=click.Path(path_type=Path))
def command(root: Path) -> None:
    """Send what waits in the state root ROOT, and end when nothing is due soon."""
    from sm.plugins.notify.notifier import run
    from sm.plugins.notify.outbox import Post

    run(Post(check_root(Root(root))))
