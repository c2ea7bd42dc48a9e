"""What models that are asked use, what may be spent, and how many conversations may run so that it is kept.

Agents and users tell what they used with every turn. Judges and models that play tools are asked in between, by many
conversations at once, so their own totals do not say which conversation it was for. A meter does: it counts what is
asked in its block and in the asyncio tasks that begin there.

Running conversations end, whatever they cost, so they must be paid for before they begin. What one will cost is learned
as the run goes (``Reserve``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

from muarl.types.episode import Episode, Usage

_open: ContextVar[tuple[Meter, ...]] = ContextVar("open meters", default=())


@dataclass(slots=True)
class Meter:
    """What models have used."""

    usage: Usage = field(default_factory=Usage)
    """Of all models so far."""
    besides: Usage = field(default_factory=Usage)
    """Of those that are neither agent nor user."""


@contextmanager
def metered() -> Iterator[Meter]:
    """Count in this block. Blocks may be nested; each counts all that is asked inside."""
    meter = Meter()
    token = _open.set((*_open.get(), meter))
    try:
        yield meter
    finally:
        _open.reset(token)


def count(usage: Usage, boundary: str) -> None:
    """A model has used this; ``boundary``: whose model it is ("agent", "user", "judge", "world")."""
    for meter in _open.get():
        meter.usage += usage
        if boundary not in ("agent", "user"):
            meter.besides += usage


BESIDES = "besides_usage"
"""The tag of an episode with what models used for it that are neither its agent nor its user, such as a judge."""

CAUTION = 16
"""With n known costs, 1 + CAUTION/n times the largest is reserved for each running conversation."""
PLENTY = 30
"""Where even so many times the largest cost fits, any number may be running."""
KNOWN = 4
"""Costs that must be known for that."""


class RolloutEnd(StrEnum):
    """Why a rollout ended."""

    COMPLETE = "complete"
    COST = "cost_budget"
    TOKENS = "token_budget"
    UNCOUNTED = "uncounted_usage"

    @property
    def why(self) -> str:
        """What ended it early, as a clause."""
        if self is RolloutEnd.UNCOUNTED:
            return (
                "a model's answer does not say how many tokens it took (usage), so that the bound on cost or tokens "
                "cannot be kept"
            )
        return f"the {self.value.replace('_', ' ')} is spent"

    @property
    def remedy(self) -> str:
        """With what the rest may be played."""
        return "without the bound" if self is RolloutEnd.UNCOUNTED else "with a larger one"


class Reserve:
    """Reserves money and tokens for what is running.

    While nothing is known, one conversation is running. Then as many as there are known costs, if a multiple of the
    largest cost fits for each, the larger the less is known; or any number where there is plenty. So the bound is
    overshot by no more than the last conversation, unless costs differ by more than an order of magnitude and the dear
    ones come late. Cheap conversations finish first, so known are only those before which none is still running.
    """

    def __init__(self) -> None:
        self._largest = (0.0, 0)
        self._begun = self._broken_off = self._known = 0
        self._under_way: set[int] = set()
        self._waiting: set[asyncio.Future[None]] = set()

    def learn(self, usage: Usage) -> None:
        """What a conversation of an earlier process took."""
        self.end(self.begin(), usage)

    def begin(self) -> int:
        """A conversation begins; returns its ticket for ``end``."""
        self._under_way.add(self._begun)
        self._begun += 1
        return self._begun - 1

    def end(self, ticket: int, usage: Usage | None) -> None:
        """It has ended and took this; None: it was broken off, and nobody knows."""
        self._under_way.discard(ticket)
        if usage is None:
            self._broken_off += 1
        else:
            cost, tokens = self._largest
            self._largest = max(cost, usage.cost), max(tokens, _tokens(usage))
        self._known = max(0, min(self._under_way, default=self._begun) - self._broken_off)
        waiting, self._waiting = self._waiting, set()
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def admits(self, spent: Usage, cost: float | None, tokens: int | None) -> bool:
        """Whether another one may begin, with so much spent of so much. What is spent to the end is not asked here."""
        under_way, finished = len(self._under_way), self._known
        if under_way == 0:
            return True
        bounds = ((cost, spent.cost, self._largest[0]), (tokens, float(_tokens(spent)), float(self._largest[1])))
        for bound, gone, largest in bounds:
            if bound is None:
                continue
            each = (bound - gone) / (under_way + 1)
            plenty = finished >= KNOWN and largest * PLENTY <= each
            if not plenty and not (under_way < finished and largest * (1 + CAUTION / finished) <= each):
                return False
        return True

    async def changed(self) -> None:
        """Wait until one has ended."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a rollout may spend. When it is spent, no new episode begins; running ones finish, and ``reserve`` sees to
    it that they are not too many. Nor does one begin once a model did not say what an answer took: such a bound cannot
    be kept."""

    cost: float | None = None
    """US dollars; None: no bound."""
    tokens: int | None = None
    """Tokens of prompt and completion, agent and users; None: no bound."""
    besides: Callable[[], Usage] | None = None
    """What else counts against it, such as the judge's usage and what an interrupted run had spent."""
    users_only: bool = False
    """The agent is one's own, and costs nothing."""
    accounted: bool = False
    """``besides`` is the account that these episodes are entered in too, as they end."""
    reserve: Reserve = field(default_factory=Reserve, compare=False)

    @property
    def bounded(self) -> bool:
        """Whether there is any bound."""
        return self.cost is not None or self.tokens is not None

    def of(self, episode: Episode) -> Usage:
        """What an episode takes of it."""
        return episode.user_usage if self.users_only else episode.agent_usage + episode.user_usage

    def whole(self, episode: Episode) -> Usage:
        """The same with what judges and others took for it, which ``besides`` counts: for the reserve."""
        return self.of(episode) + besides_of(episode)

    def total(self, spent: Usage) -> Usage:
        """All that counts, where episodes have taken ``spent``."""
        if self.besides is None:
            return spent
        return self.besides() if self.accounted else spent + self.besides()

    def gone(self, spent: Usage) -> RolloutEnd | None:
        """Which of the bounds is reached, or that nobody knows; None if another may begin."""
        total = self.total(spent)
        if self.cost is not None and total.cost >= self.cost:
            return RolloutEnd.COST
        if self.tokens is not None and _tokens(total) >= self.tokens:
            return RolloutEnd.TOKENS
        return RolloutEnd.UNCOUNTED if self.bounded and total.uncounted else None

    def admits(self, spent: Usage) -> bool:
        """Whether another may begin beside those that are running."""
        return not self.bounded or self.reserve.admits(self.total(spent), self.cost, self.tokens)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """The place to ask a model for something whose cost ``besides`` counts: waits until that is within the reserve.
        False once the budget is spent."""
        while self.gone(Usage()) is None and not self.admits(Usage()):
            await self.reserve.changed()
        if self.gone(Usage()) is not None:
            yield False
            return
        ticket = self.reserve.begin()
        with metered() as meter:
            try:
                yield True
            finally:
                self.reserve.end(ticket, meter.usage)


def besides_of(episode: Episode) -> Usage:
    """What models used for an episode that are neither its agent nor its user."""
    besides = episode.tags.get(BESIDES)
    try:
        return Usage(**besides) if isinstance(besides, dict) else Usage()
    except TypeError:  # a file of somebody else's
        return Usage()


def add_besides(episode: Episode, usage: Usage) -> None:
    """Put more of that on an episode's account."""
    if usage.requests:
        episode.tags[BESIDES] = (besides_of(episode) + usage).to_json()


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
