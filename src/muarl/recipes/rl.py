"""``muarl train``: reinforcement learning against a simulated user (GRPO and its relatives).

One step: draw tasks, roll out a group of episodes for each, score the world that each leaves behind, compare within
groups, update. Follow ``train`` from top to bottom. Rollout and update take turns (``_in_turns``), or rollouts run
ahead while the learner works (recipes/training/ahead.py); what both have in common is in recipes/training/loop.py.

Ctrl-C and SIGTERM cut a rollout off and let an update end; either way a checkpoint says where the run continues. So
does one where a step cannot be made, as where a user's endpoint fails: what was learned before is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.accounts.budgets import RolloutEnd
from muarl.agents.sampled import SampledAgent
from muarl.backends.model_notes import RL
from muarl.backends.models import closed, load_model
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, MuarlError, StoppedBySignError, loses_learner
from muarl.basics.event_loop import EventLoop, event_loop
from muarl.basics.stopping import held
from muarl.config.parts import Compute
from muarl.config.rl import RlConfig
from muarl.config.sections import RunConfig
from muarl.domains.tasks import Task
from muarl.environments.benchmark_training import benchmarks_learned
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.environments.play import Player
from muarl.inference.base import SleepingSampler
from muarl.learning.checkpoint_folders import latest_checkpoint
from muarl.learning.checkpoints import Policy
from muarl.learning.packing import Sample
from muarl.observe.headline import training_summary, what_went_wrong
from muarl.observe.rundir import RunDirectory
from muarl.planning.weight_transport import weight_transport
from muarl.recipes.evaluation.measuring import evaluate
from muarl.recipes.training.first_look import DrawnTasks, FirstLook, StepRollouts, look_first, play_all
from muarl.recipes.training.loop import VALIDATION, Loop, Validation
from muarl.recipes.training.loss_settings import learner_config, samples_of
from muarl.recipes.training.pipeline import MAX_DRAWS, PIPELINE, StepData, nothing_left
from muarl.recipes.training.turn_credit import TurnCredit
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import Group, Groups, collect_groups, rollout
from muarl.runs.context import (
    Attempt,
    RunContext,
    keep_own_rules,
    open_context,
    prepare,
    tell_domain,
    with_restarts,
)
from muarl.runs.resuming import go_back, resume_point
from muarl.runs.tasks import check_gold, check_may_train, rl_seed
from muarl.signs import Watch
from muarl.types.episode import Episode

if TYPE_CHECKING:
    from muarl.recipes.training.practice import Practice

ROUNDS = 2
"""How often a step's episode is begun that infrastructure ended, beyond the retries of its runner."""
IN_TRAINING = "policy in training"
"""What the agent of training episodes is called: its weights change from turn to turn, as the versions there say."""


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` by reinforcement learning. Returns the run's folder, with checkpoints in it.

    A run that loses its learner is resumed, ``learner.restarts`` times."""
    if config.rl.replay is not None:
        from muarl.recipes import replay_updates  # most runs play

        return replay_updates.run(config)
    return with_restarts(config, _run)


def _run(config: RunConfig, attempt: Attempt) -> Path:
    # What a command checks first; a program that calls ``train`` needs none of it.
    from muarl.runs.checks import check_rl
    from muarl.runs.room import check_room

    prepare(config)
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark)
    if config.resume is not None and latest_checkpoint(config.resume.expanduser() / "checkpoints"):
        # Its reinforcement learning began with the weights of its own cold start, not with model.checkpoint.
        raise ConfigError(f"resume: {config.resume} began with a cold start: use muarl quickstart --resume instead")
    places = places_of(config)
    notes, compute = check_rl(config, places), Compute.of(config)
    policy = load_model(config.model, weights=compute.learns_here or compute.samples_here)
    check_room(compute, config.domains, places, policy)
    with open_context(config, "train", on_cluster=True) as context:
        context.loop.closes(places)
        folder = context.folder
        attempt.folder = folder.path
        for note in notes:
            context.progress.say(note)
        try:
            train(context, config, places, policy, after_step=attempt.step)
        except StoppedBySignError:
            _summarise(folder, config)
            raise
        _summarise(folder, config)
    return folder.path


def _summarise(folder: RunDirectory, config: RunConfig) -> None:
    trained = bool(benchmarks_learned(domain.name for domain in config.domains))
    facts = {"reward": config.rl.reward, "trained_on_benchmark": trained}
    facts["training"] = training_summary(folder.read_metrics())
    folder.write_summary({**facts, "seed": config.seed, "seconds": folder.seconds})


def train(
    context: RunContext,
    config: RunConfig,
    places: Places,
    policy: Policy,
    *,
    after_step: Callable[[int, SampledAgent], None] | None = None,
) -> None:
    """The training loop; the policy's model is updated in place. DataError, before the first step, if a gold action of
    a task of one's own fails.

    ``after_step`` is called with the step's number and the agent, in an asynchronous run from within its event loop.
    """
    rl = config.rl
    check_gold(rl, config.eval, config.seed, places)
    folder, progress, backend = context.folder, context.progress, context.backend
    keep_own_rules(folder, places)
    tell_domain(folder, config.domain_text, places)
    learner = backend.learner(policy, learner_config(rl, config.model), RL)
    engine = backend.sampler(policy)
    agent = backend.agent(policy, temperature=rl.temperature, top_p=rl.top_p, engine=engine, name=IN_TRAINING)
    users = make_users(config.user, places, Compute.of(config))
    executor = backend.executor(Player.of(places, agent, users))
    if (transport := weight_transport(backend.compute)) is not None:
        progress.say(f"weights to samplers: {transport.text}")
    first, done = 0, {}
    root = folder.checkpoints / "rl"
    resumed = resume_point(root, progress.say) if context.resumed else None
    with (
        event_loop() as here,
        closing(learner),
        closed(engine),
        progress.phase("reinforcement learning", rl.steps) as phase,
    ):
        here.closes(users)
        if resumed is not None:
            done = learner.load(resumed)
            first = _first(done, rl.steps)
            here.run(engine.update(learner.weights, learner.version))
        if rl.asynchrony == "synchronous" and PIPELINE in done:
            raise ConfigError(
                "rl.asynchrony: this run was asynchronous and has used tasks in another order: resume it so"
            )
        if context.resumed:
            _go_back(folder, resumed, first, done=first >= rl.steps)
        phase.resume(first)
        loop = Loop(
            context=context,
            rl=rl,
            places=places,
            learner=learner,
            engine=engine,
            agent=agent,
            users=users,
            executor=executor,
            validation=Validation(config.eval, config.eval_user, backend.compute, places),
            concurrency=config.rollout.concurrency,
            phase=phase,
            after_step=after_step,
            reviews_users=config.user.kind in ("llm", "sampled"),
            sleeps=config.engine.sleep,
            watch=Watch(folder.read_metrics()),
        )
        if rl.asynchrony != "synchronous":
            from muarl.recipes.training.ahead import run_ahead

            here.run(run_ahead(loop, first, done.get(PIPELINE)))
        else:
            credit = TurnCredit.resumed(rl, places, done)
            _in_turns(loop, here, first, _practice(context, rl, places, done), credit)
        for text in () if rl.rollouts_only else what_went_wrong(folder.read_metrics()):
            progress.say(text)
    policy.path = latest_checkpoint(root) or policy.path


def _practice(context: RunContext, rl: RlConfig, places: Places, checkpoint: Mapping[str, Any]) -> Practice | None:
    """What chooses the tasks, as a checkpoint left it; None where they are played as they are drawn."""
    if not rl.practice.chooses:
        return None
    from muarl.recipes.training.practice import Practice

    seed, own = rl_seed(rl, context.seed), context.seed
    return Practice.resumed(rl.practice, rl.group_size, own, checkpoint, places, seed)


def _first(checkpoint: Mapping[str, Any], steps: int) -> int:
    """The step that a run continues with from a checkpoint. ConfigError if it has made more than ``rl.steps``
    already."""
    first = int(checkpoint["step"])
    if first > steps:
        raise ConfigError(f"rl.steps: {steps}, and this run has made {first} steps already: it cannot become shorter")
    return first


def _go_back(run: RunDirectory, checkpoint: Path | None, first: int, *, done: bool) -> None:
    """The run continues with step ``first``. ``done``: there is none any more, so that what comes after them stays."""

    def later(name: str) -> bool:
        number = name.removeprefix("train-")
        return int(number) >= first if number.isdecimal() else name == "eval-after" and not done

    phases = {"rl": first, VALIDATION: first} | ({} if done else {"evaluation": 1})
    go_back(run, run.checkpoints / "rl", checkpoint, phases, later)


def _in_turns(
    loop: Loop, here: EventLoop, first: int, practice: Practice | None = None, credit: TurnCredit | None = None
) -> None:
    """Synchronous training: the learner waits for a step's episodes, which all come from its weights of that moment.
    ``practice`` chooses the tasks; ``credit`` says what each turn is learned from."""
    learner, validation, context = loop.learner, loop.validation, loop.context
    made, whole = first, True  # whole: the learner is as the last step left it

    def kept() -> dict[str, Any]:
        """What a checkpoint holds besides."""
        return ({} if practice is None else practice.state()) | ({} if credit is None else credit.state())

    def validate(step: int, *, log: bool = True) -> None:
        users = validation.users()
        with event_loop() as own:
            own.closes(users)
            episodes = evaluate(
                validation.ev,
                loop.places,
                validation.tasks(),
                validation.executor(loop.agent, users),
                context.progress,
                label=VALIDATION,
                trials=1,
                spending=context.spending,
            )
        if log:
            loop.note_validation(step, episodes)

    try:
        missed = loop.missed(first)
        # What it leaves in the sampler's cache moves the next step's last bits: so one that was held just before a
        # resumed run's checkpoint is held again, where that gives the same and costs nothing.
        if missed or (first > 0 and loop.validation_due(first - 1) and validation.repeatable):
            validate(first - 1, log=missed)
        for step in range(first, loop.rl.steps):
            started = time.perf_counter()
            played = here.run(_roll_out(loop, step, practice))
            rolled_out = time.perf_counter()
            with held():
                if credit is not None:
                    credit.begin(played.all.tasks)
                samples: list[Sample] = []
                update: Mapping[str, float] = {}
                not_taken: MuarlError | None = None
                if not loop.rl.rollouts_only:
                    samples = samples_of(played.all.groups, loop.rl, by_turn=credit)
                    if loop.sleeps and isinstance(loop.engine, SleepingSampler):
                        here.run(loop.engine.sleep())
                    whole = False
                    update = learner.policy_step(samples)
                    not_taken = _hand_on(loop, here)
                elif credit is not None:
                    credit.look(e for e in played.all.episodes if e.learnable)
                seconds = {"time/rollout": rolled_out - started, "time/update": time.perf_counter() - rolled_out}
                loop.note(step, played.all, samples, update, seconds | played.figures(practice))
                if credit is not None:
                    credit.end()
                made, whole = step + 1, True
            if not_taken is not None:
                raise not_taken
            loop.save(made, kept())
            loop.stop_if_told(made)
            if loop.validation_due(step):
                validate(step)
            if loop.after_step is not None:
                loop.after_step(step, loop.agent)
    except (MuarlError, KeyboardInterrupt) as problem:
        if whole:
            loop.save_stopped(problem, made, kept())
        raise


def _hand_on(loop: Loop, here: EventLoop) -> MuarlError | None:
    """Give the learner's weights to the sampler. Returns what kept the sampler from taking them, since the learner's
    step is made all the same; what the learner itself was lost by is raised."""
    try:
        here.run(loop.engine.update(loop.learner.weights, loop.learner.version))
    except MuarlError as problem:
        if loses_learner(problem):
            raise
        return problem
    return None


async def _roll_out(loop: Loop, step: int, practice: Practice | None) -> StepRollouts:
    """Roll out one step's groups; under dynamic sampling, more tasks until enough groups have differing rewards.
    ``practice`` chooses the tasks.

    MuarlError if so many episodes failed that no group is left to learn from.
    """
    places, rl, spending = loop.places, loop.rl, loop.context.spending
    seed, own = rl_seed(rl, loop.context.seed), loop.context.seed
    draws = MAX_DRAWS if rl.dynamic_sampling else 1

    def drawn(number: int) -> DrawnTasks:
        if practice is None:
            choice, tasks = None, places.draw("train", rl.tasks_per_step, seed, number * rl.tasks_per_step)
        else:
            first = number % draws == 0
            choice = practice.draw(places, rl.tasks_per_step, seed, number, repeat=first)
            tasks = choice.played
        places.check(tasks)
        return tasks, choice

    async def play(requests: Sequence[RolloutRequest]) -> list[Episode]:
        played = await rollout(
            requests,
            loop.executor,
            budget=spending.budget(),
            rounds=ROUNDS,
            progress=lambda episode, *_: spending.add(episode),
        )
        if played.end is not RolloutEnd.COMPLETE:
            raise spending.spent()
        return played.episodes

    viable: list[Group] = []
    dropped: list[Group] = []
    episodes: list[Episode] = []
    tasks_by_id: dict[str, Task] = {}
    looked: list[FirstLook] = []
    for draw in range(draws):
        number, label = step * draws + draw, f"{step}.{draw}"
        if rl.practice.first_look:
            batch = await look_first(rl, drawn, play, number, seed=own, label=label)
        elif rl.branch.stems:
            from muarl.recipes.training.branching import play_branching  # most runs play from the start

            batch = await play_branching(rl, drawn, play, number, seed=own, label=label)
        else:
            batch = await play_all(rl, drawn, play, number, seed=own, label=label)
        tasks_by_id |= {task.id: task for task in batch.tasks}
        looked.append(batch)
        episodes += [*batch.filled, *batch.unfilled]
        groups = collect_groups(batch.filled, rl.group_size, minimum=rl.min_group)
        viable += groups.kept
        dropped += groups.dropped
        if sum(len(set(g.rewards)) > 1 for g in viable) >= rl.tasks_per_step:
            break
    if not viable:
        raise nothing_left(step, episodes)
    if rl.dynamic_sampling:
        mixed = [g for g in viable if len(set(g.rewards)) > 1]
        viable = mixed[: rl.tasks_per_step] or viable[: rl.tasks_per_step]
    return StepRollouts(
        StepData(Groups(viable, dropped, groups.minimum), episodes, tasks=tasks_by_id), looked, rl.practice
    )
