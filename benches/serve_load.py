"""``muarl serve`` under load: many conversations at once, and not one reply lost or given to somebody else.

Starts a server (or takes the one at --url), holds --conversations conversations of --turns turns at once with OpenAI's
client, half of them streamed, half of them greedy, the others with a seed of their own. Three things show a mix-up:

- every reply must be what an engine of this process gives when it is asked alone, one conversation at a time;
- every prompt that the server reports must be, id for id, the previous prompt, the ids of the reply and the new
  message, which carries a marker that no other conversation has;
- every request must be answered, once.

    python benches/serve_load.py                          # 200 conversations of 5 turns
    python benches/serve_load.py --peer                   # and transformers' generate, one at a time, beside it
    python benches/serve_load.py --greedy --serve "--engine vllm"

Exit code 1 if anything was lost or mixed up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch
from openai import AsyncOpenAI

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.seeds import derive_seed
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.inference.base import SamplingParams
from muarl.inference.sampling import spread_seed, uniform
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy, load_policy
from muarl.types.chat import Message, ToolSpec

SYSTEM = "You are an agent of a shop. Look at orders, and cancel them if the customer says yes."
LINES = (
    "Hi, I want to cancel my order {marker}.",
    "My name is {marker}.",
    "Yes, please. The reason is {marker}.",
    "What does {marker} cost?",
    "Thanks. And order {marker}?",
    "No, {marker}.",
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"To {name.replace('_', ' ')}.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
        },
    }
    for name in ("get_order_details", "cancel_pending_order")
]


ROUNDING = 2e-5
"""How far the order of float32 sums, which depends on how many conversations are computed at once, may move a sum of
probabilities, or the logits of two tokens against each other: where a choice is closer than this, both are right."""


@dataclass
class Turn:
    """One request as it went."""

    prompt: list[int]
    ids: list[int]
    finish: str
    seconds: float
    first: float | None


@dataclass
class Talk:
    """One conversation: how it is held, and what came of it."""

    number: int
    greedy: bool
    stream: bool
    turns: list[Turn] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rounded: bool = False

    def line(self, turn: int) -> str:
        """What the user says; nobody else says it."""
        return LINES[turn % len(LINES)].format(marker=f"#W{derive_seed('marker', self.number, turn) % 10**9:09d}")

    @property
    def how(self) -> dict[str, Any]:
        """The request's sampling."""
        return {"temperature": 0.0} if self.greedy else {"temperature": 1.0, "seed": self.number}


