"""``muarl quickstart``: the main job. Cold start, evaluation, reinforcement learning, evaluation, report.

The agent learns with one simulated user and is judged with another; the tasks it is judged on are never trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.benchmarks.statistics import evaluate_summary
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.episode import Episode
from muarl.observe.last_screen import before_and_after
from muarl.observe.metrics import episode_metrics
from muarl.observe.progress import Progress
from muarl.observe.report import collect, write_report
from muarl.observe.rundir import RunDirectory
from muarl.observe.system import peak_memory_bytes, process_seconds
from muarl.observe.training import training_summary
from muarl.player import requests_for
from muarl.recipes import rl
from muarl.recipes.auditing import audit_episodes, write_audits
from muarl.recipes.checkpoint_names import checkpoint_name
from muarl.recipes.common import closed, load_model, make_users, open_logger, open_run, prepare
from muarl.recipes.engines import make_agent, make_sampler
from muarl.recipes.evaluate import LABEL, baseline_agents, baselines, eval_tasks, evaluate
from muarl.recipes.preflight import check_disk, check_memory, check_roles, check_room
from muarl.recipes.resuming import ResumedRun
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.sft import check_demonstrations, cold_start
from muarl.recipes.spending import Spending, check_prices

BEFORE, AFTER, GREEDY = "evaluation after the cold start", "evaluation after RL", "greedy evaluation"

SECONDS = {"demonstration": 0.0065, "sft_conversation": 0.056, "episode": 0.052, "rl": 0.12}
"""Seconds for one of each, measured with the shipped base checkpoint on two busy cores."""


def run(config: RunConfig) -> Path:
    """Run the whole job in one run folder and write summary.json and report.html there. Returns the folder."""
    prepare(config)
    check_prices(config, config.user, config.eval_user)
    check_roles(config, "user", "eval_user", "judge")
    check_demonstrations(config)
    setting = make_setting(config)
    check_memory(config)
    check_disk(config)
    policy = load_model(config.model)
    check_room(config, setting, policy)
    with open_run(config, "quickstart") as run, Progress() as progress, open_logger(config, run) as logger:
        tasks = eval_tasks(config, setting)
        run.write_tasks(tasks)
        progress.plan(stages(config, setting))
        progress.say(f"Run folder {run.path}. Tasks: {len(tasks)} held out for evaluation; none of them is trained on.")

        floor = baselines(config, setting, tasks, progress)
        demonstrations = cold_start(config, setting, policy, run, logger, progress)
        progress.say(f"The demonstrator itself succeeds on {_success(demonstrations):.0%} of its tasks.")

        def played(label: str, temperature: float, trials: int | None = None) -> list[Episode]:
            """The policy as it is now, on the held-out tasks."""
            engine = make_sampler(policy, config)
            with closed(engine):
                # Without the run's name, so that runs of the same seed leave the same episodes.
                name = checkpoint_name(policy.path, run=False)
                agent = make_agent(policy, config, temperature=temperature, engine=engine, name=name)
                return evaluate(
                    config, setting, agent, tasks, progress, trials=trials, label=label, spending=Spending(config, run)
                )

        def measured(name: str, label: str, step: int) -> list[Episode]:
            """The same, kept with the run's episodes and figures, unless an interrupted run has done so."""
            found = _kept(config, run, name, tasks)
            if found is None:
                found = played(label, config.eval.temperature)
                run.write_episodes(name, found)
            if not any((r.get("phase"), r.get("step")) == ("evaluation", step) for r in run.read_metrics()):
                logger.log(episode_metrics(found), phase="evaluation", step=step)
            return found

        before = measured("eval-before", BEFORE, 0)
        progress.say(_line("After the cold start", before, floor))

        rl.train(config, setting, policy, run, logger, progress)
        after = measured("eval-after", AFTER, config.rl.steps)
        progress.say(_line("After reinforcement learning", after, floor))

        audits = [
            audit_episodes(setting, tasks, episodes, name=name, file=name)
            for name, episodes in (("eval-before", before), ("eval-after", after))
        ]
        write_audits(run, audits)
        greedy = played(GREEDY, 0.0, trials=1)
        summary: dict[str, Any] = {
            "cold_start": evaluate_summary(before),
            "rl": evaluate_summary(after),
            "rl_greedy": evaluate_summary(greedy)["success"],
            **{name: evaluate_summary(episodes)["success"] for name, episodes in floor.items()},
            "demonstrator": _success(demonstrations),
            "training": training_summary(run.read_metrics()),
            "audit": {"cold_start": audits[0].summary.to_json(), "rl": audits[1].summary.to_json()},
            "seconds": round(process_seconds(), 1),
            "peak_memory_bytes": peak_memory_bytes(),
            "seed": config.seed,
            "user_train": make_users(config.user).name,
            "user_eval": make_users(config.eval_user).name,
        }
        run.write_summary(summary)
        progress.console.print(before_and_after(summary))
    write_report(run.report, collect(run))
    run.write_summary(summary | {"seconds": round(process_seconds(), 1), "peak_memory_bytes": peak_memory_bytes()})
    return run.path


def stages(config: RunConfig, setting: Setting) -> dict[str, float]:
    """The phases of the job in order, with about the seconds that each takes on two CPU cores. Only how they compare
    with each other matters: a run measures its own pace."""
    episodes = config.eval.tasks or 0
    sampled = episodes * config.eval.trials * SECONDS["episode"]
    demonstrations = config.sft.demonstrations * SECONDS["demonstration"]
    from_file = config.sft.demonstrations_file is not None
    return {
        **{name.replace("_", " "): 1.0 for name in baseline_agents(setting)},
        **({} if from_file else {"demonstrations": demonstrations}),
        "cold start": config.sft.steps * config.sft.batch * SECONDS["sft_conversation"],
        BEFORE: sampled,
        "reinforcement learning": config.rl.steps * config.rl.tasks_per_step * config.rl.group_size * SECONDS["rl"],
        AFTER: sampled,
        GREEDY: episodes * SECONDS["episode"],
    }


def _kept(config: RunConfig, run: RunDirectory, name: str, tasks: Sequence[Task]) -> list[Episode] | None:
    """The episodes of an evaluation that an interrupted run had finished; None where there are none. (What weights it
    was of need not be asked: training that goes on removes what follows. What else shapes it cannot have changed.)"""
    if not isinstance(run, ResumedRun):
        return None
    requests = requests_for(tasks, config.eval.trials, seed=config.eval.seed, label=LABEL)
    found = run.read_episodes(name)
    return found if [(e.id, e.seed) for e in found] == [(r.episode_id, r.seed) for r in requests] else None


def _success(episodes: list[Episode]) -> float:
    return sum(e.reward for e in episodes if e.verdict is not None) / max(
        1, sum(e.verdict is not None for e in episodes)
    )


def _line(what: str, episodes: list[Episode], floor: Mapping[str, list[Episode]]) -> str:
    found = evaluate_summary(episodes)
    low, high = found["interval"]
    others = ", ".join(f"{name.replace('_', ' ')} {_success(f):.0%}" for name, f in floor.items())
    score = f"success {found['success']:.1%} (95% interval {low:.1%} to {high:.1%})"
    return f"{what}: {score} on {found['tasks']} tasks; {others}."
