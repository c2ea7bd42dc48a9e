"""What the tests of the conversation loop share: a small tokenizer, a toy shop, scripted sides, a recording sampler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from muarl.accounts.budgets import Budget
from muarl.agents.base import AgentTurn
from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.inference.base import Completion, SamplingParams
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest
from muarl.rollouts.rollout import LocalExecutor, Progress, Rollout, rollout
from muarl.types.chat import Message, ToolCall

TEXT = [
    'I want to cancel my order #W12. {"name": "get_order", "arguments": {"order_id": "#W12"}}',
    "Hi! How can I help you today? You may call one or more functions to assist with the user query.",
    "user\nassistant\nsystem\ntool_call tool_response think im_start im_end <| |> </ < >",
]


def small_tokenizer() -> Tokenizer:
    """Byte-level BPE with the Qwen3 control tokens and ordinary added pieces, one of them the empty think block."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    ends = CONTROL_TOKENS[:3]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ends])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in CONTROL_TOKENS[3:]])
    pieces = [
        "<think>\n\n</think>\n\n",
        "#W12",
        '\n{"name": "cancel", "arguments": {"order_id": "',
        "assistant\n",
        "mug#7",
    ]
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in pieces])
    return tokenizer


def call(name: str, call_id: str = "call_0", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


class Puppet:
    """An agent that plays a list of messages (or AgentTurns, or exceptions), the same in every episode."""

    name = "puppet"

    def __init__(self, *acts: Any) -> None:
        self.acts, self.sessions = acts, []

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> _PuppetSession:
        self.sessions.append(_PuppetSession(list(self.acts), system, tools, seed, session))
        return self.sessions[-1]


class _PuppetSession:
    tokens = None

    def __init__(self, acts: list[Any], system: str, tools: Any, seed: int, session: str) -> None:
        self.acts, self.system, self.tools, self.seed, self.name = acts, system, tools, seed, session
        self.told: list[list[Message]] = []
        self.closed = 0

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        self.told.append(list(new))
        await asyncio.sleep(0)
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        if isinstance(act, Exception):
            raise act
        if isinstance(act, AgentTurn):
            return act
        return AgentTurn(act if isinstance(act, Message) else Message("assistant", act))

    def close(self) -> None:
        self.closed += 1


async def roll_out(
    requests: Sequence[RolloutRequest],
    *,
    concurrency: int = 256,
    budget: Budget | None = None,
    give_up: int | None = None,
    progress: Progress | None = None,
    **runner: Any,
) -> Rollout:
    """A rollout in this process by a runner with the other options, which retries without a wait."""
    play = EpisodeRunner(**({"backoff": 0.0} | runner)).play
    return await rollout(requests, LocalExecutor(play, concurrency), budget=budget, give_up=give_up, progress=progress)


def say(content: str | None = None, *calls: ToolCall) -> Message:
    return Message("assistant", content, tuple(calls))


class RecordingSampler:
    """Answers with the ids of given texts or messages, one per turn of a session, and records everything it saw."""

    version = 3

    def __init__(self, chat: Qwen3Format, *replies: Any) -> None:
        self.chat, self.replies = chat, replies
        self.seen: list[tuple[str | None, tuple[int, ...], SamplingParams]] = []
        self.gave: list[Completion] = []
        self.closed: list[str] = []
        self.turn: dict[str | None, int] = {}

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        self.seen.append((session, tuple(prompt_ids), params))
        turn = self.turn.get(session, 0)
        self.turn[session] = turn + 1
        await asyncio.sleep(0)
        reply = self.replies[min(turn, len(self.replies) - 1)]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Message):
            ids = self.chat.reply_ids(reply)
        elif isinstance(reply, str):  # trusted: control tokens in it are meant
            ids = [*self.chat.tokenizer.encode(reply), self.chat.stop_ids[0]]
        else:
            ids = list(reply)
        reason = "stop" if ids and ids[-1] in params.stop_ids and len(ids) <= params.max_tokens else "length"
        ids = ids[: params.max_tokens]
        sampled = Completion(tuple(ids), tuple(-0.01 * (n + 1) for n in range(len(ids))), reason, self.version)
        self.gave.append(sampled)
        return sampled

    def close_session(self, session: str) -> None:
        self.closed.append(session)


def call_json(name: str, **arguments: Any) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"
