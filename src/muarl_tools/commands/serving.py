"""Messages of the commands that serve: `muarl serve`, `muarl env serve`."""

from __future__ import annotations

from pathlib import Path

from muarl.observe.terminal import clear, echo


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
