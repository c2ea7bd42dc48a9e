"""Texts as the other modules look at them: plain apostrophes, single spaces, one sentence at a time."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*")
_OPEN_QUESTION = re.compile(
    r"(?:(?<=[.!?:;,] )|^)(?:(?:and|so|then|on|in|at|to|from|for|by|with|of|until|since|under|about) )*"
    r"(?:which|what|where|who|whom|whose|when|why|how)\b[^?.!]{0,300}\?"
)


def normal_text(text: str | None) -> str:
    """A text in lower case, with plain apostrophes and single spaces; nothing is an empty one."""
    return re.sub(r"\s+", " ", (text or "").lower().replace("’", "'").replace("‘", "'")).strip()


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its marks."""
    return [s.strip() for s in _SENTENCE.findall(text) if s.strip()]


def without_open_questions(text: str) -> str:
    """A normal text (``normal_text``) without the questions that yes does not answer: "Which one shall I take?"."""
    return _OPEN_QUESTION.sub(" ", text)
