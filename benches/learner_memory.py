"""What an update on long episodes takes in memory, against the size of all its logits, which are never held.

    python benches/learner_memory.py
    python benches/learner_memory.py --tokens 8192 --vocab 151936 --processes 2 --recompute

A model of random weights (a large vocabulary, few and narrow layers) makes one supervised and one policy step, in one
process of its own and sharded over several. Peaks are of each process's resident memory, as the operating system counts
it, next to what the process takes before the first step. Linux only.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.group import ShardingConfig
from muarl.learning.learner import Learner, LearnerConfig, PolicyLossConfig, TorchLearner
from muarl.learning.packing import Sample
from muarl.learning.workers import MultiProcessLearner

MIB = 1 << 20


def resident(pid: int, key: str) -> float:
    """MiB of a process: "VmRSS" now, "VmHWM" at its peak."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{key}:")[1].split()[0]) / 1024


def make(folder: Path, arguments: argparse.Namespace) -> None:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=arguments.vocab,
        hidden_size=arguments.width,
        intermediate_size=3 * arguments.width,
        num_hidden_layers=arguments.layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=40960,
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
    save_policy(folder, Qwen3ForCausalLM(config), tokenizer)


def samples(arguments: argparse.Namespace) -> list[Sample]:
    """One episode for each process, every token of which carries loss."""
    source = random.Random(0)
    found = []
    for _ in range(arguments.processes):
        ids = [source.randrange(arguments.vocab) for _ in range(arguments.tokens)]
        found.append(Sample.sampled(ids, [True] * len(ids), [-12.0] * len(ids), source.uniform(-1, 1)))
    return found


def settings(arguments: argparse.Namespace) -> LearnerConfig:
    return LearnerConfig(
        policy=PolicyLossConfig(kl_coef=0.001),
        token_budget=arguments.tokens,
        recompute=arguments.recompute,
        precision=arguments.precision,
    )


def steps(learner: Learner, pids: list[int], arguments: argparse.Namespace, name: str) -> None:
    before = max(resident(pid, "VmRSS") for pid in pids)
    learner.sft_step(samples(arguments))
    learner.policy_step(samples(arguments))
    peak = max(resident(pid, "VmHWM") for pid in pids)
    print(
        f"{name:<28} before the steps {before:7.0f} MiB   at the peak {peak:7.0f} MiB   taken {peak - before:7.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192, help="tokens of an episode")
    parser.add_argument("--vocab", type=int, default=151936, help="size of the vocabulary (Qwen3's: 151936)")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone is not None:
        policy = load_policy(arguments.alone)
        import os

        steps(
            TorchLearner(policy.model, policy.tokenizer, settings(arguments)), [os.getpid()], arguments, "one process"
        )
        return
    naive = arguments.tokens * arguments.vocab * 4 / MIB
    print(f"{arguments.tokens} tokens x {arguments.vocab} words: an episode's logits in float32 take {naive:.0f} MiB")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "policy"
        make(folder, arguments)
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--alone", str(folder)], check=True)
        learner = MultiProcessLearner(folder, settings(arguments), ShardingConfig(), processes=arguments.processes)
        try:
            pids = [child.process.pid for child in learner._children]
            steps(learner, pids, arguments, f"each of {arguments.processes} processes")
        finally:
            learner.close()


if __name__ == "__main__":
    main()
