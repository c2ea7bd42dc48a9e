"""A folder of files, on the public MCP server for files."""

from __future__ import annotations

from muarl.domains.mcp.scenarios.filesystem.domain import FilesystemDomain
from muarl.domains.mcp.scenarios.filesystem.intents import SERVICE
from muarl.environments.service import environment

FILESYSTEM = environment(
    SERVICE,
    about="A folder of files, on the public MCP server for files.",
    domain=lambda size: FilesystemDomain(size),
    on_server=True,
)
