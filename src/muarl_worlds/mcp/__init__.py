"""Scenarios on public MCP servers."""
