"""A conversation between agent, user and tools, and many of them at once."""
