"""``muarl eval``: an agent on held-out tasks, with intervals, behaviour, and the do-nothing baseline beside it.

Benchmarks' tasks are played by their own protocol (environments/benchmark.py). Every finished episode is on disk at
once, and a run that was killed continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from muarl.accounts.budgets import Budget, RolloutEnd
from muarl.accounts.evaluation_report import NO_COMPLETION, EvaluationReport
from muarl.accounts.metrics import NOISE_TAG, is_success, scored
from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.backends.engines import policy_executor
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import write_text
from muarl.config.parts import Compute
from muarl.config.sections import RunConfig
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.places import ByPlace, Places
from muarl.environments.play import local_executor
from muarl.observe.headline import TRAINED_ON, cost_text
from muarl.observe.progress import Progress
from muarl.pages.table import to_terminal
from muarl.recipes.evaluation.auditing import audit_episodes, write_audits
from muarl.recipes.evaluation.harder_users import HarderEvaluation, harder_users, label_of, name_of
from muarl.recipes.evaluation.measuring import LABEL, conversations_text, evaluate, play_all, some_scored
from muarl.recipes.evaluation.next_turns import Requests, check_experts, next_turns
from muarl.recipes.evaluation.noise import NoiseGrid, noise_requests, noise_tag
from muarl.recipes.evaluation.report import Evaluation, needs_judge, report_text, summary_of
from muarl.recipes.evaluation.user_review import review_users
from muarl.report.audit_tables import tables
from muarl.report.difficulty import difficulty_table
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.runs.context import RunContext, keep_own_rules, open_context, prepare, tell_domain
from muarl.runs.eval_agent import Nobody, former_name, has_models, make_eval_agent
from muarl.runs.own_settings import reward_of, trained_on_benchmark
from muarl.runs.prices import Bounds, with_prices
from muarl.runs.results_store import ResultsStore
from muarl.runs.roles import Cast, Judges, Role, check_roles
from muarl.runs.users import check_users
from muarl.types.episode import Episode, Usage, Verdict
from muarl.users.base import UserFactory

TURNS_USAGE = "next_turns_usage"
"""What the agent used for ``eval.next_turns``, in all processes of the run: it counts against the same bounds."""


def run(config: RunConfig) -> Path:
    """Evaluate the configured agent and write episodes, summary.json and report.md. Returns the run's folder."""
    grid = None if config.eval.noise is None else NoiseGrid.of(config.eval.noise)
    if config.eval.red_team:
        if grid is not None:
            raise ConfigError("eval.noise: red-team users have no repeats of that kind; leave out one of the two")
        from muarl.recipes import redteam

        return redteam.run(config)
    check_experts(config.eval, config.domains)
    prepare(config, models=has_models(config.eval, config.eval_user))
    playing = with_prices(config)
    judges = Judges.of(playing.eval, playing.domains)
    places, ev = places_of(playing, measuring=True, judge=judges.score), playing.eval
    tasks = places.eval_tasks(ev.split, ev.tasks, seed=ev.seed, ids=ev.task_ids)
    places.check(tasks)
    roles: tuple[Role, ...] = ("agent", "judge") if ev.solo else ("agent", "eval_user", "judge")
    cast = Cast.of(playing)
    check_roles(cast, *roles, bound=Bounds.of(playing).name("eval"))
    if not ev.solo:
        check_users(cast, places, {"eval_user": ev.split})
    agent = make_eval_agent(playing, places)
    users: ByPlace[UserFactory]
    users = places.everywhere(Nobody()) if ev.solo else make_users(playing.eval_user, places, Compute.of(config))
    with open_context(config, "eval", logs=False) as context:
        run, progress = context.folder, context.progress
        harder = {} if grid is not None or ev.solo else harder_users(ev, playing.eval_user, places)
        context.loop.closes(places, judges, agent, users, *harder.values())
        run.write_tasks(tasks)
        tell_domain(run, config.domain_text, places)
        keep_own_rules(run, places)
        if playing.eval.judge in ("pass", "fail") and any(map(needs_judge, tasks)):
            progress.say(
                f"eval.judge is {playing.eval.judge}: assertions about words are not judged by a model, so scores do "
                "not compare with published ones."
            )
        task_count = playing.eval.tasks
        if task_count is not None and len(tasks) < task_count and not playing.eval.task_ids:
            split = f"{playing.eval.split} split of {places.name}"
            progress.say(f"The {split} has {len(tasks)} tasks, fewer than {task_count}: all are played.")
        evaluation = _measure(context, playing, places, agent, users, tasks, judges, grid)
        judged_before = evaluation.judged - judges.used  # by an earlier process of this run
        for level, others in harder.items() if evaluation.end is RolloutEnd.COMPLETE else ():
            one = _with_harder_users(context, playing, places, agent, others, tasks, judges, level, evaluation)
            evaluation = replace(evaluation, harder={**evaluation.harder, level: one})
        sampled, checkpoint = playing.eval.agent == "sampled", playing.model.checkpoint
        # The flag speaks of an agent behind an endpoint, of which nothing else is known.
        trained = config.train_on_benchmark or (sampled and trained_on_benchmark(checkpoint, config.domains))
        evaluation = replace(evaluation, trained_on_benchmark=trained)
        reward = reward_of(checkpoint) if sampled else None
        summary = summary_of(evaluation, run.seconds) | ({} if reward is None else {"reward": reward})
        write_audits(run, [evaluation.audited, *(one.audited for one in evaluation.harder.values())])
        name = f"{agent.name} on {places.name}"
        report = EvaluationReport.of(
            evaluation.episodes, name=name, baselines=evaluation.floors, domain_baselines=evaluation.domain_floors
        )

        def write() -> None:
            run.write_summary(summary)
            write_text(run.path / "report.md", report_text(evaluation, report, summary))

        asked = Usage.from_json(run.read_json("summary").get(TURNS_USAGE, {}))
        summary |= {TURNS_USAGE: asked.to_json()} if asked.requests else {}
        write()
        if playing.eval.next_turns and evaluation.ended is not RolloutEnd.COMPLETE:
            progress.say("eval.next_turns is left out, since not all episodes were played.")
        elif playing.eval.next_turns:
            played = sum((e.agent_usage + e.user_usage for e in evaluation.all_episodes), Usage())
            spent = asked + played + judged_before + _besides(judges, places)
            concurrency = playing.rollout.concurrency
            requests = Requests.of(playing.eval, concurrency, spent)
            summary["next_turns"] = next_turns(cast, concurrency, places, agent, tasks, progress, requests)
            summary[TURNS_USAGE] = (asked + requests.usage).to_json()
            write()
        progress.console.print(report.to_table())
        if trained:
            progress.say(f"Warning: {TRAINED_ON}.")
        for text in report.warnings():
            progress.say(f"Warning: {text}.")
        if (difficulty := difficulty_table(summary)) is not None:
            progress.console.print(to_terminal(difficulty))
        for table in tables(evaluation.audited.summary, detailed=False).values():
            progress.console.print(to_terminal(table))
        if (cost := cost_text(summary)) is not None:
            progress.say(cost)
        if summary["benchmark"] is not None and summary["benchmark"]["figures"]:
            figures = summary["benchmark"]["figures"].items()
            progress.say(f"{places.name}: " + ", ".join(f"{n.replace('_', ' ')} {v:.4g}" for n, v in figures))
        if (end := evaluation.ended) is not RolloutEnd.COMPLETE:
            progress.say(
                f"{evaluation.counts('episodes were played')}: {end.why}. "
                f"`muarl eval --resume {run.path}` {end.remedy} plays the rest."
            )
    return run.path


