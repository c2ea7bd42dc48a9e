"""``muarl view``: a run's folder as pages to read, served on this machine or written as files."""
