"""``muarl eval``: an agent on held-out tasks, with intervals, behaviour, and the do-nothing baseline beside it.

Benchmarks' tasks are played by their own protocol (recipes/official.py). Every finished episode is on disk at once, and
a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.audit import keep_rules
from muarl.audit.report import tables
from muarl.benchmarks.statistics import EvaluationReport
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.episode import Episode, Usage
from muarl.errors import ConfigError, InfrastructureError, MuarlError
from muarl.files import write_text
from muarl.observe.metrics import is_success, scored
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.observe.tally import Tally
from muarl.recipes.auditing import audit_episodes, write_audits
from muarl.recipes.common import judge_endpoint, make_users, open_run, play_requests, prepare
from muarl.recipes.evaluation_report import Evaluation, needs_judge, report_text, summary_of
from muarl.recipes.ledger import Ledger
from muarl.recipes.official import has_ticket
from muarl.recipes.participants import Nobody, former_name, has_models, judge_specs, make_eval_agent, with_prices
from muarl.recipes.preflight import check_roles
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.spending import Spending
from muarl.recipes.user_review import review_users
from muarl.rewards.judge import FixedJudge
from muarl.rollout import Budget, RolloutEnd, RolloutRequest, requests_for
from muarl.users.base import UserFactory

LABEL = "evaluation"

PATIENCE = 20
"""Episodes in a row, at least, that may fail before an evaluation is given up: whatever they need is then gone."""


def run(config: RunConfig) -> Path:
    """Evaluate the configured agent and write episodes, summary.json and report.md. Returns the run's folder."""
    if config.eval.red_team:
        from muarl.recipes import redteam

        return redteam.run(config)
    prepare(config, models=has_models(config))
    playing = with_prices(config)
    setting = make_setting(playing, measuring=True)
    tasks = eval_tasks(playing, setting)
    setting.check(tasks)
    check_roles(playing, *(("agent", "judge") if playing.eval.solo else ("agent", "eval_user", "judge")))
    agent = make_eval_agent(playing, setting)
    users: UserFactory = Nobody() if playing.eval.solo else make_users(playing.eval_user, setting)
    with open_run(config, "eval") as run, Progress() as progress:
        run.write_tasks(tasks)
        keep_rules(run.path, setting.domain)
        if playing.eval.judge in ("pass", "fail") and any(map(needs_judge, tasks)):
            progress.say(
                f"eval.judge is {playing.eval.judge}: assertions about words are not judged by a model, so scores do "
                "not compare with published ones."
            )
        wanted = playing.eval.tasks
        if wanted is not None and len(tasks) < wanted and not playing.eval.task_ids:
            split = f"{playing.eval.split} split of {playing.domain.name}"
            progress.say(f"The {split} has {len(tasks)} tasks, fewer than {wanted}: all are played.")
        found = _measure(playing, setting, agent, users, tasks, progress, run)
        summary = summary_of(found, run.seconds)
        write_audits(run, [found.audited])
        run.write_summary(summary)
        floors = {} if found.floor is None else {"do_nothing": found.floor}
        report = EvaluationReport.of(found.episodes, name=f"{agent.name} on {config.domain.name}", baselines=floors)
        write_text(run.path / "report.md", report_text(found, report, summary))
        progress.console.print(report.to_table())
        for table in tables(found.audited.summary, detailed=False):
            progress.console.print(table)
        if summary["benchmark"] is not None and summary["benchmark"]["figures"]:
            figures = summary["benchmark"]["figures"].items()
            progress.say(f"{config.domain.name}: " + ", ".join(f"{n.replace('_', ' ')} {v:.4g}" for n, v in figures))
        if found.end is not RolloutEnd.COMPLETE:
            progress.say(
                f"The {found.end.value.replace('_', ' ')} is spent: {len(found.episodes)} of {found.planned} episodes "
                f"were played. `muarl eval --resume {run.path}` with a larger one plays the rest."
            )
    return run.path


def eval_tasks(config: RunConfig, setting: Setting) -> Sequence[Task]:
    """The held-out tasks of this configuration, the same ones for every agent and every seed of the run. Where a
    benchmark's split has fewer than ``eval.tasks``, all of them; of those, for an agent that works alone, the ones with
    a ticket. ConfigError names an id that the split does not have."""
    if setting.official is None:
        return setting.draw(config.eval.split, config.eval.tasks or 0, config.eval.seed, 0)
    return official_tasks(config, setting)


