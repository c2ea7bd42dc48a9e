"""``muarl sft-user --measure``: how true a user model is to its scenarios, in talks with the scripted expert."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.accounts.intervals import wilson
from muarl.accounts.metrics import is_success
from muarl.backends.models import load_model
from muarl.backends.users import goal_checks, make_users, refuse_user_tools, sampled_users
from muarl.basics.errors import ConfigError
from muarl.basics.files import write_text
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.places import ByPlace, Places, Users
from muarl.environments.play import local_executor
from muarl.learning.checkpoints import Policy
from muarl.observe.progress import Progress
from muarl.recipes.evaluation.measuring import evaluate
from muarl.runs.checks import check_eval_split
from muarl.runs.context import RunContext, open_context, prepare, tell_domain
from muarl.types.episode import Episode, StopReason
from muarl.user_errors.errors import RULES, find_user_errors
from muarl.users.base import UserFactory

MODEL, AGENDA = "user model", "agenda"

SHARES = (("goal kept", "goal_kept"), ("without any error", "without_errors"), ("never stops", "never_stops"))
"""Rows of the report that are shares of conversations, and their keys."""


def run(config: RunConfig) -> Path:
    """Measure ``model.checkpoint`` as a user, without training it. Returns the run's folder."""
    prepare(config)
    places = places_of(config, with_rl=False)
    for place in places:
        refuse_user_tools(place.name, place.domain)
    check_measurable(config, places)
    policy = load_model(config.model)
    with open_context(config, "sft-user", logs=False) as context:
        tell_domain(context.folder, config.domain_text, places)
        context.loop.closes(places)
        measure(context, config.eval, config.user, places, policy)
    return context.folder.path


def check_measurable(config: RunConfig, places: Places) -> None:
    """What ``measure`` needs of the environments, before a model is loaded: tasks whose gold actions succeed, the
    scripted expert, the rule-based user. ConfigError or DataError says what is missing."""
    check_eval_split(config.eval, config.domains)
    why = "sft-user measures a user model beside the rule-based user, with the scripted expert as the agent"
    remedy = "give it an Environment with `expert` and `rule_based_user` (docs/domains.md), or choose another domain"
    for place in places:
        if place.expert is None:
            raise ConfigError(f"domain.name: {place.name} has no scripted expert: {why}; {remedy}")
        if place.rule_based_user is None:
            raise ConfigError(f"domain.name: {place.name} has no rule-based user: {why}; {remedy}")
    _agenda_users(config.user, places)
    for tasks in _measured_tasks(config.eval, places).values():
        places.check(tasks)


def _agenda_users(user: UserConfig, places: Places) -> ByPlace[UserFactory]:
    return make_users(user.model_copy(update={"kind": "agenda"}), places)


def _measured_tasks(ev: EvalConfig, places: Places) -> dict[int, Sequence[Task]]:
    """The tasks that are played, by the seed that they are drawn with."""
    return {seed: places.draw(ev.split, ev.tasks or 200, seed, 0) for seed in ev.seeds or (ev.seed,)}


def measure(context: RunContext, ev: EvalConfig, user: UserConfig, places: Places, policy: Policy, **also: Any) -> None:
    """Measure a model as a user beside the rule-based user: ``eval.tasks`` conversations of each with the scripted
    expert for every seed of ``eval.seeds``. Leaves summary.json (with ``also``), report.md and the conversations
    with the user model."""
    progress, compute = context.progress, context.backend.compute
    model = sampled_users(user, policy, compute=compute, max_context=compute.model.max_context)
    users: dict[str, ByPlace[UserFactory]] = {
        MODEL: places.by_place(lambda place: model.checked(goal_checks(place))),
        AGENDA: _agenda_users(user, places),
    }
    context.loop.closes(*users.values())
    by_seed: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in users}
    tasks_by_id: dict[str, Task] = {}
    for seed, tasks in _measured_tasks(ev, places).items():
        own = ev.model_copy(update={"seed": seed})
        tasks_by_id |= {t.id: t for t in tasks}
        for name, who in users.items():
            began, before = time.process_time(), model.counts.unmended
            played = converse(own, compute.rollout.concurrency, places, who, tasks, progress)
            cpu_seconds, unmended = time.process_time() - began, model.counts.unmended - before
            by_seed[name][seed] = fidelity(tasks, played) | {"unmended": unmended, "cpu_seconds": cpu_seconds}
            if name == MODEL:
                context.folder.write_episodes(f"{name.replace(' ', '-')}-seed{seed}", played)
    by_user = {name: pooled(list(seeds.values())) for name, seeds in by_seed.items()}
    context.folder.write_tasks(tasks_by_id.values())
    context.folder.write_summary(
        {"fidelity": by_user, "fidelity_by_seed": by_seed, **also, "seconds": context.folder.seconds}
    )
    text = report(by_user, by_seed[MODEL])
    write_text(context.folder.path / "report.md", text)
    progress.say(text)


