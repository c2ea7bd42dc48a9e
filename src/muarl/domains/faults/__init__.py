"""Worlds that fail as systems do: slow calls, outages, time-outs, answers that are cut, old, or of another version."""