def official_tasks(config: RunConfig, setting: Setting) -> Sequence[Task]:
    """A benchmark's tasks in its own order; see ``eval_tasks``."""
    assert setting.official is not None
    name, split = setting.official.name, config.eval.split
    if split == "validation":
        raise ConfigError(f"eval.split: {name} has no validation tasks; eval.split=test has some")
    found = setting.official.tasks(split)
    if config.eval.task_ids:
        known = {task.id for task in found}
        missing = [i for i in config.eval.task_ids if i not in known]
        if missing:
            raise ConfigError(f"eval.task_ids: the {split} split of {name} has no task {missing[0]!r}")
        found = [task for task in found if task.id in config.eval.task_ids]
    if config.eval.solo:
        found = [task for task in found if has_ticket(task)]
        if not found:
            raise ConfigError(f"eval.solo: no task of the {split} split of {name} has a ticket to work from")
    return found[: config.eval.tasks]


def evaluate(
    config: RunConfig,
    setting: Setting,
    agent: Agent,
    tasks: Sequence[Task],
    progress: Progress,
    *,
    trials: int | None = None,
    label: str | None = None,
    spending: Spending | None = None,
) -> list[Episode]:
    """Play and score the tasks with the evaluation user; every agent meets users of the same seeds.

    ``spending``: the training run's account, which the episodes are entered in. MuarlError if not one episode could be
    scored; BudgetError once that account's budget is spent; DataError, before any is played, if a gold action of a task
    of one's own fails.
    """
    users = make_users(config.eval_user, setting)
    return evaluate_with(config, setting, agent, users, tasks, progress, trials=trials, label=label, spending=spending)


def evaluate_with(
    config: RunConfig,
    setting: Setting,
    agent: Agent,
    users: UserFactory,
    tasks: Sequence[Task],
    progress: Progress,
    *,
    trials: int | None = None,
    label: str | None = None,
    spending: Spending | None = None,
) -> list[Episode]:
    """``evaluate`` with other users than the configuration's."""
    setting.check(tasks)
    requests = requests_for(tasks, config.eval.trials if trials is None else trials, seed=config.eval.seed, label=LABEL)
    what = label or f"evaluation of {agent.name}"
    budget = None if spending is None else spending.budget()
    entered = None if spending is None else spending.add
    episodes, end = _play(config, setting, agent, users, requests, progress, what, budget, entered=entered)
    if spending is not None and end is not RolloutEnd.COMPLETE:
        raise spending.spent()
    _some_scored(episodes, label)
    return episodes


def _measure(
    config: RunConfig,
    setting: Setting,
    agent: Agent,
    users: UserFactory,
    tasks: Sequence[Task],
    progress: Progress,
    run: RunDirectory,
) -> Evaluation:
    """Play what a run's ledger still lacks, look at the users, and gather it all."""
    trials, seed = config.eval.trials, config.eval.seed
    if setting.official is None:
        requests = requests_for(tasks, trials, seed=seed, label=LABEL)
    else:
        requests = setting.official.requests(tasks, trials, seed, LABEL)
    ledger = Ledger(run)
    ledger.check(requests, agent.name, users.name, former=former_name(config))
    still = ledger.open(requests)
    if ledger.kept:
        progress.say(f"{len(ledger.kept)} of {len(requests)} episodes were finished before.")
    meter = _Meter(config)
    before = ledger.spent
    budget = Budget(config.eval.max_cost, config.eval.max_tokens, lambda: before + meter.used)
    ledger.teach(budget)
    end = RolloutEnd.COMPLETE
    if still:
        _, end = _play(
            config, setting, agent, users, still, progress, f"evaluation of {agent.name}", budget, ledger, meter
        )
    episodes = [ledger.kept[r.episode_id] for r in requests if r.episode_id in ledger.kept]
    _some_scored(episodes, None)
    played = sum((e.agent_usage + e.user_usage for e in episodes), Usage())
    left = Budget(config.eval.max_cost, config.eval.max_tokens, lambda: played + ledger.judged + meter.used)
    review = asyncio.run(review_users(config, setting, tasks, episodes, left, progress))
    audited = audit_episodes(
        setting,
        tasks,
        episodes,
        name="Audit",
        judge=config.eval.audit_judge,
        budget=left,
        progress=progress,
        concurrency=config.rl.concurrency,
    )
    ledger.log(meter.used)
    ledger.close(episodes)
    return Evaluation(
        config,
        setting,
        agent.name,
        users.name,
        tasks,
        episodes,
        len(requests),
        end,
        ledger.judged + meter.used,
        _floor(config, setting, tasks, progress) if config.eval.baseline else None,
        review,
        audited,
    )


