"""Synthesised conversations: filters that decide which are kept, and the dataset that is made of them."""
