"""The whole recipe on a model of the true shape of Qwen3-0.6B: seconds by part, and peak memory against the plan.

    python benches/true_shape_recipe.py
    python benches/true_shape_recipe.py --layers 2             # the same over two layers: quick to try
    python benches/true_shape_recipe.py --parts sft rl         # only these parts, in this order

A checkpoint is made (see true_shape_model.py), and these commands run on it, one process after another, as a user
would start them: `muarl sft` (two steps on one demonstration each), `muarl train` (a GRPO step of 2 x 2
conversations), the same run resumed for a second step, `muarl eval` (two tasks) and `muarl export` (the weights in
bfloat16). The world is generated retail at size official, whose policy and tools are the benchmark's. Random weights
never end a message: replies are cut after a few tokens, and rewards are all the same, so groups without differences
are kept.

The first step of a run has no optimiser state until its update, so that only the second, in "sft" and "resume", holds
all that the plan counts.

"peak" is the largest resident memory of the command's process, as the operating system counts it; "plan" is what
`muarl plan` says of the same settings. Linux only. "CPU seconds" are of all threads: trust them, and not the wall's,
where the machine has other jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import true_shape_model
from muarl.backends.model_support import model_shape
from muarl.backends.plans import learning_plan, plan_of, prompt_tokens
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.planning.assumptions import Assumptions

GIB = 1 << 30
MUARL = [sys.executable, "-c", "from muarl.cli.main import main; main()"]
PARTS = ("sft", "rl", "resume", "eval", "export")


@dataclass(slots=True)
class Part:
    """What one command took: ``wall`` and ``cpu`` seconds, ``peak`` bytes; ``plan``: the bytes that were predicted."""

    name: str
    wall: float
    cpu: float
    peak: int
    plan: int | None = None
    steps: list[dict[str, float]] = field(default_factory=list)


def run(words: Sequence[str], log: Path) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak bytes of a muarl command. RuntimeError with the end of its output if it
    fails."""
    began = time.perf_counter()
    with log.open("w") as out:
        process = subprocess.Popen([*MUARL, *words], stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"muarl {' '.join(words)} failed:\n{log.read_text()[-3000:]}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def settings(arguments: argparse.Namespace, part: str, checkpoint: Path, runs: Path) -> list[str]:
    """The settings of a part."""
    context = arguments.sft_context if part == "sft" else arguments.context
    return [
        f"model.checkpoint={checkpoint}",
        f"model.max_context={context}",
        f"model.dtype={arguments.dtype}",
        f"domain.name={arguments.domain}",
        "domain.size=official",
        f"rollout.tokens_per_turn={arguments.reply}",
        f"rollout.max_turns={arguments.turns}",
        "rollout.concurrency=4",
        f"learner.pack_tokens={context}",
        "learner.recompute=true",
        f"rl.kl_coef={arguments.kl_coef}",
        "rl.lr=1e-6",
        "rl.tasks_per_step=2",
        "rl.group_size=2",
        "rl.drop_zero_variance=false",
        "rl.steps=1",
        "rl.eval_every=0",
        f"sft.steps={arguments.sft_steps}",
        "sft.batch=1",
        "sft.demonstrations=2",
        "eval.tasks=2",
        "eval.trials=1",
        "eval.baseline=false",
        f"threads={arguments.threads}",
        f"runs_dir={runs}",
    ]


def rows_of(run_folder: Path, phase: str) -> list[dict[str, float]]:
    """The figures of a run's steps in one phase."""
    lines = (run_folder / "metrics.jsonl").read_text().splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    wanted = ("time/", "update/tokens", "update/seconds", "update/logprob_gap_mean", "update/clip_fraction", "seconds")
    return [
        {k: float(v) for k, v in row.items() if k.startswith(wanted) and isinstance(v, int | float)}
        for row in rows
        if row.get("phase") == phase
    ]


def measure(part: str, common: list[str], folder: Path) -> Part:
    """Run one part; its log is kept in ``folder``."""
    runs, start = folder / "runs", f"model.checkpoint={folder / 'runs' / 'sft'}"
    words = {
        "sft": ["sft", "--config", "cpu", "--name", "sft", *common],
        "rl": ["train", "--config", "cpu", "--name", "rl", *common, start],
        "resume": ["train", "--resume", str(runs / "rl"), "rl.steps=2"],
        "eval": ["eval", "--config", "cpu", "--name", "eval", *common, f"model.checkpoint={runs / 'rl'}"],
        "export": ["export", str(runs / "rl"), "--as", "hf", "--dtype", "bfloat16", "--out", str(folder / "exported")],
    }[part]
    wall, cpu, peak = run(words, folder / f"{part}.log")
    config, assumed = load_config("cpu", common), Assumptions()
    of = PlannedRun.of(config)
    plan = None
    if part == "sft":
        plan = learning_plan(of, of.sft, model_shape(of.model.checkpoint), of.sft.steps, assumed).total
    elif part in ("rl", "resume"):
        plan = plan_of(of, assumed, partial(prompt_tokens, config))[0].places[0].total
    steps = {"sft": ("sft", "sft"), "rl": ("rl", "rl"), "resume": ("rl", "rl")}.get(part)
    found = rows_of(runs / steps[0], steps[1]) if steps else []
    return Part(part, wall, cpu, peak, plan, found[-1:])


def show(part: Part) -> None:
    planned = "" if part.plan is None else f"{part.plan / GIB:.2f}"
    ratio = "" if part.plan is None else f"{part.peak / part.plan:.2f}"
    row = f"| {part.name} | {part.wall:.0f} | {part.cpu:.0f} | {part.peak / GIB:.2f} | {planned} | {ratio} |"
    print(row, *(json.dumps(step) for step in part.steps), sep="\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, help="layers instead of 28")
    parser.add_argument("--checkpoint", type=Path, help="take this folder instead of making one")
    parser.add_argument("--folder", type=Path, help="keep everything here; default: a temporary folder")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--domain", default="retail-generated")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--context", type=int, default=4480, help="model.max_context and learner.pack_tokens")
    parser.add_argument("--sft-context", type=int, default=6656, help="the same of the cold start")
    parser.add_argument("--sft-steps", type=int, default=2)
    parser.add_argument("--reply", type=int, default=8, help="tokens of a reply")
    parser.add_argument("--turns", type=int, default=3, help="replies of a conversation")
    parser.add_argument("--kl-coef", type=float, default=0.0, help="above 0: with a reference model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = arguments.checkpoint or folder / "model"
        if not (checkpoint / "config.json").is_file():
            true_shape_model.make(checkpoint, layers=arguments.layers)
        print("| part | wall s | CPU s | peak GiB | plan GiB | peak / plan |\n|---|---|---|---|---|---|", flush=True)
        found = []
        for name in arguments.parts:
            found.append(measure(name, settings(arguments, name, checkpoint, folder / "runs"), folder))
            show(found[-1])
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([asdict(part) for part in found], indent=1))


if __name__ == "__main__":
    main()
