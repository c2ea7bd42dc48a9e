"""Signs that a training goes wrong, from its rows of figures: pure functions, without torch or a clock.

A sign begins with the first step after which its rule holds, and ends once the rule has not held for ``CALM`` steps.
The rules (``sign_rules``) look at few steps, so that a sign is told while it can still be acted on.

**First the cause.** A sign *follows* another where that one can bring it about and began earlier, or at most ``LAG``
steps later (figures differ in how fast they move). What follows from nothing comes first, and its remedy is the one
to try: a user that breaks down explains groups that teach nothing, and KL that runs away explains lost entropy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from muarl.sign_rules import RULES, Figures, Row, figure, no_update

__all__ = [
    "NAMES",
    "PHASE",
    "REMEDIES",
    "Changes",
    "Row",
    "Sign",
    "SignName",
    "Watch",
    "no_update",
    "signs",
    "standing",
]

SignName = Literal[
    "user-breaks-down",
    "infrastructure-fails",
    "sampler-disagrees",
    "not-finite",
    "kl-runs-away",
    "entropy-explodes",
    "entropy-collapses",
    "repeated-calls",
    "lengths-drift",
    "consent-falls",
    "policy-stands-still",
    "no-signal",
]
"""Every sign, the most likely cause first."""

NAMES: tuple[str, ...] = get_args(SignName)
CALM = 3
"""Steps in a row without its rule holding after which a sign has ended."""
LAG = 1
"""Steps by which a cause may be noticed later than what it brings about."""
PHASE = "rl"
"""The phase of training's rows."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign. ``since``: the step, as in metrics.jsonl, after which it began; ``until``: the last one after which it
    stood, None while it stands. ``text``: what is seen, with the figures. ``remedy``: what to try. ``rank``: its place
    among ``NAMES``; of two causes that began at once the lower one is told first. ``follows``: the sign that explains
    it, None if none does."""

    name: str
    since: int
    text: str
    remedy: str
    rank: int
    until: int | None = None
    follows: str | None = None

    @property
    def sentence(self) -> str:
        """What is seen and, for a cause, what to try."""
        if self.follows is not None:
            return f"{self.text} It follows from {self.follows}."
        return f"{self.text} {self.remedy}"

    @property
    def line(self) -> str:
        """The sentence with the sign's name and when it stood, for a person who reads of several."""
        when = f"since step {self.since}" if self.until is None else f"steps {self.since} to {self.until}"
        return f"{self.name} ({when}): {self.sentence}"

    def to_json(self) -> dict[str, Any]:
        """As status.json and summary.json have it."""
        return {
            "name": self.name,
            "since": self.since,
            "until": self.until,
            "text": self.text,
            "remedy": self.remedy,
            "follows": self.follows,
        }


@dataclass(frozen=True, slots=True)
class Changes:
    """What a step changed: the signs that began with it, causes first, and those that have ended."""

    began: tuple[Sign, ...] = ()
    ended: tuple[Sign, ...] = ()


class Watch:
    """Follows a training step by step. ``note`` each row of figures, in order; rows of other phases are passed over."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._figures = Figures()
        self._standing: dict[str, Sign] = {}
        self._held: dict[str, int] = {}
        self._over: list[Sign] = []
        self._steps: deque[int] = deque(maxlen=CALM + 1)
        for row in rows:
            self.note(row)

    def note(self, row: Row) -> Changes:
        """Take in a step's figures. Whatever they hold, nothing is raised: rows may be somebody else's."""
        step = figure(row.get("step"))
        if row.get("phase", PHASE) != PHASE or step is None:
            return Changes()
        now = int(step)
        self._steps.append(now)
        self._figures.note(now, row)
        began: list[str] = []
        for rank, (name, (rule, remedy)) in enumerate(RULES.items()):
            text = rule(self._figures)
            if text is None:
                continue
            self._held[name] = now
            if name not in self._standing:
                began.append(name)
                self._standing[name] = Sign(name, now, text, remedy, rank)
            else:
                self._standing[name] = replace(self._standing[name], text=text)
        over = [n for n in self._standing if len(self._steps) > CALM and self._held[n] < self._steps[-CALM]]
        ended = [replace(self._standing.pop(name), until=self._held[name]) for name in over]
        self._over += ended
        return Changes(tuple(s for s in self.standing if s.name in began), tuple(ended))

    @property
    def standing(self) -> list[Sign]:
        """The signs that stand after the last step, causes first."""
        return _ordered(self._standing.values(), [*self._standing.values(), *self._over])

    @property
    def all(self) -> list[Sign]:
        """Every sign there was, causes first; one that came twice is there twice."""
        found = [*self._over, *self._standing.values()]
        return _ordered(found, found)


def signs(rows: Iterable[Row]) -> list[Sign]:
    """The signs that a training's rows show, those that have ended among them, causes first."""
    return Watch(rows).all


def standing(found: Iterable[Sign]) -> list[Sign]:
    """Those that have not ended."""
    return [sign for sign in found if sign.until is None]


def _ordered(some: Iterable[Sign], known: Sequence[Sign]) -> list[Sign]:
    told = [replace(sign, follows=_cause(sign, known)) for sign in some]
    return sorted(told, key=lambda s: (s.follows is not None, s.since, s.rank))


def _cause(sign: Sign, known: Sequence[Sign]) -> str | None:
    """The first sign that brings this one about: it may be noticed a little later, and may have ended meanwhile."""
    able = [
        other
        for other in known
        if sign.name in _BRINGS.get(other.name, ())
        and other.since <= sign.since + LAG
        and (other.until is None or other.until >= sign.since - LAG)
        # Two signs that may bring each other about: the one that is ranked first, unless the other began much earlier.
        and not (other.name in _BRINGS.get(sign.name, ()) and _before(sign, other))
    ]
    return min(able, key=lambda s: (s.since, s.rank)).name if able else None


def _before(one: Sign, other: Sign) -> bool:
    if one.rank < other.rank:
        return one.since <= other.since + LAG
    return one.since < other.since - LAG


REMEDIES = {name: remedy for name, (_, remedy) in RULES.items()}
"""What to try, by sign."""

_KL = "kl-runs-away"
_BEHAVIOUR = ("repeated-calls", "lengths-drift", "consent-falls", "no-signal")
_BRINGS: dict[str, tuple[str, ...]] = {
    "user-breaks-down": _BEHAVIOUR,
    "infrastructure-fails": ("no-signal",),
    "sampler-disagrees": (_KL, "entropy-explodes", "entropy-collapses", "not-finite", *_BEHAVIOUR),
    "not-finite": ("policy-stands-still", "no-signal"),
    _KL: ("entropy-explodes", "entropy-collapses", "not-finite", "sampler-disagrees", *_BEHAVIOUR),
    "entropy-explodes": (_KL, *_BEHAVIOUR),
    "entropy-collapses": (_KL, *_BEHAVIOUR),
    # A reward that pays for what it should not moves the policy far in the end: KL is then no cause.
    "repeated-calls": ("lengths-drift", "consent-falls", "no-signal", _KL),
    "lengths-drift": ("consent-falls", "no-signal", _KL),
    "consent-falls": (_KL,),
    "policy-stands-still": (),
}
"""By cause, the signs that it can bring about."""