async def hold(talk: Talk, api: AsyncOpenAI, model: str, turns: int, most: int) -> None:
    """Hold a conversation to its end, and note what came."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for turn in range(turns):
        messages.append({"role": "user", "content": talk.line(turn)})
        ask: dict[str, Any] = dict(
            model=model,
            messages=messages,
            tools=TOOLS,
            max_tokens=most,
            extra_body={"return_token_ids": True},
            **talk.how,
        )
        began = time.perf_counter()
        try:
            reply, done = await (_streamed(ask, api, began) if talk.stream else _whole(ask, api, began))
        except Exception as problem:
            talk.problems.append(f"turn {turn}: lost: {type(problem).__name__}: {problem}")
            return
        talk.turns.append(done)
        messages.append(reply)
        messages += [
            {"role": "tool", "tool_call_id": c["id"], "content": f"no order {talk.line(turn)}"}
            for c in reply.get("tool_calls", ())
        ]


async def _whole(ask: dict[str, Any], api: AsyncOpenAI, began: float) -> tuple[dict[str, Any], Turn]:
    answer: Any = await api.chat.completions.create(**ask)
    (choice,) = answer.choices
    seconds = time.perf_counter() - began
    if answer.usage.completion_tokens != len(choice.token_ids):
        raise ValueError("the usage is not that of the ids")
    reply: dict[str, Any] = {"role": "assistant", "content": choice.message.content}
    if choice.message.tool_calls:
        reply["tool_calls"] = [c.model_dump() for c in choice.message.tool_calls]
    return reply, Turn(answer.prompt_token_ids, choice.token_ids, choice.finish_reason, seconds, None)


async def _streamed(ask: dict[str, Any], api: AsyncOpenAI, began: float) -> tuple[dict[str, Any], Turn]:
    prompt: list[int] = []
    ids: list[int] = []
    content, finish, first = "", None, None
    calls: dict[int, dict[str, Any]] = {}
    stream: Any = await api.chat.completions.create(**ask, stream=True)
    async for chunk in stream:
        first = first or time.perf_counter() - began
        prompt += getattr(chunk, "prompt_token_ids", None) or []
        for choice in chunk.choices:
            ids += getattr(choice, "token_ids", None) or []
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                calls[call.index] = {"id": call.id, "type": "function", "function": call.function.model_dump()}
    if finish is None:
        raise ValueError("the stream broke off")
    reply: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        reply["tool_calls"] = list(calls.values())
    return reply, Turn(prompt, ids, finish, time.perf_counter() - began, first)


# ---- what should have come


class Alone:
    """The same conversations, one at a time, by an engine of this process that has never served anybody else."""

    def __init__(self, policy: Policy, context: int, most: int) -> None:
        self.chat = Qwen3Format(policy.tokenizer)
        self.model: Any = policy.model
        self.engine = TorchEngine(policy.model, max_slots=1, max_context=context)
        self.context, self.most = context, most
        self.tools = [
            ToolSpec(t["function"]["name"], "", {}, doc=t, as_documented=True)  # type: ignore[index]
            for t in TOOLS
        ]

    async def check(self, talk: Talk, turns: int) -> None:
        """Note where the conversation is not what it should be."""
        context: list[int] = []
        answered: list[Message] = []
        if len(talk.turns) != turns and not talk.problems:
            talk.problems.append(f"{len(talk.turns)} of {turns} replies came")
        for number, turn in enumerate(talk.turns):
            new = [*answered, Message("user", talk.line(number))]
            context = (
                [*context, *self.chat.resume(context, new)] if context else self.chat.prompt(SYSTEM, self.tools, new)
            )
            if turn.prompt != context:
                talk.problems.append(f"turn {number}: the prompt is not this conversation's")
                return
            seed = None if talk.greedy else derive_seed(talk.number, number)
            room = min(self.most, self.context - len(context))
            params = SamplingParams(room, talk.how["temperature"], stop_ids=self.chat.stop_ids, seed=seed)
            alone = await self.engine.sample(context, params, session="alone")
            if list(alone.ids) != turn.ids:
                at = next((n for n, (a, b) in enumerate(zip(alone.ids, turn.ids, strict=False)) if a != b), -1)
                if at >= 0 and self.both_right([*context, *alone.ids[:at]], (alone.ids[at], turn.ids[at]), seed, at):
                    talk.rounded = True
                    return
                talk.problems.append(f"turn {number}: another reply than when asked alone, from its token {at}")
                return
            context += turn.ids
            calls = [c for c in self.chat.parse(turn.ids).tool_calls if c.invalid is None]
            answered = [Message("tool", f"no order {talk.line(number)}") for _ in calls]

    def both_right(self, context: list[int], ids: tuple[int, int], seed: int | None, count: int) -> bool:
        """Whether rounding alone decides which of two ids follows: as number ``count`` of a reply, with its seed."""
        with torch.inference_mode():
            logits = self.model(torch.tensor([context])).logits[0, -1].double()
        if seed is None:
            return bool((logits.max() - logits[list(ids)].min()) < ROUNDING)
        aim = float(uniform(torch.tensor([spread_seed(seed)]), torch.tensor([count])))
        above = logits.softmax(0).cumsum(0)
        return all((above[n - 1] if n else 0.0) - ROUNDING < aim < above[n] + ROUNDING for n in ids)


# ---- the server


@contextmanager
def server(model: str, *options: str) -> Iterator[tuple[str, str, int]]:
    """``muarl serve`` as a process of its own: its address, its token, its id."""
    token = secrets.token_urlsafe(24)
    command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "serve", model, "--port", "0", *options]
    process = subprocess.Popen(
        command, env=os.environ | {"MUARL_SERVE_TOKEN": token}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+/v1", line):
                yield found[0], token, process.pid
                return
        raise SystemExit(f"the server did not start (exit code {process.wait()})")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            print(f"the server ended with exit code {process.wait(60)}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            process.kill()


async def load(options: argparse.Namespace, url: str, token: str, talks: list[Talk], at_once: int) -> float:
    """Hold the conversations, so many at once; the seconds that it took."""
    import httpx

    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    gate = asyncio.Semaphore(at_once)
    # No second tries: a request that fails is a request lost.
    async with (
        httpx.AsyncClient(limits=limits, timeout=600) as http,
        AsyncOpenAI(base_url=url, api_key=token, max_retries=0, http_client=http) as api,
    ):

        async def one(talk: Talk) -> None:
            async with gate:
                await hold(talk, api, options.name or options.model, options.turns, options.max_tokens)

        began = time.perf_counter()
        await asyncio.gather(*(one(t) for t in talks))
        return time.perf_counter() - began


def cpu_seconds(process: int | None) -> float | None:
    """What a process has used so far, with those that it started."""
    if process is None:
        return None
    found = psutil.Process(process)
    return sum(sum(p.cpu_times()[:2]) for p in (found, *found.children(recursive=True)))


def figures(talks: list[Talk], seconds: float) -> dict[str, Any]:
    """What a person wants to know of a load."""
    turns = [t for talk in talks for t in talk.turns]
    waits = sorted(t.seconds for t in turns) or [0.0]
    firsts = sorted(t.first for t in turns if t.first is not None) or [0.0]
    return {
        "conversations": len(talks),
        "requests": len(turns),
        "seconds": round(seconds, 2),
        "requests_a_second": round(len(turns) / seconds, 2),
        "tokens_a_second": round(sum(len(t.ids) for t in turns) / seconds, 1),
        "tokens_a_reply": round(statistics.mean(len(t.ids) for t in turns), 1) if turns else 0,
        "latency_p50": round(waits[len(waits) // 2], 3),
        "latency_p95": round(waits[int(len(waits) * 0.95)], 3),
        "latency_max": round(waits[-1], 3),
        "first_event_p50": round(firsts[len(firsts) // 2], 3),
        "first_event_p95": round(firsts[int(len(firsts) * 0.95)], 3),
        "distinct_replies": len({tuple(t.ids) for t in turns}),
    }


def peer(policy: Policy, talks: list[Talk], most: int) -> dict[str, Any]:
    """transformers' generate on the same greedy prompts, one at a time and without HTTP."""
    chat = Qwen3Format(policy.tokenizer)
    prompts = [t.prompt for talk in talks for t in talk.turns]
    began, cpu, tokens = time.perf_counter(), time.process_time(), 0
    with torch.inference_mode():
        for prompt in prompts:
            ids = torch.tensor([prompt])
            out: Any = policy.model.generate(  # type: ignore[operator]
                ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=most,
                eos_token_id=list(chat.stop_ids), pad_token_id=chat.stop_ids[0],
            )  # fmt: skip
            tokens += out.shape[1] - len(prompt)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {
        "requests": len(prompts),
        "tokens_a_cpu_second": round(tokens / cpu),
        "requests_a_second": round(len(prompts) / seconds, 2),
        "tokens_a_second": round(tokens / seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="base", help="checkpoint to serve, and to compare with")
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--one-by-one", type=int, default=0, metavar="N", help="also N conversations, one at a time")
    parser.add_argument("--peer", action="store_true", help="also transformers' generate on 20 conversations' prompts")
    parser.add_argument("--url", help="a server that is there; its token in MUARL_SERVE_TOKEN")
    parser.add_argument("--name", help="the model's name there")
    parser.add_argument("--greedy", action="store_true", help="all of them; vLLM draws other samples from a seed")
    parser.add_argument("--serve", default="", help="further options of muarl serve, such as '--engine vllm'")
    options = parser.parse_args()
    talks = [Talk(n, greedy=options.greedy or n % 4 < 2, stream=n % 2 == 1) for n in range(options.conversations)]
    out: dict[str, Any] = {}

    def measured(url: str, token: str, process: int | None, held: list[Talk], at_once: int) -> dict[str, Any]:
        before = cpu_seconds(process)
        found = figures(held, asyncio.run(load(options, url, token, held, at_once)))
        if before is not None:
            found["server_cpu_seconds"] = round((cpu_seconds(process) or 0.0) - before, 2)
            tokens = sum(len(t.ids) for talk in held for t in talk.turns)
            found["tokens_a_cpu_second"] = round(tokens / max(found["server_cpu_seconds"], 0.01))
        return found

    def work(url: str, token: str, process: int | None = None) -> None:
        measured(url, token, process, [Talk(-1, True, True)], 1)  # warms up
        out["load"] = measured(url, token, process, talks, len(talks))
        if options.one_by_one:
            few = [Talk(10**6 + n, n % 4 < 2, n % 2 == 1) for n in range(options.one_by_one)]
            out["one_by_one"] = measured(url, token, process, few, 1)

    if options.url:
        work(options.url, os.environ["MUARL_SERVE_TOKEN"])
    else:
        with server(
            options.model, "--max-context", str(options.context), "--concurrency", "256", *shlex.split(options.serve)
        ) as there:
            work(*there)
    policy = load_policy(checkpoint_folder(options.model))
    alone = Alone(policy, options.context, options.max_tokens)

    async def check() -> None:
        for talk in talks:
            await alone.check(talk, options.turns)

    asyncio.run(check())
    if options.peer:
        out["transformers"] = peer(policy, [t for t in talks if t.greedy][:20], options.max_tokens)
    problems = [f"conversation {t.number}: {p}" for t in talks for p in t.problems]
    out["lost_or_mixed_up"] = len(problems)
    out["apart_by_rounding"] = sum(talk.rounded for talk in talks)
    print(json.dumps(out, indent=2))
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
