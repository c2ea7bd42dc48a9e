"""One GRPO step, rollout and update, of muarl against TRL's GRPOTrainer, in one run on one machine.

    python -m venv trl-venv && trl-venv/bin/pip install torch==2.13.0
    trl-venv/bin/pip install trl==1.16.0 transformers accelerate datasets jinja2
    python benches/grpo_step.py --trl-python trl-venv/bin/python

Both sides start from one checkpoint folder, which a short SFT on scripted episodes makes first, so that episodes go
through several tool calls. Same weights (float32), tokenizer, prompts (checked id for id), tasks, tools, threads,
temperature 1, limits, AdamW settings, loss (token mean, clip 0.2, no reference model) and number of episodes; every
episode is learned from. The customer is a tool on both sides, as TRL's tool loop knows no user turns. Our side runs
the code of ``muarl train``, with auditing and metrics, with episodes played in this process and in two others that have
a thread each (``--processes``); TRL runs in its own interpreter (trl_side.py). Steps include everything but writing
logs; loading and warm-up steps are left out. On a machine with other jobs, trust CPU seconds (all threads and
processes); the table shows what the episodes were like, since each side samples its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import psutil
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

import grpo_shop as shop
from grpo_shop_environment import Shop
from muarl.accounts.metrics import episode_metrics
from muarl.backends.engines import Backend
from muarl.backends.local import learner_settings
from muarl.backends.users import make_users
from muarl.basics.event_loop import event_loop
from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.config.sections import RunConfig
from muarl.environments.configure import places_of
from muarl.environments.play import Player
from muarl.environments.registry import approve
from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.recipes.tiny import make_model
from muarl.recipes.training.loss_settings import learner_config, samples_of
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import collect_groups, rollout
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, TokenTrace

THREADS = int(os.environ["OMP_NUM_THREADS"])
SFT_FIRST = 100_000
"""Number of the first errand that the start checkpoint learns from; the measured ones count from 0."""
TURNS = 8
"""Most messages with tool calls in an episode."""
SHOP = f"{Path(__file__).resolve().with_name('grpo_shop_environment.py')}:SHOP"


# ---- the start checkpoint


def expert_messages(errand: shop.Errand) -> list[Message]:
    """The right episode, as the agent sees it."""
    messages = [Message("user", shop.OPENING)]
    for number, step in enumerate(shop.expert(errand)):
        if "say" in step:
            messages.append(Message("assistant", step["say"]))
            continue
        call = ToolCall(f"call_{number}", step["call"], step["arguments"])
        messages.append(Message("assistant", "", (call,)))
        messages.append(Message("tool", step["result"], tool_call_id=call.id, name=call.name))
    return messages


def demonstration(tokenizer: PreTrainedTokenizerFast, number: int) -> TokenTrace:
    """The right episode of an errand as token ids, with the agent's own marked."""
    domain = Shop()
    messages = expert_messages(shop.errand(number))
    return Qwen3Format(tokenizer).training_tokens(domain.policy_text, domain.tool_specs(), messages)


def make_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE of ``vocabulary`` ids, trained on whole episodes."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()

    def byte_pairs(size: int, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in CONTROL_TOKENS])
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            clean_up_tokenization_spaces=False,
        )

    plain = byte_pairs(len(alphabet), [])  # one token a byte: enough to write the episodes out as text
    control = re.compile("|".join(map(re.escape, CONTROL_TOKENS)))
    traces = (demonstration(plain, n) for n in range(SFT_FIRST, SFT_FIRST + 200))
    return byte_pairs(
        vocabulary - len(CONTROL_TOKENS), (control.sub("\n", str(plain.decode(trace.ids))) for trace in traces)
    )


