"""A graph of notes, on the public MCP server for memory."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.mcp.memory.domain import MemoryDomain
from muarl_worlds.mcp.memory.intents import SERVICE

MEMORY = environment(
    SERVICE,
    about="A graph of notes, on the public MCP server for memory.",
    domain=lambda size: MemoryDomain(size),
    on_server=True,
)
