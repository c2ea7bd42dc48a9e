"""Whether a text is language at all, without a language model: broken characters, one fragment on end, words that do
not follow one another in English.

The third is evidence that adds up. Each two words that stand side by side are looked up in a table of how much more (or
less) often they do so than by chance; common words speak for a text and rare ones against it, unless somebody has used
them before. The table (``word_pairs.txt``) was counted in muarl's own documentation, policies and conversations
(``benches/incoherence.py``). Words of other languages are no evidence: such texts are not judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import log

from muarl.language.sentences import spelled_out

EDGE, NUMBER, NAME = ".", "0", "A"
"""Classes: the edge of a clause, a word with a digit or a sign in it, a name, which is what a capital tells."""
ENDINGS = (
    "ing", "ed", "ly", "tion", "tions", "er", "est", "ers", "able", "al", "ness", "ment", "ity", "ive", "ous", "ful",
    "es", "s",
)  # fmt: skip
"""All other words are told apart by these alone, the first that fits."""
MOST = 2.5
"""The most that one pair counts, in nats, for or against."""
PRIOR = 2.0
"""Pairs that are added to what was counted and to what was expected, so that few cases say little."""
HEARD = 1.0
"""What a pair counts at least that somebody has used before."""
COMMON, RARE, ECHO = 0.6, -0.6, -0.25
"""What a common word counts, another one, and another one that was used before or stands in a list."""
LISTED = 3
"""Words of a clause, at most, in a list."""
FEW = 4
"""Words; shorter texts are no evidence."""
LIMIT, NOW = 5.0, 0.5
"""Evidence against a writer's texts, added up until some text speaks for it, from which on they are not language; and
against the last of them, which has to be one of those."""
LATELY = 8
"""The writer's last texts, which are looked at."""

_TOKEN = re.compile(r"[^\W_]+(?:['\-_.@/#:+][^\W_]+)*|[.,;:!?\n()\"“”…—]")
_SHORT = re.compile(r"(?<=[a-z])(?:n't|'(?:m|ve|ll|re|d))\b|\bcannot\b", re.IGNORECASE)
_LONG: Mapping[str, str] = {
    "n't": " not", "'m": " am", "'ve": " have", "'ll": " will", "'re": " are", "'d": " would", "cannot": "can not",
}  # fmt: skip
_EVERYDAY = """
    a about after again all already also always am an and another any anything are as ask at away back be because been
    before being both but buy by ca call came can change check come could day days did do does doing done down each
    either else email enough even ever every everything few find first fine for from full get give go going good got
    great had has have he hello help her here hey hi him his how however i if in instead into is it its it's just keep
    know last later least less let let's like little long look make many may maybe me might mine more most much must my
    myself name need never new next no none nor not nothing now number of off ok okay old on once one ones only or order
    other our out over own please possible put question quite rather really right said same say second see send set she
    should since so some something soon sorry still such sure take tell than thank thanks that that's the their them
    then there there's these they thing things think this those though three through time to today together told too
    try two under until up us use used very wait want was way we week well were what what's when where whether which
    while who whole why will with within without wo work would wrong year yes yet you your
"""
COMMON_WORDS = frozenset(_EVERYDAY.split())
"""Words of everyday English that texts of some length have, whatever they are about."""
_FOREIGN = """
    der das und ich nicht ist ein eine einen mit auf dem mein meine bitte sie wir haben habe kann auch noch wie zu von
    mir el los las una que y en por para su quiero llamo pero se lo del como puede le les une et est je ne pas dans avec
    ma vous nous du au sur ce cette mais veux voudrais appelle il di che sono mio mia vorrei della os um uma com meu
    minha eu het een ik niet mijn voor maar wil nie jest och att jag inte med ikke jeg ve bir
"""
_ELSEWHERE = frozenset(_FOREIGN.split())
"""Common words of other languages that are no English ones; those with other letters than English ones count anyhow."""
_VOWEL = re.compile(r"[aeiouyà-öø-ýÿ]")


