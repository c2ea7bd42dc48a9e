"""BFCL multi-turn: eight API classes, and worlds made of them; in two revisions."""
