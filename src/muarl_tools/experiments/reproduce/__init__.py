"""``muarl reproduce``: the paper's claims with small models, in four arms: base, cold start, RL, and both."""
