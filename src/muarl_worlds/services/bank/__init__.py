"""A bank: accounts, cards and payments."""
