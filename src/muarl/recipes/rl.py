"""``muarl train``: reinforcement learning against a simulated user (GRPO and its relatives).

One step: draw tasks, roll out a group of episodes for each, score the world that each leaves behind, compare within
groups, update. Follow ``train`` from top to bottom. Rollout and update take turns (``_in_turns``), or rollouts run
ahead while the learner works (``_run_ahead``, over recipes/pipeline.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from muarl.agents.sampled import SampledAgent
from muarl.audit import keep_rules
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.episode import Episode
from muarl.errors import BudgetError, ConfigError, DataError
from muarl.inference.base import PolicySampler
from muarl.learning.checkpoints import Policy, checkpoint_path, latest_checkpoint
from muarl.learning.learner import Learner
from muarl.learning.packing import Sample
from muarl.observe.loggers import MetricLogger
from muarl.observe.metrics import episode_metrics
from muarl.observe.progress import Phase, Progress
from muarl.observe.rundir import RunDirectory
from muarl.player import RolloutRequest, requests_for
from muarl.recipes.common import (
    close_endpoints,
    closed,
    load_model,
    make_player,
    make_users,
    open_logger,
    open_run,
    play,
    prepare,
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
from muarl.recipes.evaluate import LABEL, evaluate
from muarl.recipes.pipeline import MAX_DRAWS, Pipeline, Played, Window, nothing_left, staleness
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
from muarl.recipes.resuming import go_back, prune, resume_point
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.spending import Spending, check_prices
from muarl.recipes.updates import learner_config, samples_of
from muarl.recipes.user_review import look_at_users
from muarl.rollout import Executor, Group, Groups, LocalExecutor, RolloutEnd, collect_groups, rollout
from muarl.users.base import UserFactory

SAVED_EPISODES = 64
ROUNDS = 2
"""How often a step's episode is begun that infrastructure ended, beyond what its player tries at once."""
VALIDATION = "validation"
"""The phase of its rows of figures."""
IN_TRAINING = "policy in training"
"""What the agent of training episodes is called: its weights change from turn to turn, as the versions there say."""
PIPELINE = "pipeline"
"""Where an asynchronous run's checkpoint says which tasks are used up."""


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
    with machines(config), open_run(config) as run, Progress() as progress, open_logger(config, run) as logger:
        attempt.folder = run.path
        for note in notes:
            progress.say(note)
        train(config, setting, policy, run, logger, progress, after_step=attempt.step)
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
            first = int(done["step"])
            asyncio.run(engine.update(learner.weights, learner.version))
        if rl.asynchrony == "synchronous" and PIPELINE in done:
            raise ConfigError(
                "rl.asynchrony: this run was asynchronous and has used tasks in another order: resume it so"
            )
        if config.resume is not None:
            _go_back(run, resumed, first, done=first >= rl.steps)
        phase.resume(first)
        spending = Spending(config, run)
        loop = _Loop(
            config, setting, learner, engine, agent, users, executor, run, logger, progress, phase, after_step, spending
        )
        if rl.asynchrony != "synchronous":
            asyncio.run(_run_ahead(loop, first, done.get(PIPELINE)))
        else:
            _in_turns(loop, first)
    policy.path = latest_checkpoint(root) or policy.path


def _go_back(run: RunDirectory, checkpoint: Path | None, first: int, *, done: bool) -> None:
    """The run goes on with step ``first``. ``done``: there is none any more, so that what comes after them stays."""

    def later(name: str) -> bool:
        number = name.removeprefix("train-")
        return int(number) >= first if number.isdecimal() else name == "eval-after" and not done

    phases = {"rl": first, VALIDATION: first} | ({} if done else {"evaluation": 1})
    go_back(run, run.checkpoints / "rl", checkpoint, phases, later)


