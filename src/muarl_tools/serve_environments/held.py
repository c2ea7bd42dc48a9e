"""Conversations that clients lead over HTTP: found by their ids, closed when nobody asks for them any more."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from muarl.basics.web.json_api import ApiError, busy, stopping
from muarl.environments.session import Session


class Room:
    """Room for so many conversations at once, and for so many requests that wait for it, in turn."""

    def __init__(self, most: int, queue: int) -> None:
        self.free, self.queue, self.waiting, self.stopping = most, queue, 0, False
        self._room = asyncio.Semaphore(most)

    async def wait(self) -> None:
        """A place, when it is this request's turn. ApiError: too many wait, or the server is about to end."""
        if self._room.locked() and self.waiting >= self.queue:
            raise stopping() if self.stopping else busy()
        self.waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.waiting -= 1
        self.free -= 1
        if self.stopping:
            self.give_back()
            raise stopping()

    async def take(self) -> None:
        """A place at once. ApiError if there is none."""
        if self._room.locked():
            raise stopping() if self.stopping else busy()
        await self.wait()

    def give_back(self) -> None:
        """One is free again."""
        self.free += 1
        self._room.release()


class HeldSession:
    """A session with its place. ``patience``: seconds after which it is closed if nobody asks for it. ``told``: the
    tools that the client knows of."""

    def __init__(self, session: Session, address: str, room: Room, clock: Callable[[], float], patience: float) -> None:
        self.session, self.address, self.patience = session, address, patience
        self.id = secrets.token_urlsafe(16)
        self.told: tuple[object, ...] | None = None
        self._room_taken: Room | None = room
        self._clock, self._last, self._asked = clock, clock(), 0

    @contextmanager
    def asked(self) -> Iterator[None]:
        """A request for it runs."""
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1
            self._last = self._clock()
            if self.session.done:
                self._free()

    @property
    def idle(self) -> float:
        """Seconds for which nobody has asked for it, 0 while its user or a request is at work."""
        working = self._asked or not (self.session.waiting or self.session.done)
        return 0.0 if working else self._clock() - self._last

    async def aclose(self) -> None:
        """End the conversation, and free its place."""
        await self.session.aclose()
        self._free()

    def _free(self) -> None:
        room, self._room_taken = self._room_taken, None
        if room is not None:
            room.give_back()


class HeldSessions:
    """All of them. ``idle``: seconds after which one that nobody asks for is usually closed. ``clock``: for tests."""

    def __init__(self, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.idle, self.clock = idle, clock
        self._held: dict[str, HeldSession] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, held: HeldSession) -> None:
        """From now on it is found."""
        self._held[held.id] = held

    def find(self, name: str) -> HeldSession:
        """The session of an id. ApiError if there is none."""
        held = self._held.get(name)
        if held is None:
            raise ApiError(
                404,
                f"There is no session {name[:40]!r}: it was deleted, or nobody asked for it for too long: "
                f"{self.idle:g} seconds, unless it was begun with another limit. Start another one.",
                code="unknown_session",
            )
        return held

    async def remove(self, held: HeldSession) -> None:
        """Close it; it is not found any more."""
        self._held.pop(held.id, None)
        await held.aclose()

    async def expire(self) -> int:
        """Close those that nobody asks for; how many they were."""
        old = [held for held in self._held.values() if held.idle > held.patience]
        for held in old:
            await self.remove(held)
        return len(old)

    async def aclose(self) -> None:
        """Close all."""
        for held in list(self._held.values()):
            await self.remove(held)
