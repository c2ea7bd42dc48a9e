"""What of each trait shows in conversations: figures of users' messages, of simulated ones and of people in logs alike.

They read English (but for the language itself) and any domain's conversations, and need neither tasks nor tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muarl.language.acts import asks_for_yes
from muarl.language.facts import stated, words
from muarl.language.user_acts import asks_back, changes_wish, may_correct, presses
from muarl.types.chat import STOP_WORDS, Message
from muarl.users.traits.foreign import speaks

FIGURES: Mapping[str, str] = {
    "withholding": "facts told in the first message, of all, less twice the share of questions that are asked back",
    "impatience": "messages that press for time or leave, of all",
    "wandering": "messages that ask about something else, or change the wish, of all",
    "mistakes": "messages that correct what was told before, of all",
    "foreign_language": "messages in another language, of all",
}
"""The figure by which each trait is measured."""
ASKED_BACK = 2.0
"""The weight of the share of questions asked back, which differs less from one conversation to another than that of the
facts."""
FALLS = frozenset({"withholding"})
"""Figures that are the smaller the higher the level is."""


@dataclass(frozen=True, slots=True)
class ConversationFigures:
    """What counts of one conversation."""

    counts: Mapping[str, tuple[float, float]]
    """By figure, (how many, of how many)."""
    messages: int
    words: int
    """Words of the user's messages together."""
    asked_back: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Measurements:
    """The figures of several conversations."""

    figures: Mapping[str, float]
    conversations: int
    messages: float
    """The user's messages a conversation."""
    words: float
    """Words a message."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def look_at(messages: Sequence[Message]) -> ConversationFigures | None:
    """One conversation; None where the user said nothing."""
    fact_counts: list[int] = []
    said = spoken = pressed = changed = corrected = foreign = back = questions = 0
    asked = ""
    for message in messages:
        text = message.content or ""
        if message.role == "assistant" and not message.tool_calls:
            asked = text
        if message.role != "user" or message.tool_calls:
            continue
        for word in STOP_WORDS:
            text = text.replace(word, " ")
        if not text.strip():
            continue
        facts, wonders = sum(1 for _ in stated(text, asked)), "?" in text
        if said and "?" in asked and not asks_for_yes(asked):
            questions += 1
            back += wonders and not facts and bool(asks_back(text))
        said += 1
        fact_counts.append(facts)
        spoken += len(words(text))
        pressed += presses(text)
        wanders = said > 1 and wonders and not facts and not (asks_back(text) or presses(text))
        otherwise = changes_wish(text)
        changed += wanders or otherwise
        corrected += not otherwise and may_correct(text)
        foreign += speaks(text) is not None
    if not said:
        return None
    counts = {
        "withholding": (float(fact_counts[0]), float(sum(fact_counts))),
        "impatience": (float(pressed), float(said)),
        "wandering": (float(changed), float(said)),
        "mistakes": (float(corrected), float(said)),
        "foreign_language": (float(foreign), float(said)),
    }
    return ConversationFigures(counts, said, spoken, (back, questions))


def measure(conversations: Iterable[Sequence[Message]], *, resamples: int = 0, seed: int = 0) -> Measurements:
    """The figures of conversations, each over all of them together; with 95% intervals from drawing conversations anew
    ``resamples`` times (0: none). ValueError if no user says anything."""
    conversation_figures = [one for one in map(look_at, conversations) if one is not None]
    if not conversation_figures:
        raise ValueError("no user says anything in these conversations")
    names = list(FIGURES)
    parts = np.array(
        [[one.counts[name] for name in names] + [one.asked_back] for one in conversation_figures], dtype=float
    )
    figures = dict(zip(names, _figures(parts.sum(axis=0)), strict=True))
    intervals: dict[str, tuple[float, float]] = {}
    if resamples:
        rng = np.random.default_rng(seed)
        drawn = np.array(
            [_figures(parts[rng.integers(len(parts), size=len(parts))].sum(axis=0)) for _ in range(resamples)]
        )
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        intervals = {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}
    messages = sum(one.messages for one in conversation_figures)
    return Measurements(
        figures,
        len(conversation_figures),
        messages / len(conversation_figures),
        sum(one.words for one in conversation_figures) / messages,
        intervals,
    )


def _figures(totals: np.ndarray) -> list[float]:
    """From sums (figure, how many / of how many) to figures; the last row is questions asked back."""
    shares = np.divide(totals[:, 0], totals[:, 1], out=np.zeros(len(totals)), where=totals[:, 1] > 0)
    out = [float(share) for share in shares[:-1]]
    out[0] -= ASKED_BACK * float(shares[-1])
    return out
