"""A database, on the public MCP server for SQLite."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.mcp.sqlite.domain import SqliteDomain
from muarl_worlds.mcp.sqlite.intents import SERVICE

SQLITE = environment(
    SERVICE,
    about="A database, on the public MCP server for SQLite.",
    domain=lambda size: SqliteDomain(size),
    on_server=True,
)
