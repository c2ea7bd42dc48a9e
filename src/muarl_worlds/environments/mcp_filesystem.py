"""A folder of files, on the public MCP server for files."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.mcp.filesystem.domain import FilesystemDomain
from muarl_worlds.mcp.filesystem.intents import SERVICE

FILESYSTEM = environment(
    SERVICE,
    about="A folder of files, on the public MCP server for files.",
    domain=lambda size: FilesystemDomain(size),
    on_server=True,
)
