"""Options and messages of the commands that serve: `muarl serve`, `muarl env serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muarl.observe.terminal import clear, echo

Host = Annotated[
    str,
    typer.Option("--host", help="Address to listen on. Beyond loopback, other machines can connect with the token."),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")]
Queue = Annotated[int, typer.Option("--queue", min=0, help="Maximum queued requests; further ones get status 429.")]
Grace = Annotated[float, typer.Option("--grace", min=0, help="Seconds that what is running has to finish at shutdown.")]
AllowedHosts = Annotated[
    list[str] | None, typer.Option("--allow-host", help="Additional host name of this machine (repeatable).")
]
MaxBody = Annotated[int, typer.Option("--max-body", min=1, help="Largest request, in MiB.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-to", help="Write the token to this file (mode 600) instead of printing it.")
]


def tell_ready(what: str, token: str, variable: str, token_to: Path | None, *, exposed: str | None) -> None:
    """Say what is served, and write its token to a file or say it, unless it came from the environment variable
    ``variable``. ``exposed``: the address, where others than this machine can reach it."""
    from muarl.basics.keys import is_named
    from muarl.basics.web.addresses import save_token

    clear()  # it runs from now on
    if token_to is not None:
        save_token(token_to, token)
    echo(f"Serving {what}")
    if exposed is not None:
        echo(f"Listening on {exposed}: other machines can reach it, and everything is unencrypted.", err=True)
    if token_to is not None:
        echo(f"The token is in {token_to}")
    elif not is_named(variable):
        echo(f"Its token: {token}")
