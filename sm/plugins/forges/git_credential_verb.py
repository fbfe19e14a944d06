"""`sm git-credential`: what git asks for the token of a forge (`sm.adapters.forge.git_access`)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sm.adapters.forge.git_access import TokenPlace
from sm.adapters.token import TokenSource, read_token
from sm.base.output import pass_on

USER = "x-access-token"
"""User that GitHub wants beside a token; Forgejo and Gitea take any."""
LIMIT = 100_000
"""Characters of a question; git's own limit for a URL is below it."""


@click.command("git-credential")
@click.option("--place", "url", required=True, help="The repository's address, without '.git'.")
@click.option("--token-command", default="", help="Prints the token.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Has the token.")
@click.option("--token-env", default="", help="A variable with the token.")
@click.argument("operation")
def command(
    url: str, token_command: str, token_file: Path | None, token_env: str, operation: str
) -> None:
    """Tell git the token for one repository; OPERATION is git's word, and nothing is stored."""
    if operation != "get":
        return
    source = TokenSource(token_command, token_file, token_env)
    question = sys.stdin.buffer.read(LIMIT).decode("utf-8", "surrogateescape")  # "\r" as it is
    pass_on(answer(TokenPlace(url), source, question).encode())


def answer(place: TokenPlace, source: TokenSource, question: str) -> str:
    """Return what git is told that asks `question`, '' if it asks for something else.

    Its lines end in a newline and in nothing else: other signs that end lines may stand in a path,
    and what follows must not be taken for a second one.

    Raises:
        TokenError: there is no token.

    """
    asked = dict(line.split("=", 1) for line in question.split("\n") if "=" in line)
    if not place.takes(asked):
        return ""
    return f"username={USER}\npassword={read_token(source).secret}\n"
