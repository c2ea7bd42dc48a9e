"""``muarl view``: a run's folder as pages; served on this machine or written as files."""
