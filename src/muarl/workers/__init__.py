"""Processes that work for a run: on this machine, and on a cluster."""