def make_start(folder: Path, options: argparse.Namespace) -> None:
    """Teach a small Qwen3 the shop's routine with muarl's own SFT, and leave it as a checkpoint."""
    began = time.perf_counter()
    tokenizer = make_tokenizer(options.vocabulary)
    model = make_model(len(tokenizer), hidden=options.hidden, layers=options.layers, seed=options.seed)
    model.config.eos_token_id = tokenizer.eos_token_id
    model.config.pad_token_id = tokenizer.pad_token_id
    traces = [demonstration(tokenizer, SFT_FIRST + n) for n in range(options.sft_steps * options.sft_batch)]
    # A little weight on what is read makes the model learn to copy early, so that it gets order ids right.
    samples = [Sample.supervised(trace.ids, trace.loss_mask, 0.1) for trace in traces]
    schedule = ScheduleConfig("linear", warmup_steps=5, total_steps=options.sft_steps)
    optimizer = OptimizerConfig(kind="muon", lr=3e-3, weight_decay=0.0, schedule=schedule)
    learner = TorchLearner(model, tokenizer, LearnerConfig(optimizer, PolicyLossConfig(kl_coef=0.0)))
    metrics: Mapping[str, float] = {}
    for step in range(options.sft_steps):
        metrics = learner.sft_step(samples[step * options.sft_batch : (step + 1) * options.sft_batch])
    save_policy(folder, model, tokenizer)
    seconds = time.perf_counter() - began
    loss = metrics.get("agent_nll", float("nan"))
    print(f"start checkpoint: {seconds:.0f} s of SFT, loss {loss:.3f} nats a token", flush=True)


# ---- the two sides


def config_for(
    start: Path, tasks: int, prompt_tokens: int, options: argparse.Namespace, processes: int = 1
) -> RunConfig:
    """Our settings, equal to those in trl_side.py. ``processes``: that play our episodes."""
    context = prompt_tokens + options.max_completion
    values = {
        "seed": options.seed,
        "model.checkpoint": start,
        "model.max_context": context,
        "model.device": "cpu",
        "domain.name": SHOP,
        "engine.processes": processes,
        "threads": THREADS,
        "rollout.max_turns": TURNS + 1,
        "rollout.max_tool_errors": TURNS + 1,
        "rl.tasks_per_step": tasks,
        "rl.group_size": options.group,
        "rollout.concurrency": tasks * options.group,
        "rollout.tokens_per_turn": options.max_completion,
        "rl.optimizer": "adamw",
        "rl.lr": options.lr,
        "rl.warmup": 0,
        "rl.schedule": "constant",
        "rl.weight_decay": 0.0,
        "rl.grad_clip": 1.0,
        "rl.kl_coef": 0.0,
        "rl.entropy_coef": 0.0,
        "rl.practice.repeat": 0.0,
        "rl.layers.policy": 0.0,  # the reward that the peer has
        "rl.layers.safety": 0.0,
        "rl.dual_clip": "null",
        "rl.clip_low": 0.2,
        "rl.clip_high": 0.2,
        "rl.loss_aggregation": "token_mean",
        "rl.advantage": "group_std",
        "rl.drop_zero_variance": "false",
        "rl.temperature": 1.0,
        "rl.minibatches": 1,
        "rl.epochs": 1,
    }
    return load_config("quickstart-easy", [f"{key}={value}" for key, value in values.items()])