@dataclass(frozen=True, slots=True)
class _Loop:
    """What all steps of a training loop work with."""

    config: RunConfig
    setting: Setting
    learner: Learner
    engine: PolicySampler
    agent: SampledAgent
    users: UserFactory
    executor: Executor
    run: RunDirectory
    logger: MetricLogger
    progress: Progress
    phase: Phase
    after_step: Callable[[int, SampledAgent], None] | None
    spending: Spending

    def due(self, every: int, step: int) -> bool:
        """Whether something that happens every so many steps (0: never) does after this one."""
        return bool(every) and (step + 1) % every == 0

    def note(
        self,
        step: int,
        played: Played,
        samples: Sequence[Sample],
        update: Mapping[str, float],
        figures: Mapping[str, float],
    ) -> None:
        """Log a step, and keep its episodes as ``rl.save_episodes`` says."""
        rl = self.config.rl
        metrics = episode_metrics(played.episodes)
        if self.config.user.kind in ("llm", "sampled"):  # those of rules make none
            metrics |= look_at_users(self.setting, played.tasks, [e for e in played.episodes if e.verdict is not None])
        metrics |= {f"update/{k}": v for k, v in update.items()}
        metrics |= {k: update[k] for k in ("kl", "entropy") if k in update}
        metrics |= {
            "groups_kept": float(len(played.groups.kept)),
            "groups_dropped": float(len(played.groups.dropped)),
            "samples": float(len(samples)),
            **figures,
        }
        self.logger.log(metrics, phase="rl", step=step)
        self.phase.advance(success=metrics["success"], turns=metrics["turns"])
        every = rl.save_episodes == "all"
        if every or (rl.save_episodes == "some" and (step in (0, rl.steps - 1) or self.due(rl.checkpoint_every, step))):
            self.run.write_episodes(f"train-{step:04d}", played.episodes[: None if every else SAVED_EPISODES])

    def save(self, step: int, extra: Mapping[str, Any] | None = None, *, now: bool = False) -> None:
        """Write the checkpoint of ``step`` steps if one is due (or ``now``), and delete those that need not be kept."""
        rl = self.config.rl
        root = self.run.checkpoints / "rl"
        path = checkpoint_path(root, step)
        if (now and step > 0 and not path.exists()) or step == rl.steps or self.due(rl.checkpoint_every, step - 1):
            self.learner.save(path, {"step": step, "phase": "rl", **(extra or {})})
            prune(self.config, root, self.validated())

    def validated(self) -> dict[int, float]:
        """Success in validation by the number of steps made before."""
        rows = (r for r in self.run.read_metrics() if r.get("phase") == VALIDATION and "success" in r)
        return {int(r["step"]) + 1: float(r["success"]) for r in rows}

    def validation_due(self, step: int) -> bool:
        """Whether a validation comes after this step."""
        return self.due(self.config.rl.eval_every, step) and step + 1 < self.config.rl.steps

    def missed(self, first: int) -> bool:
        """Whether an interrupted run, which goes on with step ``first``, has saved its checkpoint, and no more."""
        return first > 0 and self.validation_due(first - 1) and first not in self.validated()


def _in_turns(loop: _Loop, first: int) -> None:
    """Synchronous training: the learner waits for a step's episodes, which all come from its weights of that moment."""
    config, learner = loop.config, loop.learner

    def validate(step: int, *, log: bool = True) -> None:
        tasks, own = _validation(loop)
        episodes = evaluate(
            config, loop.setting, own, tasks, loop.progress, trials=1, label=VALIDATION, spending=loop.spending
        )
        if log:
            loop.logger.log(episode_metrics(episodes), phase=VALIDATION, step=step)

    missed = loop.missed(first)
    # What it leaves in the sampler's cache moves the next step's last bits: so one that was held just before a resumed
    # run's checkpoint is held again, where that gives the same and costs nothing.
    if missed or (first > 0 and loop.validation_due(first - 1) and config.eval_user.kind != "llm"):
        validate(first - 1, log=missed)
    for step in range(first, config.rl.steps):
        started = time.perf_counter()
        try:
            played = asyncio.run(_roll_out(loop, step))
        except (BudgetError, DataError):
            loop.save(step, now=True)
            raise
        rolled_out = time.perf_counter()
        samples = samples_of(played.groups, config)
        update = learner.policy_step(samples)
        asyncio.run(loop.engine.update(learner.weights, learner.version))
        seconds = {"time/rollout": rolled_out - started, "time/update": time.perf_counter() - rolled_out}
        loop.note(step, played, samples, update, seconds)
        loop.save(step + 1)
        if loop.validation_due(step):
            validate(step)
        if loop.after_step is not None:
            loop.after_step(step, loop.agent)


