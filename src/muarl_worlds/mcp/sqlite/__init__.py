"""A lending library, on the SQLite server."""
