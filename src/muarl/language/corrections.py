"""Whether a user's words say that something told before was wrong, or is to be as it was before that."""

from __future__ import annotations

import re

from muarl.language.sentences import normal_text

_CORRECTS = re.compile(
    r"\bi (?:made a mistake|misspoke|mistyped)\b|\bback to what i said before\b|\bas i said at first\b"
    r"|\bback to my first idea\b"
    r"|\bhabe mich geirrt\b|\bein versehen von mir\b|\bdoch so wie vorher\b"
    r"|\bme he equivocado\b|\bmejor como al principio\b"
    r"|\bme suis trompé\b|\bfinalement comme au début\b|我说错了|还是按原来的"
)


def corrects(text: str | None) -> bool:
    """True if a user says that they got wrong what they told before, or return to what they said first: what follows
    replaces what was told, whatever was asked."""
    return bool(_CORRECTS.search(normal_text(text)))
