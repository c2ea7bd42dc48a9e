"""One request on its way: its messages become a context of ids, the sampled ids a reply."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from muarl.chat import Message
from muarl.inference.base import SamplingParams
from muarl.inference.server import answers
from muarl.inference.server.answers import Header, Usage
from muarl.inference.server.engine import ServedEngine
from muarl.inference.server.length import refuse_endless
from muarl.inference.server.memory import Memory, Past
from muarl.inference.server.problems import invalid, too_long, unsupported
from muarl.inference.server.reading import ChatRequest, TextRequest, Wanted
from muarl.inference.server.replies import Piece, ReplyReader, TextReader
from muarl.seeds import derive_seed
from muarl.tokens import ChatTokens

WAIT = 15.0
"""Seconds without news after which a stream says that it is still there."""


@dataclass(slots=True)
class Served:
    """What is served. ``context``: ids of prompt and completion together; ``raw_prompts``: text prompts are taken, in
    which control tokens count as such. ``answered``: requests so far."""

    name: str
    engine: ServedEngine
    memory: Memory
    context: int
    raw_prompts: bool = False
    answered: int = 0


@dataclass(slots=True)
class Context:
    """What a reply is sampled after: the ids, where they come from, and the ids that the reply must begin with."""

    ids: list[int]
    session: str | None
    past: Past | None = None
    given: tuple[int, ...] = ()


@dataclass(slots=True)
class Choice:
    """One of a request's completions, as far as it has come."""

    number: int
    reader: ReplyReader | TextReader
    params: SamplingParams
    session: str | None
    given: int
    logprobs: list[float] = field(default_factory=list)

    @property
    def sampled(self) -> list[int]:
        """The sampled ids that belong to the reply."""
        return self.reader.ids[self.given :]


@dataclass(frozen=True, slots=True)
class News:
    """What is new of a choice: pieces, and the sampled ids that brought them."""

    choice: Choice
    pieces: Sequence[Piece]
    ids: Sequence[int]
    logprobs: Sequence[float]
    over: bool = False