def _measure(
    context: RunContext,
    config: RunConfig,
    places: Places,
    agent: ByPlace[Agent],
    users: ByPlace[UserFactory],
    tasks: Sequence[Task],
    judges: Judges,
    grid: NoiseGrid | None,
) -> Evaluation:
    """Play what a run's results store still lacks, look at the users, and gather it all."""
    progress, concurrency = context.progress, config.rollout.concurrency
    trials, seed = config.eval.trials, config.eval.seed
    if grid is None:
        requests = places.requests(tasks, trials, seed, LABEL)
    else:
        requests = noise_requests(places, tasks, grid, seed, LABEL)
        progress.say(
            f"Noise: {grid.attempts} episodes of each task, which share seeds, so that pass^k is not that of "
            f"independent trials. Where the noise comes from: muarl compare {context.folder.path}"
        )
    by_id = {r.episode_id: r for r in requests}
    results = ResultsStore(context.folder)
    if results.kept:
        progress.say(f"{len(results.kept)} of {len(requests)} episodes were finished before.")
    elif trials > 1 and grid is None:
        progress.say(conversations_text(len(tasks), trials))

    def besides() -> Usage:
        return _besides(judges, places)

    def mark(episode: Episode) -> None:
        if grid is not None:
            episode.tags[NOISE_TAG] = noise_tag(by_id[episode.id], grid)

    label = f"evaluation of {agent.name}"
    episodes, end = _played(context, config, places, agent, users, requests, results, judges, label, mark=mark)
    played = sum((e.agent_usage + e.user_usage for e in episodes), Usage())
    left = Budget(config.eval.max_cost, config.eval.max_tokens, lambda: played + results.judged + besides())
    reviewing = review_users(places, tasks, episodes, left, progress, judges.users, concurrency=concurrency)
    review = context.loop.run(reviewing)
    audited = audit_episodes(
        places,
        tasks,
        episodes,
        name="Audit",
        judge=judges.audit,
        budget=left,
        progress=progress,
        concurrency=concurrency,
    )
    results.log(besides())
    results.close(episodes)
    floor: tuple[dict[str, float], dict[str, dict[str, float]]] = ({}, {})
    if config.eval.baseline:
        floor = baseline_scores(Cast.of(config), Compute.of(config), places, tasks, progress)
    return Evaluation(
        config,
        places,
        agent.name,
        users.name,
        tasks,
        episodes,
        len(requests),
        end,
        results.judged + judges.used,
        *floor,
        review,
        audited,
        places.searching_usage,
    )


