"""``muarl train``: reinforcement learning against a simulated user (GRPO and its relatives).

One step: draw tasks, roll out a group of episodes for each, score the world that each leaves behind, compare within
groups, update. Follow ``train`` from top to bottom. Rollout and update take turns (``_in_turns``), or rollouts run
ahead while the learner works (recipes/ahead.py); what both have in common is in recipes/loop.py.

Ctrl-C and SIGTERM cut a rollout off and let an update end; either way a checkpoint says where the run goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from muarl.agents.sampled import SampledAgent
from muarl.audit import keep_rules
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.episode import Episode
from muarl.errors import BudgetError, ConfigError, DataError
from muarl.learning.checkpoints import Policy, latest_checkpoint
from muarl.observe.loggers import MetricLogger
from muarl.observe.metrics import episode_metrics
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.observe.training import idle_text, training_summary
from muarl.recipes.ahead import PIPELINE, run_ahead
from muarl.recipes.common import (
    closed,
    load_model,
    make_player,
    make_users,
    open_logger,
    open_run,
    play,
    prepare,
    tell_domain,
)
from muarl.recipes.engines import (
    learns_here,
    machines,
    make_agent,
    make_executor,
    make_learner,
    make_sampler,
    samples_here,
)
from muarl.recipes.evaluate import evaluate
from muarl.recipes.loop import VALIDATION, Loop
from muarl.recipes.pipeline import MAX_DRAWS, Played, nothing_left
from muarl.recipes.preflight import (
    Role,
    check_disk,
    check_gold,
    check_memory,
    check_roles,
    check_room,
    check_tasks,
    train_seed,
)
from muarl.recipes.restarting import Attempt, with_restarts
from muarl.recipes.resuming import go_back, resume_point
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.spending import Spending, check_prices
from muarl.recipes.updates import learner_config, samples_of
from muarl.rollout import Group, Groups, RolloutEnd, collect_groups
from muarl.stopping import held

ROUNDS = 2
"""How often a step's episode is begun that infrastructure ended, beyond what its player tries at once."""
IN_TRAINING = "policy in training"
"""What the agent of training episodes is called: its weights change from turn to turn, as the versions there say."""


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` by reinforcement learning. Returns the run's folder, with checkpoints in it.

    A run that loses its learner is taken up again, ``learner.restarts`` times."""
    return with_restarts(config, _run)


def _run(config: RunConfig, attempt: Attempt) -> Path:
    prepare(config)
    if config.resume is not None and latest_checkpoint(config.resume.expanduser() / "checkpoints"):
        # Its reinforcement learning began with the weights of its own cold start, not with model.checkpoint.
        raise ConfigError(f"resume: {config.resume} began with a cold start: use muarl quickstart --resume instead")
    setting = make_setting(config)
    roles: list[Role] = ["user", "judge"]
    notes = check_tasks(config, setting)
    if config.rl.eval_every:
        roles.append("eval_user")
    check_prices(config, config.user, config.eval_user)
    check_gold(config, setting)
    check_roles(config, *roles)
    check_memory(config)
    check_disk(config)
    policy = load_model(config.model, weights=learns_here(config) or samples_here(config))
    check_room(config, setting, policy)
    with machines(config), open_run(config, "train") as run, Progress() as progress, open_logger(config, run) as logger:
        attempt.folder = run.path
        for note in notes:
            progress.say(note)
        train(config, setting, policy, run, logger, progress, after_step=attempt.step)
        training = training_summary(run.read_metrics())
        run.write_summary({"training": training, "seed": config.seed, "seconds": run.seconds})
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
) -> None:
    """The training loop; the policy's model is updated in place. DataError, before the first step, if a gold action of
    a task of one's own fails.

    ``after_step`` is called with the step's number and the agent, in an asynchronous run from within its event loop.
    """
    check_gold(config, setting)
    rl = config.rl
    keep_rules(run.path, setting.domain)
    tell_domain(run, config, setting)
    learner = make_learner(policy, config, learner_config(config))
    engine = make_sampler(policy, config)
    agent = make_agent(policy, config, temperature=rl.temperature, top_p=rl.top_p, engine=engine, name=IN_TRAINING)
    users = make_users(config.user, setting)
    executor = make_executor(make_player(setting, agent, users), config)
    first, done = 0, {}
    root = run.checkpoints / "rl"
    resumed = resume_point(root, progress.say) if config.resume is not None else None
    with closing(learner), closed(engine), progress.phase("reinforcement learning", rl.steps) as phase:
        if resumed is not None:
            done = learner.load(resumed)
            first = _first(done, rl.steps)
            asyncio.run(engine.update(learner.weights, learner.version))
        if rl.asynchrony == "synchronous" and PIPELINE in done:
            raise ConfigError(
                "rl.asynchrony: this run was asynchronous and has used tasks in another order: resume it so"
            )
        if config.resume is not None:
            _go_back(run, resumed, first, done=first >= rl.steps)
        phase.resume(first)
        spending = Spending(config, run)
        loop = Loop(
            config, setting, learner, engine, agent, users, executor, run, logger, progress, phase, after_step, spending
        )
        if rl.asynchrony != "synchronous":
            asyncio.run(run_ahead(loop, first, done.get(PIPELINE)))
        else:
            _in_turns(loop, first)
        if (idle := idle_text(run.read_metrics())) is not None:
            progress.say(idle)
    policy.path = latest_checkpoint(root) or policy.path


def _first(checkpoint: Mapping[str, Any], steps: int) -> int:
    """The step that a run goes on with from a checkpoint. ConfigError if it has made more than ``rl.steps`` already."""
    first = int(checkpoint["step"])
    if first > steps:
        raise ConfigError(f"rl.steps: {steps}, and this run has made {first} steps already: it cannot become shorter")
    return first


def _go_back(run: RunDirectory, checkpoint: Path | None, first: int, *, done: bool) -> None:
    """The run goes on with step ``first``. ``done``: there is none any more, so that what comes after them stays."""

    def later(name: str) -> bool:
        number = name.removeprefix("train-")
        return int(number) >= first if number.isdecimal() else name == "eval-after" and not done

    phases = {"rl": first, VALIDATION: first} | ({} if done else {"evaluation": 1})
    go_back(run, run.checkpoints / "rl", checkpoint, phases, later)


def _in_turns(loop: Loop, first: int) -> None:
    """Synchronous training: the learner waits for a step's episodes, which all come from its weights of that moment."""
    config, learner = loop.config, loop.learner
    made, whole = first, True  # whole: the learner is as the last step left it

    def validate(step: int, *, log: bool = True) -> None:
        tasks, own = loop.validation()
        episodes = evaluate(
            config, loop.setting, own, tasks, loop.progress, trials=1, label=VALIDATION, spending=loop.spending
        )
        if log:
            loop.logger.log(episode_metrics(episodes), phase=VALIDATION, step=step)

    try:
        missed = loop.missed(first)
        # What it leaves in the sampler's cache moves the next step's last bits: so one that was held just before a
        # resumed run's checkpoint is held again, where that gives the same and costs nothing.
        if missed or (first > 0 and loop.validation_due(first - 1) and config.eval_user.kind != "llm"):
            validate(first - 1, log=missed)
        for step in range(first, config.rl.steps):
            started = time.perf_counter()
            played = asyncio.run(_roll_out(loop, step))
            rolled_out = time.perf_counter()
            with held():
                whole = False
                samples = samples_of(played.groups, config)
                update = learner.policy_step(samples)
                asyncio.run(loop.engine.update(learner.weights, learner.version))
                seconds = {"time/rollout": rolled_out - started, "time/update": time.perf_counter() - rolled_out}
                loop.note(step, played, samples, update, seconds)
                made, whole = step + 1, True
            loop.save(made)
            if loop.validation_due(step):
                validate(step)
            if loop.after_step is not None:
                loop.after_step(step, loop.agent)
    except (BudgetError, DataError, KeyboardInterrupt):
        if whole:
            loop.save_stopped(made)
        raise


async def _roll_out(loop: Loop, step: int) -> Played:
    """Roll out one step's groups; under dynamic sampling, more tasks until enough groups have differing rewards.

    MuarlError if so many episodes failed that no group is left to learn from.
    """
    config, setting, rl = loop.config, loop.setting, loop.config.rl
    draws = MAX_DRAWS if rl.dynamic_sampling else 1
    kept: list[Group] = []
    dropped: list[Group] = []
    episodes: list[Episode] = []
    known: dict[str, Task] = {}
    for draw in range(draws):
        start = (step * draws + draw) * rl.tasks_per_step
        tasks = setting.draw("train", rl.tasks_per_step, train_seed(config), start)
        setting.check(tasks)
        known |= {task.id: task for task in tasks}
        played = await play(
            setting,
            loop.agent,
            loop.users,
            tasks,
            rl.group_size,
            seed=config.seed,
            label=f"{step}.{draw}",
            executor=loop.executor,
            budget=loop.spending.budget(),
            rounds=ROUNDS,
            progress=lambda episode, *_: loop.spending.add(episode),
        )
        if played.end is not RolloutEnd.COMPLETE:
            raise loop.spending.spent()
        episodes += played.episodes
        groups = collect_groups(played.episodes, rl.group_size, minimum=rl.min_group)
        kept += groups.kept
        dropped += groups.dropped
        if sum(len(set(g.rewards)) > 1 for g in kept) >= rl.tasks_per_step:
            break
    if not kept:
        raise nothing_left(step, episodes)
    if rl.dynamic_sampling:
        mixed = [g for g in kept if len(set(g.rewards)) > 1]
        kept = mixed[: rl.tasks_per_step] or kept[: rl.tasks_per_step]
    return Played(Groups(kept, dropped, groups.minimum), episodes, tasks=known)
