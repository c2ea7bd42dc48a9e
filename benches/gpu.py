"""TorchEngine and the learner on one GPU, against what the card can do: bandwidth and operations, measured here too.

    python benches/gpu.py                                     # Qwen3-0.6B's sizes, batches of 1, 16, 64 and 256
    python benches/gpu.py --model Qwen/Qwen3-4B --batches 64 --steps cuda-graphs compile
    python benches/gpu.py --updates 0.1B Qwen/Qwen3-0.6B Qwen/Qwen3-1.7B Qwen/Qwen3-4B --batches   # updates alone
    python benches/gpu.py --device cpu --smoke                # a small run that only shows that it works

Weights are random: speed does not depend on their values. A decode step must read every weight once and the keys and
values of every running conversation, so bytes over the measured bandwidth is the least that it can take; "of the
bandwidth" is that least over the time it took. Bandwidth is that of copying one large tensor, reads and writes
together, best of several; operations are those of one large product of matrices in the same number format. Prefill is
a share of the latter.

Updates are of whole episodes, a fifth of whose tokens carry loss: float32 weights, computed in bfloat16, AdamW, no
reference model. "MFU" counts three forward passes and neither recomputing nor the second pass over the logits, over the
measured operations. "peak" is what the step's tensors take at most; "plan" what `muarl plan` says of it. "0.1B" is a
shape of our own with Qwen3's vocabulary.

"gap" is the largest difference between the log-probabilities that were reported with the samples and those of the
learner's forward pass over the same weights, in nats.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import time
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from muarl.inference.base import Completion, SamplingParams
from muarl.inference.fixed_steps import StepKind
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.models.decoder import token_logprobs
from muarl.planning.memory import LearnerSetup, cache_per_token, learner_memory
from muarl.planning.models import ModelShape, published
from muarl.planning.speed import attention_flops, matrix_flops

TENTH = ModelShape("0.1B", 12, 512, 8, 4, 64, 1536, 151_936, True, 40_960)
SMALL = ModelShape("small", 2, 128, 4, 2, 32, 256, 2000, True, 4096)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def best(action: Any, device: torch.device, repeats: int) -> float:
    """Seconds of the fastest of several calls, after one that does not count."""
    found = []
    for _ in range(repeats + 1):
        wait(device)
        began = time.perf_counter()
        action()
        wait(device)
        found.append(time.perf_counter() - began)
    return min(found[1:])


def bandwidth(device: torch.device, mebibytes: int) -> float:
    """Bytes read and written a second by a copy."""
    source = torch.zeros(mebibytes << 20, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / best(lambda: target.copy_(source), device, 10)


def operations(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """Multiplications and additions a second of a square product."""
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / best(lambda: torch.mm(a, b), device, 5)


def make_model(shape: ModelShape, device: torch.device, dtype: torch.dtype) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    fields = {k: v for k, v in shape.to_config().items() if k not in ("architectures", "model_type")}
    with device:
        model = Qwen3ForCausalLM(Qwen3Config(**fields)).to(dtype)  # type: ignore[arg-type]
    return model.eval()


def serve(engine: TorchEngine, prompts: list[list[int]], new: int) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        wanted = [SamplingParams(new, seed=n) for n in range(len(prompts))]
        return await asyncio.gather(*(engine.sample(p, w) for p, w in zip(prompts, wanted, strict=True)))

    engine.weights_changed()  # empties the cache: no prompt may be found in it
    engine.stats.reset()
    return asyncio.run(all_of_them())


def gap(model: Qwen3ForCausalLM, prompt: list[int], sampled: Completion) -> float:
    ids = torch.tensor([[*prompt, *sampled.ids]], device=model.device)
    wanted = torch.zeros_like(ids, dtype=torch.bool)
    wanted[0, len(prompt) :] = True
    with torch.no_grad():
        expected, _ = token_logprobs(model, ids, torch.arange(ids.shape[1], device=ids.device)[None], None, wanted)
    return float((expected.cpu() - torch.tensor(sampled.logprobs)).abs().max())


def decode(
    model: Qwen3ForCausalLM, shape: ModelShape, kind: StepKind, batch: int, speed: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    """One row of the table about sampling."""
    device, dtype, prompt, new = model.device, model.dtype, arguments.prompt, arguments.new
    engine = TorchEngine(model, max_slots=batch, max_context=prompt + new, steps=kind)
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(0, shape.vocab, (batch, prompt), generator=generator).tolist()
    for count in (new, 1):
        serve(engine, prompts, count)  # records, compiles
    found = serve(engine, prompts, new)
    # Prefill is launched without waiting for it, so its end is not seen from the host: runs of one token tell.
    first = best(lambda: serve(engine, prompts, 1), device, arguments.repeats)
    whole = best(lambda: serve(engine, prompts, new), device, arguments.repeats)
    step = (whole - first) / (new - 1)
    computed = batch * (prompt - 1)
    # A row at step k reads the prompt's positions and k of its own.
    weights = (shape.parameters - (0 if shape.tied else shape.vocab * shape.width)) * dtype.itemsize
    read = weights + batch * (prompt + new / 2) * cache_per_token(shape, dtype.itemsize)
    return {
        "steps": kind,
        "batch": batch,
        "decode_tokens_per_second": batch / step,
        "milliseconds_a_step": 1000 * step,
        "share_of_bandwidth": read / speed / step,
        "prefill_tokens_per_second": computed / first,
        "prefill_operations_per_second": matrix_flops(shape, computed, 0) / first,
        "gap": gap(model, prompts[0], found[0]),
        "recorded": 0 if engine._fixed is None else engine._fixed.recorded,
    }


def update(
    shape: ModelShape, device: torch.device, length: int, recompute: bool, arguments: argparse.Namespace
) -> dict[str, Any]:
    """One row of the table about updates."""
    on_gpu = device.type == "cuda"
    count, scored = max(1, arguments.tokens // length), length // 5
    budget = max(length, arguments.budget)
    settings = LearnerConfig(
        policy=PolicyLossConfig(kl_coef=0.0),
        token_budget=budget,
        precision="bfloat16" if on_gpu else "float32",
        recompute=recompute,
    )
    row: dict[str, Any] = {"model": shape.name, "length": length, "episodes": count, "recompute": recompute}
    setup = LearnerSetup(
        compute_bytes=2 if on_gpu else 4,
        reference="none",
        recompute=recompute,
        tokens=min(budget, count * length),
        on_gpu=on_gpu,
    )
    row["plan"] = sum(learner_memory(shape, setup).values())
    if on_gpu and row["plan"] > 1.1 * torch.cuda.get_device_properties(device).total_memory:
        return row | {"left_out": "the plan says that it does not fit"}
    generator = torch.Generator().manual_seed(2)
    step: Any = None
    learner: Any = None
    try:
        learner = TorchLearner(make_model(shape, device, torch.float32).train(), None, settings)  # type: ignore
        step = partial(
            learner.policy_step,
            [
                Sample.sampled(
                    torch.randint(0, shape.vocab, (length,), generator=generator).tolist(),
                    [False] * (length - scored) + [True] * scored,
                    [0.0] * (length - scored) + [-math.log(shape.vocab)] * scored,
                    1.0 if n % 2 else -1.0,
                )
                for n in range(count)
            ],
        )
        step()  # the optimiser's state comes with the first step
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        seconds = best(step, device, arguments.repeats)
    except torch.OutOfMemoryError:
        return row | {"left_out": "out of memory"}
    finally:
        step = learner = None
        gc.collect()
        if on_gpu:
            row["peak"] = torch.cuda.max_memory_allocated(device)
            torch.cuda.empty_cache()
    tokens = count * length
    flops = 3 * (matrix_flops(shape, tokens, count * scored) + attention_flops(shape, [float(length)] * count))
    return row | {"tokens_per_second": tokens / seconds, "operations_per_second": flops / seconds, "seconds": seconds}


def show_update(row: dict[str, Any], peak: float) -> None:
    begun = f"| {row['model']} | {row['length']:,} x {row['episodes']} | {'yes' if row['recompute'] else 'no'} | "
    plan = f"{row['plan'] / 2**30:.1f}"
    if "left_out" in row:
        print(f"{begun}{row['left_out']} | | | {plan} | |", flush=True)
        return
    held = f"{row['peak'] / 2**30:.1f} | {plan} | {row['peak'] / row['plan']:.2f}" if "peak" in row else f"| {plan} |"
    print(
        f"{begun}{row['tokens_per_second']:,.0f} | {row['operations_per_second'] / peak:.0%} | {held} |",
        flush=True,
    )


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["Qwen/Qwen3-0.6B"], help="published Qwen3 to generate, or 0.1B")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 16, 64, 256])
    parser.add_argument("--steps", nargs="+", choices=get_args(StepKind), default=["none", "cuda-graphs"])
    parser.add_argument("--prompt", type=int, default=1024, help="prompt tokens")
    parser.add_argument("--new", type=int, default=128, help="new tokens")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each, of which the fastest counts")
    parser.add_argument("--updates", nargs="*", default=["Qwen/Qwen3-0.6B"], help="models to update; 0.1B is one, too")
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192, 32768], help="tokens of their episodes")
    parser.add_argument("--recompute", choices=("no", "yes", "both"), default="both")
    parser.add_argument("--tokens", type=int, default=32768, help="tokens of an update")
    parser.add_argument("--budget", type=int, default=16384, help="tokens of a micro-batch")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--smoke", action="store_true", help="small and short")
    arguments = parser.parse_args(words)
    device = torch.device(arguments.device)
    on_gpu = device.type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        parser.error("there is no CUDA device: --device cpu --smoke shows that the bench works")
    dtype = torch.bfloat16 if on_gpu else torch.float32
    played, updated = (
        {name: TENTH if name == TENTH.name else published(name) for name in names}
        for names in (arguments.model, arguments.updates)
    )
    if arguments.smoke:
        arguments.batches, arguments.prompt, arguments.new = arguments.batches and [4], 64, 8
        arguments.steps = arguments.steps if on_gpu else ["none", "fixed"]
        played = updated = {SMALL.name: SMALL}
        arguments.lengths, arguments.tokens = [64], 128
    for name, found in {**played, **updated}.items():
        if found is None:
            parser.error(f"{name} is no published dense Qwen3")
    name = torch.cuda.get_device_name(device) if on_gpu else "CPU"
    speed = bandwidth(device, 64 if arguments.smoke else 4096)
    peak = operations(device, dtype, 512 if arguments.smoke else 8192)
    print(f"{name}, torch {torch.__version__}")
    print(f"measured limits: {speed / 1e9:,.0f} GB/s copied, {peak / 1e12:,.2f} T operations/s", flush=True)
    result: dict[str, Any] = {"bench": "gpu", "device": name, "torch": torch.__version__}
    result |= {"bytes_per_second": speed, "operations_per_second": peak, "rows": [], "updates": []}

    def keep() -> None:
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=2) + "\n")

    if arguments.batches:
        print(f"\ngeneration in {dtype}: {arguments.prompt} tokens of prompt, {arguments.new} new ones")
        print("| model | steps | batch | tokens/s | ms a step | of the bandwidth | prefill tokens/s | of limit | gap |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for shape in played.values() if arguments.batches else ():
        assert shape is not None
        model = make_model(shape, device, dtype)
        for batch in arguments.batches:
            for kind in arguments.steps:
                row = {"model": shape.name} | decode(model, shape, kind, batch, speed, arguments)
                result["rows"].append(row)
                print(
                    f"| {shape.name} | {kind} | {batch} | {row['decode_tokens_per_second']:,.0f} | "
                    f"{row['milliseconds_a_step']:.2f} | {row['share_of_bandwidth']:.0%} | "
                    f"{row['prefill_tokens_per_second']:,.0f} | {row['prefill_operations_per_second'] / peak:.0%} | "
                    f"{row['gap']:.1e} |",
                    flush=True,
                )
                keep()
                gc.collect()
        del model
        gc.collect()
    if updated:
        print(f"\nupdates of {arguments.tokens:,} tokens in micro-batches of {arguments.budget:,}, or of one episode")
        print("| model | tokens x episodes | recomputing | tokens/s | MFU | peak GiB | plan GiB | peak / plan |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
    again = {"no": [False], "yes": [True], "both": [False, True]}[arguments.recompute]
    for found in updated.values():
        assert found is not None
        for length in arguments.lengths:
            for recompute in again:
                result["updates"].append(update(found, device, length, recompute, arguments))
                show_update(result["updates"][-1], peak)
                keep()
    keep()


if __name__ == "__main__":
    main()
