"""Whether a user's words say that something told before was wrong."""

from __future__ import annotations

import re

from muarl.language.sentences import normal_text

_CORRECTS = re.compile(
    r"\bi (?:made a mistake|misspoke|mistyped)\b|\bhabe mich geirrt\b|\bein versehen von mir\b|\bme he equivocado\b"
    r"|\bme suis trompé\b|我说错了"
)


def corrects(text: str | None) -> bool:
    """True if a user says that they got wrong what they told before: what follows replaces it, whatever was asked."""
    return bool(_CORRECTS.search(normal_text(text)))
