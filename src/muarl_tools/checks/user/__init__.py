"""``muarl user check``: is a simulated user fit for work? It plays with agents of several kinds."""
