"""Domains whose rules, and some of whose tools, stand in documents that the agent must search."""
