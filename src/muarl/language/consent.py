"""What a reply says to a proposal: yes, no, a yes that is taken back, a changed request, or a request that is dropped.

All of it reads English, and any text, ``None`` included, which says nothing. It errs towards "no consent" where a reply
hedges: who acts on a yes that was none does harm, and who asks once more does not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest

from muarl.language.phrases import HARMLESS, whole_words
from muarl.language.proposals import proposal_in
from muarl.language.replies import YES_ACTS, Act, Clause, clauses
from muarl.language.sentences import normal_text, sentences

_STRONG_YES = (
    "absolutely", "agreed", "affirmative", "certainly", "confirmed", "definitely", "do it", "do so", "do that",
    "exactly", "go ahead", "go for it", "i agree", "make the change", "make the changes", "make that change",
    "make those changes", "please process", "i approve", "i confirm", "of course", "please do", "proceed",
    "that is right", "that works", "that's it", "that's right", "y", "ya", "yeah", "yep", "yes", "yup",
)  # fmt: skip
_NO = (
    "cannot", "can't", "do not", "don't", "hardly", "incorrect", "isn't", "never", "no", "nope", "not", "nah",
    "neither", "refuse", "won't", "wrong",
)  # fmt: skip
_CHANGED = (
    "actually", "as long as", "before we", "before you", "before i", "but", "change my mind",
    "changed my mind", "except", "first i", "forget it", "hang on", "hold off", "hold on", "however", "i'd rather",
    "instead", "never mind", "nevermind", "on second thought", "on second thoughts", "only if", "provided it",
    "provided that", "provided the", "provided you", "rather", "scratch that", "unless", "wait",
)  # fmt: skip
_LEADS = r"(?:(?:no|oh|hm+|well|ok|okay|sorry|wait|actually|then|please|in that case|just|let's)\b[\s,.!-]*)*"
_AND_THAT_IS_ALL = r"(?=\s*(?:[.!?;]|$|,\s*(?:leave|keep|bye|thank|i'll|i will|i don't|it|that|sorry)\b))"
_DROPS = re.compile(
    rf"^{_LEADS}(?:"
    rf"(?:never ?mind|forget (?:it|about it|that|the whole thing)|drop it)(?: then| it| that)?{_AND_THAT_IS_ALL}"
    r"|(?:leave|keep) (?:it|everything|things)(?: all)? (?:as (?:it|they) (?:is|are|was|were)|alone|be)\b"
    rf"|leave it(?: then| at that)?{_AND_THAT_IS_ALL}"
    r"|i (?:do not|don't) want (?:it|that)(?: done)? (?:any ?more|after all)\b)"
)
# The length of what may stand between is bounded, here and in acts.py: no text, however long, takes long to read.
_IF_NOT = re.compile(r"\bif\b[^,.!?]{0,100}(?:n't|\bnot\b|\bno\b)[^,.!?]{0,100},")

_PLAIN: frozenset[Act] = frozenset({"agrees", "orders"})
_UNDECIDED: frozenset[Act] = frozenset({"withdraws", "refuses", "hesitates", "doubts"})
"""What a plain yes in a later clause settles: "Let me think... Yes, go ahead."."""
_OPEN: frozenset[Act] = frozenset({"mocks", "asks", "conditions", "limits", "changes", "requests"})
LONGEST = 2000
"""Characters of a reply that may be a yes."""


def _phrases(words: tuple[str, ...]) -> re.Pattern[str]:
    ordered = sorted(words, key=len, reverse=True)
    return re.compile(r"(?<![\w'])(?:" + "|".join(re.escape(w) for w in ordered) + r")(?![\w'])")


_STRONG, _NEGATIVE, _CHANGES = _phrases(_STRONG_YES), _phrases(_NO), _phrases(_CHANGED)
_OK_BESIDE = whole_words(*HARMLESS)


def without_harmless(text: str | None) -> str:
    """A reply in lower case without what takes nothing back: "no problem", "if that isn't possible, then"."""
    words = normal_text(text)
    return _OK_BESIDE.sub(" ", words if len(words) > LONGEST else _IF_NOT.sub(" ", words))


def is_affirmative(text: str | None, proposal: str | None = None) -> bool:
    """True if a reply agrees to all of what was proposed, as it was proposed.

    It must agree in some clause, and no clause may hold back (``holds_back``). A yes with another request beside it
    ("Yes please, and can you also check my other order?") agrees; a yes with a question about what was proposed ("Yes,
    how much will it cost?"), with a condition, or to a part of it does not. Neither does a yes to something else
    ("Yes, I am still here").

    ``proposal``: what the agent had said. With it, an order in its words ("Ship it") and a choice among what it offered
    ("The second one") agree, too, and a reply that names another day, doctor or number than it does not. A reply of
    more than ``LONGEST`` characters is not read, and agrees to nothing.
    """
    return bool(text) and len(text or "") <= LONGEST and _agrees(text or "", proposal)


def holds_back(text: str | None, proposal: str | None = None) -> bool:
    """True if something in a reply takes from any yes in it: a question about what was proposed, a condition, a limit,
    a change, a doubt, a no; or words beside a mere "yes" that are not understood and were not in the ``proposal``."""
    if len(text or "") > LONGEST:
        return True
    said = clauses(text or "", proposal_in(proposal))
    plain = max((n for n, c in enumerate(said) if c.acts & _PLAIN and not c.further), default=-1)
    beside = {c.sentence for c in said if c.acts & YES_ACTS}
    return any(
        c.acts & _OPEN
        or (c.acts & _UNDECIDED and n >= plain)
        or ("weakens" in c.acts and n >= plain and (c.sentence in beside or plain < 0))
        or ("strays" in c.acts and plain < 0 and c.sentence in beside)
        for n, c in enumerate(said)
    )


@lru_cache(maxsize=4096)  # users, experts and audits read the same replies
def _agrees(text: str, proposal: str | None) -> bool:
    if holds_back(text, proposal):
        return False
    said = clauses(text, proposal_in(proposal))
    return any(c.acts & _PLAIN or _answers(c, then) for c, then in zip_longest(said, said[1:]))


def _answers(clause: Clause, then: Clause | None) -> bool:
    """True if a "yes" answers the proposal, and not something that stands beside it."""
    if "answers" not in clause.acts or (not clause.further and "speaks" in clause.acts):
        return False
    if then is None or then.further:
        return True
    return "speaks" not in then.acts


def denies(text: str | None) -> bool:
    """True if a word of denial stands anywhere in a reply, harmless ones aside."""
    return bool(_NEGATIVE.search(without_harmless(text)))


def changes_request(text: str | None) -> bool:
    """True if a reply changes what was wished for, or puts it off ("actually", "instead", "but", "wait")."""
    return bool(_CHANGES.search(without_harmless(text)))


def said_yes(text: str | None) -> bool:
    """True if a strong yes stands anywhere in a text."""
    return bool(_STRONG.search(without_harmless(text)))


def drops_request(text: str | None) -> bool:
    """True if a reply lets the request go: "Never mind, leave it as it is", "No, forget it", "Keep it as it is."."""
    return any(_DROPS.search(sentence) for sentence in sentences(normal_text(text)))
