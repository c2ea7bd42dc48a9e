"""``muarl base``: the small base checkpoint, from nothing.

It plays the part that a pretrained language model plays elsewhere: it knows the words, the chat format and how to copy
an id, but not to behave well. It reads generated conversations of experts whose errors are drawn at random, and learns
to predict all of them: the agents' words above all, the others' with a tenth of the weight. Cold start and
reinforcement learning come afterwards, on other tasks.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch

from muarl.backends.model_notes import OWN_LICENSE
from muarl.backends.users import make_users
from muarl.chat_formats.choice import chat_format
from muarl.config import RunConfig
from muarl.config.sections import BaseConfig
from muarl.domains.error_profile import ErrorProfile
from muarl.environments.configure import ConfiguredEnvironment, configure_environment
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.episode import Episode
from muarl.errors import ConfigError, DataError
from muarl.event_loop import event_loop
from muarl.learning.checkpoints import save_policy
from muarl.learning.learner import LearnerConfig, PolicyLossConfig, TorchLearner
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.release import ModelNotes
from muarl.models.induction import lay_out_induction
from muarl.observe.progress import Progress
from muarl.recipes.demonstrations import demonstrate, supervised_samples
from muarl.recipes.sft import timed
from muarl.recipes.tiny import make_model, make_tokenizer
from muarl.runs.context import open_context
from muarl.runs.opening import prepare
from muarl.runs.preflight import check_roles
from muarl.runs.task_seeds import pretraining_seed

TOKENIZER_CONVERSATIONS = 2000
OTHER_WEIGHT = 0.1
"""Loss weight of what users and tools say. Much of it cannot be foreseen, and a tiny model has no capacity to waste."""
DRILL_SHARE = 0.125
"""Share of a batch that are copying drills. Without them it takes thousands of steps until ids are copied right."""
LONGEST_LINE = 40
"""Tokens of a drill that are to be copied, at most."""
MOST, MOST_WRONG_IDS = 0.5, 0.08
"""Errors are drawn up to these shares; wrong ids are kept few, lest the model learns to copy wrongly."""
BLOCK = 500
"""Conversations that share one draw of errors."""


def run(config: RunConfig) -> Path:
    """Train the base checkpoint and write it to RUN/checkpoints/base, half precision. Returns the run's folder."""
    prepare(config)
    worlds = [find(domain.name) for domain in config.domains]
    _check_shape(config.base)
    for world in worlds:
        _check_offers(world, config.user.kind)
    environment = configure_environment(config, with_rl=False)
    check_roles(config, "user")
    with open_context(config, "base") as context:
        context.loop.closes(environment)
        run, progress, logger = context.folder, context.progress, context.logger
        episodes = conversations(config, environment, progress)
        tokenizer = make_tokenizer(worlds, _texts(episodes[:TOKENIZER_CONVERSATIONS]))
        chat = chat_format(tokenizer)
        found = supervised_samples(episodes, environment, chat, other_weight=OTHER_WEIGHT)
        samples = [sample for segments in found for sample in segments]
        base = config.base
        model = make_model(len(tokenizer), hidden=base.hidden, layers=base.layers, heads=base.heads, seed=config.seed)
        lay_out_induction(model, seed=config.seed)
        entities = [i for world in worlds for piece in world.entities() for i in chat.tokenizer.encode(piece)]
        if len(entities) < LONGEST_LINE:  # an environment that names none: any tokens can be copied
            entities = [i for i in range(len(tokenizer)) if i not in tokenizer.all_special_ids]
        schedule = ScheduleConfig("linear", 20, base.steps, 0.3)
        optimizer = OptimizerConfig(
            kind="muon", lr=base.lr, muon_lr=base.matrix_lr, weight_decay=0.0, schedule=schedule
        )
        settings = LearnerConfig(optimizer=optimizer, policy=PolicyLossConfig(kl_coef=0.0), token_budget=8192)
        learner = TorchLearner(model, tokenizer, settings)
        order = random.Random(config.seed)
        deck: list[int] = []
        drills = round(base.batch * DRILL_SHARE)
        with progress.phase("base", base.steps) as phase:
            for step in range(base.steps):
                if len(deck) < base.batch:
                    rounds = -(-base.batch // len(samples))
                    deck = [i for _ in range(rounds) for i in order.sample(range(len(samples)), len(samples))]
                batch = [samples[deck.pop()] for _ in range(base.batch - drills)]
                metrics = learner.sft_step(batch + [drill(order, entities) for _ in range(drills)])
                logger.log(timed(metrics), phase="base", step=step)
                phase.advance(nll=metrics["nll"])
        notes = ModelNotes(
            method="language modelling from random weights",
            step=base.steps,
            data=f"{len(samples):,} generated conversations in {config.domain_text}, seed {base.seed}",
            license=OWN_LICENSE,
        )
        folder = save_policy(run.checkpoints / "base", model, tokenizer, dtype=torch.float16, notes=notes)
        summary = {"nll": metrics["nll"], "conversations": len(samples), "steps": base.steps, "seconds": run.seconds}
        run.write_summary(summary)
        progress.say(f"Base checkpoint: {folder}")
    return run.path


def _check_offers(environment: Environment, user: str) -> None:
    """ConfigError unless conversations can be made without any model."""
    has = {"scripted expert": environment.expert, "rule-based user": environment.rule_based_user}
    if user != "agenda":
        del has["rule-based user"]
    if missing := " and no ".join(what for what, found in has.items() if found is None):
        raise ConfigError(
            f"muarl base learns from conversations of a scripted expert, and {environment.name} has no {missing}: "
            "choose one that has (`muarl domains` lists them), or train a checkpoint of your own (model.checkpoint)"
        )


def _check_shape(base: BaseConfig) -> None:
    """The copying heads of the start weights need room (see induction.py)."""
    if base.layers < 2:
        raise ConfigError(f"base.layers is {base.layers}, and copying takes two")
    if base.heads < 4 or base.heads % 2:
        raise ConfigError(f"base.heads is {base.heads}: it must be even, and at least 4")
    if base.hidden % (2 * base.heads) or base.hidden < 8 * base.heads:
        raise ConfigError(f"base.hidden is {base.hidden}: it must be a multiple of 2 x base.heads, and at least 8 x")


def conversations(config: RunConfig, environment: ConfiguredEnvironment, progress: Progress) -> list[Episode]:
    """Conversations of experts with random errors; every block of them has its own. DataError if all failed."""
    users = make_users(config.user, environment)
    rng = random.Random(f"base habits {config.base.seed}")
    found: list[Episode] = []
    wanted = config.base.conversations
    with event_loop() as loop, progress.phase("conversations", wanted, "conversations") as phase:
        loop.closes(users)
        for start in range(0, wanted, BLOCK):
            drawn = {name: rng.random() * MOST for name in ErrorProfile.__dataclass_fields__}
            error_profile = ErrorProfile(**drawn | {"wrong_id": rng.random() * MOST_WRONG_IDS})
            tasks = environment.draw("train", min(BLOCK, wanted - start), pretraining_seed(config.base), start)
            found += demonstrate(environment, users, tasks, error_profile, seed=config.base.seed + start)
            phase.advance(len(tasks))
    if not found:
        raise DataError("conversations: every one failed; is the simulated user's endpoint in order?")
    return found


def drill(rng: random.Random, entities: list[int]) -> Sample:
    """A line of random ids and names, said again in pieces: only a model that copies can predict the pieces."""
    line = rng.sample(entities, rng.randint(10, LONGEST_LINE))
    ids = list(line)
    while len(ids) < 200:
        start = rng.randrange(len(line) - 4)
        ids += line[start : start + rng.randint(3, 12)]
    return Sample(ids, [0.0] * len(line) + [1.0] * (len(ids) - len(line)))


def _texts(episodes: list[Episode]) -> list[str]:
    texts = []
    for message in (m for e in episodes for m in e.messages):
        texts.append(message.content or "")
        texts += [json.dumps(dict(c.arguments)) for c in message.tool_calls]
    return texts
