"""The base of ``reproduce``: a small model that can read and talk, and was never taught to serve.

It reads conversations of wandering agents (``wandering``) with rule-based users, all tokens of them, and copying
drills. It begins with random weights that are laid out to copy (``models/induction.py``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from muarl.accounts.success import scores_by_domain
from muarl.agents.base import Agent
from muarl.backends.model_notes import OWN_LICENSE
from muarl.backends.models import load_model, model_format
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.event_loop import event_loop
from muarl.config.section import UserConfig
from muarl.config.sections import RunConfig
from muarl.config.stages import BaseConfig, ReproduceConfig, SftConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.configure import places_of
from muarl.environments.places import ByPlace, Places
from muarl.environments.play import local_executor
from muarl.environments.registry import find
from muarl.learning.checkpoints import save_policy
from muarl.learning.packing import Sample
from muarl.learning.release import ModelNotes
from muarl.models.induction import lay_out_induction
from muarl.observe.progress import Progress
from muarl.recipes.base_batches import DRILL_SHARE, LONGEST_LINE, copy_drill
from muarl.recipes.demonstrations import Segments, demonstrate, supervised_samples
from muarl.recipes.pretraining import OTHER_WEIGHT, _texts
from muarl.recipes.sft import fit
from muarl.recipes.tiny import make_model, make_tokenizer
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import rollout
from muarl.runs.context import open_context, prepare, tell_domain
from muarl.runs.tasks import pretraining_seed
from muarl.types.episode import Episode, StopReason
from muarl_tools.experiments.reproduce.plan import base_folder, start_folder
from muarl_tools.experiments.reproduce.wandering import Material, WanderingAgent

TOKENIZER_CONVERSATIONS = 2000
BLOCK = 500
CHECKPOINT_EVERY = 100
OTHERS_LEARNT = 0.2
"""Share of the tokens of users and tools that are predicted. With a vocabulary of ten thousand, predicting a token
costs more than reading it."""


def run(config: RunConfig) -> Path:
    """Make the base checkpoint, or go on with it. Returns the run's folder.

    ConfigError for an environment without rule-based user or expert.
    """
    prepare(config)
    check_environments(config.reproduce.read)
    places = places_of(config, with_rl=False)
    base = config.base
    sft = SftConfig(
        steps=base.steps,
        batch=base.batch,
        optimizer="muon",
        lr=base.lr,
        matrix_lr=base.matrix_lr,
        warmup=min(20, base.steps // 2),
        decay=0.3,
        checkpoint_every=CHECKPOINT_EVERY,
    )
    with open_context(config, "reproduce") as context:
        tell_domain(context.folder, config.domain_text, places)
        context.loop.closes(places)
        folder = context.folder
        episodes = conversations(config.base, config.user, config.reproduce.materials, places, context.progress)
        folder.write_episodes("read", episodes[:50])
        start = start_folder(folder.path)
        if not start.is_dir():
            _make_start(config.base, config.reproduce, start, episodes[:TOKENIZER_CONVERSATIONS])
        policy = load_model(config.model.model_copy(update={"checkpoint": str(start)}))
        chat = model_format(policy.tokenizer, config.model)
        read = supervised_samples(episodes, places, chat, other_weight=OTHER_WEIGHT)
        samples = thinned(read, base.seed)
        names = [
            i for name in config.reproduce.read for piece in find(name).entities() for i in chat.tokenizer.encode(piece)
        ]
        if len(names) < LONGEST_LINE:
            names = [i for i in range(len(policy.tokenizer)) if i not in policy.tokenizer.all_special_ids]
        samples += drills(len(samples), names, base.seed)
        fit(context, sft, policy, samples, name="base")
        notes = ModelNotes(
            method="language modelling from random weights",
            step=base.steps,
            data=f"{len(episodes):,} conversations of wandering agents in {config.domain_text}, and copying drills; "
            f"seed {base.seed}",
            license=OWN_LICENSE,
        )
        save_policy(base_folder(folder.path), policy.model, policy.tokenizer, notes=notes)
        parameters = sum(p.numel() for p in policy.model.parameters())
        folder.write_summary(
            {
                "conversations": len(episodes),
                "steps": base.steps,
                "parameters": parameters,
                "vocabulary": len(policy.tokenizer),
                "wandering": scores_by_domain({"success": episodes}),
                "seconds": folder.seconds,
            }
        )
    return folder.path


def check_environments(read: Sequence[str]) -> None:
    """ConfigError unless conversations can be made in every environment that is read."""
    for name in read:
        environment = find(name)
        if environment.expert is None or environment.rule_based_user is None:
            raise ConfigError(
                f"reproduce.read: {name} has no scripted expert or no rule-based user, of whose words its "
                "conversations are made; leave it out (`muarl domains` lists what each has)"
            )


def _make_start(base: BaseConfig, wanted: ReproduceConfig, folder: Path, episodes: Sequence[Episode]) -> None:
    """Tokenizer and random weights. The tokenizer knows the words of all environments, also of the one kept out."""
    worlds = [find(name) for name in (*wanted.read, wanted.kept_out) if name is not None]
    tokenizer = make_tokenizer(worlds, _texts(episodes, names=base.words), words=base.words)
    model = make_model(
        len(tokenizer), hidden=base.hidden, layers=base.layers, heads=base.heads, seed=base.seed, words=base.words
    )
    lay_out_induction(model, seed=base.seed)
    notes = ModelNotes(method="none: random weights", step=0, data="none", license=OWN_LICENSE)
    save_policy(folder, model, tokenizer, notes=notes)


def conversations(
    base: BaseConfig, user: UserConfig, materials: int, places: Places, progress: Progress
) -> list[Episode]:
    """Conversations of wandering agents with the rule-based users. DataError if all failed."""
    users = make_users(user, places)
    wanted, seed = base.conversations, pretraining_seed(base)
    found: list[Episode] = []
    with event_loop() as loop, progress.phase("conversations", wanted, "conversations") as phase:
        loop.closes(users)
        tasks = places.draw("train", materials * len(places), seed, 0)
        experts = demonstrate(places, users, tasks, ErrorProfile(), seed=seed)
        agents: dict[str, Agent] = {}
        for place in places:
            own = [task for task in tasks if places.of(task) is place]
            said = [episode for episode in experts if places.of(episode) is place]
            material = Material.of(own, said, find(place.name).entities(), place.rules.transfer_tools)
            agents[place.name] = WanderingAgent(material)
        executor = local_executor(places, ByPlace(agents), users)
        for start in range(0, wanted, BLOCK):
            drawn = places.draw("train", min(BLOCK, wanted - start), seed, len(tasks) + start)
            requests = requests_for(drawn, 1, seed=seed + start, label="wandering")
            found += loop.run(rollout(requests, executor)).episodes
            phase.advance(len(drawn))
    found = [
        e for e in found if e.stop is not StopReason.INFRASTRUCTURE and any(m.role == "assistant" for m in e.messages)
    ]
    if not found:
        raise DataError("conversations: every one failed")
    return found


def thinned(conversations: Sequence[Segments], seed: int) -> list[Segments]:
    """The conversations with a random ``OTHERS_LEARNT`` of the tokens of users and tools to learn, which weigh as much
    as all of them did."""
    rng = random.Random(f"thinned {seed}")

    def weight(full: float) -> float:
        if full == 1.0:
            return full
        return full / OTHERS_LEARNT if rng.random() < OTHERS_LEARNT else 0.0

    return [tuple(Sample(s.ids, [weight(w) for w in s.weights]) for s in segments) for segments in conversations]


def drills(conversations: int, names: list[int], seed: int) -> list[tuple[Sample, ...]]:
    """So many copying drills that they are ``DRILL_SHARE`` of all that is read."""
    rng = random.Random(f"drills {seed}")
    return [(copy_drill(rng, names),) for _ in range(round(conversations * DRILL_SHARE / (1 - DRILL_SHARE)))]