def converse(
    ev: EvalConfig, concurrency: int, places: Places, users: Users, tasks: Sequence[Task], progress: Progress
) -> list[Episode]:
    """One scored conversation of the scripted expert, which makes no mistake, for every task."""
    executor = local_executor(places, places.experts(), users, concurrency)
    return evaluate(ev, places, tasks, executor, progress, label=f"expert with {users.name}")


def fidelity(tasks: Sequence[Task], episodes: Sequence[Episode]) -> dict[str, Any]:
    """How true a user was to its scenarios: counts of conversations, but for ``user_messages``, ``words`` and
    ``sampled_again``.

    ``goal_kept``: they end as the task says (the expert solves all with the agenda user). ``errors``: those with an
    error, by rule (user_errors/errors.py). ``never_stops``: they ran into a limit. ``failed``: not played to an end,
    and not among the ``episodes``. ``sampled_again``: messages that a check threw away.
    """
    by_id = {t.id: t for t in tasks}
    played = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    errors: Counter[str] = Counter()
    clean = 0
    for episode in played:
        rules = {e.rule for e in find_user_errors(by_id[episode.task_id], episode.messages)}
        errors.update(rules)
        clean += not rules
    said = [m.content or "" for e in played for m in e.messages if m.role == "user"]
    return {
        "episodes": len(played),
        "failed": len(episodes) - len(played),
        "goal_kept": sum(is_success(e.reward) for e in played),
        "without_errors": clean,
        "errors": {rule: errors[rule] for rule in RULES if errors[rule]},
        "never_stops": sum(e.stop.truncated for e in played),
        "user_messages": len(said),
        "words": sum(len(t.split()) for t in said),
        "sampled_again": sum(e.user_usage.retries for e in played),
    }


def pooled(counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several seeds as shares of all their conversations, with 95% Wilson intervals of ``goal_kept`` and of
    each error; ``user_messages`` and ``cpu_seconds`` a conversation, ``words``, ``sampled_again`` and ``unmended`` a
    message."""

    def total(key: str) -> float:
        return sum(one[key] for one in counts)

    n, messages = int(total("episodes")), total("user_messages")
    errors = {r: sum(one["errors"].get(r, 0) for one in counts) for r in RULES}
    return {
        "episodes": n,
        "failed": int(total("failed")),
        **{key: total(key) / max(1, n) for _, key in SHARES},
        "goal_kept_interval": list(wilson(total("goal_kept"), n)),
        "errors": {rule: count / max(1, n) for rule, count in errors.items() if count},
        "error_intervals": {rule: list(wilson(count, n)) for rule, count in errors.items() if count},
        "user_messages": messages / max(1, n),
        "words": total("words") / max(1, messages),
        "sampled_again": total("sampled_again") / max(1, messages),
        "unmended": total("unmended") / max(1, messages),
        "cpu_seconds": total("cpu_seconds") / max(1, n),
    }


def report(by_user: Mapping[str, Mapping[str, Any]], by_seed: Mapping[int, Mapping[str, Any]]) -> str:
    """The fidelity of each user, as a Markdown table, and the user model's by seed."""
    count = next(iter(by_user.values()))["episodes"]
    lines = [f"# Users, in {count:,} conversations each with the scripted expert on held-out tasks\n"]
    lines += ["| measure | " + " | ".join(by_user) + " |", "|---" * (len(by_user) + 1) + "|"]

    def row(title: str, cells: Sequence[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(cells) + " |")

    for title, key in SHARES:
        row(title, [f"{f[key]:.1%}" for f in by_user.values()])
    for rule in RULES:
        if any(rule in f["errors"] for f in by_user.values()):
            row(f"{rule}: {RULES[rule]}", [f"{f['errors'].get(rule, 0.0):.1%}" for f in by_user.values()])
    row("messages a conversation", [f"{f['user_messages']:.1f}" for f in by_user.values()])
    row("words a message", [f"{f['words']:.1f}" for f in by_user.values()])
    row("sampled again, of 100 messages", [f"{100 * f['sampled_again']:.1f}" for f in by_user.values()])
    row("refused at every try, of 100 messages", [f"{100 * f['unmended']:.2f}" for f in by_user.values()])
    row("CPU milliseconds a conversation", [f"{1000 * f['cpu_seconds']:.0f}" for f in by_user.values()])
    if len(by_seed) > 1:
        lines += [f"\nThe {MODEL}, by seed:\n", "| seed | conversations | goal kept | errors |", "|---" * 4 + "|"]
        for seed, f in by_seed.items():
            errors = ", ".join(f"{rule} {n / f['episodes']:.1%}" for rule, n in f["errors"].items()) or "none"
            lines.append(f"| {seed} | {f['episodes']:,} | {f['goal_kept'] / f['episodes']:.1%} | {errors} |")
    return "\n".join(lines) + "\n"
