"""Asynchronous training: episodes are played in an event loop while the learner works in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from muarl.accounts.budgets import RolloutEnd
from muarl.basics.errors import MuarlError, loses_learner
from muarl.basics.event_loop import Closable
from muarl.domains.tasks import Task
from muarl.recipes.evaluation.measuring import LABEL
from muarl.recipes.training.loop import Loop
from muarl.recipes.training.loss_settings import samples_of
from muarl.recipes.training.pipeline import MAX_DRAWS, PIPELINE, Pipeline, StepData, Window, staleness
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import rollout
from muarl.runs.tasks import rl_seed

T = TypeVar("T")


async def run_ahead(loop: Loop, first: int, used: Mapping[str, Any] | None) -> None:
    """Train from step ``first`` on.

    Which groups a step has depends on what finished when, so runs are not repeated id for id. ``used``: which tasks a
    resumed run has used up; what was running when it stopped is played again, with the weights of its checkpoint.
    Metrics: ``time/rollout`` is what the learner waited, ``staleness_*`` and ``groups_*`` see
    pipeline.py.

    The window keeps the bound on staleness as long as samplers take the weights that they are given. Should one lag
    behind, as a machine that was cut off may, episodes beyond the bound are left out, and counted (``too_stale``).
    """
    learner, rl, validation, spending = loop.learner, loop.rl, loop.validation, loop.context.spending
    seed = rl_seed(rl, loop.context.seed)
    before = first * rl.tasks_per_step * (MAX_DRAWS if rl.dynamic_sampling else 1)  # drawn by a synchronous run
    window = Window(
        rl.tasks_per_step,
        rl.staleness,
        rl.steps,
        whole=rl.asynchrony == "one_step_off",
        step=first,
        **(used or {"first": before}),
    )

    tasks_by_id: dict[str, Task] = {}

    def requests(number: int) -> list[RolloutRequest]:
        tasks = loop.places.draw("train", 1, seed, number)
        loop.places.check(tasks)
        tasks_by_id.update((task.id, task) for task in tasks)
        return requests_for(tasks, rl.group_size, seed=loop.context.seed, label=str(number))

    here = asyncio.get_running_loop()
    guests = validation.users() if rl.eval_every else None
    pipeline = Pipeline(
        window,
        loop.executor,
        requests,
        minimum=rl.min_group,
        mixed=rl.dynamic_sampling,
        concurrency=loop.concurrency,
        patience=rl.patience,
        begin=spending.begin,
    )

    async def validate(step: int) -> None:
        assert guests is not None
        asked = requests_for(validation.tasks(), 1, seed=validation.ev.seed, label=LABEL)
        host = validation.executor(loop.agent, guests)
        validated = await rollout(asked, host, budget=spending.budget(), progress=lambda e, *_: spending.add(e))
        if validated.end is not RolloutEnd.COMPLETE:
            raise spending.spent()
        loop.note_validation(step, validated.episodes)

    made, whole = first, True  # whole: the learner is as the last step left it
    unnoted: Callable[[float], None] | None = None

    async def learn(step: int, played: StepData, thread: ThreadPoolExecutor) -> None:
        """Update on a batch; ``unnoted`` then logs it, with the seconds that the learner waited."""
        nonlocal unnoted, whole
        whole = False
        oldest = learner.version - window.staleness
        samples = samples_of(played.groups, rl, oldest=oldest)
        figures = staleness(played.groups, learner.version, oldest) | dict(played.figures)
        began = time.perf_counter()
        update = await here.run_in_executor(thread, learner.policy_step, samples)
        took = time.perf_counter() - began

        def note(waited: float) -> None:
            nonlocal made, whole, unnoted
            unnoted = None
            times = {"time/rollout": waited, "time/update": took}
            loop.note(step, played, samples, update, figures | times)
            made, whole = step + 1, True

        unnoted = note

    try:
        # The thread's pool is left last: what it does cannot be cancelled, and takes no longer than a step.
        with ThreadPoolExecutor(1, "learner") as thread:
            async with pipeline:
                try:
                    if loop.missed(first):
                        await validate(first - 1)
                    for step in range(first, rl.steps):
                        started = time.perf_counter()
                        played = await pipeline.batch()
                        waited = time.perf_counter() - started
                        played = replace(played, tasks={e.task_id: tasks_by_id[e.task_id] for e in played.episodes})
                        await uncut(learn(step, played, thread))
                        updated = time.perf_counter()
                        await pipeline.learned(lambda: loop.engine.update(learner.weights, learner.version))
                        assert unnoted is not None
                        unnoted(waited + time.perf_counter() - updated)
                        await here.run_in_executor(thread, loop.save, made, {PIPELINE: window.state()})
                        loop.stop_if_told(made)
                        if loop.validation_due(step):
                            await validate(step)
                        if loop.after_step is not None:
                            loop.after_step(step, loop.agent)
                except (MuarlError, asyncio.CancelledError) as problem:
                    if unnoted is not None and not loses_learner(problem):
                        unnoted(waited)
                    if whole:
                        await here.run_in_executor(thread, loop.save_stopped, problem, made, {PIPELINE: window.state()})
                    raise
    finally:
        if isinstance(guests, Closable):
            await guests.aclose()


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which continues to its end where the task that waits for it is cancelled (Ctrl-C)."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if task.cancelled() or task.exception() is None:
            raise
        return task.result()  # what went wrong at the end weighs more
