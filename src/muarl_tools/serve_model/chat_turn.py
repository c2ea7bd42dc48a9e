"""A chat completion on its way: the messages become ids, by way of what is remembered of the conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from hashlib import sha256
from typing import Any

from muarl.audit.guard import held_back
from muarl.basics.seeds import derive_seed
from muarl.basics.web.json_api import ApiError
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.rendered import with_tool_names
from muarl.inference.base import SamplingParams
from muarl.types.chat import Message
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.answers import CompletionUsage
from muarl_tools.serve_model.guarding import GuardReport, PlainReply
from muarl_tools.serve_model.problems import TOO_LONG, refuse_endless, unsupported
from muarl_tools.serve_model.reading import ChatRequest
from muarl_tools.serve_model.replies import Piece, ReplyReader
from muarl_tools.serve_model.turns import WAIT, Choice, ChoiceDelta, Context, ServedModel, ServedRequest
from muarl_tools.serve_model.whole_replies import WholeReplyReader


class ChatTurn(ServedRequest):
    """A chat completion."""

    kind = "chat.completion"

    def __init__(self, served: ServedModel, request: ChatRequest, chat: ChatFormat) -> None:
        super().__init__(served, request.wanted, chat)
        self.request = request
        tools = [t.to_openai() for t in request.tools]
        parts = [request.scope, chat.thinking, request.system, tools]
        self._root = sha256(json.dumps(parts).encode()).digest()
        self._kept = False

    def _open(self) -> list[Choice]:
        request, memory = self.request, self.served.memory
        refuse_endless(self._texts(), self.served.context, self.chat.tokenizer.encode)
        messages = with_tool_names(request.messages)
        found = memory.find(self._root, request.messages)
        if found is None:
            past, ids = None, self.chat.prompt(request.system, request.tools, messages)
        else:
            told, past = found
            ids = past.ids.tolist()
            earlier, new = messages[:told], messages[told:]
            anew = self.chat.written_anew(ids, request.system, request.tools, earlier, new)
            ids = ids + self.chat.resume(ids, new) if anew is None else anew
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
        one_call = not request.parallel or request.named is not None
        offered = request.tools if request.tool_choice != "none" else ()
        reader: ReplyReader | WholeReplyReader
        if self.chat.markers is None:
            reader = WholeReplyReader(
                self.chat, self.context.ids, given=given, stop=self.wanted.stop, tools=offered, one_call=one_call
            )
        else:
            reader = ReplyReader(
                self.chat,
                self.context.ids,
                given=given,
                stop=self.wanted.stop,
                calls=bool(offered),
                one_call=one_call,
            )
        return Choice(number, reader, params, None if number else self.context.session, len(given))

    def _forced(self) -> tuple[int, ...]:
        """What a reply begins with that must call a tool."""
        if self.request.tool_choice != "required":
            return ()
        opening = self.chat.call_opening(self.request.named)
        if opening is None:
            raise unsupported(
                "tool_choice", f"replies in this model's chat format ({self.chat.name}) cannot be made to call a tool"
            )
        return opening

    # ---- the guard

    async def _all(self) -> list[Choice]:
        choices = await super()._all()
        if self.served.guard is not None:
            self.choices = [await self._guarded(choice) for choice in choices]
        return self.choices

    async def _arriving(self) -> AsyncGenerator[ChoiceDelta | None, None]:
        guard = self.served.guard
        if guard is not None and guard.mode == "block" and self.request.tools:
            async with aclosing(self._at_once()) as arriving:
                async for news in arriving:
                    yield news
            return
        async with aclosing(super()._arriving()) as arriving:
            async for news in arriving:
                if guard is not None and news is not None and news.over:
                    await self._guarded(news.choice)
                yield news

    async def _at_once(self) -> AsyncGenerator[ChoiceDelta | None, None]:
        """The choices, each whole: what has been sent cannot be held back."""
        task = asyncio.ensure_future(self._all())
        try:
            while not (await asyncio.wait({task}, timeout=WAIT))[0]:
                yield None
            for choice in await task:
                reader = choice.reader
                pieces = [Piece("reasoning", reader.reasoning), Piece("content", reader.content)]
                calls = [Piece("call", call=call, number=n) for n, call in enumerate(reader.calls)]
                told = [*(piece for piece in pieces if piece.text), *calls]
                yield ChoiceDelta(choice, told, choice.sampled, choice.logprobs, over=True)
        finally:
            task.cancel()

    async def _guarded(self, choice: Choice) -> Choice:
        """The choice, or what is said in place of it where its calls are held back."""
        guard, request, last = self.served.guard, self.request, choice
        assert guard is not None
        report = GuardReport(guard.mode)
        for attempt in range(guard.tries + 1):
            reply = _message(last)
            findings = await guard.findings(request.messages, reply)
            report.note(findings)
            if not findings or guard.mode == "report":
                break
            report.held += 1
            guard.totals.held_back += 1
            report.completion += len(last.sampled)
            request = replace(request, messages=(*request.messages, reply, *held_back(reply, findings)))
            again = await self._asked_again(request) if attempt < guard.tries else None
            if again is None:
                guard.totals.given_up += 1
                last = replace(last, reader=PlainReply(guard.text), logprobs=[], given=0)
                break
            (last,) = again.choices
            report.prompt += len(again._prompt)
        if report.findings:
            last.report = report
        last.number = choice.number
        return last

    async def _asked_again(self, request: ChatRequest) -> ChatTurn | None:
        """One more reply, behind what was held back; None where the model's context has no room for it."""
        turn = ChatTurn(self.served, replace(request, wanted=replace(self.wanted, n=1)), self.chat)
        try:
            await ServedRequest._all(turn)
        except ApiError as problem:
            if problem.code != TOO_LONG:
                raise
            return None
        self.served.answered -= 1  # it is one request, however often the model is asked
        return turn

    def _usage(self, choices: Sequence[Choice]) -> CompletionUsage:
        usage = super()._usage(choices)
        reports = [choice.report for choice in choices if choice.report is not None]
        more = (sum(one.prompt for one in reports), sum(one.completion for one in reports))
        return replace(usage, prompt=usage.prompt + more[0], completion=usage.completion + more[1])

    def _keep(self, choice: Choice) -> None:
        reader = choice.reader
        if reader.cut or not reader.ids:  # what was said is not what was sampled
            return
        message, memory = _message(choice), self.served.memory
        session = choice.session or memory.session(None)
        memory.keep(self._root, [*self.request.messages, message], [*self.context.ids, *reader.ids], session)
        self._kept = self._kept or choice.session is not None

    def _close(self) -> None:
        if not self._kept and self.context.session is not None:
            self.served.memory.back(self.context.past, self.context.session)

    # ---- shapes

    def _whole(self, choice: Choice) -> dict[str, Any]:
        reader = choice.reader
        message = answers.message_json(reader.content, reader.calls, reader.reasoning, reader.with_unread)
        out: dict[str, Any] = {"index": choice.number, "message": message, "finish_reason": reader.finish_reason}
        out["logprobs"] = (
            answers.logprobs_json(self.chat, choice.sampled, choice.logprobs) if self.wanted.logprobs else None
        )
        out |= {"guard": choice.report.to_json()} if choice.report is not None else {}
        return out | ({"token_ids": choice.sampled} if self.wanted.ids else {})

    def _begin(self, choice: Choice) -> list[dict[str, Any]]:
        return [self._chunk(choice, {"role": "assistant", "content": ""})]

    def _chunks(self, news: ChoiceDelta) -> list[dict[str, Any]]:
        choice = news.choice
        out = [self._chunk(choice, answers.delta_json(piece)) for piece in news.pieces]
        if news.over:
            told = {} if choice.report is None else {"guard": choice.report.to_json()}
            out.append(self._chunk(choice, {}, choice.reader.finish_reason) | told)
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


def _message(choice: Choice) -> Message:
    """A complete choice as a message."""
    reader = choice.reader
    return Message("assistant", reader.content, tuple(reader.calls), reasoning=reader.reasoning or None)


def _replies(messages: Sequence[Message]) -> int:
    """How often the agent has spoken since it was first spoken to."""
    told = next((n for n, m in enumerate(messages) if m.role in ("user", "tool")), len(messages))
    return sum(m.role == "assistant" for m in messages[told:])
