"""Who of several equal processes to ask: how busy each is, and who is away. Book-keeping only: no Ray, no waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

PAUSE = 1.0
"""Seconds before a process that was lost is asked again; doubled each time that it is lost again."""
LONGEST = 32
"""How many times that at most."""


class Crew:
    """``size`` members, numbered from 0.

    A member that was lost is away for ``pause`` seconds, and longer each time; then it may be asked again, and is back
    once it has answered. One lost for good never comes back. ``first``: whom to take where several are equally busy, so
    that those who share a crew without knowing of each other do not all begin with the same one.
    """

    def __init__(
        self, size: int, *, first: int = 0, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if size < 1:
            raise ValueError(f"a crew needs at least one member, not {size}")
        self.size = size
        self._first, self._pause = first, pause
        self._clock = clock
        self._load = [0] * size
        self._until = [0.0] * size
        self._losses = [0] * size
        self._gone: set[int] = set()

    def choose(self, preferred: int | None = None, *, besides: Collection[int] = ()) -> int | None:
        """``preferred`` if it is there, else the least busy of those that are; None if nobody is.

        ``besides``: whom to take only if there is nobody else.
        """
        now = self._clock()
        there = [n for n in range(self.size) if n not in self._gone and self._until[n] <= now]
        if preferred in there and preferred not in besides:
            return preferred
        rather = [n for n in there if n not in besides]
        return min(rather or there, key=lambda n: (self._load[n], (n - self._first) % self.size), default=None)

    def begin(self, member: int) -> None:
        """The member has been given something to do."""
        self._load[member] += 1

    def end(self, member: int) -> None:
        """It has finished that, one way or another."""
        self._load[member] -= 1

    def lost(self, member: int, *, final: bool = False) -> bool:
        """The member did not answer. ``final``: and never will. False if that was known, since it had several things
        to do."""
        if final:
            self._gone.add(member)
        now = self._clock()
        if self._until[member] > now:
            return False
        self._until[member] = now + self._pause * min(2 ** self._losses[member], LONGEST)
        self._losses[member] += 1
        return True

    def found(self, member: int) -> None:
        """The member has answered."""
        self._until[member] = 0.0
        self._losses[member] = 0

    def doubtful(self, member: int) -> bool:
        """Whether it was lost, and has not answered since."""
        return self._losses[member] > 0

    @property
    def loads(self) -> tuple[int, ...]:
        """How much each has to do."""
        return tuple(self._load)

    @property
    def gone(self) -> int:
        """How many are lost for good."""
        return len(self._gone)

    def pause(self) -> float | None:
        """Seconds until somebody may be asked; None if all are gone for good."""
        left = [self._until[n] for n in range(self.size) if n not in self._gone]
        return max(0.0, min(left) - self._clock()) if left else None
