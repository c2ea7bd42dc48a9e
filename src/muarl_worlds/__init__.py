"""Official tasks and scores, and the statistics of an evaluation."""
