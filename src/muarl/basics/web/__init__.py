"""What the servers of ``view``, ``serve``, ``env serve`` and ``mcp serve`` share, and the one place for their security.

``addresses``: sockets, tokens, the names that a Host header may hold. ``guard``: which requests reach an application.
``json_api``: errors as JSON, and clients who go away. ``server``: uvicorn with limits on time, stopped by signals or
from another thread.
"""
