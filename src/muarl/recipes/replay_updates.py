"""``muarl train --replay``: the updates of recorded steps, without playing anything.

The learner continues from the run's checkpoint before the step and is given the recorded episodes: on the machine and
with the settings of then its weights become, bit for bit, what they became. With other settings it says what these
would have made of the same episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from muarl.backends.model_notes import RL
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError, DataError
from muarl.config.rl import RlConfig
from muarl.config.sections import RunConfig
from muarl.environments.benchmark_training import benchmarks_learned
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.learning.checkpoint_folders import checkpoint_path
from muarl.learning.checkpoints import Policy
from muarl.learning.learner import Learner
from muarl.learning.packing import episode_numbers
from muarl.recipes.training.loss_settings import equal_groups, learner_config, samples_of
from muarl.recipes.training.recorded_steps import Recording
from muarl.recipes.training.turn_credit import PROGRESS, TurnCredit
from muarl.rewards.layered import PREFIX
from muarl.rollouts.rollout import Groups
from muarl.runs.checks import check_machine
from muarl.runs.context import RunContext, open_context, prepare
from muarl.runs.tasks import check_may_train

SHOWN = 4
"""Figures that differ are shown up to this many."""


def run(config: RunConfig) -> Path:
    """Learn from what ``rl.replay`` names. Returns the new run's folder, with a checkpoint in it."""
    assert config.rl.replay is not None
    if config.resume is not None:
        raise ConfigError("--resume: this run learned from recorded episodes: give --replay again instead")
    files = {"rl.replay": config.rl.replay}
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files=files)
    recording = Recording.of(config.rl.replay)
    if recording.start is not None:
        model = config.model.model_copy(update={"checkpoint": str(recording.start)})
        config = config.model_copy(update={"model": model})
    prepare(config)
    places = places_of(config)
    once = config.rl.model_copy(update={"checkpoint_every": 0})  # its only checkpoint is written at the end
    check_machine(config, once, sampling=False)
    policy = load_model(config.model)
    with open_context(config, "train", on_cluster=True, learns_only=True) as context:
        context.loop.closes(places)
        _learn(context, config, places, policy, recording)
    return context.folder.path


def _learn(context: RunContext, config: RunConfig, places: Places, policy: Policy, recording: Recording) -> None:
    rl, progress = config.rl, context.progress
    words = cast(Any, policy.model.config).vocab_size
    learner = context.backend.learner(policy, learner_config(rl, config.model), RL)
    with closing(learner), progress.phase("learning from recorded episodes", len(recording.steps)) as phase:
        done: Mapping[str, Any] = {} if recording.checkpoint is None else learner.load(recording.checkpoint)
        credit = TurnCredit.resumed(rl, places, done)
        for step in recording.steps:
            groups = recording.groups(step, rl)
            _check(groups, rl, words, recording)
            if groups.dropped:
                some = f"{len(groups.dropped)} of its groups have fewer than {groups.minimum} episodes that count"
                progress.say(f"Step {step}: {some} (rl.group_size, rl.min_group), and are left out.")
            figures = _step(learner, groups, rl, credit)
            context.logger.log(figures, phase="rl", step=step)
            phase.advance()
            progress.say(f"Step {step}: {_told(recording, step, figures)}")
        extra = {} if credit is None else credit.state()
        end = recording.steps[-1] + 1
        learner.save(checkpoint_path(context.folder.checkpoints / "rl", end), {"step": end, "phase": "rl", **extra})
    trained = bool(benchmarks_learned((domain.name for domain in config.domains), config.rl.replay))
    facts = {"replay": str(config.rl.replay), "steps": len(recording.steps), "trained_on_benchmark": trained}
    context.folder.write_summary({**facts, "seed": config.seed})


def _check(groups: Groups, rl: RlConfig, words: int, recording: Recording) -> None:
    """DataError if a model of so many words does not know all ids, or the reward needs an audit that is not there."""
    ids = {i for g in groups.kept for e in g.episodes if e.tokens is not None for i in e.tokens.ids}
    if ids and not 0 <= min(ids) <= max(ids) < words:
        raise DataError(f"{recording.place}: has token ids beyond this model's {words}: another model sampled them")
    if rl.credit != "outcome" and any(PROGRESS not in e.tags for g in groups.kept for e in g.episodes):
        raise DataError(
            f"{recording.place}: was recorded without the progress that rl.credit={rl.credit} needs: record with the "
            "same rl.credit"
        )
    layers = {name for name, penalty in rl.layers.penalties.items() if penalty} | {*rl.layers.gates}
    audits = [e.verdict.audit for g in groups.kept for e in g.episodes if e.verdict is not None]
    if any(PREFIX + layer not in audit for audit in audits for layer in layers):
        raise DataError(
            f"{recording.place}: rl.layers pays by the audit of each conversation, and these have none: set "
            "the layers' penalties to 0"
        )


def _step(learner: Learner, groups: Groups, rl: RlConfig, credit: TurnCredit | None) -> dict[str, float]:
    """Learn from one step; its figures."""
    if credit is not None:
        credit.begin({})
    # As recipes/training/ahead.py: what has become too old since it was sampled is left out.
    oldest = None
    if rl.asynchrony != "synchronous":
        oldest = learner.version - (1 if rl.asynchrony == "one_step_off" else rl.staleness)
    samples = samples_of(groups, rl, oldest=oldest, by_turn=credit)
    update = learner.policy_step(samples)
    if credit is not None:
        credit.end()
    counts = {
        "groups_kept": float(len(groups.kept)),
        "groups_equal": float(equal_groups(groups, rl)),
        "groups_dropped": float(len(groups.dropped)),
        "samples": float(len(set(episode_numbers(samples)))),
    }
    return {f"update/{name}": value for name, value in update.items()} | counts


def _told(recording: Recording, step: int, figures: Mapping[str, float]) -> str:
    """Whether the update is the recorded one, for the terminal."""
    compared, differ = recording.differences(step, figures)
    learned = f"learned from {figures['samples']:.0f} episodes"
    if not compared:
        return f"{learned}."
    if not differ:
        return f"{learned}; all {compared} figures of the update are those of then, to the last bit."
    listed = "; ".join(f"{name} was {was:.6g}, is {now:.6g}" for name, (was, now) in [*differ.items()][:SHOWN])
    return f"{learned}; {len(differ)} of {compared} figures of the update differ: {listed}."
