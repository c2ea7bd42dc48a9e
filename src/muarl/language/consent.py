"""What a reply says to a proposal: yes, no, a yes that is taken back, a changed request, or a request that is dropped.

All of it reads English, and any text, ``None`` included, which says nothing. It errs towards "no consent" where a reply
hedges: who acts on a yes that was none does harm, and who asks once more does not.
"""

from __future__ import annotations

import re

from muarl.language.sentences import normal_text, sentences

_STRONG_YES = (
    "absolutely", "agreed", "affirmative", "certainly", "confirmed", "definitely", "do it", "do so", "do that",
    "exactly", "go ahead", "go for it", "i agree", "make the change", "make the changes", "make that change",
    "make those changes", "please process", "i approve", "i confirm", "of course", "please do", "proceed",
    "that is right", "that works", "that's it", "that's right", "y", "ya", "yeah", "yep", "yes", "yup",
)  # fmt: skip
_WEAK_YES = (
    "all good", "alright", "fine", "great", "looks good", "looks right", "ok", "okay", "perfect", "sounds good",
    "sure", "sure thing", "works for me",
)  # fmt: skip
# Words that agree only where nothing hangs on them: "Correct." agrees, "correct the zip" asks for something.
_BARE_YES = r"|(?<![\w'])(?:correct|right|confirm|good)(?=\s*(?:[,.!;:-]|$))|^please\W*$"
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
# Said beside a yes, these take nothing back; said alone, they agree to nothing.
_HARMLESS = (
    "can't wait", "no doubt", "no problem", "no rush", "no worries", "nothing but", "not a problem", "right away",
    "right now", "why not", "cannot wait", "won't be a problem", "but thanks", "but thank you", "instead of",
    "rather than", "no changes", "don't worry", "no longer needed", "no longer need", "no longer needs", "not needed",
    "no, nothing else", "nothing else", "no other items", "no others", "no, only", "no more items",
    "been great", "great help", "great day", "great evening", "great weekend",
)  # fmt: skip
# A later sentence with one of these takes a yes back.
_TAKEN_BACK = re.compile(
    r"\b(?:do not|don't|please stop|not yet|not now)\b(?:\s+\w+){0,2}?\s*"
    r"(?:do|cancel|proceed|go ahead|process|change|modify|update|return|exchange|submit|make|touch|it|that|$)"
    r"|^(?:oh,?\s+)?(?:no,?\s+)?stop\b(?! by)|\bsorry,?\s+no\b|\bno,?\s+sorry\b"
    r"|^(?:hm+,? )?not (?:yet|now|so fast|today)\b|\bdon't(?=[,.!])|^(?:\w+,?\s+)?no,?\s+no\b"
    r"|\bor (?:maybe )?(?:no|not)\b"
)
# Who says one of these has not made up their mind, wherever it stands.
_HESITATES = re.compile(
    r"\bi(?:'d| would)? (?:like to|need to|have to|must|should|want to|will|had better) (?:first )?"
    r"(?:think(?=[.,!;]| about (?:it|this|that)\b| (?:it|this) over\b| again\b| first\b)|sleep on (?:it|this|that)\b"
    r"|ask my\b|check with\b|talk (?:it over|to my)\b)"
    r"|\blet me (?:first )?(?:think|sleep on|ask my|check (?:something|that|this|with|first)|talk (?:it over|to my))\b"
    r"|\b(?:give me|i need) (?:a|one|another) (?:moment|minute|second|sec)\b(?=\s*(?:[.,!;]|$|to\b|please\b))"
    r"|\bi take (?:it|that|this) back\b|\b(?:have|having) (?:some |my )?(?:doubts|second thoughts)\b"
    r"|\b(?:not (?:so |quite |really |too )?sure|unsure)"
    r"(?: (?:any ?more|about (?:it|this|that)|now|yet))?(?=\s*(?:[.,!;]|$))"
    r"|\b(?:maybe|perhaps) (?:later|not)\b"
)
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


def _phrases(words: tuple[str, ...], more: str = "") -> re.Pattern[str]:
    ordered = sorted(words, key=len, reverse=True)
    return re.compile(r"(?<![\w'])(?:" + "|".join(re.escape(w) for w in ordered) + r")(?![\w'])" + more)


_STRONG, _WEAK = _phrases(_STRONG_YES), _phrases(_WEAK_YES, _BARE_YES)
_NEGATIVE, _CHANGES, _OK_BESIDE = _phrases(_NO), _phrases(_CHANGED), _phrases(_HARMLESS)


def without_harmless(text: str | None) -> str:
    """A reply in lower case without what takes nothing back: "no problem", "if that isn't possible, then"."""
    return _OK_BESIDE.sub(" ", _IF_NOT.sub(" ", normal_text(text)))


def is_affirmative(text: str | None) -> bool:
    """True if a reply says yes, and neither takes it back nor changes the request.

    The reply is cut into sentences. The first one that contains a word of agreement or of denial decides: it must hold
    an agreement and no denial. A question decides only if it begins with a strong yes ("Yes, can you do it today?"), so
    "Can you confirm the price?" is no consent. A changed request anywhere ("but", "actually", "instead", "wait") makes
    it no consent, and so do doubts ("let me think about it") and a later "don't do it". Harmless negatives ("no
    problem", "no rush") are not read at all.
    """
    words = without_harmless(text)
    if not words or _CHANGES.search(words) or _HESITATES.search(words):
        return False
    parts = sentences(words)
    for index, sentence in enumerate(parts):
        strong, yes = _STRONG.search(sentence), _STRONG.search(sentence) or _WEAK.search(sentence)
        if sentence.endswith("?") and not (strong and strong.start() == 0):
            if _NEGATIVE.search(sentence):
                return False
            continue
        if _NEGATIVE.search(sentence):
            return False
        if yes:
            return not any(_TAKEN_BACK.search(later) for later in parts[index + 1 :])
    return False


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