async def _run_ahead(loop: _Loop, first: int, used: Mapping[str, Any] | None) -> None:
    """Asynchronous training: episodes are played in this event loop while the learner works in a thread.

    Which groups a step has depends on what finished when, so runs are not repeated id for id. ``used``: which tasks a
    resumed run has used up; what was under way when it stopped is played again, with the weights of its checkpoint.
    Metrics: ``time/rollout`` is what the learner waited, ``staleness_*`` and ``groups_*`` see recipes/pipeline.py.

    The window keeps the bound on staleness as long as samplers take the weights that they are given. Should one lag
    behind, as a machine that was cut off may, episodes beyond the bound are left out, and counted (``too_stale``).
    """
    config, learner, rl = loop.config, loop.learner, loop.config.rl
    seed = train_seed(config)
    before = first * rl.tasks_per_step * (MAX_DRAWS if rl.dynamic_sampling else 1)  # drawn by a synchronous run
    window = Window(
        rl.tasks_per_step,
        rl.staleness,
        rl.steps,
        whole=rl.asynchrony == "one_step_off",
        step=first,
        **(used or {"first": before}),
    )

    known: dict[str, Task] = {}

    def requests(number: int) -> list[RolloutRequest]:
        tasks = loop.setting.draw("train", 1, seed, number)
        loop.setting.check(tasks)
        known.update((task.id, task) for task in tasks)
        return requests_for(tasks, rl.group_size, seed=config.seed, label=str(number))

    here = asyncio.get_running_loop()
    guests = make_users(config.eval_user, loop.setting) if rl.eval_every else None
    pipeline = Pipeline(
        window,
        loop.executor,
        requests,
        minimum=rl.min_group,
        mixed=rl.dynamic_sampling,
        concurrency=rl.concurrency,
        patience=rl.patience,
        begin=loop.spending.begin,
    )

    async def validate(step: int) -> None:
        assert guests is not None
        tasks, own = _validation(loop)
        asked = requests_for(tasks, 1, seed=config.eval.seed, label=LABEL)
        host = LocalExecutor(make_player(loop.setting, own, guests).play, rl.concurrency)
        found = await rollout(asked, host, budget=loop.spending.budget(), progress=lambda e, *_: loop.spending.add(e))
        if found.end is not RolloutEnd.COMPLETE:
            raise loop.spending.spent()
        loop.logger.log(episode_metrics(found.episodes), phase=VALIDATION, step=step)

    try:
        # The thread's pool is left last: what it does cannot be cancelled, and takes no longer than a step.
        with ThreadPoolExecutor(1, "learner") as thread:
            async with pipeline:
                if loop.missed(first):
                    await validate(first - 1)
                for step in range(first, rl.steps):
                    started = time.perf_counter()
                    try:
                        played = await pipeline.batch()
                    except (BudgetError, DataError):
                        await here.run_in_executor(
                            thread, partial(loop.save, step, {PIPELINE: window.state()}, now=True)
                        )
                        raise
                    came = time.perf_counter()
                    played = replace(played, tasks={e.task_id: known[e.task_id] for e in played.episodes})
                    oldest = learner.version - window.staleness
                    samples = samples_of(played.groups, config, oldest=oldest)
                    age = staleness(played.groups, learner.version, oldest)
                    update = await here.run_in_executor(thread, learner.policy_step, samples)
                    updated = time.perf_counter()
                    await pipeline.learned(lambda: loop.engine.update(learner.weights, learner.version))
                    waited = time.perf_counter() - updated + came - started
                    figures = age | dict(played.figures)
                    figures |= {"time/rollout": waited, "time/update": updated - came}
                    loop.note(step, played, samples, update, figures)
                    await here.run_in_executor(thread, loop.save, step + 1, {PIPELINE: window.state()})
                    if loop.validation_due(step):
                        await validate(step)
                    if loop.after_step is not None:
                        loop.after_step(step, loop.agent)
    finally:
        await close_endpoints(loop.setting, loop.agent, loop.users, guests)


def _validation(loop: _Loop) -> tuple[Sequence[Task], SampledAgent]:
    """Validation tasks, and the policy as it is, sampled as evaluation will sample it."""
    e = loop.config.eval
    tasks = loop.setting.draw("validation", min(e.tasks or 100, 100), e.seed, 0)
    sampling = replace(loop.agent.sampling, temperature=e.temperature, top_p=e.top_p)
    return tasks, SampledAgent(loop.agent.sampler, loop.agent.chat, sampling)


async def _roll_out(loop: _Loop, step: int) -> Played:
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
