"""The driver's part in sending weights from a learner's process straight to samplers: who is in the group, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from muarl.basics.errors import MuarlError
from muarl.workers.cluster.calls import answer
from muarl.workers.cluster.sampler_actor import GroupMembership
from muarl.workers.failures import ProcessLost

if TYPE_CHECKING:
    from muarl.learning.settings import LoraSettings
    from muarl.workers.cluster.learners import RemoteWeights
    from muarl.workers.cluster.transport import GroupKind

log = logging.getLogger(__name__)

TRIES = 3
"""After as many updates in a row that did not come through, weights travel through the object store for good."""


class Member(Protocol):
    """A sampler's process (see ``samplers.ActorRemote``)."""

    number: int

    @property
    def actor(self) -> Any: ...

    @property
    def who(self) -> str: ...


@dataclass(slots=True)
class DirectRoute:
    """Groups of a learner's first process and samplers, one after another: a sampler that was lost cannot come back to
    its group, so a new one is formed when it is there again."""

    kind: GroupKind
    """See ``transport``."""
    device: str
    """See ``transport``."""
    seconds: float
    """Seconds that an update may take."""
    forming: float
    """Seconds that a group may take to form, and one bucket to be sent."""
    _token: str = ""
    _address: str = ""
    _members: tuple[int, ...] = ()
    _failures: int = 0

    @property
    def open(self) -> bool:
        """Whether it is worth another try."""
        return self._failures < TRIES

    async def send(
        self,
        weights: RemoteWeights,
        members: Sequence[Member],
        version: int,
        *,
        size: int,
        lora: LoraSettings | None,
        board: str,
    ) -> None:
        """Give the samplers that are there these weights, in buckets of ``size`` bytes; of adapters alone with
        ``lora``. The learner then leaves them on the board as well, for those that did not get them. MuarlError if the
        learner is lost."""
        token = await self._group(weights, members)
        receiving = [
            asyncio.ensure_future(self._received(m, token, version, lora))
            for m in members
            if token and m.number in self._members
        ]
        try:
            problem = await weights.send(size, token, adapter=lora is not None)
        except BaseException as cause:
            await self._give_up(f"the learner did not send the weights: {cause or type(cause).__name__}")
            raise
        finally:
            problems = [p for p in await asyncio.gather(*receiving) if p]
        weights.store(board, version, lora)
        if token and (problem or problems):
            log.warning(
                "weights of version %d did not reach all samplers directly (%s): the others take them from the object "
                "store, and the next update forms a new group",
                version,
                problem or problems[0],
            )
            self._token = ""
        self._failures = self._failures + 1 if problem or problems or not token else 0

    async def _group(self, weights: RemoteWeights, members: Sequence[Member]) -> str:
        """The token of a group of all that are there; "" if none could be formed."""
        tokens = await asyncio.gather(*(self._token_of(m) for m in members))
        there = tuple(m.number for m, token in zip(members, tokens, strict=True) if token is not None)
        if self._token and there == self._members and all(token in (None, self._token) for token in tokens):
            return self._token
        self._token, self._members = "", there
        if not there:
            return ""
        try:
            return await self._form(weights, [m for m in members if m.number in there])
        except (ProcessLost, MuarlError) as problem:
            log.warning("this update goes through the object store, since no group for weights was formed: %s", problem)
            await self._give_up(str(problem))
            return ""

    async def _form(self, weights: RemoteWeights, members: Sequence[Member]) -> str:
        token, actors = uuid4().hex, [weights.first, *(m.actor for m in members)]
        self._address = await answer(weights.first.host_group.remote(self.forming), self.forming, "learner 0")
        memberships = [
            GroupMembership(token, self.kind, self._address, rank, len(members) + 1, self.device, self.forming)
            for rank in range(len(members) + 1)
        ]
        names = ["learner 0", *(m.who for m in members)]
        tasks = [
            asyncio.ensure_future(answer(actor.join_group.remote(membership), self.forming, name))
            for actor, membership, name in zip(actors, memberships, names, strict=True)
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = next((t.exception() for t in done if t.exception() is not None), None)
        if failed is not None:
            await self._give_up(str(failed))
            await asyncio.gather(*tasks, return_exceptions=True)
            raise failed
        self._token = token
        return token

    async def _token_of(self, member: Member) -> str | None:
        """The token of the group that a sampler is in, "" for none; None if it is not there."""
        with suppress(ProcessLost, MuarlError):
            return await answer(member.actor.group_token.remote(), self.forming, member.who) or ""
        return None

    async def _received(self, member: Member, token: str, version: int, lora: LoraSettings | None) -> str | None:
        try:
            problem: str | None = await answer(
                member.actor.receive.remote(token, version, lora), self.seconds, member.who
            )
        except (ProcessLost, MuarlError) as caught:
            problem = str(caught)
        if problem:
            await self._give_up(f"{member.who}: {problem}")
        return problem

    async def _give_up(self, why: str) -> None:
        from muarl.workers.cluster.transport import give_up

        if self._address:
            await asyncio.to_thread(give_up, self._address, why)
