"""A graph of notes, on the public MCP server for memory."""

from __future__ import annotations

from muarl.domains.mcp.scenarios.memory.domain import MemoryDomain
from muarl.domains.mcp.scenarios.memory.intents import SERVICE
from muarl.environments.service import environment

MEMORY = environment(
    SERVICE,
    about="A graph of notes, on the public MCP server for memory.",
    domain=lambda size: MemoryDomain(size),
    on_server=True,
)
