"""What a proposal names and offers, as far as replies are read by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from muarl.language.sentences import normal_text, spelled_out

_WORD = re.compile(r"[\w$#][\w'.:#-]*")
_SMALL = frozenset(re.findall(r"[\w']+", """
    a about accepted again ago agreed ahead all already an and approved are as at away be both by can confirmed correct
    could do fine for from go going good great have how i i'd i'll immediately in indeed is it just kindly let let's
    like may me much my now of off ok okay on or our out perfect please possible right shall should so soon straight
    sure thank thanks that the them then there these this those through to up us very want we we'd we'll well what when
    where which who whom whose why will with would yeah yep yes you your yup
"""))  # fmt: skip
"""Words that name nothing."""


def stem(word: str) -> str:
    """A word without its ending, so that "cancelled", "cancelling" and "cancellation" are "cancel"."""
    word = word.strip(".'#").removesuffix("'s")
    if word.replace(":", "").replace("$", "").isdigit():
        return word.removesuffix(":00").replace(":", "").strip("$")
    for ending in ("ations", "ation", "ings", "ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


_ASSENT = _stems(
    "absolutely accept agree appreciate appreciated asap awesome believe big book brilliant cancel certainly change "
    "completely confirm cool course dear definitely everything exactly excellent friend fully glad guys haha happy "
    "help helpful hope hurry i'm indeed it's kind lifesaver lol looks lovely madam make man mate need nice objection "
    "objections proceed process quick quickly quite relief seems sir sounds that'd that'll that's think today totally "
    "what wonderful works you're"
)
"""Words of mere assent, whatever was proposed."""
_CHOICE = _stems(
    "card choice choose chose first former give instead latter make number one opt option pick prefer put rather "
    "second send set take third use"
)
_GENERIC = _stems("appointment booking change flight item order plan refund request reservation transfer upgrade")
_ORDINALS = _stems("first second third latter former")
_DEED = re.compile(
    r"\b(?:(?:i|we)(?:'ll|'d| will| can| would| could|'m going to| am going to)|shall i|should i|may i|want me to"
    r"|like me to|to|and|please) (?:now |then |also |go ahead and )?([a-z]+)"
    r"|\b([a-z]+) (?:it|that|this|them|both)(?: now| for you)?\?"
)
_OFFERS = re.compile(r"\b(?:which|either|say what|prefer|tell me|option|what would you like)\b|\bor\b[^.!?]{0,200}\?")
_YES_OR_NO = re.compile(r"\byes or no\b|\byes ?/ ?no\b|\bor not\b")
_WANTS = re.compile(r"\b(?:want|like|wish)\b")
_OWN_DEED = re.compile(r"(?:let me|allow me|i'll|i will)\b")
"""What the speaker means to do, not the agent: "Let me change that."."""
_NEGATES = re.compile(r"n't\b|\b(?:not|no|never|nothing|only)\b")
_CHOOSES = re.compile(
    r"\b(?:please|(?:will|would) (?:be|do)|let's go|prefer|it is|sounds?|works?|fits?|suits?|for me|book|send|put"
    r"|use|sign|take)\b"
)
_OBJECT = re.compile(r"^(?:please |just |kindly )?[\w']+ (?:it|that|this|them|those|both|all|me|us)\b")
_WHERE_TO = re.compile(r"\b(?:to|as|into) (?:my|a|an|our|store) ([a-z]+)")
_HOW = re.compile(r"\b(?:to|into|in|on|with|from) (?:my |the |an? )?([a-z]{2,})(?![\w-])")
_FOLLOWS = frozenset({"refund", "credit", "charge", "bill", "send", "mail", "issue", "email", "refunded"})
WIDTH = 3
"""So many words on each side of an \"and\" belong to what it joins."""
_VALUES: Mapping[str, re.Pattern[str]] = {
    "day": re.compile(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b"),
    "month": re.compile(
        r"\b(january|february|march|april|may(?= \d)|june|july|august|september|october|november|december)\b"
    ),
    "name": re.compile(r"\b(?:dr|mr|mrs|ms|prof)\.? ([a-z]+)"),
    "code": re.compile(r"\b(?=[a-z-]{0,8}\d)(?=\d{0,8}-?[a-z])[a-z\d]{2,12}(?:-[a-z\d]{1,12})?\b"),
    "number": re.compile(r"(?<![\w#-])\$?(\d[\d.,:]*\d|\d)(?![\w-])"),
    "count": re.compile(r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"),
}  # fmt: skip
_MARKS = re.compile(r":00\b|[:,]|s$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an agent said before a reply."""

    words: frozenset[str] = frozenset()
    """The stems of its content words."""
    deeds: frozenset[str] = frozenset()
    """Those of ``words`` that the agent says it would do."""
    offers: bool = False
    """It lets the user choose."""
    values: frozenset[str] = frozenset()
    """Days, numbers, codes and the like in it, each behind its kind."""
    pairs: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """Things that it names together ("the debit and the credit card")."""

    def names_deed(self, word: str) -> bool:
        """True if this is a verb of what the agent would do."""
        return stem(word) in self.deeds

    def begins_with_deed(self, text: str) -> bool:
        """True if the first word of a clause that names anything is what the agent would do."""
        first = next((w for w in _WORD.findall(text) if w.strip(".'") not in _SMALL), "")
        return self.names_deed(first)

    def ordered_by(self, text: str) -> bool:
        """True if a clause tells the agent to do just this ("Cancel the lamp", "ship it"), or, where there is a
        choice, names what it offered, and says nothing besides. A request that is told once more is no order."""
        words = [w for w in _WORD.findall(text) if w.strip(".'") not in _SMALL]
        stems = [stem(w) for w in words]
        if not stems or _NEGATES.search(text):
            return False
        strange = set(stems) - self.words - _GENERIC - _ASSENT
        if self.offers:
            named = not (self.words | _ORDINALS).isdisjoint(stems)
            return named and len(strange - _CHOICE) <= (3 if _CHOOSES.search(text) else 0)
        if _OWN_DEED.match(text):
            return False
        begins, pronoun = stems[0] in self.deeds, bool(_OBJECT.search(text))
        begins = begins or (stems[0] in self.words and pronoun)
        return begins and len(strange) <= (2 if pronoun else 0) and not _WANTS.search(text)

    def differs(self, text: str) -> bool:
        """True if a clause names a day, a number, a doctor or the like, and none of those that were proposed."""
        return self._differs(text, tuple(_VALUES))

    def names_another_code(self, text: str) -> bool:
        """True if a clause speaks of another order, booking or the like than was proposed, by its code."""
        return self._differs(text, ("code",))

    def renamed_by(self, text: str) -> bool:
        """The same, numbers aside: who says yes may tell how many years they have been a customer."""
        return self._differs(text, ("day", "month", "name", "code"))

    def _differs(self, text: str, kinds: tuple[str, ...]) -> bool:
        named = _values(text) if self.values else frozenset()
        for kind in {v.partition(" ")[0] for v in self.values}.intersection(kinds):
            alike = {v for v in named if v.startswith(f"{kind} ")}
            if alike and alike.isdisjoint(self.values):
                return True
        return False

    def redirected_by(self, text: str) -> bool:
        """True if a clause says where to or as what, and that was not proposed: "refund it to my gift card"."""
        pattern = _HOW if self.begins_with_deed(text) else _WHERE_TO
        where = {stem(word) for word in pattern.findall(text) if word not in _SMALL}
        return bool(self.words) and not where <= self.words | _ASSENT | _GENERIC | _ORDINALS

    def says_where(self, text: str) -> bool:
        """True if an order names where to, into or with what."""
        return bool(_HOW.search(text) or _values(text))

    def names_another(self, text: str) -> bool:
        """True if a few words that go on with a place or a thing name another one than was proposed. Where there was a
        choice they may name anything."""
        if self.offers:
            return False
        named = content_words(text) - _ASSENT
        return bool(self.words) and (self.differs(text) or (bool(named) and named.isdisjoint(self.words)))

    def halved_by(self, text: str, sentence: str) -> bool:
        """True if a clause names one of two things that were named together, and its sentence not the other."""
        if self.offers or not self.pairs:
            return False
        said, beside = content_words(text), content_words(sentence)
        return any((a & said or b & said) and not (a & beside and b & beside) for a, b in self.pairs)

    def has_all(self, text: str) -> bool:
        """True if every word of a clause that names anything was in the proposal."""
        said = content_words(text) - _ASSENT - _GENERIC
        return bool(said) and said <= self.words

    def is_not_about(self, text: str) -> bool:
        """True if a clause has several words that neither the proposal nor mere assent has."""
        return bool(self.words) and len(content_words(text) - self.words - _ASSENT) >= 2


def content_words(text: str) -> frozenset[str]:
    """The stems of a text's words, small ones aside."""
    return frozenset(stem(w) for w in _WORD.findall(text) if w.strip(".'") not in _SMALL)


@lru_cache(maxsize=1024)
def proposal_in(text: str | None) -> Proposal:
    """What an agent's message proposes; nothing is an empty one."""
    words = spelled_out(normal_text(text))
    deeds = frozenset(stem(d) for pair in _DEED.findall(words) for d in pair if d and d not in _SMALL)
    return Proposal(
        words=content_words(words),
        deeds=deeds,
        offers=bool(_OFFERS.search(_YES_OR_NO.sub(" ", words))),
        values=_values(words),
        pairs=tuple(_pairs(words, deeds)),
    )


def _pairs(words: str, deeds: frozenset[str]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The words of things that stand together, without what both have. What only follows from a deed, such as
    the refund of what is cancelled, makes no pair with it."""
    for said in re.split(r"[.,;:?!](?:\s|$)", words):
        before, joint, behind = said.partition(" and ")
        if not joint or behind.split(" ")[0] in _FOLLOWS:
            continue
        sides = before.split()[-WIDTH:], behind.split()[:WIDTH]
        one, other = (content_words(" ".join(side)) - deeds for side in sides)
        if one - other and other - one:
            yield one - other, other - one


def _values(words: str) -> frozenset[str]:
    pairs = ((kind, value) for kind, pattern in _VALUES.items() for value in pattern.findall(words))
    return frozenset(f"{kind} {_MARKS.sub('', value)}" for kind, value in pairs)
