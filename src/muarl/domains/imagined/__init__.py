"""Tools played by a model: specs and policy of a real domain, and a ledger that keeps the model to its word."""
