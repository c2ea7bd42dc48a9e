"""How an MCP server is reached, and what it may take: seconds, characters, bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from muarl.basics.errors import ConfigError

FOLDER = "{folder}"
"""Stands for the episode's own folder in a server's command, environment and fixed arguments."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a server may take before it counts as broken."""

    start: float = 30.0
    """Seconds until it has said hello."""
    call: float = 20.0
    """Seconds for one tool call."""
    output: int = 20_000
    """Characters of a tool's answer that are shown; the rest is cut, with a note."""
    wire: int = 8 << 20
    """Bytes that it may send in the course of one call; more is a flood, which ends the server."""

    def __post_init__(self) -> None:
        if min(self.start, self.call, self.output, self.wire) <= 0:
            raise ConfigError("the bounds of an MCP server (start, call, output, wire) must be positive")


@dataclass(frozen=True, slots=True)
class Launch:
    """One way to reach a server: a command that talks over its standard input and output, or the URL of one that
    runs."""

    name: str
    command: tuple[str, ...] = ()
    """May contain ``{folder}``."""
    env: tuple[tuple[str, str], ...] = ()
    """May contain ``{folder}``. The environment is the little that a program needs to run (PATH, and a home folder of
    its own), and this: no key of yours reaches a server unless you pass it."""
    url: str = ""
    token_env: str = ""
    """The environment variable with the bearer token for a URL."""
    keeps: Literal["folder", "process"] = "folder"
    """Where the server's state lives. "folder": in files, so that one process can serve one episode after the other,
    each with a fresh folder, and a server that died can be started again over the same files. "process": in its memory
    too, so that every episode gets a process (over HTTP: a session) of its own."""
    reuse: int = 200
    """How many episodes a process serves at most."""
    slow_reads: Literal["drop", "answer"] = "drop"
    """"drop" loses the episode when a call takes too long; "answer" tells the agent so where the call only reads, and
    starts the server again (for servers that an agent can keep busy itself)."""
    handshake: Literal["initialize", "discover"] = "initialize"
    """"initialize", which every server knows, or "discover", for those that know nothing else."""
    bounds: ServerLimits = ServerLimits()

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"MCP server {self.name}: give either a command or a url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"MCP server {self.name}: url must begin with http:// or https://, not {self.url!r}")
        if self.reuse < 1:
            raise ConfigError(f"MCP server {self.name}: reuse must be at least 1, not {self.reuse}")

    @property
    def episodes(self) -> int:
        """How many episodes one process (or session) serves."""
        return self.reuse if self.keeps == "folder" and self.command else 1


def filled(text: str, folder: Path) -> str:
    """The text with ``{folder}`` filled in."""
    return text.replace(FOLDER, str(folder))


def environment(launch: Launch, folder: Path, home: Path) -> dict[str, str]:
    """The whole environment of a server process."""
    plain = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}
    quiet = {"TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1", "NO_UPDATE_NOTIFIER": "1"}
    return plain | quiet | {name: filled(value, folder) for name, value in launch.env}


def over_http(name: str, url: str, *, token_env: str = "", bounds: ServerLimits = ServerLimits()) -> Launch:
    """A server that runs already and is reached at a URL. Every episode gets a session of its own."""
    return Launch(name, url=url, token_env=token_env, keeps="process", bounds=bounds)


def over_stdio(
    name: str,
    *command: str,
    env: Mapping[str, str] | None = None,
    keeps: Literal["folder", "process"] = "process",
    reuse: int = 200,
    slow_reads: Literal["drop", "answer"] = "drop",
    bounds: ServerLimits = ServerLimits(),
) -> Launch:
    """A server that is started for us. Unless it is known to keep its state in files, every episode gets a process."""
    pairs = tuple((env or {}).items())
    return Launch(name, tuple(command), pairs, keeps=keeps, reuse=reuse, slow_reads=slow_reads, bounds=bounds)
