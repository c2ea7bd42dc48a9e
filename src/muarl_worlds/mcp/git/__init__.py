"""A team's repository, on the git server."""
