"""Worlds that come with muarl: benchmarks with their official tasks and scores, services, companies, MCP servers."""
