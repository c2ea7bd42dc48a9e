"""``muarl train``: reinforcement learning against a simulated user (GRPO and its relatives).

One step: draw tasks, roll out a group of episodes for each, score the world that each leaves behind, compare within
groups, update. Follow ``train`` from top to bottom.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muarl.agents.sampled import SampledAgent
from muarl.config import RunConfig
from muarl.episode import Episode
from muarl.errors import ConfigError, MuarlError
from muarl.learning.advantages import group_advantages
from muarl.learning.checkpoints import Policy, checkpoint_path, latest_checkpoint
from muarl.learning.learner import LearnerConfig, PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Sample
from muarl.observe.loggers import MetricLogger
from muarl.observe.metrics import episode_metrics
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import load_model, make_agent, make_users, open_logger, open_run, play, prepare
from muarl.recipes.engines import make_learner, make_sampler
from muarl.recipes.evaluate import evaluate
from muarl.recipes.preflight import Role, check_roles, check_room
from muarl.recipes.setting import Setting, make_setting
from muarl.rewards.shaped import shaped_reward
from muarl.rollout import Group, Groups, collect_groups
from muarl.users.base import UserFactory

MAX_DRAWS = 4
"""Dynamic sampling draws a step's number of tasks at most this often."""
SAVED_EPISODES = 64
ADVANTAGES: Mapping[str, Mapping[str, Any]] = {
    "group_std": {"baseline": "mean", "scale": "std"},
    "group_mean": {"baseline": "mean", "scale": "none"},
    "leave_one_out": {"baseline": "leave_one_out", "scale": "none"},
}


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` by reinforcement learning. Returns the run's folder, with checkpoints in it."""
    prepare(config)
    if config.resume is not None and latest_checkpoint(config.resume.expanduser() / "checkpoints"):
        # Its reinforcement learning began with the weights of its own cold start, not with model.checkpoint.
        raise ConfigError(f"resume: {config.resume} began with a cold start: use muarl quickstart --resume instead")
    setting = make_setting(config)
    roles: list[Role] = ["user", "judge"]
    if config.rl.eval_every:
        setting.draw("validation", 1, config.eval.seed, 0)  # there must be such tasks
        roles.append("eval_user")
    check_roles(config, *roles)
    policy = load_model(config.model)
    check_room(config, setting, policy)
    with open_run(config) as run, Progress() as progress, open_logger(config, run) as logger:
        train(config, setting, policy, run, logger, progress)
    return run.path


def train(
    config: RunConfig,
    setting: Setting,
    policy: Policy,
    run: RunDirectory,
    logger: MetricLogger,
    progress: Progress,
    *,
    after_step: Callable[[int, SampledAgent], None] | None = None,
) -> SampledAgent:
    """The training loop; the policy's model is updated in place. Returns the agent that samples from it."""
    rl = config.rl
    learner = make_learner(policy, config, learner_config(config))
    engine = make_sampler(policy, config)
    agent = make_agent(policy, config, temperature=rl.temperature, top_p=rl.top_p, engine=engine)
    users = make_users(config.user, setting)
    first = 0
    resumed = latest_checkpoint(run.checkpoints / "rl") if config.resume is not None else None
    if resumed is not None:
        first = int(learner.load(resumed)["step"])
        asyncio.run(engine.update(learner.weights, learner.version))
    with progress.phase("reinforcement learning", rl.steps) as phase:
        phase.advance(first)
        for step in range(first, rl.steps):
            started = time.perf_counter()
            played = asyncio.run(_roll_out(config, setting, agent, users, step))
            rolled_out = time.perf_counter()
            samples = samples_of(played.groups, config)
            update = learner.policy_step(samples)
            asyncio.run(engine.update(learner.weights, learner.version))
            updated = time.perf_counter()
            metrics = episode_metrics(played.episodes) | {f"update/{k}": v for k, v in update.items()}
            metrics |= {k: update[k] for k in ("kl", "entropy") if k in update}
            metrics |= {
                "groups_kept": float(len(played.groups.kept)),
                "groups_dropped": float(len(played.groups.dropped)),
                "samples": float(len(samples)),
                "time/rollout": rolled_out - started,
                "time/update": updated - rolled_out,
            }
            logger.log(metrics, phase="rl", step=step)
            phase.advance(success=metrics["success"], turns=metrics["turns"])
            if step in (0, rl.steps - 1) or (rl.checkpoint_every and (step + 1) % rl.checkpoint_every == 0):
                run.write_episodes(f"train-{step:04d}", played.episodes[:SAVED_EPISODES])
            if step + 1 == rl.steps or (rl.checkpoint_every and (step + 1) % rl.checkpoint_every == 0):
                learner.save(checkpoint_path(run.checkpoints / "rl", step + 1), {"step": step + 1, "phase": "rl"})
            if rl.eval_every and (step + 1) % rl.eval_every == 0 and step + 1 < rl.steps:
                _validate(config, setting, agent, logger, progress, step)
            if after_step is not None:
                after_step(step, agent)
    return agent


def learner_config(config: RunConfig) -> LearnerConfig:
    """The learner's settings that a configuration's rl section stands for."""
    rl = config.rl
    policy = PolicyLossConfig(
        ratio=rl.ratio,
        clip_low=rl.clip_low,
        clip_high=rl.clip_high,
        dual_clip=rl.dual_clip,
        aggregation=rl.loss_aggregation,
        constant_length=config.model.max_context if rl.loss_aggregation == "dr_grpo" else None,
        kl_coef=rl.kl_coef,
        kl_estimator=rl.kl_estimator,
        temperature=rl.temperature,
        epochs=rl.epochs,
        minibatches=rl.minibatches,
        # Filters of the sampler change what its log-probabilities mean; the ratio is then taken to the learner's own.
        old_logprobs="sampler" if rl.top_p == 1.0 else "recompute",
    )
    updates = max(1, rl.steps * rl.epochs * rl.minibatches)
    schedule = ScheduleConfig(rl.schedule, rl.warmup, updates)
    optimizer = OptimizerConfig(lr=rl.lr, weight_decay=rl.weight_decay, max_grad_norm=rl.grad_clip, schedule=schedule)
    return LearnerConfig(
        optimizer=optimizer,
        policy=policy,
        token_budget=rl.pack_tokens,
        precision=config.model.dtype,
        seed=config.seed,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One step's rollouts: the groups to learn from, and everything that was played (and paid for) to get them."""

    groups: Groups
    episodes: list[Episode]


async def _roll_out(config: RunConfig, setting: Setting, agent: SampledAgent, users: UserFactory, step: int) -> _Step:
    """Roll out one step's groups; under dynamic sampling, more tasks until enough groups have differing rewards.

    MuarlError if so many episodes failed that no group is left to learn from.
    """
    rl = config.rl
    draws = MAX_DRAWS if rl.dynamic_sampling else 1
    kept: list[Group] = []
    dropped: list[Group] = []
    episodes: list[Episode] = []
    for draw in range(draws):
        start = (step * draws + draw) * rl.tasks_per_step
        tasks = setting.draw("train", rl.tasks_per_step, rl.seed + 1000 * config.seed + 500_000, start)
        played = await play(
            setting,
            agent,
            users,
            tasks,
            rl.group_size,
            seed=config.seed,
            label=f"{step}.{draw}",
            concurrency=rl.concurrency,
        )
        episodes += played.episodes
        groups = collect_groups(played.episodes, rl.group_size, minimum=rl.min_group)
        kept += groups.kept
        dropped += groups.dropped
        if sum(len(set(g.rewards)) > 1 for g in kept) >= rl.tasks_per_step:
            break
    if not kept:
        failed = [e.error for e in episodes if e.error]
        raise MuarlError(
            f"step {step}: {len(failed)} of {len(episodes)} episodes failed for reasons outside the policy, so no "
            f"group is large enough to learn from. The first failure: {failed[0] if failed else 'none'}"
        )
    if rl.dynamic_sampling:
        mixed = [g for g in kept if len(set(g.rewards)) > 1]
        kept = mixed[: rl.tasks_per_step] or kept[: rl.tasks_per_step]
    return _Step(Groups(kept, dropped, groups.minimum), episodes)


def samples_of(groups: Groups, config: RunConfig) -> list[Sample]:
    """Groups of scored episodes as samples for the learner: ids, log-probabilities and an advantage each."""
    episodes = [e for g in groups.kept for e in g.episodes]
    names = [g.name for g in groups.kept for _ in g.episodes]
    weights = config.rl.shaping.model_dump()
    rewards = [shaped_reward(e, weights) for e in episodes]
    kind = ADVANTAGES[config.rl.advantage]
    advantages = group_advantages(rewards, names, drop_zero_variance=config.rl.drop_zero_variance, **kind)
    samples = []
    for episode, advantage, kept in zip(episodes, advantages.values, advantages.kept, strict=True):
        if kept and episode.tokens is not None and episode.tokens.sampled_count:
            t = episode.tokens
            samples.append(Sample.sampled(t.ids, t.loss_mask, t.logprobs, float(advantage)))
    return samples


def _validate(
    config: RunConfig,
    setting: Setting,
    agent: SampledAgent,
    logger: MetricLogger,
    progress: Progress,
    step: int,
) -> None:
    """Score the policy as it is on validation tasks, as evaluation will on test tasks."""
    tasks = setting.draw("validation", min(config.eval.tasks or 100, 100), config.eval.seed, 0)
    sampling = replace(agent.sampling, temperature=config.eval.temperature, top_p=config.eval.top_p)
    own = SampledAgent(agent.sampler, agent.chat, sampling)
    metrics = episode_metrics(evaluate(config, setting, own, tasks, progress, trials=1, label="validation"))
    logger.log(metrics, phase="validation", step=step)
