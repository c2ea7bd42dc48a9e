"""Where a server listens, by which names it may be called, and the token that its clients need.

Nothing here imports a web server: a command can refuse an address before it loads anything.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from muarl.basics.errors import ConfigError
from muarl.basics.keys import is_loopback

SHORTEST = 16
"""Characters of a token, at least, where other machines can try."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens."""

    host: str
    port: int
    names: tuple[str, ...] | None = ()
    """Further names by which clients on other machines may call it; None: any name will do there."""
    own_port: bool = False
    """A Host header must also hold this port, which rules out forwarded ports."""

    @property
    def loopback(self) -> bool:
        """True if only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """The root that clients on this machine open, without a slash at the end."""
        host = _WILDCARDS.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def is_host(self, header: str) -> bool:
        """Whether a Host header names this server: by loopback or, where others can reach it, by an IP address (which
        nobody can point elsewhere) or by one of its names."""
        parts = split_host(header)
        if parts is None or (self.own_port and parts[1] != self.port):
            return False
        name = parts[0]
        if name in LOOPBACK_NAMES or name == self.host.lower():
            return True
        if self.loopback:
            return False
        if self.names is None or name in {n.lower() for n in (*self.names, socket.gethostname())}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def is_origin(self, header: str) -> bool:
        """Whether an Origin header names a page of this server."""
        try:
            parts = urlsplit(header)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and self.is_host(parts.netloc)


def split_host(header: str) -> tuple[str, int | None] | None:
    """The name in a Host header, in lower case and without an IPv6 address's brackets, and the port, None where none is
    given. None for what is no such header: a user before an @, say, which browsers and proxies read otherwise."""
    match = _HOST.fullmatch(header)
    if match is None or int(match[3] or 0) > 0xFFFF:
        return None
    return (match[1] or match[2]).lower(), int(match[3]) if match[3] else None


def token_for(host: str, token: str, variable: str) -> str:
    """The token that clients must send: the one given, else a new one. ``variable``: where a user sets it.

    ConfigError where other machines can reach the host, and no token, or one that can be guessed, was given.
    """
    if is_loopback(host):
        return token or secrets.token_urlsafe(24)
    if not token:
        raise ConfigError(
            f"--host {host} can be reached from other machines: set the token that clients must send in {variable}, or "
            f"name a file with it in {variable}_FILE"
        )
    if len(token) < SHORTEST:
        raise ConfigError(
            f"--host {host} can be reached from other machines: {variable} must hold a token of {SHORTEST} characters "
            "or more"
        )
    return token


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
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[4][:2], family=address[0], backlog=1024)
    except OSError as problem:
        raise ConfigError(
            f"--host {host} --port {port}: cannot be listened on ({problem.strerror or problem}); choose another "
            "port, or 0 for a free one"
        ) from None
