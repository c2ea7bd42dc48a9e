"""Checks of environments, of tasks and of simulated users: each a list of rules, and what they share."""
