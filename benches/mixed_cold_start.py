r"""A cold start of `muarl reproduce` that is mixed with what the base has read: the figures of docs/reproduce.md.

    python benches/mixed_cold_start.py runs/words --steps 480 --demonstrations 3000 --out mixed reproduce-cancel \
        base.words=true model.max_context=1536 rollout.tokens_per_turn=160
    python benches/mixed_cold_start.py runs/words --steps 240 --read 1 --out read-only reproduce-cancel ...   # control

The first argument is the folder of a reproduction whose base is finished; the preset and the settings at the end are
those that it was made with. Half of each batch (``--read``) are other conversations of wandering agents in the nine
environments, learnt as the base has learnt them; the rest are demonstrations of the cold start's services. Writes a
checkpoint to ``--out`` and prints the loss. Evaluated on cancellations, and on all kinds of requests in the hotel, by

    muarl eval --config reproduce-cancel --checkpoint mixed eval.tasks=1200 model.max_context=1536 \
        rollout.tokens_per_turn=160 'domain=[{name: retail-generated, size: tiny, intents: [cancel]},
        {name: airline-generated, size: tiny, intents: [cancel]}, {name: hotel-generated, size: tiny}]'
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import torch

from muarl.backends.models import load_model, model_format
from muarl.backends.users import make_users
from muarl.chat_formats.base import ChatFormat
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.configure import places_of
from muarl.learning.checkpoints import save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.observe.progress import Progress
from muarl.recipes.demonstrations import demonstrate, supervised_samples
from muarl.recipes.pretraining import OTHER_WEIGHT
from muarl_tools.experiments.reproduce import base as base_recipe
from muarl_tools.experiments.reproduce.plan import base_folder, stages

OTHERS = 1500
"""Conversations of wandering agents that are read again."""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A cold start mixed with what the base has read.")
    parser.add_argument("reproduction", type=Path)
    parser.add_argument("preset")
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--demonstrations", type=int, default=2400)
    parser.add_argument(
        "--read", type=float, default=0.5, help="share of a batch that are conversations of the base's kind"
    )
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--matrix-lr", type=float, default=0.015)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    config = load_config(options.preset, options.settings)
    planned = {stage.name: stage.config for stage in stages(config, [options.seed])}
    policy = load_model(config.model.model_copy(update={"checkpoint": str(base_folder(options.reproduction / "base"))}))
    chat = model_format(policy.tokenizer, config.model)
    count = round(options.batch * options.read)
    shown: list[Sample] = []
    again: list[Sample] = []
    if count < options.batch:
        cold = planned[f"cold-{options.seed}"]
        places = places_of(cold, with_rl=False)
        tasks = places.draw("train", options.demonstrations, 4242 + options.seed, 0)
        profile = ErrorProfile(**cold.sft.error_profile.model_dump())
        episodes = demonstrate(places, make_users(cold.user, places), tasks, profile, seed=options.seed)
        shown = [sample for segments in supervised_samples(episodes, places, chat) for sample in segments]
    if count:
        again = read_again(planned["base"], options.seed, chat)
    schedule = ScheduleConfig("linear", 5, options.steps, 0.3)
    optimizer = OptimizerConfig(
        kind="muon", lr=options.lr, muon_lr=options.matrix_lr, weight_decay=0.0, schedule=schedule
    )
    loss = PolicyLossConfig(kl_coef=0.0)
    learner = TorchLearner(
        policy.model, policy.tokenizer, LearnerConfig(optimizer=optimizer, policy=loss, token_budget=8192)
    )
    rng = random.Random(options.seed)
    for step in range(1, options.steps + 1):
        batch = rng.sample(shown, options.batch - count) if shown else []
        metrics = learner.sft_step(batch + (rng.sample(again, count) if again else []))
        if step % 20 == 0 or step == options.steps:
            print(f"step {step}: {metrics['agent_nll']:.3f} nats a token of the agent", flush=True)
    print(save_policy(options.out, policy.model, policy.tokenizer))


def read_again(config: RunConfig, seed: int, chat: ChatFormat) -> list[Sample]:
    """Conversations of the base's kind that the base has not read, weighted as there."""
    own = config.base.model_copy(update={"conversations": OTHERS, "seed": 77 + seed})
    config = config.model_copy(update={"base": own})
    places = places_of(config, with_rl=False)
    with Progress() as progress:
        episodes = base_recipe.conversations(own, config.user, config.reproduce.materials, places, progress)
    read = supervised_samples(episodes, places, chat, other_weight=OTHER_WEIGHT)
    return [sample for segments in base_recipe.thinned(read, 7) for sample in segments]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
