"""``muarl user``: simulated users."""

from __future__ import annotations

import typer

from muarl.commands.user_fit import fit

user = typer.Typer(no_args_is_help=True, help="Fit simulated users to logs of people.", rich_markup_mode="rich")
user.command("fit")(fit)


@user.callback()
def _group() -> None:
    """A group of its own."""
