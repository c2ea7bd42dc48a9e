"""``muarl quickstart``: the main job. Cold start, evaluation, reinforcement learning, evaluation, report.

The agent learns with one simulated user and is judged with another; the tasks it is judged on are never trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.accounts.evaluation_report import NO_COMPLETION, evaluate_summary, score_text
from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION, episode_metrics
from muarl.accounts.success import scores_by_domain, task_completion
from muarl.backends.checkpoint_names import checkpoint_name
from muarl.backends.engines import policy_executor
from muarl.backends.models import closed, load_model
from muarl.backends.users import make_users
from muarl.basics.system import peak_memory_bytes
from muarl.config.parts import PlannedRun
from muarl.config.rl import RlConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.config.stages import SftConfig
from muarl.domains.tasks import Task
from muarl.environments.benchmark_training import benchmarks_learned
from muarl.environments.configure import places_of
from muarl.environments.places import Places, Users
from muarl.observe.headline import HARDER_USERS, last_lines, training_summary
from muarl.observe.rundir import RunDirectory
from muarl.pages.table import to_terminal
from muarl.recipes import rl
from muarl.recipes.demonstrations import DEMONSTRATIONS
from muarl.recipes.evaluation.auditing import EvaluationAudit, audit_episodes, write_audits
from muarl.recipes.evaluation.harder_users import HarderEvaluation, harder_users, label_of, name_of
from muarl.recipes.evaluation.measuring import LABEL, baseline_agents, baselines, evaluate
from muarl.recipes.sft import check_demonstrations, cold_start
from muarl.report.difficulty import difficulty_table
from muarl.report.last_screen import before_and_after
from muarl.report.report import collect, write_report
from muarl.rollouts.episode_runner import requests_for
from muarl.runs.checks import check_machine, check_quickstart, check_quickstart_tasks
from muarl.runs.context import open_context, prepare
from muarl.runs.prices import Bounds
from muarl.runs.resuming import ResumedRun
from muarl.runs.roles import Cast
from muarl.runs.room import check_room
from muarl.runs.tasks import check_may_train
from muarl.types.episode import Episode

BEFORE, AFTER, GREEDY = "evaluation after the cold start", "evaluation after RL", "greedy evaluation"

SECONDS = {"demonstration": 0.0083, "sft_conversation": 0.032, "episode": 0.037, "rl": 0.063}
"""Seconds for one of each, measured with the shipped base checkpoint on two cores, in two processes."""
HARDER = {"typical": 1.2, "hard": 1.5}
"""How much longer an episode with such users takes than with easy ones."""


def run(config: RunConfig) -> Path:
    """Run the whole job in one run folder and write summary.json and report.html there. Returns the folder."""
    prepare(config)
    cast, bounds = Cast.of(config), Bounds.of(config)
    file = config.sft.demonstrations_file
    benchmarks = benchmarks_learned((domain.name for domain in config.domains), file)
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files={"sft.demonstrations_file": file})
    check_quickstart(cast, bounds)
    check_demonstrations(file, cast, bounds)
    places = places_of(config)
    notes = check_quickstart_tasks(config, places)
    planned = PlannedRun.of(config)
    check_machine(config, config.sft, config.rl)
    policy = load_model(config.model)
    check_room(planned, config.domains, places, policy)
    with open_context(config, "quickstart") as context:
        context.loop.closes(places)
        run, progress, backend = context.folder, context.progress, context.backend
        tasks = places.eval_tasks(config.eval.split, config.eval.tasks, seed=config.eval.seed)
        run.write_tasks(tasks)
        planned_stages = stages(config.eval, config.sft, config.rl, places)
        progress.plan(planned_stages, without_model=[*_baseline_stages(places), DEMONSTRATIONS])
        apart = "" if config.eval.split == "train" or benchmarks else "; none of them is trained on"
        progress.say(f"Run folder {run.path}. Tasks: {len(tasks)} held out for evaluation{apart}.")
        for note in notes:
            progress.say(note)

        users, concurrency = make_users(config.eval_user, places, planned), config.rollout.concurrency
        levels = harder_users(config.eval, config.eval_user, places)
        context.loop.closes(users, *levels.values())
        floor = baselines(config.eval, places, users, tasks, progress, concurrency)
        demonstrations = cold_start(context, config, places, policy)
        progress.say(f"The demonstrator itself succeeds on {_success(demonstrations):.0%} of its tasks.")

        def played(
            label: str, temperature: float, trials: int | None = None, users: Users = users, level: str | None = None
        ) -> list[Episode]:
            """The policy as it is now, on the held-out tasks."""
            engine = backend.sampler(policy)
            with closed(engine):
                # Without the run's name, so that runs of the same seed leave the same episodes.
                name = checkpoint_name(policy.path, run=False)
                agent = backend.agent(policy, temperature=temperature, engine=engine, name=name)
                return evaluate(
                    config.eval,
                    places,
                    tasks,
                    policy_executor(backend.compute, places, agent, users, concurrency, level=level),
                    progress,
                    label=label,
                    trials=trials,
                    spending=context.spending,
                )

        def measured(
            name: str, label: str, step: int, users: Users = users, level: str | None = None
        ) -> tuple[list[Episode], EvaluationAudit]:
            """The same, audited, and kept with the run's episodes and figures, unless an interrupted run has done
            so."""
            finished, phase = _kept(config.eval, run, name, tasks), "evaluation" if level is None else label
            measured_episodes = (
                played(label, config.eval.temperature, users=users, level=level) if finished is None else finished
            )
            audited = audit_episodes(places, tasks, measured_episodes, name=name, file=name)
            if finished is None:
                run.write_episodes(name, measured_episodes)
            if not any((r.get("phase"), r.get("step")) == (phase, step) for r in run.read_metrics()):
                context.logger.log(episode_metrics(measured_episodes), phase=phase, step=step)
            return measured_episodes, audited

        before, audited_before = measured("eval-before", BEFORE, 0)
        progress.say(_line("After the cold start", before, floor))

        rl.train(context, config, places, policy)
        after, audited_after = measured("eval-after", AFTER, config.rl.steps)
        progress.say(_line("After reinforcement learning", after, floor))

        audits, harder = [audited_before, audited_after], dict[str, Any]()
        for level, others in levels.items():
            label = label_of(level)
            episodes_there, audited = measured(name_of(level), label, config.rl.steps, users=others, level=level)
            audits.append(audited)
            harder[level] = HarderEvaluation(episodes_there, audited, len(tasks) * config.eval.trials).to_json()
        write_audits(run, audits)
        greedy = played(GREEDY, 0.0, trials=1)
        audit_episodes(places, tasks, greedy)
        measured_by = {"cold_start": before, "rl": after, "rl_greedy": greedy, **floor, "demonstrator": demonstrations}
        scores = scores_by_domain(measured_by)
        by_domain = {"by_domain": scores} if scores else {}
        summary: dict[str, Any] = {
            "cold_start": evaluate_summary(before),
            "rl": evaluate_summary(after),
            "rl_greedy": _pair(evaluate_summary(greedy)),
            **({HARDER_USERS: harder} if harder else {}),
            **{name: evaluate_summary(episodes)["success"] for name, episodes in floor.items()},
            NO_COMPLETION: None if (nothing := task_completion(floor["do_nothing"])) is None else nothing.value,
            "demonstrator": _success(demonstrations),
            **by_domain,
            "reward": config.rl.reward,
            "trained_on_benchmark": bool(benchmarks),
            "training": training_summary(run.read_metrics()),
            "audit": {"cold_start": audits[0].summary.to_json(), "rl": audits[1].summary.to_json()},
            "seconds": round(run.seconds, 1),
            "peak_memory_bytes": peak_memory_bytes(),
            "seed": config.seed,
            "user_train": make_users(config.user, places, planned).name,
            "user_eval": users.name,
        }
        run.write_summary(summary)
        progress.console.print(before_and_after(summary))
        if (difficulty := difficulty_table(summary)) is not None:
            progress.console.print(to_terminal(difficulty))
        for line in last_lines(summary):
            progress.say(line)
    write_report(run.report, collect(run))
    peak = max(summary["peak_memory_bytes"], peak_memory_bytes())  # children that have ended are no longer counted
    run.write_summary(summary | {"seconds": round(run.seconds, 1), "peak_memory_bytes": peak})
    return run.path


def stages(ev: EvalConfig, sft: SftConfig, rl_config: RlConfig, places: Places) -> dict[str, float]:
    """The phases of the job in order, with about the seconds that each takes on two CPU cores. Only how they compare
    with each other matters: a run measures its own pace."""
    episodes = ev.tasks or 0
    sampled = episodes * ev.trials * SECONDS["episode"]
    demonstrations = sft.demonstrations * SECONDS["demonstration"]
    from_file = sft.demonstrations_file is not None
    return {
        **dict.fromkeys(_baseline_stages(places), 1.0),
        **({} if from_file else {DEMONSTRATIONS: demonstrations}),
        "cold start": sft.steps * sft.batch * SECONDS["sft_conversation"],
        BEFORE: sampled,
        "reinforcement learning": rl_config.steps * rl_config.tasks_per_step * rl_config.group_size * SECONDS["rl"],
        AFTER: sampled,
        **{label_of(level): sampled * HARDER[level] for level in ev.harder_users},
        GREEDY: episodes * SECONDS["episode"],
    }


def _baseline_stages(places: Places) -> list[str]:
    return [name.replace("_", " ") for name in baseline_agents(places)]


def _kept(ev: EvalConfig, run: RunDirectory, name: str, tasks: Sequence[Task]) -> list[Episode] | None:
    """The episodes of an evaluation that an interrupted run had finished; None where there are none. (What weights it
    was of need not be asked: training that continues removes what follows. What else shapes it cannot have changed.)"""
    if not isinstance(run, ResumedRun):
        return None
    requests = requests_for(tasks, ev.trials, seed=ev.seed, label=LABEL)
    episodes = run.read_episodes(name)
    return episodes if [(e.id, e.seed) for e in episodes] == [(r.episode_id, r.seed) for r in requests] else None


def _pair(block: Mapping[str, Any]) -> dict[str, Any]:
    """Success and success without any violation of an evaluation's block, with their intervals."""
    return {name: block[name] for name in ("success", "interval", SUCCESS_WITHOUT_VIOLATION)}


def _success(episodes: list[Episode]) -> float:
    return sum(e.reward for e in episodes if e.verdict is not None) / max(
        1, sum(e.verdict is not None for e in episodes)
    )


def _line(what: str, episodes: list[Episode], floor: Mapping[str, list[Episode]]) -> str:
    summary = evaluate_summary(episodes)
    others = ", ".join(f"{name.replace('_', ' ')} {_success(f):.0%}" for name, f in floor.items())
    each = "".join(f", {name} {part['success']:.1%}" for name, part in summary.get("by_domain", {}).items())
    return f"{what}: {score_text(summary)} on {summary['tasks']} tasks{each}; {others}."