def broken(text: str) -> str | None:
    """What no writer of any language leaves in a text, None if there is nothing: characters that cannot be shown or are
    no characters, hardly a letter or digit in it, a character or a fragment over and over, words of no vowels."""
    solid = [c for c in text if not c.isspace()]
    bad = sum(c == "\ufffd" or unicodedata.category(c) in ("Cc", "Cn", "Co") for c in solid)
    if bad >= 3:
        return f"{bad} characters that are none"
    said = sum(c.isalnum() or unicodedata.category(c)[0] in "LMN" for c in solid)
    if len(solid) >= 20 and said < 0.35 * len(solid):
        return f"{said} letters and digits in {len(solid)} characters"
    if match := re.search(r"([^\W\d_])\1{11}|([^\w\s])\2{39}", text):
        return f"{match[0][0]!r} over and over"
    if match := re.search(r"(?<![\w@/.-])[A-Za-z]{41}", text):
        return f"a word without end: {match[0][:20]}..."
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower())
    if (again := _on_end(words)) is not None:
        return f"the same over and over: {again}"
    long = [w for w in words if len(w) >= 4 and w.isalpha() and w.isascii()]
    without = [w for w in long if not _VOWEL.search(w)]
    if len(without) >= 3 and 2 * len(without) >= len(long):
        return f"no words: {' '.join(without[:3])}"
    return None


def _on_end(words: Sequence[str], longest: int = 6, least: int = 12) -> str | None:
    """A fragment of few words that is said so often on end that it makes so many words, four times at least."""
    for length in range(1, longest + 1):
        run = 0
        for at in range(length, len(words)):
            run = run + 1 if words[at] == words[at - length] else 0
            if run >= max(3 * length, least - length):
                return " ".join(words[at - length + 1 : at + 1])
    return None


@dataclass(frozen=True, slots=True)
class UsedWords:
    """What was said before: words, and those that stood side by side."""

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=512)
def used_in(text: str) -> UsedWords:
    """The words of a text, and its pairs of words."""
    words = [w.lower() for w in tokens(text)]
    return UsedWords(frozenset(words), frozenset(pairwise(words)))


def tokens(text: str) -> list[str]:
    """Words as they are written, contractions written out, and ``EDGE`` between clauses."""
    out: list[str] = []
    for token in _TOKEN.findall(text.replace("’", "'")):
        if token[0].isalnum():
            out += _written_out(token)
        elif out and out[-1] != EDGE:
            out.append(EDGE)
    return out


def incoherent(talk: Sequence[tuple[bool, str]], briefing: str = "") -> str | None:
    """What is wrong with the last text of a conversation as language, None if nothing is. ``talk``: (whether it is the
    writer's, the text) of all that the writer has said and heard; ``briefing``: what the writer was told beforehand."""
    if (fault := broken(talk[-1][1])) is not None:
        return fault
    own = [at for at, (mine, _) in enumerate(talk) if mine][-LATELY:]
    seen = [used_in(briefing), *(used_in(text) for mine, text in talk[: own[0]] if not mine)]
    against = last = 0.0
    for at in range(own[0], len(talk)):
        mine, text = talk[at]
        if not mine:
            seen.append(used_in(text))
            continue
        last = evidence(text, seen)
        against = min(0.0, against + last)
    if against > -LIMIT or last > -NOW:
        return None
    return f"words without order or sense: {' '.join(talk[-1][1].split())[:100]}"


@lru_cache(maxsize=4096)
def _written_out(word: str) -> tuple[str, ...]:
    """The words that a word stands for: "don't" and "dont" are "do not"."""
    hasty = spelled_out(word.lower()) if len(word) > 1 else word
    plain = word if hasty == word.lower() else hasty
    return tuple(_SHORT.sub(lambda m: _LONG[m[0].lower()], plain).split())


