"""An agent's episodes on given tasks, played behind a progress bar and scored; and the trivial agents that a score is
compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muarl.accounts.budgets import Budget, RolloutEnd
from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.basics.errors import MuarlError
from muarl.basics.event_loop import event_loop
from muarl.config.sections import EvalConfig
from muarl.domains.tasks import Task
from muarl.environments.places import Places, Users
from muarl.environments.play import local_executor
from muarl.observe.progress import Progress, Tally
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import BoundedExecutor, rollout
from muarl.runs.spending import Spending
from muarl.types.episode import Episode

LABEL = "evaluation"

PATIENCE = 20
"""Episodes in a row, at least, that may fail before an evaluation is given up: whatever they need is then gone."""


def evaluate(
    ev: EvalConfig,
    places: Places,
    tasks: Sequence[Task],
    executor: BoundedExecutor,
    progress: Progress,
    *,
    label: str,
    trials: int | None = None,
    spending: Spending | None = None,
) -> list[Episode]:
    """Play and score the tasks, as ``executor`` does; every agent meets users of the same seeds. ``label``: what the
    progress display says. ``trials``: None for those of ``ev``.

    ``spending``: the training run's account, which the episodes are entered in. MuarlError if not one episode could be
    scored; BudgetError once that account's budget is spent; DataError, before any is played, if a gold action of a task
    of one's own fails.
    """
    places.check(tasks)
    requests = requests_for(tasks, ev.trials if trials is None else trials, seed=ev.seed, label=LABEL)
    budget = None if spending is None else spending.budget()
    final = None if spending is None else spending.add
    episodes, end = play_all(executor, requests, progress, label, budget=budget, final=final)
    if spending is not None and end is not RolloutEnd.COMPLETE:
        raise spending.spent()
    some_scored(episodes, label)
    return episodes


def conversations_text(tasks: int, trials: int) -> str:
    """How many conversations an evaluation has, for who asked for so many tasks."""
    return f"{tasks * trials:,} conversations: each of {tasks:,} tasks {trials} times (--trials or eval.trials)."


def play_all(
    executor: BoundedExecutor,
    requests: Sequence[RolloutRequest],
    progress: Progress,
    label: str,
    *,
    budget: Budget | None = None,
    finished_before: Sequence[Episode] = (),
    final: Callable[[Episode], None] | None = None,
) -> tuple[list[Episode], RolloutEnd]:
    """Play these requests behind a progress bar, until all are played, the budget is spent, or so many in a row have
    failed that whatever they need is gone (MuarlError). ``finished_before``: for the
    display. ``final``: gets each episode as soon as it is finished."""
    tally = Tally(len(finished_before) + len(requests), finished_before)

    with progress.phase(label, len(requests), "episodes") as phase:

        def finished(episode: Episode, done: int, total: int) -> None:
            if final is not None:
                final(episode)
            tally.add(episode)
            phase.advance(1, **tally.figures)

        patience = max(PATIENCE, 2 * executor.concurrency)
        with event_loop() as loop:
            played = loop.run(rollout(requests, executor, budget=budget, give_up=patience, progress=finished))
    return played.episodes, played.end


def some_scored(episodes: Sequence[Episode], label: str) -> None:
    """MuarlError, with the first failure, if not one of the episodes could be scored."""
    if all(e.verdict is None for e in episodes):
        first = next((e.error for e in episodes if e.error), "no episode was played")
        raise MuarlError(f"{label}: not one episode could be scored. The first failure: {first}")


def baselines(
    ev: EvalConfig,
    places: Places,
    users: Users,
    tasks: Sequence[Task],
    progress: Progress,
    concurrency: int,
) -> dict[str, list[Episode]]:
    """Doing nothing and always transferring, on the same tasks: what a score must be read against.

    Where there is no tool to transfer with, only the former.
    """
    return {
        name: evaluate(
            ev,
            places,
            tasks,
            local_executor(places, agent, users, concurrency),
            progress,
            label=name.replace("_", " "),
            trials=1,
        )
        for name, agent in baseline_agents(places).items()
    }


def baseline_agents(places: Places) -> dict[str, Agent]:
    """The agents of ``baselines`` by name. Each one's phase is its name without the underscore."""
    agents: dict[str, Agent] = {"do_nothing": IdleAgent()}
    if places.can_transfer:
        agents["always_transfer"] = TransferAgent(places.transfer_tools)
    return agents
