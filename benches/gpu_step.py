"""Whole steps of `muarl train` on one GPU at a true shape: seconds by part, conversations/s, memory against the plan.

    python benches/gpu_step.py                                                    # Qwen3-0.6B, 32 x 8 conversations
    python benches/gpu_step.py --model Qwen/Qwen3-4B --dtype bfloat16 --slots 24
    python benches/gpu_step.py --device cpu --layers 2 --tasks 2 --group 2 --turns 2 --slots 2 --reply 4 --smoke

A checkpoint with random weights is made (true_shape_model.py), and the command trains on it for two steps: the second
has the optimiser's state, and its figures count. Generated retail at size official, rule-based users, muarl's engine.
The weights are such that a reply ends after about --reply tokens; it calls no tool and makes no sense, so rewards are
all alike, and groups without differences are kept. A conversation has --turns replies at most. "peak" is what tensors
on the GPU take at most, by PyTorch's count; "plan" is what `muarl plan` says of the same settings, without the CUDA
context.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

import true_shape_model
from muarl.backends.plans import plan_of, prompt_tokens
from muarl.cli.main import main as muarl
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.planning.assumptions import Assumptions


def settings(arguments: argparse.Namespace, folder: Path) -> list[str]:
    chosen = [
        f"model.checkpoint={folder / 'model'}",
        f"model.max_context={arguments.context}",
        f"model.dtype={arguments.dtype}",
        f"model.device={arguments.device}",
        "domain.name=retail-generated",
        "domain.size=official",
        f"rollout.tokens_per_turn={3 * arguments.reply}",
        f"rollout.max_turns={arguments.turns}",
        f"rollout.concurrency={arguments.slots}",
        f"learner.pack_tokens={arguments.pack}",
        f"learner.recompute={str(arguments.recompute).lower()}",
        "engine.processes=1",
        "rl.optimizer=adamw",
        "rl.kl_coef=0.0",
        "rl.lr=1e-6",
        f"rl.tasks_per_step={arguments.tasks}",
        f"rl.group_size={arguments.group}",
        "rl.minibatches=1",
        "rl.drop_zero_variance=false",
        f"rl.steps={arguments.steps}",
        "rl.eval_every=0",
        "rl.checkpoint_every=0",
        "eval.tasks=2",
        "eval.trials=1",
        "eval.baseline=false",
        f"runs_dir={folder / 'runs'}",
        *arguments.more,
    ]
    return [*chosen, "learner.precision=bfloat16"] if arguments.device != "cpu" else chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the trained weights")
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--turns", type=int, default=6, help="replies of a conversation")
    parser.add_argument(
        "--reply", type=int, default=80, help="tokens of a reply, by and large; three times as many at most"
    )
    parser.add_argument("--context", type=int, default=6144)
    parser.add_argument("--pack", type=int, default=16384, help="tokens of a micro-batch")
    parser.add_argument("--slots", type=int, default=64, help="conversations at once")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="small pieces; shows only that it works")
    parser.add_argument("--json", type=Path)
    parser.add_argument("more", nargs="*", metavar="KEY=VALUE", help="settings over these")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.context, arguments.pack = 4608, 4608
    on_gpu = arguments.device != "cpu"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        began = time.perf_counter()
        true_shape_model.make(
            folder / "model",
            layers=arguments.layers,
            model=arguments.model,
            device=arguments.device,
            reply=arguments.reply,
        )
        print(f"model made in {time.perf_counter() - began:.0f} s", flush=True)
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        words = settings(arguments, folder)
        config = load_config("cpu", words)
        run = PlannedRun.of(config)
        planned = plan_of(run, Assumptions(gpu="h100"), partial(prompt_tokens, config))[0].places[0]
        began = time.perf_counter()
        sys.argv = ["muarl", "train", "--config", "cpu", "--name", "step", *words]
        try:
            muarl()
        except SystemExit as end:
            if end.code:
                raise
        whole = time.perf_counter() - began
        lines = (folder / "runs" / "step" / "metrics.jsonl").read_text().splitlines()
        rows: list[dict[str, Any]] = [row for row in map(json.loads, lines) if row.get("phase") == "rl"]
        peak = torch.cuda.max_memory_allocated() if on_gpu else 0
        result = {"model": arguments.model, "whole": whole, "peak": peak, "plan": planned.parts, "steps": rows}
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1))
    last = rows[-1]
    count = arguments.tasks * arguments.group
    for name, value in sorted(last.items()):
        if name.startswith(("time/", "update/tok", "update/sec", "update/logprob_gap", "rollout/")) or "token" in name:
            print(f"{name}: {value:,.4g}" if isinstance(value, int | float) else f"{name}: {value}")
    seconds = [float(row.get("seconds", row.get("time/step", 0.0))) for row in rows]
    print(f"{arguments.model}: steps of {', '.join(f'{s:.1f}' for s in seconds)} s; {count} conversations a step")
    if seconds[-1]:
        print(f"{count / seconds[-1]:.2f} conversations/s; the whole command {whole:.0f} s")
    plan = sum(planned.parts.values())
    parts = ", ".join(f"{name} {size / 2**30:.1f}" for name, size in planned.parts.items())
    print(f"peak {peak / 2**30:.1f} GiB, plan {plan / 2**30:.1f} GiB ({parts}); peak / plan {peak / plan:.2f}")


if __name__ == "__main__":
    main()
