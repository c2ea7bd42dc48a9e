"""A repository, on the public MCP server for git."""

from __future__ import annotations

from muarl.environments.service import environment
from muarl_worlds.mcp.git.domain import GitDomain
from muarl_worlds.mcp.git.intents import SERVICE

GIT = environment(
    SERVICE,
    about="A repository, on the public MCP server for git.",
    domain=lambda size: GitDomain(size),
    on_server=True,
)
