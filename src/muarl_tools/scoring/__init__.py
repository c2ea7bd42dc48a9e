"""Recorded conversations and calls scored and run again, by the rules of their benchmarks."""
