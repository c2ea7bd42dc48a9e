"""A database, on the public MCP server for SQLite."""

from __future__ import annotations

from muarl.domains.mcp.scenarios.sqlite.domain import SqliteDomain
from muarl.domains.mcp.scenarios.sqlite.intents import SERVICE
from muarl.environments.service import environment

SQLITE = environment(
    SERVICE,
    about="A database, on the public MCP server for SQLite.",
    domain=lambda size: SqliteDomain(size),
    on_server=True,
)
