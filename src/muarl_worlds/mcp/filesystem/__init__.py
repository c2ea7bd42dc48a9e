"""A team's shared folder, on the filesystem server."""
