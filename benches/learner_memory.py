"""What an update on long episodes takes in memory, against the size of all its logits, which are never held.

    python benches/learner_memory.py
    python benches/learner_memory.py --tokens 8192 16384 32768 65536 --vocab 32768 --width 32 --layers 1
    python benches/learner_memory.py --family gemma2 --tokens 8192 16384 --vocab 32768 --width 32 --layers 2

A model of random weights (a large vocabulary, few and narrow layers) makes one supervised and one policy step, in one
process of its own for each length and sharded over several (``--processes``). Peaks are of each process's resident
memory, as the operating system counts it, next to what the process takes before the first step. Linux only.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.learner import Learner, TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Sample
from muarl.learning.process_group import ShardingConfig
from muarl.learning.settings import LearnerConfig
from muarl.learning.workers import MultiProcessLearner
from muarl.models.configs import model_class, model_config

MIB = 1 << 20
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "gemma2": {"sliding_window": 1024},
    "gpt_oss": {"sliding_window": 128, "num_local_experts": 4, "num_experts_per_tok": 2},
    "granite": {"logits_scaling": 4.0},
    "deepseek_v3": {
        "num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "q_lora_rank": 24,
        "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "head_dim": 8,
    },
    "qwen3_5_text": {
        "linear_num_value_heads": 2, "linear_num_key_heads": 1, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    },
}  # fmt: skip
"""The own path; capped scores and logits and a window of 1,024; sinks, experts and a window of 128; scaled logits; keys
wider than values; layers with a recurrent state."""


def resident(pid: int, key: str) -> float:
    """MiB of a process: "VmRSS" now, "VmHWM" at its peak."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{key}:")[1].split()[0]) / 1024


def make(folder: Path, arguments: argparse.Namespace) -> None:
    torch.manual_seed(0)
    common = {
        "vocab_size": arguments.vocab,
        "hidden_size": arguments.width,
        "intermediate_size": 3 * arguments.width,
        "num_hidden_layers": arguments.layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 1 << 17,
        "pad_token_id": 0,
    }
    config = model_config({"model_type": arguments.family, **common, **FAMILIES[arguments.family]})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
    model: Any = model_class(config)(config)
    save_policy(folder, model, tokenizer)


def samples(tokens: int, arguments: argparse.Namespace) -> list[Sample]:
    """One episode for each process, every token of which carries loss."""
    source = random.Random(0)
    found = []
    for _ in range(arguments.processes):
        ids = [source.randrange(arguments.vocab) for _ in range(tokens)]
        found.append(Sample.sampled(ids, [True] * len(ids), [-12.0] * len(ids), source.uniform(-1, 1)))
    return found


def settings(tokens: int, arguments: argparse.Namespace) -> LearnerConfig:
    return LearnerConfig(
        policy=PolicyLossConfig(kl_coef=0.001),
        token_budget=tokens,
        recompute=arguments.recompute,
        precision=arguments.precision,
    )


def steps(learner: Learner, pids: list[int], tokens: int, arguments: argparse.Namespace, name: str) -> None:
    before = max(resident(pid, "VmRSS") for pid in pids)
    start = time.monotonic()
    learner.sft_step(samples(tokens, arguments))
    learner.policy_step(samples(tokens, arguments))
    peak = max(resident(pid, "VmHWM") for pid in pids)
    taken = peak - before
    print(
        f"{tokens:6} tokens   {name:<24} before {before:5.0f} MiB   peak {peak:5.0f} MiB   taken {taken:5.0f} MiB "
        f"({1024 * taken / tokens:.1f} KiB a token)   {time.monotonic() - start:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, default="qwen3", help="the model's family (qwen3: the own path)")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8192], help="tokens of an episode")
    parser.add_argument("--vocab", type=int, default=151936, help="size of the vocabulary (Qwen3's: 151936)")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2, help="of the sharded learner; 1 for none")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone is not None:
        (tokens,) = arguments.tokens
        arguments.processes = 1
        policy = load_policy(arguments.alone)
        learner = TorchLearner(policy.model, policy.tokenizer, settings(tokens, arguments))
        steps(learner, [os.getpid()], tokens, arguments, "one process")
        return
    print(f"{arguments.family}, a vocabulary of {arguments.vocab}, {arguments.layers} layers of {arguments.width}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "policy"
        make(folder, arguments)
        for tokens in arguments.tokens:
            print(f"{tokens:6} tokens   all logits, float32: {tokens * arguments.vocab * 4 / MIB:.0f} MiB", flush=True)
            alone = [sys.executable, __file__, *sys.argv[1:], "--alone", str(folder), "--tokens", str(tokens)]
            subprocess.run(alone, check=True)
            if arguments.processes > 1:
                sharded(folder, tokens, arguments)


def sharded(folder: Path, tokens: int, arguments: argparse.Namespace) -> None:
    learner = MultiProcessLearner(folder, settings(tokens, arguments), ShardingConfig(), processes=arguments.processes)
    try:
        pids = [child.pid for child in learner._children]
        steps(learner, pids, tokens, arguments, f"each of {arguments.processes} processes")
    finally:
        learner.close()


if __name__ == "__main__":
    main()
