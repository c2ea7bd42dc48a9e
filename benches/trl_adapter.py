"""The shipped base, trained by TRL's GRPOTrainer on muarl's shop, customers and rewards, against `muarl train`.

    python -m venv trl-venv && trl-venv/bin/pip install 'muarl[trl]' jinja2
    python benches/trl_adapter.py --trl-python trl-venv/bin/python --out runs/trl-adapter

Both sides start from the shipped checkpoint and play as many episodes of the same size of shop in groups of the same
size, against rule-based customers, at temperature 1; AdamW with the same learning rate and schedule, clip 0.2, token
mean, no reference model. TRL's side plays through ``muarl_integrations.trl_rollouts``. Each runs in a process of its
own, whose seconds and CPU seconds (all threads, with start-up) are counted. Then `muarl eval` plays the same held-out
tasks with the checkpoints of both, which is not counted.

What is already in the folder is not made again, so that an interrupted comparison can be continued.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

THREADS = int(os.environ["OMP_NUM_THREADS"])
PRESET = "ablation-rl"
CONTEXT = 768
MESSAGE = 64
"""Tokens of an episode, and of one message, as the preset has them."""


# ---- TRL's side, in a process of its own


def train_with_trl(options: argparse.Namespace) -> None:
    """Train, leave checkpoints and ``steps.json``: reward, seconds and CPU seconds of every batch of episodes."""
    import torch
    import trl
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM, TrainerCallback

    from muarl.backends.checkpoint_names import checkpoint_folder
    from muarl_integrations.trl_rollouts import UserTurns, episode_reward

    torch.set_num_threads(THREADS)
    torch.manual_seed(options.seed)
    start, folder = str(checkpoint_folder("base")), options.out / "trl"
    episodes, updates = options.tasks * options.group, options.minibatches

    class Clock(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """One row for every batch of episodes, which is learned from in several updates."""

        rows: list[dict[str, float]]

        def on_train_begin(self, *given: Any, **named: Any) -> None:
            self.rows, self.began = [], (time.perf_counter(), time.process_time())

        def on_step_end(self, args: Any, state: Any, *given: Any, **named: Any) -> None:
            if state.global_step % updates:
                return
            now = time.perf_counter(), time.process_time()
            played = turns.episodes
            self.rows.append(
                {
                    "wall": now[0] - self.began[0],
                    "cpu": now[1] - self.began[1],
                    "reward": sum(e.reward for e in played) / len(played),
                    "excluded": sum(e.stop == "infrastructure" for e in played),
                    "agent_tokens": sum(e.tokens.sampled_count for e in played if e.tokens) / len(played),
                    "turns": sum(m.role == "assistant" for e in played for m in e.messages) / len(played),
                }
            )
            self.began = now
            (folder / "steps.json").write_text(json.dumps(self.rows, indent=1) + "\n")

    folder.mkdir(parents=True, exist_ok=True)
    turns, clock = UserTurns(context=CONTEXT, seed=options.seed, patience=60.0), Clock()
    rows = [{"prompt": f"retail-generated:train:{n}"} for n in range(options.tasks * options.steps)]
    settings = trl.GRPOConfig(
        str(folder),
        use_cpu=True,
        bf16=False,
        max_steps=options.steps * updates,
        num_generations=options.group,
        per_device_train_batch_size=min(options.micro, episodes // updates),
        gradient_accumulation_steps=max(1, episodes // updates // options.micro),
        generation_batch_size=episodes,
        shuffle_dataset=False,
        max_completion_length=MESSAGE,
        temperature=1.0,
        beta=0.0,
        learning_rate=options.lr,
        lr_scheduler_type="linear",
        warmup_steps=options.warmup,
        weight_decay=0.0,
        max_grad_norm=1.0,
        loss_type="dapo",
        scale_rewards="group",
        epsilon=0.2,
        epsilon_high=0.2,
        use_vllm=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        logging_steps=updates,
        save_strategy="steps",
        save_steps=options.eval_every * updates,
        save_only_model=True,
        report_to=[],
        disable_tqdm=True,
        seed=options.seed,
    )
    trainer = trl.GRPOTrainer(
        model=Qwen3ForCausalLM.from_pretrained(start, dtype=torch.float32),
        processing_class=PreTrainedTokenizerFast.from_pretrained(start, padding_side="left"),
        train_dataset=Dataset.from_list(rows),
        rollout_func=turns,
        reward_funcs=episode_reward,
        callbacks=[clock],
        args=settings,
    )
    trainer.train()
    trainer.save_model(str(folder / "final"))


# ---- the comparison


def muarl(*arguments: object) -> list[str]:
    """The command line of muarl, by this interpreter."""
    return [sys.executable, "-c", "from muarl.cli.main import main; main()", *map(str, arguments)]


def measured(side: str, command: Sequence[str], options: argparse.Namespace) -> dict[str, float]:
    """Seconds and CPU seconds of a command; those of its first time where it has been run before. SystemExit if it
    fails."""
    kept = options.out / f"{side}-seconds.json"
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (options.out / f"{side}.log").open("wb") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{side} failed (exit {done.returncode}): see {options.out / f'{side}.log'}")
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    taken = {"wall": time.perf_counter() - began, "cpu": cpu}
    kept.write_text(json.dumps(taken) + "\n")
    return taken


def train(side: str, options: argparse.Namespace) -> dict[str, float]:
    """Train by one side."""
    if side == "trl":
        given = [f"--{n.replace('_', '-')}={getattr(options, n)}" for n in (*NUMBERS, "lr", "out")]
        return measured(side, [str(options.trl_python), __file__, "--side=trl", *given], options)
    values = {
        "runs_dir": options.out,
        "seed": options.seed,
        "threads": THREADS,
        "rl.steps": options.steps,
        "rl.tasks_per_step": options.tasks,
        "rl.group_size": options.group,
        "rl.minibatches": options.minibatches,
        "rl.lr": options.lr,
        "rl.warmup": options.warmup,
        "rl.kl_coef": 0.0,
        "rl.dual_clip": "null",
        "rl.checkpoint_every": options.eval_every,
        "checkpoints.keep_last": "null",
    }
    changes = [f"{key}={value}" for key, value in values.items()]
    return measured(side, muarl("train", "--config", PRESET, "--name", "muarl", *changes), options)


def checkpoints(side: str, options: argparse.Namespace) -> dict[int, Path]:
    """A side's checkpoints by training step."""
    if side == "trl":
        found = {int(p.name.rpartition("-")[2]) // options.minibatches: p for p in (options.out / "trl").glob("check*")}
        return {**found, options.steps: options.out / "trl" / "final"}
    return {int(p.name.rpartition("-")[2]): p for p in (options.out / "muarl" / "checkpoints" / "rl").glob("step-*")}


def success(name: str, checkpoint: object, options: argparse.Namespace) -> tuple[float, float, float]:
    """Held-out success of a checkpoint, with its interval."""
    folder = options.out / f"eval-{name}"
    if not (folder / "summary.json").is_file():
        changes = (f"runs_dir={options.out}", f"eval.tasks={options.eval_tasks}", f"threads={THREADS}")
        command = muarl("eval", "--config", PRESET, "--checkpoint", checkpoint, "--name", folder.name, *changes)
        measured(folder.name, command, options)
    summary = json.loads((folder / "summary.json").read_text())
    score = summary.get("evaluation", summary)
    return score["success"], *score["interval"]


def rewards(side: str, options: argparse.Namespace) -> list[float]:
    """Mean reward of the training episodes, step by step."""
    if side == "trl":
        return [row["reward"] for row in json.loads((options.out / "trl" / "steps.json").read_text())]
    lines = (options.out / "muarl" / "metrics.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("phase", "rl") == "rl" and "reward" in row]
    return [row["reward"] for row in rows]


def table(results: Mapping[str, Mapping[str, Any]], base: Sequence[float]) -> str:
    """The result as markdown."""
    percent: Callable[[Sequence[float]], str] = lambda s: f"{100 * s[0]:.1f} ({100 * s[1]:.1f} to {100 * s[2]:.1f})"  # noqa: E731
    steps = sorted(set().union(*(result["held_out"] for result in results.values())))
    lines = [
        f"| side | s | CPU s | base | {' | '.join(f'step {step}' for step in steps)} |",
        f"|---|---|---|---|{'---|' * len(steps)}",
    ]
    for side, result in results.items():
        cells = [percent(result["held_out"][step]) if step in result["held_out"] else "" for step in steps]
        lines.append(f"| {side} | {result['wall']:.0f} | {result['cpu']:.0f} | {percent(base)} | {' | '.join(cells)} |")
    return "\n".join(lines)


NUMBERS = ("steps", "tasks", "group", "minibatches", "micro", "warmup", "eval_every", "eval_tasks", "seed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trl-python", type=Path, default=Path(sys.executable), help="has TRL, datasets and muarl")
    parser.add_argument("--out", type=Path, required=True, help="folder for runs, checkpoints and figures")
    parser.add_argument("--side", choices=("trl", "muarl", "both"), default="both", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=40, help="training steps: batches of episodes")
    parser.add_argument("--tasks", type=int, default=16, help="tasks a step")
    parser.add_argument("--group", type=int, default=8, help="episodes of each task")
    parser.add_argument("--minibatches", type=int, default=2, help="updates a step")
    parser.add_argument("--micro", type=int, default=32, help="episodes that TRL computes at once: for its memory")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=5, help="updates")
    parser.add_argument("--eval-every", type=int, default=10, help="steps between the checkpoints that are evaluated")
    parser.add_argument("--eval-tasks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out = options.out.resolve()
    share = options.tasks * options.group // options.minibatches
    if share % min(options.micro, share) or options.tasks * options.group % options.minibatches:
        parser.error("--tasks times --group must be a multiple of --minibatches, and that share one of --micro")
    if options.side == "trl":
        train_with_trl(options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    base = success("base", "base", options)
    results: dict[str, dict[str, Any]] = {}
    for side in ("muarl", "trl"):
        taken = train(side, options)
        scores = {n: success(f"{side}-{n}", p, options) for n, p in sorted(checkpoints(side, options).items())}
        results[side] = {**taken, "held_out": scores, "rewards": rewards(side, options)}
        print(
            f"{side}: {taken['wall']:.0f} s, {taken['cpu']:.0f} CPU s, {100 * scores[options.steps][0]:.1f}%",
            flush=True,
        )
    settings = {name: getattr(options, name) for name in (*NUMBERS, "lr")}
    figures = {"bench": "trl_adapter", "threads": THREADS, "settings": settings, "base": base, "sides": results}
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\n{options.steps * options.tasks * options.group} episodes, {options.eval_tasks} held-out tasks\n")
    print(table(results, base))


if __name__ == "__main__":
    main()