def _besides(judges: Judges, places: Places) -> Usage:
    """What models that are neither agent nor user have used in this process."""
    return judges.used + places.searching_usage


def _played(
    context: RunContext,
    config: RunConfig,
    places: Places,
    agent: ByPlace[Agent],
    users: ByPlace[UserFactory],
    requests: Sequence[RolloutRequest],
    results: ResultsStore,
    judges: Judges,
    label: str,
    *,
    spent: Usage = Usage(),
    level: str | None = None,
    mark: Callable[[Episode], None] = lambda episode: None,
) -> tuple[list[Episode], RolloutEnd]:
    """The episodes of these requests, in order: those that ``results`` has, and those that are then played, until a
    budget is spent. ``spent``: what counts towards that besides. ``level``: of the users, where it is one of
    ``eval.harder_users``. ``mark``: notes something in an episode before it is kept."""
    results.check(requests, agent.name, users.name, former=former_name(config.eval))
    before, end = spent + results.spent, RolloutEnd.COMPLETE
    budget = Budget(config.eval.max_cost, config.eval.max_tokens, lambda: before + _besides(judges, places))
    results.teach(budget)

    def keep(episode: Episode) -> None:
        mark(episode)
        results.keep(episode, _besides(judges, places))

    if still := results.open(requests):
        of_policy = partial(policy_executor, Compute.of(config), measuring=True, level=level)
        host = local_executor if config.eval.solo else of_policy
        executor, finished = host(places, agent, users, config.rollout.concurrency), list(results.kept.values())
        _, end = play_all(executor, still, context.progress, label, budget=budget, finished_before=finished, final=keep)
    episodes = [results.kept[r.episode_id] for r in requests if r.episode_id in results.kept]
    if level is None or episodes or end is RolloutEnd.COMPLETE:  # of a later level a budget may leave nothing
        some_scored(episodes, LABEL if level is None else label)
    return episodes, end


