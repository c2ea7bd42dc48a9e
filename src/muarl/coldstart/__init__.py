"""Synthesised conversations: filters, and the dataset that is made of them."""
