"""BFCL multi-turn: eight API classes in two revisions, and the worlds that are made of them."""
