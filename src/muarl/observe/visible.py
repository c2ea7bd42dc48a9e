"""Texts of others on a terminal: without characters that would steer it, or that it could not be sent."""

from __future__ import annotations

import re

# Control characters but for tabs and ends of lines, bidirectional overrides, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with such characters as their code points: ``\\u001b`` (which JSON reads as the character itself)."""
    return _UNSEEN.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