def run_muarl(start: Path, tasks: int, options: argparse.Namespace, processes: int = 1) -> list[dict[str, Any]]:
    """Our steps: what ``muarl train`` does in each, with the time it took and what its episodes were like."""
    approve(SHOP)
    policy = load_policy(start)
    opening = [Message("user", shop.OPENING)]
    domain = Shop()
    prompt = Qwen3Format(policy.tokenizer).prompt(domain.policy_text, domain.tool_specs(), opening)
    config = config_for(start, tasks, len(prompt), options, processes)
    places = places_of(config)
    learner = TorchLearner(
        policy.model, policy.tokenizer, learner_settings(Compute.of(config), learner_config(config.rl, config.model))
    )
    backend = Backend.of(config)
    engine = backend.sampler(policy)
    agent = backend.agent(policy, temperature=config.rl.temperature, engine=engine)
    player = Player.of(places, agent, make_users(config.user, places))
    executor = backend.executor(player)
    steps = []
    with event_loop() as loop, closing(backend):
        for step in range(options.warmup + options.steps):
            wall, cpu = time.perf_counter(), cpu_seconds()
            drawn = places.draw("train", tasks, options.seed, step * tasks)
            requests = requests_for(drawn, options.group, seed=options.seed, label=str(step))
            played = loop.run(rollout(requests, executor)).episodes
            rollout_wall, rollout_cpu = time.perf_counter() - wall, cpu_seconds() - cpu
            learner.policy_step(samples_of(collect_groups(played, options.group), config.rl))
            loop.run(engine.update(learner.weights, learner.version))
            episode_metrics(played)
            wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
            times = {"wall": wall, "cpu": cpu, "rollout_wall": rollout_wall, "rollout_cpu": rollout_cpu}
            steps.append({**times, "prompt_ids": prompt, **described(played)})
    return steps


def cpu_seconds() -> float:
    """CPU seconds that this process and those that it has started, and that still run, have taken so far."""
    seconds = time.process_time()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            taken = child.cpu_times()
            seconds += taken.user + taken.system
    return seconds


def described(episodes: Sequence[Episode]) -> dict[str, float]:
    """What trl_side.py also tells of its episodes: means over them."""
    traces = [e.tokens for e in episodes if e.tokens is not None]
    spoken = [[m for m in e.messages[1:] if m.role == "assistant"] for e in episodes]  # without the greeting
    assert len(traces) == len(episodes)
    return {
        "episodes": len(episodes),
        "episode_tokens": statistics.fmean(map(len, traces)),
        "sampled_tokens": statistics.fmean(t.sampled_count for t in traces),
        "tool_calls": statistics.fmean(sum(len(m.tool_calls) for m in turns) for turns in spoken),
        "turns": statistics.fmean(map(len, spoken)),
        "reward": statistics.fmean(e.reward for e in episodes),
    }


