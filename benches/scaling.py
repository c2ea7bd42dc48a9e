"""Throughput of asynchronous and synchronous training against the number of rollout workers, by simulation.

    python benches/scaling.py                              # the tables of docs/history/scaling.md, in minutes
    python benches/scaling.py --times 4 --workers 256 512 1024

What is real: coroutines in an event loop, ``LocalExecutor``, ``rollout``, ``collect_groups``, and of the pipeline
``Window`` and ``Pipeline``, which decide what may be begun, what is waited for and what is learned from. What is not:
time (a clock that jumps to the next event), the policy (samplers that share their speed among whatever they decode at
once, by muarl.planning.speed), the users and the learner (they sleep). Nothing here ran on a GPU.

A worker plays one conversation at a time. For each mode and number of workers the simulation is run again with twice
the workers, samplers twice as fast, users twice as fast, and a learner twice as fast: what helps most is what binds.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import random
import selectors
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.domains.tasks import Task
from muarl.planning.assumptions import Assumptions
from muarl.planning.memory import ServerSetup, cached_tokens
from muarl.planning.models import PUBLISHED, ModelShape
from muarl.planning.speed import ServingSetup, decode_seconds, update_flops
from muarl.recipes.training.pipeline import Pipeline, Window
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, collect_groups, rollout
from muarl.types.episode import Episode, StopReason, Verdict

WORKERS = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
MODES = ("synchronous", "one_step_off", "bounded")
NOTHING = 1e-9
WARM = 2


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while coroutines run, and jumps to the next timer when none can."""

    def __init__(self) -> None:
        super().__init__(_Impatient(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now


class _Impatient(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Never waits: a wait moves the loop's clock instead."""

    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("every coroutine waits for another one: the simulation is stuck")
        self._loop.now += max(0.0, timeout)
        return super().select(0)


def simulate(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end in an event loop of jumping time."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


class Sampler:
    """One inference engine: it gives every sequence that it decodes the same speed, which falls as they grow in number
    (muarl.planning.speed), and reads one prompt at a time, while the others wait. Sequences beyond
    ``serving.sequences``, or beyond what its cache holds, queue."""

    def __init__(self, serving: ServingSetup, a: Assumptions, shape: ModelShape, speed: float) -> None:
        self._a, self._shape, self._serving, self._speed = a, shape, serving, speed
        self._gate = asyncio.Semaphore(max(1, int(min(serving.sequences, serving.tokens / a.episode_tokens))))
        self._running: list[tuple[float, int, asyncio.Future[None]]] = []
        self._made = 0.0  # tokens given to each of the running sequences since the start
        self._since = 0.0  # up to when; later than now while a prompt is read
        self._timer: asyncio.TimerHandle | None = None
        self._number = 0
        self._cost: dict[int, float] = {}
        self._busy_until = 0.0
        self.busy = 0.0

    async def sample(self, tokens: int, prompt: float) -> None:
        """Read so many new tokens, then decode so many."""
        async with self._gate:
            self._advance()
            clock = asyncio.get_running_loop()
            rate = self._serving.gpus * self._a.device.flops * self._a.prefill_mfu * self._speed
            self._since = max(self._since, clock.time()) + 2 * self._shape.parameters * prompt / rate
            future = clock.create_future()
            self._number += 1
            heapq.heappush(self._running, (self._made + tokens, self._number, future))
            self._plan()
            await future

    def _each(self) -> float:
        """Seconds for one token of each running sequence."""
        count = len(self._running)
        if count not in self._cost:
            context = self._a.prompt_tokens + self._a.growth / 2
            self._cost[count] = decode_seconds(self._shape, self._serving, count, context, self._a) / self._speed
        return self._cost[count]

    def _advance(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._running:
            self.busy += now - self._busy_until
            if now > self._since:
                self._made += (now - self._since) / self._each()
        self._busy_until, self._since = now, max(self._since, now)

    def _plan(self) -> None:
        """Wake when the next sequence is done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running:
            clock = asyncio.get_running_loop()
            left = max(0.0, self._running[0][0] - self._made) * self._each()
            self._timer = clock.call_later(max(0.0, self._since - clock.time()) + left, self._finish)

    def _finish(self) -> None:
        self._advance()
        while self._running and self._running[0][0] <= self._made + NOTHING:
            future = heapq.heappop(self._running)[2]
            if not future.done():
                future.set_result(None)
        self._plan()


@dataclass(frozen=True, slots=True)
class World:
    """What is simulated. ``workers``: conversations at once; ``batch`` groups of ``group`` rollouts a step."""

    mode: str = "synchronous"
    workers: int = 256
    steps: int = 8
    batch: int = 32
    group: int = 8
    staleness: int = 2
    engines: int = 8
    engine_gpus: int = 2
    learner_gpus: int = 16
    sequences: int = 64
    model: str = "Qwen/Qwen3-32B"
    user_speed: float = 1.0
    engine_speed: float = 1.0
    learner_speed: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """Of the steps after the first ones, in virtual seconds."""

    step: float
    episodes_per_second: float
    learner_busy: float
    sampler_busy: float
    workers_busy: float
    age: float


class Simulation:
    """Users, samplers and a learner that take time and do nothing."""

    def __init__(self, world: World, a: Assumptions) -> None:
        self.world, self.a = world, a
        self.shape = PUBLISHED[world.model]
        held = cached_tokens(self.shape, ServerSetup(gpus=world.engine_gpus), a.device.memory)
        serving = ServingSetup(world.engines, world.engine_gpus, world.sequences, float(held))
        self.samplers = [Sampler(serving, a, self.shape, world.engine_speed) for _ in range(world.engines)]
        lengths = [a.episode_tokens] * (world.batch * world.group)
        operations = update_flops(
            self.shape, lengths, a.sampled * world.batch * world.group, recompute=True, reference=True
        )
        rate = world.learner_gpus * a.device.flops * a.train_mfu * world.learner_speed
        self.update = operations / rate
        self.transfer = 2 * self.shape.parameters / a.transfer
        self.version = 0
        self.learning = self.playing = 0.0
        self.ages: list[int] = []

    async def play(self, request: RolloutRequest) -> Episode:
        """One conversation: messages of the agent, each followed by a user's reply or a tool's result. Lengths vary
        from task to task and from rollout to rollout, users' delays from reply to reply."""
        a, draw = self.a, random.Random(request.seed)
        common = random.Random(request.task.id).lognormvariate(0.0, 0.25)
        turns = max(4, round(a.turns * common * draw.lognormvariate(-0.06, 0.25)))
        sampler = self.samplers[request.seed % len(self.samplers)]  # for all of it: its cache is there
        born, clock = self.version, asyncio.get_running_loop()
        began = clock.time()
        for turn in range(turns):
            tokens = max(8, round(draw.lognormvariate(0.0, 0.5) * a.agent_tokens * 0.88))
            new = a.prompt_tokens / self.world.group if turn == 0 else a.tool_tokens
            await sampler.sample(tokens, new + a.frame_tokens)
            if draw.random() < a.user_replies / a.turns:
                await asyncio.sleep(draw.lognormvariate(0.0, 0.6) * a.user_seconds * 0.84 / self.world.user_speed)
            else:
                await asyncio.sleep(a.tool_seconds)
        self.playing += clock.time() - began
        return Episode(
            id=request.episode_id,
            task_id=request.task.id,
            domain=request.task.domain,
            turns=[],
            stop=StopReason.USER_STOP,
            group=request.group,
            verdict=Verdict(float(draw.random() < 0.5), {}),
            tags={"born": born},
        )

    async def learn(self, episodes: Sequence[Episode]) -> None:
        """The learner sleeps through an update."""
        self.ages += [self.version - e.tags["born"] for e in episodes]
        await asyncio.sleep(self.update)
        self.learning += self.update

    async def deliver(self) -> None:
        """Weights on their way to the samplers."""
        await asyncio.sleep(self.transfer)
        self.version += 1

    def requests(self, number: int) -> list[RolloutRequest]:
        task = Task(f"task-{number}", "none", "", None)
        return requests_for([task], self.world.group, seed=self.world.seed, label=str(number))


async def run(world: World, a: Assumptions) -> Result:
    """Play and learn ``steps`` steps; the first two are left out of the result."""
    sim, clock = Simulation(world, a), asyncio.get_running_loop()
    executor = LocalExecutor(sim.play, world.workers)
    marks: list[tuple[float, float, float, float]] = []

    def mark() -> None:
        busy = sum(s.busy for s in sim.samplers) / len(sim.samplers)
        marks.append((clock.time(), sim.learning, busy, sim.playing))

    mark()
    if world.mode == "synchronous":
        for step in range(world.steps):
            numbers = range(step * world.batch, (step + 1) * world.batch)
            asked = [r for n in numbers for r in sim.requests(n)]
            played = await rollout(asked, executor)
            groups = collect_groups(played.episodes, world.group)
            await sim.learn([e for g in groups.kept for e in g.episodes])
            await sim.deliver()
            mark()
    else:
        whole = world.mode == "one_step_off"
        window = Window(world.batch, world.staleness, world.steps, whole=whole)
        pipeline = Pipeline(window, executor, sim.requests, concurrency=world.workers, patience=1e9)
        async with pipeline:
            for _ in range(world.steps):
                batch = await pipeline.batch()
                await sim.learn([e for g in batch.groups.kept for e in g.episodes])
                await pipeline.learned(sim.deliver)
                mark()
    first, last = marks[min(WARM, len(marks) - 2)], marks[-1]
    seconds, steps = last[0] - first[0], len(marks) - 1 - min(WARM, len(marks) - 2)
    return Result(
        step=seconds / steps,
        episodes_per_second=steps * world.batch * world.group / seconds,
        learner_busy=(last[1] - first[1]) / seconds,
        sampler_busy=(last[2] - first[2]) / seconds,
        workers_busy=(last[3] - first[3]) / seconds / world.workers,
        age=sum(sim.ages) / len(sim.ages),
    )


CAUSES = {
    "workers": lambda w: replace(w, workers=2 * w.workers),
    "samplers": lambda w: replace(w, engine_speed=2 * w.engine_speed),
    "users": lambda w: replace(w, user_speed=2 * w.user_speed),
    "learner": lambda w: replace(w, learner_speed=2 * w.learner_speed),
}
"""What could bind, and the same world with twice as much of it."""


def gains(world: World, a: Assumptions, found: Result) -> dict[str, float]:
    """By how much throughput rises with twice as much of each."""
    twice = {name: simulate(run(more(world), a)) for name, more in CAUSES.items()}
    return {name: r.episodes_per_second / found.episodes_per_second - 1 for name, r in twice.items()}


def binding(found: dict[str, float]) -> str:
    """What helps most, and what else helps at least half as much."""
    most = max(found.values())
    names = [n for n, gain in sorted(found.items(), key=lambda item: -item[1]) if gain > 0.02 and gain >= most / 2]
    return ", ".join(f"{name} (+{found[name]:.0%})" for name in names) or "nothing alone"


def table(rows: Sequence[tuple[World, Result, dict[str, float] | None]]) -> str:
    """Markdown."""
    lines = [
        "| mode | workers | s a step | episodes/s | learner busy | samplers busy | workers busy | age | what binds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for w, r, gained in rows:
        lines.append(
            f"| {w.mode} | {w.workers:,} | {r.step:,.0f} | {r.episodes_per_second:.2f} | {r.learner_busy:.0%} | "
            f"{r.sampler_busy:.0%} | {r.workers_busy:.0%} | {r.age:.1f} | {binding(gained) if gained else ''} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--staleness", type=int, default=2)
    parser.add_argument("--times", type=int, default=1, help="so many times the tasks of a step and the GPUs")
    parser.add_argument("--user-seconds", type=float, default=Assumptions().user_seconds)
    parser.add_argument("--no-causes", action="store_true", help="do not look for what binds: a fifth of the time")
    arguments = parser.parse_args()
    a = replace(Assumptions(), user_seconds=arguments.user_seconds)
    began, rows = time.perf_counter(), []
    for mode in arguments.modes:
        for workers in arguments.workers:
            world = World(
                mode,
                workers,
                arguments.steps,
                batch=32 * arguments.times,
                staleness=arguments.staleness,
                engines=8 * arguments.times,
                learner_gpus=16 * arguments.times,
            )
            result = simulate(run(world, a))
            rows.append((world, result, None if arguments.no_causes else gains(world, a, result)))
    print(table(rows))
    print(f"\n{time.perf_counter() - began:.0f} s for this simulation")


if __name__ == "__main__":
    main()
