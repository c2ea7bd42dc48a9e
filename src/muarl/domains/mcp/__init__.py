"""Real MCP servers as domains: each episode gets a server's tools over a folder of its own."""
