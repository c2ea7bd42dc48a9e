"""A repository, on the public MCP server for git."""

from __future__ import annotations

from muarl.domains.mcp.scenarios.git.domain import GitDomain
from muarl.domains.mcp.scenarios.git.intents import SERVICE
from muarl.environments.service import environment

GIT = environment(
    SERVICE,
    about="A repository, on the public MCP server for git.",
    domain=lambda size: GitDomain(size),
    on_server=True,
)
