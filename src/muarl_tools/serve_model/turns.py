"""One request on its way: its messages become a context of ids, the sampled ids a reply."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from muarl.basics.seeds import derive_seed
from muarl.chat_formats.base import ChatFormat
from muarl.inference.base import SamplingParams
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.answers import CompletionUsage, Header
from muarl_tools.serve_model.engine import ServedEngine
from muarl_tools.serve_model.guarding import GuardReport, PlainReply, ServedGuard
from muarl_tools.serve_model.memory import ConversationPrefix, Memory
from muarl_tools.serve_model.problems import too_long
from muarl_tools.serve_model.reading import CompletionOptions
from muarl_tools.serve_model.replies import Piece, ReplyReader, TextReader
from muarl_tools.serve_model.whole_replies import WholeReplyReader

WAIT = 15.0
"""Seconds without news after which a stream says that it is still there."""


@dataclass(slots=True)
class ServedModel:
    """What is served. ``context``: ids of prompt and completion together; ``raw_prompts``: text prompts are taken, in
    which control tokens count as such. ``answered``: requests so far. ``guard``: looks at chat replies before they go
    out."""

    name: str
    engine: ServedEngine
    memory: Memory
    context: int
    raw_prompts: bool = False
    answered: int = 0
    guard: ServedGuard | None = None


@dataclass(slots=True)
class Context:
    """What a reply is sampled after: the ids, where they come from, and the ids that the reply must begin with."""

    ids: list[int]
    session: str | None
    past: ConversationPrefix | None = None
    given: tuple[int, ...] = ()


@dataclass(slots=True)
class Choice:
    """One of a request's completions, as far as it has come."""

    number: int
    reader: ReplyReader | WholeReplyReader | TextReader | PlainReply
    params: SamplingParams
    session: str | None
    given: int
    logprobs: list[float] = field(default_factory=list)
    report: GuardReport | None = None

    @property
    def sampled(self) -> list[int]:
        """The sampled ids that belong to the reply."""
        return self.reader.ids[self.given :]


@dataclass(frozen=True, slots=True)
class ChoiceDelta:
    """What is new of a choice: pieces, and the sampled ids that brought them."""

    choice: Choice
    pieces: Sequence[Piece]
    ids: Sequence[int]
    logprobs: Sequence[float]
    over: bool = False


