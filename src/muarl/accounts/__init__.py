"""Counting: metrics, statistics, usage and budgets."""
