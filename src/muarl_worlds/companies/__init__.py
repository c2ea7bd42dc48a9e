"""Companies made from a seed, each with 50 to 700 documents that hold its rules, in three trades."""
