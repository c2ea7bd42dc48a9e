"""Addresses and tokens: what can be refused before anything is imported that serves."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from muarl.errors import ConfigError
from muarl.keys import is_loopback

TOKEN = "MUARL_SERVE_TOKEN"
"""The token that clients must send: in this variable, or in the file that it names with _FILE behind."""
SHORTEST = 16
"""Characters of a token, at least, where other machines can try."""


def token_for(host: str, given: str) -> str:
    """The token that clients must send: the one given, else a new one. ConfigError where that would not be safe."""
    if is_loopback(host):
        return given or secrets.token_urlsafe(24)
    if not given:
        raise ConfigError(
            f"--host {host} can be reached from other machines: set the token that clients must send in "
            "MUARL_SERVE_TOKEN, or name a file with it in MUARL_SERVE_TOKEN_FILE"
        )
    if len(given) < SHORTEST:
        raise ConfigError(f"--host {host} can be reached from other machines: a token of {SHORTEST} characters or more")
    return given


def save_token(path: Path, token: str) -> None:
    """Write the token into a file that nobody else can read. ConfigError if that cannot be."""
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
    except OSError as problem:
        raise ConfigError(f"--token-to {path}: cannot be written ({problem.strerror or problem})") from None


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. ConfigError if the address cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(found[4][:2], family=found[0], backlog=1024)
    except OSError as problem:
        raise ConfigError(
            f"--host {host} --port {port}: cannot be listened on ({problem.strerror or problem}); choose another "
            "port, or 0 for a free one"
        ) from None
