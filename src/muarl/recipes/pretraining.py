"""``muarl base``: the small base checkpoint, from nothing or from another one.

It plays the part that a pretrained language model plays elsewhere: it knows the words, the chat format and how to copy
an id, but not to behave well. It reads generated conversations of experts whose errors are drawn at random, and learns
to predict all of them: the agents' words above all, the others' with a tenth of the weight. Cold start and
reinforcement learning come afterwards, on other tasks.

Under ``base.checkpoint`` it continues from another base, whose words and copying it keeps, in domains which that one
need not have read (recipes/tiny_extension.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from muarl.backends.checkpoint_names import checkpoint_name
from muarl.backends.model_notes import OWN_LICENSE
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError
from muarl.basics.stopping import held
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.choice import chat_format
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, ModelConfig, RunConfig
from muarl.config.stages import BaseConfig
from muarl.environments.benchmark_training import benchmarks_learned
from muarl.environments.configure import places_of
from muarl.environments.environment import Environment
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.learning.checkpoint_folders import checkpoint_path
from muarl.learning.checkpoints import Policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.learning.release import ModelNotes
from muarl.learning.settings import LearnerConfig
from muarl.models.induction import lay_out_induction
from muarl.recipes.base_batches import LONGEST_LINE, Batches, how_often
from muarl.recipes.base_conversations import conversations, held_out
from muarl.recipes.base_measures import measures, predicted
from muarl.recipes.demonstrations import supervised_samples
from muarl.recipes.sft import timed
from muarl.recipes.tiny import make_model, make_tokenizer, pieces_of_all
from muarl.recipes.tiny_extension import (
    check_extendable,
    extended_model,
    extended_tokenizer,
    learned_pieces,
    like_pieces,
    spare_tokens,
)
from muarl.runs.context import RunContext, open_context, prepare, tell_domain
from muarl.runs.prices import Bounds
from muarl.runs.resuming import go_back, resume_point
from muarl.runs.roles import Cast, check_roles
from muarl.runs.tasks import check_may_train
from muarl.types.episode import Episode

TOKENIZER_CONVERSATIONS = 2000
OTHER_WEIGHT = 0.1
"""Loss weight of what users and tools say. Much of it cannot be foreseen, and a tiny model has no capacity to waste."""
DECAY = 0.3
"""The last share of the steps, in which the learning rate falls and spare tokens keep their embeddings, to be learned
as they are."""
PHASE = "base"
STEPS = "pretraining"
"""The folder of the checkpoints that a run is resumed from, beside the one that it makes."""


def run(config: RunConfig) -> Path:
    """Train the base checkpoint and write it to RUN/checkpoints/base, half precision. Returns the run's folder."""
    prepare(config)
    worlds = [find(domain.name) for domain in config.domains]
    start = None if config.base.checkpoint is None else _start(config.base.checkpoint)
    if start is None:
        _check_shape(config.base)
    for world in worlds:
        _check_offers(world, config.user.kind)
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark)
    places = places_of(config, with_rl=False)
    user = base_users(config.user)
    check_roles(Cast.of(config), "user", bound=Bounds.of(config).name("budget"))
    with open_context(config, "base") as context:
        tell_domain(context.folder, config.domain_text, places)
        for note in places.validation_notes():
            context.progress.say(note)
        context.loop.closes(places)
        episodes = conversations(context, config.base, user, places)
        policy = _begin(
            config.base, config.seed, worlds, _texts(episodes[:TOKENIZER_CONVERSATIONS], names=config.base.words), start
        )
        chat = chat_format(policy.tokenizer)
        per_episode = supervised_samples(episodes, places, chat, other_weight=OTHER_WEIGHT)
        samples = [sample for segments in per_episode for sample in segments]
        weight = config.base.difficulty_weight
        often = [how_often(e.tags, weight) for e, own in zip(episodes, per_episode, strict=True) for _ in own]
        entities = _entities(policy.tokenizer, _values(worlds, chat))
        base = config.base
        batches = Batches(samples, often, entities, base.batch, context.seed, others=base.others_learnt)
        notes = _notes(config, len(samples), start)
        nll = _train(context, config.base, policy, batches, notes)
        run, notes = context.folder, notes.at({"step": config.base.steps})
        folder = save_policy(run.checkpoints / "base", policy.model, policy.tokenizer, dtype=torch.float16, notes=notes)
        summary: dict[str, Any] = {"nll": nll, "conversations": len(samples), "steps": config.base.steps}
        if config.base.validation:
            summary["validation"] = _measured(
                held_out(context, base, user, config.domains, places), config.domains, places, policy, chat
            )
        run.write_summary(summary | {"seconds": run.seconds})
        context.progress.say(f"Base checkpoint: {folder}")
    return run.path


def base_users(user: UserConfig) -> UserConfig:
    """Whom a base talks to: easy users unless somebody says otherwise, as in the bases that come with muarl."""
    return user.at("easy") if user.traits.where_possible else user


def _start(name: str) -> Policy:
    """The checkpoint to continue from. CheckpointError if it is none that can be."""
    policy = load_model(ModelConfig(checkpoint=name, device="cpu"))
    check_extendable(policy)
    return policy


def _begin(
    base: BaseConfig, seed: int, worlds: Sequence[Environment], texts: list[str], start: Policy | None
) -> Policy:
    """The model and tokenizer before the first step."""
    if start is not None:
        pieces = pieces_of_all(worlds, texts, words=base.words)
        tokenizer = extended_tokenizer(start.tokenizer, pieces, base.spare_tokens)
        return Policy(extended_model(start, tokenizer, seed), tokenizer, start.path)
    tokenizer = make_tokenizer(worlds, texts, base.spare_tokens, words=base.words)
    model = make_model(
        len(tokenizer), hidden=base.hidden, layers=base.layers, heads=base.heads, seed=seed, words=base.words
    )
    lay_out_induction(model, seed=seed)
    return Policy(model, tokenizer, Path())