class Turn(ABC):
    """One request on its way: what chat and text completions do alike."""

    kind = ""

    def __init__(self, served: Served, wanted: Wanted, chat: ChatTokens) -> None:
        self.served, self.wanted, self.chat = served, wanted, chat
        self.header = Header(served.name, self.kind)
        self.context = Context([], None)

    async def answer(self) -> dict[str, Any]:
        """The answer in one piece."""
        with self.served.engine.admitted(self.wanted.n):
            choices = self._open()
            try:
                async with asyncio.TaskGroup() as group:
                    for choice in choices:
                        group.create_task(self._drain(choice))
            except BaseExceptionGroup as problems:
                raise _first(problems) from problems
            finally:
                self._close()
        self.served.answered += 1
        more = {"prompt_token_ids": self._prompt} if self.wanted.ids else {}
        return self.header.whole([self._whole(c) for c in choices], self._usage(choices), **more)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events."""
        arrived: asyncio.Queue[News | BaseException] = asyncio.Queue()
        tasks: list[asyncio.Task[None]] = []
        with self.served.engine.admitted(self.wanted.n):
            choices = self._open()
            try:
                tasks = [asyncio.ensure_future(self._tell(c, arrived)) for c in choices]
                left, begun = len(choices), False
                while left:
                    news = await _within(WAIT, arrived)
                    if isinstance(news, BaseException):
                        raise news
                    if not begun:  # nothing is sent before there is something: a failure still has its own status
                        begun, more = True, {"prompt_token_ids": self._prompt} if self.wanted.ids else {}
                        for part in [p for c in choices for p in self._begin(c)]:
                            yield answers.event(self.header.chunk([part], **more))
                            more = {}
                    if news is None:
                        yield answers.WAITING
                        continue
                    if events := b"".join(answers.event(self.header.chunk([p])) for p in self._chunks(news)):
                        yield events
                    left -= news.over
                self.served.answered += 1
                if self.wanted.usage:
                    yield answers.event(self.header.chunk([], usage=self._usage(choices).to_json()))
                yield answers.DONE
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
    def _chunks(self, news: News) -> list[dict[str, Any]]:
        """How it goes on."""

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

    async def _run(self, choice: Choice) -> AsyncIterator[News]:
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
                yield News(choice, pieces, ids, part.logprobs[: len(ids)], over)
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

    def _usage(self, choices: Sequence[Choice]) -> Usage:
        return Usage(len(self._prompt), sum(len(c.sampled) for c in choices), sum(c.reader.reasoned for c in choices))


class ChatTurn(Turn):
    """A chat completion."""

    kind = "chat.completion"

    def __init__(self, served: Served, request: ChatRequest, chat: ChatTokens) -> None:
        super().__init__(served, request.wanted, chat)
        self.request = request
        tools = [t.to_openai() for t in request.tools]
        parts = [request.scope, chat.thinking, request.system, tools]
        self._root = sha256(json.dumps(parts).encode()).digest()
        self._kept = False

    def _open(self) -> list[Choice]:
        request, memory = self.request, self.served.memory
        refuse_endless(self._texts(), self.served.context, self.chat.tokenizer.encode)
        found = memory.find(self._root, request.messages)
        if found is None:
            past, ids = None, self.chat.prompt(request.system, request.tools, request.messages)
        else:
            told, past = found
            ids = past.ids.tolist()
            ids += self.chat.resume(ids, request.messages[told:])
        self.context = Context(ids, None, past, self._forced())
        # One noise for each turn, as an agent of muarl's own draws it: the same request always has the same.
        seed = None if self.wanted.seed is None else derive_seed(self.wanted.seed, _replies(request.messages))
        params = [self._params(self.chat.stop_ids, seed, n) for n in range(self.wanted.n)]
        self.context.session = memory.session(past)
        return [self._choice(n, p) for n, p in enumerate(params)]

    def _texts(self) -> Iterator[str]:
        """What surely stands in the prompt; thoughts of earlier turns need not."""
        yield self.request.system
        for message in self.request.messages:
            if "</think>" not in (message.content or ""):
                yield message.content or ""
            for call in message.tool_calls:
                yield call.raw or json.dumps(dict(call.arguments), ensure_ascii=False)

    def _choice(self, number: int, params: SamplingParams) -> Choice:
        given, request = self.context.given, self.request
        reader = ReplyReader(
            self.chat,
            self.context.ids,
            given=given,
            stop=self.wanted.stop,
            calls=bool(request.tools) and request.tool_choice != "none",
            one_call=not request.parallel or request.named is not None,
        )
        return Choice(number, reader, params, None if number else self.context.session, len(given))

    def _forced(self) -> tuple[int, ...]:
        """What a reply begins with that must call a tool."""
        if self.request.tool_choice != "required":
            return ()
        chat, encode = self.chat, self.chat.tokenizer.encode_guarded
        ids: list[int] = []
        if chat.thinking:
            ids += [chat.control("<think>"), *encode("\n\n"), chat.control("</think>"), *encode("\n\n")]
        ids.append(chat.control("<tool_call>"))
        if self.request.named is not None:
            name = json.dumps(self.request.named, ensure_ascii=False)
            ids += encode(f'\n{{"name": {name}, "arguments":')
        return tuple(ids)

    def _keep(self, choice: Choice) -> None:
        reader = choice.reader
        if reader.cut or not reader.ids:  # what was said is not what was sampled
            return
        message = Message("assistant", reader.content, tuple(reader.calls), reasoning=reader.reasoning or None)
        memory = self.served.memory
        session = choice.session or memory.session(None)
        memory.keep(self._root, [*self.request.messages, message], [*self.context.ids, *reader.ids], session)
        self._kept = self._kept or choice.session is not None

    def _close(self) -> None:
        if not self._kept and self.context.session is not None:
            self.served.memory.back(self.context.past, self.context.session)

    # ---- shapes

    def _whole(self, choice: Choice) -> dict[str, Any]:
        reader = choice.reader
        message = answers.message_json(reader.content, reader.calls, reader.reasoning)
        out: dict[str, Any] = {"index": choice.number, "message": message, "finish_reason": reader.finish_reason}
        out["logprobs"] = (
            answers.logprobs_json(self.chat, choice.sampled, choice.logprobs) if self.wanted.logprobs else None
        )
        return out | ({"token_ids": choice.sampled} if self.wanted.ids else {})

    def _begin(self, choice: Choice) -> list[dict[str, Any]]:
        return [self._chunk(choice, {"role": "assistant", "content": ""})]

    def _chunks(self, news: News) -> list[dict[str, Any]]:
        choice = news.choice
        out = [self._chunk(choice, answers.delta_json(piece)) for piece in news.pieces]
        if news.over:
            out.append(self._chunk(choice, {}, choice.reader.finish_reason))
        more: dict[str, Any] = {}
        if self.wanted.logprobs and news.ids:
            more["logprobs"] = answers.logprobs_json(self.chat, news.ids, news.logprobs)
        if self.wanted.ids and news.ids:
            more["token_ids"] = list(news.ids)
        if more and not out:
            out.append(self._chunk(choice, {}))
        return [out[0] | more, *out[1:]] if more else out

    def _chunk(self, choice: Choice, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"index": choice.number, "delta": delta, "logprobs": None, "finish_reason": finish}


class TextTurn(Turn):
    """A completion of a prompt: nothing of it is read as a chat."""

    kind = "text_completion"

    def __init__(self, served: Served, request: TextRequest, chat: ChatTokens) -> None:
        super().__init__(served, request.wanted, chat)
        self.request = request

    def _open(self) -> list[Choice]:
        prompt, tokenizer = self.request.prompt, self.chat.tokenizer
        if isinstance(prompt, str):
            if not self.served.raw_prompts:
                raise unsupported(
                    "prompt",
                    "text in which control tokens count needs a server that was started with --raw-prompts; send token "
                    "ids, or use /v1/chat/completions",
                )
            refuse_endless([prompt], self.served.context, tokenizer.encode, around=0)
            prompt = tuple(tokenizer.encode(prompt))
        if min(prompt) < 0 or max(prompt) >= tokenizer.vocabulary_size:
            raise invalid(f"an id lies outside the vocabulary of {tokenizer.vocabulary_size}", "prompt")
        self.context = Context(list(prompt), None)
        stop_ids = (*self.chat.stop_ids, *self.request.stop_ids)
        params = [self._params(stop_ids, self.wanted.seed, n) for n in range(self.wanted.n)]
        return [Choice(n, TextReader(self.chat, stop_ids, self.wanted.stop), p, None, 0) for n, p in enumerate(params)]

    def _whole(self, choice: Choice) -> dict[str, Any]:
        out = self._part(choice, choice.reader.content, choice.reader.finish_reason)
        if self.wanted.logprobs:
            out["logprobs"] = answers.text_logprobs_json(self.chat, choice.sampled, choice.logprobs)
        return out | ({"token_ids": choice.sampled} if self.wanted.ids else {})

    def _begin(self, choice: Choice) -> list[dict[str, Any]]:
        return []

    def _chunks(self, news: News) -> list[dict[str, Any]]:
        finish = news.choice.reader.finish_reason if news.over else None
        out = self._part(news.choice, "".join(p.text for p in news.pieces), finish)
        if self.wanted.logprobs and news.ids:
            out["logprobs"] = answers.text_logprobs_json(self.chat, news.ids, news.logprobs)
        if self.wanted.ids:
            out["token_ids"] = list(news.ids)
        return [out]

    def _keep(self, choice: Choice) -> None:
        """Nobody goes on from a completion in the way of a conversation."""

    def _close(self) -> None:
        """Nothing is held."""

    def _part(self, choice: Choice, text: str, finish: str | None) -> dict[str, Any]:
        return {"index": choice.number, "text": text, "logprobs": None, "finish_reason": finish}


async def _within(seconds: float, arrived: asyncio.Queue[News | BaseException]) -> News | BaseException | None:
    """What has arrived; None if nothing does in time."""
    try:
        async with asyncio.timeout(seconds):
            return await arrived.get()
    except TimeoutError:
        return None


def _replies(messages: Sequence[Message]) -> int:
    """How often the agent has spoken since it was first spoken to."""
    told = next((n for n, m in enumerate(messages) if m.role in ("user", "tool")), len(messages))
    return sum(m.role == "assistant" for m in messages[told:])


def _first(problems: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that a request reports of those that its completions had."""
    found = problems.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
