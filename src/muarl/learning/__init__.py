"""Learning from tokens: advantages, losses, packing, optimisers, and learners of one process or several."""
