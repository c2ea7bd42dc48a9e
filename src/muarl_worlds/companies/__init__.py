"""Companies made from a seed, with rules in 50 to 700 documents; in three trades."""