def evidence(text: str, before: Iterable[UsedWords] = ()) -> float:
    """How much speaks for a text being English (above 0) or words without order or sense (below), in nats; 0 where it
    is short or in another language. ``before``: what was said before it, or stands in what its writer was told.

    Linear in the text's length, and in the number of texts before it.
    """
    written = tokens(text)
    plain = [w.lower() for w in written if w[0].isalpha()]
    if len(plain) < FEW or _is_foreign(plain):
        return 0.0
    table, seen = _table(), list(before)
    kinds = [EDGE, *classes(written, table.words), EDGE]
    words = [EDGE, *(w.lower() for w in written), EDGE]
    listed = _listed(kinds)
    total = 0.0
    for at, ((one, other), pair) in enumerate(zip(pairwise(kinds), pairwise(words), strict=True)):
        if one not in _NO_WORD or other not in _NO_WORD:
            score = table.score(one, other)
            heard = score < HEARD and any(pair in used.pairs for used in seen)
            total += HEARD if heard else max(score, 0.0) if at in listed or at + 1 in listed else score
    for at, (word, kind) in enumerate(zip(words, kinds, strict=True)):
        if word in COMMON_WORDS:
            total += COMMON
        elif kind not in _NO_WORD:
            total += ECHO if at in listed or any(word in used.words for used in seen) else RARE
    return total


def _listed(kinds: Sequence[str]) -> frozenset[int]:
    """The places of words in clauses so short as lists have them ("size L, color black")."""
    edges = [at for at, kind in enumerate(kinds) if kind == EDGE]
    short = [(one, other) for one, other in pairwise(edges) if other - one <= LISTED + 1]
    return frozenset(at for one, other in short if len(edges) > 3 for at in range(one + 1, other))


_NO_WORD = frozenset({EDGE, NUMBER, NAME})


def _is_foreign(words: Sequence[str]) -> bool:
    """Whether so much of it is of another language or script that nothing can be said."""
    foreign = sum(w in _ELSEWHERE or not w.isascii() for w in words)
    return foreign > 0 and (foreign > 0.15 * len(words) or foreign >= sum(w in COMMON_WORDS for w in words))


def classes(written: Sequence[str], own_classes: frozenset[str]) -> list[str]:
    """The classes of a text's ``tokens``; ``own_classes``: words that are classes of their own."""
    out = []
    for at, word in enumerate(written):
        low = word.lower()
        if word == EDGE or low in own_classes:
            out.append(low)
        elif re.search(r"[\d@_/:+.]", word):
            out.append(NUMBER)
        elif word[0].isupper() and (written[at - 1 : at] not in ([], [EDGE]) or _no_word(written[at + 1 : at + 2])):
            out.append(NAME)
        else:
            out.append("-" + next((e for e in ENDINGS if low.endswith(e) and len(low) > len(e) + 2), ""))
    return out


def _no_word(behind: Sequence[str]) -> bool:
    """Whether what stands behind a word in capitals that begins a clause makes it a name: nothing, another one, a
    number."""
    return not behind or behind[0] == EDGE or not behind[0][0].islower()


@dataclass(frozen=True)
class PairTable:
    """How often classes were counted, and how often side by side."""

    count: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    words: frozenset[str]
    total: int

    def score(self, one: str, other: str) -> float:
        """How much more often they stand side by side than by chance, in nats."""
        expected = self.count.get(one, 0) * self.count.get(other, 0) / self.total
        score = log((self.pairs.get((one, other), 0) + PRIOR) / (expected + PRIOR))
        return max(-MOST, min(MOST, score))


def read_table(text: str) -> PairTable:
    """A table from lines "CLASS COUNT OTHER:COUNT ..."; lines with # are remarks."""
    count: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            one, number, *others = line.split(" ")
            count[one] = int(number)
            for other in others:
                name, _, times = other.rpartition(":")
                pairs[one, name] = int(times)
    words = frozenset(name for name in count if name[0].isalpha() and name != NAME)
    return PairTable(count, pairs, words, sum(count.values()))


@cache
def _table() -> PairTable:
    return read_table(files("muarl.language").joinpath("word_pairs.txt").read_text("utf-8"))
