"""Hostile and difficult users, and the tasks on which they are met: see docs/redteam.md."""