class ServedRequest(ABC):
    """One request on its way: what chat and text completions do alike."""

    kind = ""

    def __init__(self, served: ServedModel, wanted: CompletionOptions, chat: ChatFormat) -> None:
        self.served, self.wanted, self.chat = served, wanted, chat
        self.header = Header(served.name, self.kind)
        self.context = Context([], None)
        self.choices: list[Choice] = []

    async def answer(self) -> dict[str, Any]:
        """The answer in one piece."""
        choices = await self._all()
        more = {"prompt_token_ids": self._prompt} if self.wanted.ids else {}
        return self.header.whole([self._whole(c) for c in choices], self._usage(choices), **more)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events."""
        begun = False
        async with aclosing(self._arriving()) as arriving:
            async for news in arriving:
                if not begun:
                    begun, more = True, {"prompt_token_ids": self._prompt} if self.wanted.ids else {}
                    for part in [p for c in self.choices for p in self._begin(c)]:
                        yield answers.event(self.header.chunk([part], **more))
                        more = {}
                if news is None:
                    yield answers.WAITING
                elif events := b"".join(answers.event(self.header.chunk([p])) for p in self._chunks(news)):
                    yield events
        if self.wanted.usage:
            yield answers.event(self.header.chunk([], usage=self._usage(self.choices).to_json()))
        yield answers.DONE

    async def _all(self) -> list[Choice]:
        """The choices, complete."""
        with self.served.engine.admitted(self.wanted.n):
            self.choices = self._open()
            try:
                async with asyncio.TaskGroup() as group:
                    for choice in self.choices:
                        group.create_task(self._drain(choice))
            except BaseExceptionGroup as problems:
                raise _first(problems) from problems
            finally:
                self._close()
        self.served.answered += 1
        return self.choices

    async def _arriving(self) -> AsyncGenerator[ChoiceDelta | None, None]:
        """What is new of the choices, as it comes, until they are complete; None where nothing has come for long.
        Nothing is given before there is something: a failure until then still has its own status."""
        arrived: asyncio.Queue[ChoiceDelta | BaseException] = asyncio.Queue()
        tasks: list[asyncio.Task[None]] = []
        with self.served.engine.admitted(self.wanted.n):
            self.choices = self._open()
            try:
                tasks = [asyncio.ensure_future(self._tell(c, arrived)) for c in self.choices]
                left = len(self.choices)
                while left:
                    news = await _within(WAIT, arrived)
                    if isinstance(news, BaseException):
                        raise news
                    yield news
                    left -= news is not None and news.over
                self.served.answered += 1
            finally:
                for task in tasks:
                    task.cancel()
                self._close()

    # ---- what the two kinds do differently

    @abstractmethod
    def _open(self) -> list[Choice]:
        """Build the context and the choices; ApiError if that cannot be."""

    @abstractmethod
    def _close(self) -> None:
        """The request is over, for good or ill."""

    @abstractmethod
    def _whole(self, choice: Choice) -> dict[str, Any]:
        """A choice in one piece."""

    @abstractmethod
    def _begin(self, choice: Choice) -> list[dict[str, Any]]:
        """How the stream of a choice begins."""

    @abstractmethod
    def _chunks(self, news: ChoiceDelta) -> list[dict[str, Any]]:
        """How it continues."""

    @abstractmethod
    def _keep(self, choice: Choice) -> None:
        """A choice is complete."""

    # ---- sampling

    @property
    def _prompt(self) -> list[int]:
        return [*self.context.ids, *self.context.given]

    def _params(self, stop_ids: tuple[int, ...], seed: int | None, number: int) -> SamplingParams:
        room = self.served.context - len(self.context.ids) - len(self.context.given)
        if room < 1:
            raise too_long(len(self.context.ids), self.served.context)
        wanted = self.wanted
        if seed is not None and number:
            seed = derive_seed(seed, "choice", number)
        most = room if wanted.max_tokens is None else min(wanted.max_tokens, room)
        return SamplingParams(most, wanted.temperature, wanted.top_p, wanted.top_k, stop_ids, seed)

    async def _run(self, choice: Choice) -> AsyncIterator[ChoiceDelta]:
        """Sample a choice and read it. Ends the generation as soon as the reply is complete."""
        reader, ends_early = choice.reader, self.wanted.stream or bool(self.wanted.stop) or choice.reader.ends_early
        parts = self.served.engine.parts(self._prompt, choice.params, session=choice.session, soon=ends_early)
        async with aclosing(parts):
            async for part in parts:
                before = len(reader.ids)
                pieces = reader.feed(part.ids)
                ids = reader.ids[before:]
                choice.logprobs += part.logprobs[: len(ids)]
                over = reader.done or part.finish_reason is not None
                if not reader.done and part.finish_reason is not None:
                    pieces = [*pieces, *reader.end(part.finish_reason)]
                if over:  # the end may have shown that less of it belongs to the reply
                    del choice.logprobs[len(choice.sampled) :]
                    self._keep(choice)
                yield ChoiceDelta(choice, pieces, ids, part.logprobs[: len(ids)], over)
                if over:
                    return

    async def _drain(self, choice: Choice) -> None:
        async for _ in self._run(choice):
            pass

    async def _tell(self, choice: Choice, arrived: asyncio.Queue[Any]) -> None:
        try:
            async for news in self._run(choice):
                arrived.put_nowait(news)
        except asyncio.CancelledError:
            raise
        except Exception as problem:
            arrived.put_nowait(problem)

    def _usage(self, choices: Sequence[Choice]) -> CompletionUsage:
        return CompletionUsage(
            len(self._prompt), sum(len(c.sampled) for c in choices), sum(c.reader.reasoned for c in choices)
        )


async def _within(
    seconds: float, arrived: asyncio.Queue[ChoiceDelta | BaseException]
) -> ChoiceDelta | BaseException | None:
    """What has arrived; None if nothing does in time."""
    try:
        async with asyncio.timeout(seconds):
            return await arrived.get()
    except TimeoutError:
        return None


def _first(problems: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that a request reports of those that its completions had."""
    found = problems.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
