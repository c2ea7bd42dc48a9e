"""What the authors of domains are told of mistakes that muarl can play on with."""

from __future__ import annotations


class AuthoringWarning(UserWarning):
    """Something in a domain or its tasks is probably not what its author means. The text names the remedy."""
