"""The words of the MCP scenarios that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muarl.domains.mcp import talk as said
from muarl.domains.mcp.talk import Talk

STOCK = (
    ". Shall I go ahead?", "Done. Anything else?", " Anything else?", "Done.", "I cannot do that, ", "I am sorry, ",
    "Fine, it stays as it is.", "How can I help you?", "I will ", " already exists", "there is no ", " and ", " to ",
)  # fmt: skip
"""What every expert of these scenarios says."""


def pieces(*groups: Iterable[str]) -> list[str]:
    """Names and values, each as it is and with a space behind it, so that it is one token wherever it stands."""
    words = [w for group in groups for w in group]
    return list(dict.fromkeys(piece for w in words for piece in (w, f"{w} ")))


def talk_pieces(talk: Talk, *more: str) -> list[str]:
    """Stock phrases of a scenario's experts and callers, and what stands around the values."""
    found = [*STOCK, *said.YES, *said.DROPS, *(s.ask for s in talk.slots.values() if s.ask)]
    for intent in talk.intents.values():
        found += re.split(r"\{[^{}]*\}|[\[\]]", intent.propose)
    return list(dict.fromkeys(p for p in (*found, *more) if len(p.strip()) > 1 or p in more))
