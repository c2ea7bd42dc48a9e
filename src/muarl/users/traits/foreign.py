"""Users with traits who say a part of their messages in another language."""

from __future__ import annotations

import random
import re
from typing import Any

from muarl.domains.kit import templates
from muarl.users.base import User
from muarl.users.behaviours.foreign import Foreign, Speech
from muarl.users.behaviours.languages import LANGUAGES
from muarl.users.traits.words import OF, TRANSLATED

_DEVICE = (*(lead for leads in templates.LEADS.values() for lead in leads), *templates.WORKS, *templates.FAILS)
_READS_ALOUD = tuple(text.strip() for text in (*_DEVICE, *templates.DID, templates.HOW))
"""How messages begin or end that tell what stands on a device, which speaks the policy's language."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class PartlyForeign(Foreign):
    """``share``: how many of the messages are in the other language, as long as the agent lets it.

    Yes, no and thanks stay English, which everybody knows, and so do several requests at once.
    """

    def __init__(self, user: User, speech: Speech, language: str, label: str, share: float) -> None:
        super().__init__(user, speech, language, random.Random(label))
        self._share, self._label, self._code = share, label, language
        self._said = 0

    def _translated(self, text: str, opening: bool) -> str:
        self._said += 1
        if random.Random(f"{self._label} {self._said}").random() >= self._share:
            return text
        if any(line in text for line in _READS_ALOUD) or self._speech.stock(text) is not None:
            return text
        if len(self._speech.requests(text)) > 1:
            return text
        before: list[str] = []
        sentences = _SENTENCE.split(text)
        while sentences and sentences[0] in OF:
            before.append(self._rng.choice(TRANSLATED[self._code][OF[sentences.pop(0)]]))
        rest = " ".join(sentences)
        return " ".join([*before, *([super()._translated(rest, opening)] if rest else [])])


def speaks(text: str) -> str | None:
    """The code of the language that a text seems to be in, None for English and what is too short to tell."""
    counts: dict[str, Any] = {
        code: len(re.findall(language.native, text, re.IGNORECASE)) for code, language in LANGUAGES.items()
    }
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] >= 1 and not re.search(_ENGLISH, text, re.IGNORECASE) else None


_ENGLISH = r"\b(the|is|my|i|you|to|and|of|it|for|that|please|want|yes|no)\b"
