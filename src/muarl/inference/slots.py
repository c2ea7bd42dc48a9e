"""Which slot of the key/value cache holds what: sessions, prefix matching, eviction. Host memory only; no tensors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]


def common_prefix(a: Ids, b: Ids) -> int:
    """How many leading ids two vectors share."""
    n = min(len(a), len(b))
    differs = a[:n] != b[:n]
    return int(differs.argmax()) if differs.any() else n


COMMON_FROM = 64
"""All running rows must have this many tokens in common before attention reads those from one slot for all."""
COMMON_ROWS = 3
"""As many rows must run for that to pay."""


class Placement(NamedTuple):
    """Where a request is computed."""

    slot: int
    """The request's own."""
    source: int
    """The slot that holds the leading positions (``slot`` itself, if nothing is to be copied)."""
    shared: int
    """Leading positions that need not be computed, because ``source`` holds them."""
    evicted: bool
    """A session lost the slot."""


class SlotTable:
    """The book-keeping of ``slots`` cache rows of ``positions`` tokens each.

    ``valid[s]`` leading positions of slot s hold keys and values of ``ids[s]`` under the present weights; what a
    closed session leaves behind stays valid, as a source of prefixes, until the slot is taken. A busy slot belongs to a
    running request and is never taken.
    """

    def __init__(self, slots: int, positions: int) -> None:
        self.ids: Ids = np.zeros((slots, positions), dtype=np.int32)
        self.valid = np.zeros(slots, dtype=np.int64)
        self.busy = np.zeros(slots, dtype=bool)
        self._owned = np.zeros(slots, dtype=bool)
        self._used = np.arange(slots, dtype=np.int64) - slots  # slot 0 first
        self._clock = 0
        self._owner: dict[int, str] = {}
        self._slot: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.valid)

    @property
    def sessions(self) -> int:
        """How many sessions own a slot."""
        return len(self._slot)

    def find(self, session: str | None) -> int | None:
        """The slot of a session, or None if it has none (any more)."""
        return None if session is None else self._slot.get(session)

    def longest_prefix(self, prompt: Ids) -> tuple[int, int]:
        """The slot whose valid ids share the longest prefix with ``prompt``, and that length (0: no slot does)."""
        width = min(len(prompt), int(self.valid.max()))
        if width == 0:
            return 0, 0
        differs = self.ids[:, :width] != prompt[:width]
        first = np.where(differs.any(1), differs.argmax(1), width)
        shared = np.minimum(first, self.valid)
        best = int(shared.argmax())
        return best, int(shared[best])

    def in_common(self, slots: list[int]) -> int:
        """How many leading valid ids all of ``slots`` share."""
        width = int(self.valid[slots].min())
        differs = (self.ids[slots[1:], :width] != self.ids[slots[0], :width]).any(0)
        return int(differs.argmax()) if differs.any() else width

    def common(self, slots: list[int], unit: int) -> tuple[int, int]:
        """The first of ``slots``, and how many leading positions, in whole ``unit``s, all have in common with it; 0
        where that is too few to pay."""
        if len(slots) < COMMON_ROWS:
            return 0, 0
        length = self.in_common(slots)
        return slots[0], length // unit * unit if length >= COMMON_FROM else 0

    def soon_shared(self, prompt: Ids, planned: NDArray[np.int64]) -> int:
        """The longest prefix of ``prompt`` in slots whose ``planned`` positions (0: none) are about to be computed."""
        soon = np.flatnonzero(planned)
        width = min(len(prompt), int(planned.max()))
        if width == 0:
            return 0
        differs = self.ids[soon, :width] != prompt[:width]
        return int(np.minimum(np.where(differs.any(1), differs.argmax(1), width), planned[soon]).max())

    def choose(self, preferred: int) -> int | None:
        """A slot to take: ``preferred`` if nobody owns it, else an unowned one (empty ones first), else that of the
        session idle longest.

        None if all are busy.
        """
        if not self.busy[preferred] and not self._owned[preferred]:
            return preferred
        unowned = ~self.busy & ~self._owned
        empty = unowned & (self.valid == 0)
        if empty.any():
            return int(empty.argmax())  # the lowest: attention reads neighbours in place
        for candidates in (unowned, ~self.busy):
            free = np.flatnonzero(candidates)
            if len(free):
                return int(free[self._used[free].argmin()])
        return None

    def place(
        self, prompt: Ids, session: str | None, planned: NDArray[np.int64], *, at_least: int
    ) -> Placement | Literal["later", "full"]:
        """Find a slot for a prompt, make it busy, and note in ``planned`` what will be computed in it.

        "later" where a neighbour of this round is computing ``at_least`` more of its prefix than is there now, "full"
        where all slots are busy. Sessions keep their own slot, unless it serves another request.
        """
        need = len(prompt) - 1  # the last prompt token goes through decode
        own = self.find(session)
        busy = own is not None and bool(self.busy[own])
        source = shared = 0
        if own is not None and not busy:
            source, shared = own, common_prefix(self.ids[own, : self.valid[own]], prompt)
        if own is None or busy or not 0 < shared == self.valid[own]:
            other, elsewhere = self.longest_prefix(prompt)
            if elsewhere >= shared + at_least:
                source, shared = other, elsewhere
            if self.soon_shared(prompt, planned) - shared >= at_least:
                return "later"
        slot = own if own is not None and not busy else self.choose(source)
        if slot is None:
            return "full"
        evicted = slot != own and self.take(slot, None if busy else session)
        shared = min(shared, need)
        # Until the copy is made, only what the slot itself holds may serve others.
        self.valid[slot] = shared if slot == source else 0
        self.ids[slot, : len(prompt)] = prompt
        self.busy[slot] = True
        planned[slot] = need
        return Placement(slot, source if shared else slot, shared, evicted)

    def take(self, slot: int, session: str | None) -> bool:
        """Give a slot to ``session`` (None: nobody) and make it busy. True if a session that owned it lost it."""
        evicted = bool(self._owned[slot])
        self._disown(slot)
        if session is not None:
            self._owner[slot], self._slot[session] = session, slot
            self._owned[slot] = True
        self.busy[slot] = True
        return evicted

    def release(self, slot: int) -> None:
        """The slot's request ended; its session, if any, keeps the cached positions."""
        self.busy[slot] = False
        self._clock += 1
        self._used[slot] = self._clock

    def close(self, session: str) -> None:
        """Forget a session. Its cached positions stay as a source of prefixes."""
        slot = self._slot.get(session)
        if slot is not None:
            self._disown(slot)

    def invalidate(self) -> None:
        """Nothing cached is valid any more (the weights changed)."""
        self.valid[:] = 0

    def _disown(self, slot: int) -> None:
        session = self._owner.pop(slot, None)
        if session is not None:
            del self._slot[session]
            self._owned[slot] = False