class _Meter:
    """What the judges of this process have used since it began."""

    def __init__(self, config: RunConfig) -> None:
        self._endpoints = [e for e in map(judge_endpoint, judge_specs(config)) if e is not None]
        self._before = self._total()

    def _total(self) -> Usage:
        total = Usage()
        for endpoint in self._endpoints:
            total = total + endpoint.usage
        return total

    @property
    def used(self) -> Usage:
        now, before = self._total().to_json(), self._before.to_json()
        return Usage(**{name: now[name] - before[name] for name in now})


def _play(
    config: RunConfig,
    setting: Setting,
    agent: Agent,
    users: UserFactory,
    requests: Sequence[RolloutRequest],
    progress: Progress,
    label: str,
    budget: Budget | None = None,
    ledger: Ledger | None = None,
    meter: _Meter | None = None,
    entered: Callable[[Episode], None] | None = None,
) -> tuple[list[Episode], RolloutEnd]:
    """Play these requests behind a progress bar; each finished episode goes to the ledger at once."""
    concurrency = config.rl.concurrency
    kept = [] if ledger is None else list(ledger.kept.values())
    tally = Tally(len(kept) + len(requests), kept)

    with progress.phase(label, len(requests), "episodes") as phase:

        def finished(episode: Episode, done: int, total: int) -> None:
            if ledger is not None and meter is not None:
                ledger.keep(episode, meter.used)
            if entered is not None:
                entered(episode)
            tally.add(episode)
            phase.advance(1, **tally.figures)

        played = asyncio.run(
            play_requests(
                setting,
                agent,
                users,
                requests,
                concurrency=concurrency,
                budget=budget,
                give_up=max(PATIENCE, 2 * concurrency),
                progress=finished,
            )
        )
    return played.episodes, played.end


def _some_scored(episodes: Sequence[Episode], label: str | None) -> None:
    if all(e.verdict is None for e in episodes):
        first = next((e.error for e in episodes if e.error), "no episode was played")
        raise MuarlError(f"{label or LABEL}: not one episode could be scored. The first failure: {first}")


def _floor(config: RunConfig, setting: Setting, tasks: Sequence[Task], progress: Progress) -> float | None:
    """Success of doing nothing. On official tasks it is read off an untouched world, so that no user has to be asked;
    None if no task could be scored so."""
    official = setting.official
    if official is None:
        played = evaluate(config, setting, IdleAgent(), tasks, progress, trials=1)
        return fmean(is_success(e.reward) for e in scored(played))

    async def untouched() -> list[bool]:
        found = []
        for task in tasks:
            try:
                verdict = await official.do_nothing(setting.domain, task, FixedJudge(False))
            except InfrastructureError:  # an assertion that fails to run, as in an episode that is then excluded
                continue
            found.append(is_success(verdict.reward))
        return found

    rewards = asyncio.run(untouched())
    return fmean(rewards) if rewards else None


def baselines(
    config: RunConfig, setting: Setting, tasks: Sequence[Task], progress: Progress
) -> dict[str, list[Episode]]:
    """Doing nothing and always transferring, on the same tasks: what a score must be read against.

    Where there is no tool to transfer with, only the former.
    """
    return {
        name: evaluate(config, setting, agent, tasks, progress, trials=1, label=name.replace("_", " "))
        for name, agent in baseline_agents(setting).items()
    }


def baseline_agents(setting: Setting) -> dict[str, Agent]:
    """The agents of ``baselines`` by name. Each one's phase is its name without the underscore."""
    agents: dict[str, Agent] = {"do_nothing": IdleAgent()}
    if any(spec.name.startswith("transfer") for spec in setting.domain.tool_specs()):
        agents["always_transfer"] = TransferAgent()
    return agents