def _train(
    context: RunContext,
    base: BaseConfig,
    policy: Policy,
    batches: Batches,
    notes: ModelNotes,
) -> float:
    """Take the steps that the run has not taken yet; returns the last one's loss."""
    model, tokenizer, folder = policy.model, policy.tokenizer, context.folder
    schedule = ScheduleConfig("linear", 20, base.steps, DECAY)
    optimizer = OptimizerConfig(kind="muon", lr=base.lr, muon_lr=base.matrix_lr, weight_decay=0.0, schedule=schedule)
    settings = LearnerConfig(optimizer=optimizer, policy=PolicyLossConfig(kl_coef=0.0), token_budget=8192, notes=notes)
    learner = TorchLearner(model, tokenizer, settings)
    first, nll, root = 0, 0.0, folder.checkpoints / STEPS
    if context.resumed:
        resumed = resume_point(root, context.progress.say)
        if resumed is not None:
            done = learner.load(resumed)
            first, nll = int(done["step"]), float(done["nll"])
            batches.restore(done)
            if first > base.steps:
                raise ConfigError(
                    f"base.steps: {base.steps}, and this run has made {first} already: it cannot become shorter"
                )
        go_back(folder, root, resumed, {PHASE: first})

    spare, pieces = spare_tokens(tokenizer), learned_pieces(tokenizer)

    def save(step: int) -> None:
        path = checkpoint_path(root, step)
        if step and not path.exists():
            learner.save(path, {"step": step, "nll": nll, **batches.state()})
            context.prune(root)

    made, whole = first, True  # whole: the learner is as the last step left it
    with context.progress.phase(PHASE, base.steps) as phase:
        phase.resume(first)
        try:
            for step in range(first, base.steps):
                with held():
                    whole = False
                    if spare and step < (1 - DECAY) * base.steps:
                        draw_anew(model, spare, pieces, context.seed, step)
                    metrics = learner.sft_step(batches.draw())
                    context.logger.log(timed(metrics), phase=PHASE, step=step)
                    made, whole, nll = step + 1, True, metrics["nll"]
                phase.advance(nll=nll)
                if base.checkpoint_every and made % base.checkpoint_every == 0:
                    save(made)
        except KeyboardInterrupt:
            if whole:
                save(made)
            raise
    return nll


@torch.no_grad()
def draw_anew(model: PreTrainedModel, spare: Sequence[int], pieces: Sequence[int], seed: int, step: int) -> None:
    """Give the tokens that stand in no text other embeddings, drawn like those of pieces: the model learns to copy
    directions that it has not seen, as those of another world's words will be."""
    table: Any = model.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    table[list(spare)] = like_pieces(table[list(pieces)], len(spare), generator)


def _samples(episodes: Sequence[Episode], places: Places, chat: ChatFormat) -> list[Sample]:
    per_episode = supervised_samples(episodes, places, chat, other_weight=OTHER_WEIGHT)
    return [sample for segments in per_episode for sample in segments]


def _values(worlds: Sequence[Environment], chat: ChatFormat) -> list[int]:
    """The tokens that values of the worlds are."""
    ids = [i for world in worlds for piece in world.entities() for i in chat.tokenizer.encode(piece)]
    return ids if len(worlds) == 1 else list(dict.fromkeys(ids))  # worlds share names, and a drill has each once


def _entities(tokenizer: PreTrainedTokenizerFast, values: Sequence[int]) -> list[int]:
    """The tokens of drills: values, or any tokens where the worlds name none; and those that stand in no text."""
    words = list(values)
    if len(words) < LONGEST_LINE:
        words = [i for i in range(len(tokenizer)) if i not in tokenizer.all_special_ids]
    return words + spare_tokens(tokenizer)


def _measured(
    played: Mapping[str, Sequence[Episode]],
    domains: Sequence[DomainConfig],
    places: Places,
    policy: Policy,
    chat: ChatFormat,
) -> dict[str, Any]:
    """How the finished model predicts conversations of tasks that it has not read, by domain. ``played``: those."""
    policy.model.eval()
    by_place = {}
    for domain, place in zip(domains, places, strict=True):
        if place.name in played:
            samples = _samples(played[place.name], Places([place]), chat)
            by_place[place.name] = predicted(policy.model, samples, _values([find(domain.name)], chat))
    return measures(by_place)


def _notes(config: RunConfig, samples: int, start: Policy | None) -> ModelNotes:
    begun = "random weights" if start is None else f"the checkpoint {checkpoint_name(start.path)}"
    return ModelNotes(
        method=f"language modelling from {begun}",
        data=f"{samples:,} generated conversations in {config.domain_text}, seed {config.base.seed}",
        benchmarks=benchmarks_learned(domain.name for domain in config.domains),
        license=OWN_LICENSE,
    )


def _check_offers(environment: Environment, user: str) -> None:
    """ConfigError unless conversations can be made without any model."""
    has = {"scripted expert": environment.expert, "rule-based user": environment.rule_based_user}
    if user != "agenda":
        del has["rule-based user"]
    if missing := " and no ".join(what for what, offer in has.items() if offer is None):
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


def _texts(episodes: Sequence[Episode], names: bool = False) -> list[str]:
    """What is said and called, the tools' ``names`` too."""
    texts = []
    for message in (m for e in episodes for m in e.messages):
        texts.append(message.content or "")
        texts += [json.dumps(dict(c.arguments)) for c in message.tool_calls]
        texts += [c.name for c in message.tool_calls if names]
    return texts
