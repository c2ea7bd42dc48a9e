"""Texts as the other modules look at them: plain apostrophes, single spaces, one sentence at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*")
_OPEN_QUESTION = re.compile(
    r"(?:(?<=[.!?:;,] )|^)(?:(?:and|so|then|on|in|at|to|from|for|by|with|of|until|since|under|about) )*"
    r"(?:which|what|where|who|whom|whose|when|why|how)\b[^?.!]{0,300}\?"
)
_SHORT: Mapping[str, str] = {
    "2day": "today", "4": "for", "abt": "about", "alrdy": "already", "alredy": "already", "alrite": "alright",
    "arent": "aren't", "aswell": "as well", "b4": "before", "bc": "because", "btw": "by the way", "bcuz": "because",
    "cancell": "cancel", "cant": "can't", "coz": "because", "couldnt": "couldn't", "cuz": "because",
    "defo": "definitely", "definately": "definitely", "didnt": "didn't", "doesnt": "doesn't", "dont": "don't",
    "dosent": "doesn't", "dunno": "don't know", "fe": "for example", "havent": "haven't", "idk": "i don't know",
    "im": "i'm", "isnt": "isn't", "ive": "i've", "k": "ok", "kk": "ok", "lemme": "let me", "mins": "minutes",
    "n": "and", "nah": "no", "nope": "no", "ofc": "of course", "okey": "ok", "oke": "ok", "pls": "please",
    "plz": "please", "prob": "probably", "probly": "probably", "prolly": "probably", "r": "are", "rn": "right now",
    "shouldnt": "shouldn't", "thats": "that's", "theres": "there's", "tho": "though", "thx": "thanks", "tks": "thanks",
    "tmrw": "tomorrow", "ty": "thank you", "u": "you", "ur": "your", "w": "with", "wanna": "want to",
    "wasnt": "wasn't", "wats": "what's", "whats": "what's", "wheres": "where's", "wont": "won't",
    "wouldnt": "wouldn't", "yea": "yeah", "yeh": "yeah", "yh": "yeah", "youre": "you're",
}  # fmt: skip
"""What people type in haste, and what they mean."""
_TYPED = re.compile(r"(?<![\w'$.:-])(?:" + "|".join(sorted(_SHORT, key=len, reverse=True)) + r")(?![\w'$:-]|\.\d)")


def normal_text(text: str | None) -> str:
    """A text in lower case, with plain apostrophes and single spaces; nothing is an empty one."""
    return re.sub(r"\s+", " ", (text or "").lower().replace("’", "'").replace("‘", "'")).strip()


def spelled_out(text: str) -> str:
    """A normal text (``normal_text``) with hasty spellings written out: "pls dont" is "please don't"."""
    return _TYPED.sub(lambda m: _SHORT[m.group()], text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its marks."""
    return [s.strip() for s in _SENTENCE.findall(text) if s.strip()]


def without_open_questions(text: str) -> str:
    """A normal text (``normal_text``) without the questions that yes does not answer: "Which one shall I take?"."""
    return _OPEN_QUESTION.sub(" ", text)