def _with_harder_users(
    context: RunContext,
    config: RunConfig,
    places: Places,
    agent: ByPlace[Agent],
    users: ByPlace[UserFactory],
    tasks: Sequence[Task],
    judges: Judges,
    level: str,
    first: Evaluation,
) -> HarderEvaluation:
    """The tasks once more, with these users. ``first``: the evaluation with easy ones, and with those of the levels
    before, whose cost counts towards the same bounds."""
    requests = places.requests(tasks, config.eval.trials, config.eval.seed, LABEL)
    label = label_of(level)
    results = ResultsStore(context.folder, name_of(level), phase=label)
    spent = sum((e.agent_usage + e.user_usage for e in first.all_episodes), first.judged)
    episodes, end = _played(
        context, config, places, agent, users, requests, results, judges, label, spent=spent, level=level
    )
    audited = audit_episodes(places, tasks, episodes, name=f"Audit, {level} users", file=name_of(level))
    results.log(_besides(judges, places))
    results.close(episodes)
    return HarderEvaluation(episodes, audited, len(requests), end)


def baseline_scores(
    cast: Cast, compute: Compute, places: Places, tasks: Sequence[Task], progress: Progress
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Success of doing nothing, and of always transferring where users follow rules and there is a tool for it, and the
    task completion of doing nothing: overall, and by domain. On official tasks doing nothing is read off an untouched
    world, so that no user has to be asked. Without a baseline for which no task could be scored; overall only those
    that every domain has."""
    outcomes: dict[str, dict[str, list[float]]] = {}
    for place in places:
        own, do_nothing = [task for task in tasks if places.of(task) is place], place.do_nothing()
        of_place = outcomes.setdefault(place.name, {})
        with event_loop() as loop:
            if do_nothing is not None:
                untouched = loop.run(_untouched(do_nothing, [places.own(task) for task in own]))
                of_place["do_nothing"] = [is_success(verdict.reward) for verdict in untouched]
                of_place[NO_COMPLETION] = _completions(untouched)
                continue
            agents: dict[str, Agent] = {"do_nothing": IdleAgent()}
            if place.can_transfer and cast.eval_user.kind == "agenda":
                agents["always_transfer"] = TransferAgent(place.transfer_tools)
            users = make_users(cast.eval_user, places, compute)
            loop.closes(users)
            for name, idle in agents.items():
                executor = local_executor(places, idle, users, compute.rollout.concurrency)
                label = name.replace("_", " ") + ("" if len(places) == 1 else f" in {place.name}")
                played = evaluate(cast.eval, places, own, executor, progress, label=label, trials=1)
                of_place[name] = [is_success(e.reward) for e in scored(played)]
                if name == "do_nothing":
                    of_place[NO_COMPLETION] = _completions([e.verdict for e in scored(played) if e.verdict is not None])
    by_domain = {name: {n: fmean(own) for n, own in of_place.items() if own} for name, of_place in outcomes.items()}
    names = [
        n
        for n in ("do_nothing", NO_COMPLETION, "always_transfer")
        if all(n in of_place for of_place in outcomes.values())
    ]
    together = {name: [outcome for of_place in outcomes.values() for outcome in of_place[name]] for name in names}
    return {name: fmean(own) for name, own in together.items() if own}, {p: own for p, own in by_domain.items() if own}


def _completions(verdicts: Sequence[Verdict]) -> list[float]:
    return [v.audit["completion"] for v in verdicts if "completion" in v.audit]


async def _untouched(do_nothing: Callable[[Task], Awaitable[Verdict]], tasks: Sequence[Task]) -> list[Verdict]:
    verdicts = []
    for task in tasks:
        try:
            verdict = await do_nothing(task)
        except InfrastructureError:  # an assertion that fails to run, as in an episode that is then excluded
            continue
        verdicts.append(verdict)
    return verdicts