def run_trl(start: Path, tasks: int, options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """TRL's steps, and the versions of what they ran on. SystemExit with its last words if it fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k != "VIRTUAL_ENV"}
    environment |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out, log = Path(folder) / "steps.json", Path(folder) / "log.txt"
        given = {
            "start": start,
            "json": out,
            "tasks": tasks,
            "group": options.group,
            "warmup": options.warmup,
            "steps": options.steps,
            "max-completion": options.max_completion,
            "turns": TURNS,
            "threads": torch.get_num_threads(),
            "seed": options.seed,
            "lr": options.lr,
        }
        command = [str(options.trl_python), str(Path(__file__).with_name("trl_side.py"))]
        command += [f"--{key}={value}" for key, value in given.items()]
        with log.open("wb") as stream:
            done = subprocess.run(command, env=environment, stdout=stream, stderr=subprocess.STDOUT, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"{log.read_text(errors='replace')[-4000:]}\nTRL's side failed (exit {done.returncode})")
        result = json.loads(out.read_text())
    return result["steps"], result["versions"]


# ---- the comparison


def summary(steps: Sequence[Mapping[str, Any]], warmup: int) -> dict[str, Any]:
    """Medians of the times and means of the rest, over the steps after the warm-up."""
    measured = steps[warmup:]
    times = ("wall", "cpu", "rollout_wall", "rollout_cpu")
    out: dict[str, Any] = {k: statistics.median(s[k] for s in measured) for k in times}
    out |= {f"{k}_range": [min(s[k] for s in measured), max(s[k] for s in measured)] for k in ("wall", "cpu")}
    rest = ("episode_tokens", "sampled_tokens", "tool_calls", "turns", "reward")
    return out | {k: statistics.fmean(s[k] for s in measured) for k in rest}


def compare(start: Path, tasks: int, options: argparse.Namespace) -> dict[str, Any]:
    """Both sides at one number of tasks a step, ours with each number of processes. SystemExit if prompts differ."""
    theirs, versions = run_trl(start, tasks, options)
    other = summary(theirs, options.warmup)
    sides = {}
    for processes in options.processes:
        ours = run_muarl(start, tasks, options, processes)
        if any(step["prompt_ids"] != ours[0]["prompt_ids"] for step in [*ours, *theirs]):
            raise SystemExit("the two sides' prompts differ, so the comparison would not be fair")
        mine = summary(ours, options.warmup)
        ratios = {f"ratio_{kind}": other[kind] / mine[kind] for kind in ("wall", "cpu")}
        sides[f"muarl, {processes} process{'es' if processes > 1 else ''}"] = mine | ratios
    return {
        "tasks": tasks,
        "group": options.group,
        "prompt_tokens": len(theirs[0]["prompt_ids"]),
        "muarl": sides,
        "trl": other,
        "versions": versions,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The result as a markdown table."""
    lines = [
        "| episodes | side | wall s/step (range) | CPU s/step (range) | rollout / update, CPU s | "
        "tokens/episode | sampled | tool calls | reward | TRL's wall, CPU / this |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        for side, s in {"TRL": row["trl"], **row["muarl"]}.items():
            wall, cpu = (f"{s[k]:.2f} ({s[f'{k}_range'][0]:.2f}-{s[f'{k}_range'][1]:.2f})" for k in ("wall", "cpu"))
            parts = f"{s['rollout_cpu']:.2f} / {s['cpu'] - s['rollout_cpu']:.2f}"
            ratio = f"**{s['ratio_wall']:.1f}**, **{s['ratio_cpu']:.1f}**" if "ratio_wall" in s else ""
            lines.append(
                f"| {row['tasks']} x {row['group']} | {side} | {wall} | {cpu} | {parts} | {s['episode_tokens']:.0f} | "
                f"{s['sampled_tokens']:.0f} | {s['tool_calls']:.1f} | {s['reward']:.2f} | {ratio} |"
            )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trl-python", type=Path, required=True, help="an interpreter that has TRL (see above)")
    parser.add_argument("--tasks", type=int, nargs="+", default=[2, 4], help="tasks a step; each is measured")
    parser.add_argument("--group", type=int, default=8, help="episodes of each task")
    parser.add_argument(
        "--processes", type=int, nargs="+", default=[1, 2], help="that play our episodes; each is measured"
    )
    parser.add_argument("--warmup", type=int, default=1, help="steps before the measured ones")
    parser.add_argument("--steps", type=int, default=3, help="measured steps")
    parser.add_argument("--start", type=Path, help="start checkpoint: read if it is there, else made and kept")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--max-completion", type=int, default=320, help="most tokens of an episode after its prompt")
    parser.add_argument("--lr", type=float, default=1e-5, help="small, so that episodes stay comparable")
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--sft-steps", type=int, default=120)
    parser.add_argument("--sft-batch", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.warmup < 0 or options.steps < 1:
        parser.error("--steps must be at least 1 and --warmup not negative")
    torch.set_num_threads(THREADS)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        start = (options.start or Path(folder) / "start").resolve()
        if not (start / "config.json").is_file():
            make_start(start, options)
        parameters = sum(p.numel() for p in load_policy(start).model.parameters())
        rows = [compare(start, tasks, options) for tasks in options.tasks]
    versions = {"python": platform.python_version(), **rows[0]["versions"], "torch (muarl)": torch.__version__}
    about = f"{parameters / 1e6:.2f}M parameters, prompt {rows[0]['prompt_tokens']} tokens, {THREADS} threads, float32"
    print(f"\n{about}; {', '.join(f'{k} {v}' for k, v in versions.items())}\n\n{table(rows)}\n")
    result = {"bench": "grpo_step", "parameters": parameters, "threads": THREADS, "versions": versions}
    result["rows"] = rows
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    else:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
