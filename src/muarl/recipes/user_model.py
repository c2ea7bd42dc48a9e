"""``muarl sft-user``: a user model, learnt from dialogue, and its fidelity.

The same fine-tuning as the agent's, from the other chair: the scenario is the system prompt, the agent's words come as
role user, and the loss is on what the user says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from muarl.backends.models import load_model
from muarl.backends.users import make_users, rule_based_users, sampled_users
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.choice import chat_format
from muarl.config import EvalConfig, RunConfig, SftConfig, UserConfig
from muarl.domains.base import Task
from muarl.domains.error_profile import ErrorProfile
from muarl.environments.configure import ConfiguredEnvironment, configure_environment
from muarl.environments.playing import local_executor
from muarl.episode import Episode, StopReason
from muarl.errors import DataError
from muarl.files import write_text
from muarl.learning.packing import Sample
from muarl.metrics import is_success
from muarl.observe.progress import Progress
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.evaluation.measuring import evaluate
from muarl.recipes.sft import check_demonstrations, fit, read_demonstrations
from muarl.rewards.user_errors import RULES, find_user_errors
from muarl.runs.context import RunContext, open_context
from muarl.runs.opening import prepare
from muarl.runs.task_seeds import demonstration_seed
from muarl.users.base import UserFactory
from muarl.users.sampled import from_the_users_chair

MOST = 0.5
"""The experts that users are learnt from have errors up to this share, so that users meet all sorts of agents."""

BLOCK = 200
"""Conversations that share one draw of errors."""


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` as a user and measure it. Returns the run's folder."""
    prepare(config)
    environment = configure_environment(config, with_rl=False)
    check_demonstrations(config)
    policy = load_model(config.model)
    with open_context(config, "sft-user") as context:
        context.loop.closes(environment)
        run, progress = context.folder, context.progress
        chat = chat_format(policy.tokenizer, config.model.chat_format)
        samples = user_samples(dialogues(context, config.sft, config.user, environment), chat)
        fit(context, config.sft, policy, [(sample,) for sample in samples], name="user model")
        tasks = environment.draw(config.eval.split, config.eval.tasks or 200, config.eval.seed, 0)
        users = {
            "user model": sampled_users(config.user, policy, max_context=config.model.max_context),
            "agenda": make_users(config.user, environment),
        }
        context.loop.closes(*users.values())
        found = {
            name: fidelity(config.eval, environment, who, tasks, progress, config.rollout.concurrency)
            for name, who in users.items()
        }
        run.write_summary({"fidelity": found, "conversations": len(samples), "seconds": run.seconds})
        write_text(run.path / "report.md", report(found, len(tasks)))
        progress.say(report(found, len(tasks)))
    return run.path


def dialogues(
    context: RunContext, sft: SftConfig, user: UserConfig, environment: ConfiguredEnvironment
) -> list[tuple[str, Episode]]:
    """(scenario, conversation) pairs to learn from: a file's, or of experts with many error profiles and agenda users.

    DataError if a file's episodes do not say what their scenario was.
    """
    if sft.demonstrations_file is not None:
        found = read_demonstrations(sft.demonstrations_file)
        missing = next((e.id for e in found if not isinstance(e.tags.get("user_scenario"), str)), None)
        if missing is not None:
            raise DataError(
                f"sft.demonstrations_file: the episode {missing!r} does not say what its user's scenario was "
                '(tags["user_scenario"], as `muarl coldstart` writes it)'
            )
        return [(e.tags["user_scenario"], e) for e in found]
    users = rule_based_users(user, environment)
    rng = random.Random(f"user model habits {sft.seed} {context.seed}")
    pairs: list[tuple[str, Episode]] = []
    with context.progress.phase("dialogues", sft.demonstrations, "conversations") as phase:
        for start in range(0, sft.demonstrations, BLOCK):
            count = min(BLOCK, sft.demonstrations - start)
            tasks = environment.draw("train", count, demonstration_seed(sft, context.seed), start)
            error_profile = ErrorProfile(**{name: rng.random() * MOST for name in ErrorProfile.__dataclass_fields__})
            scenarios = {t.id: t.scenario for t in tasks}
            made = demonstrate(environment, users, tasks, error_profile, seed=context.seed + start)
            pairs += [(scenarios[e.task_id], e) for e in made]
            phase.advance(count)
    return pairs


def user_samples(pairs: Sequence[tuple[str, Episode]], chat: ChatFormat) -> list[Sample]:
    """Conversations with weight 1 on what the user says. Those with a user who calls tools are left out: a user model
    has none. DataError if nothing is left."""
    samples = []
    for scenario, episode in pairs:
        if any(m.role == "user" and m.tool_calls for m in episode.messages):
            continue
        trace = chat.training_tokens(scenario, (), from_the_users_chair(episode.messages))
        samples.append(Sample.supervised(trace.ids, trace.loss_mask, 0.0))
    if not samples:
        raise DataError("sft-user: there is no conversation whose user only speaks, so there is nothing to learn from")
    return samples


def fidelity(
    ev: EvalConfig,
    environment: ConfiguredEnvironment,
    users: UserFactory,
    tasks: Sequence[Task],
    progress: Progress,
    concurrency: int,
) -> dict[str, Any]:
    """How true a user is to its scenario, in conversations with the clean expert.

    ``goal_kept``: share of conversations that end as the task says (the expert solves all with the agenda user).
    ``errors``: share of conversations by rule (rewards/user_errors.py): wrong or invented facts, leaks, early stops.
    ``never_stops``: share that ran into a limit. ``words``: mean per message.
    """
    expert = environment.experts()
    executor = local_executor(environment, expert, users, concurrency)
    episodes = evaluate(ev, environment, tasks, executor, progress, label=f"expert with {users.name}")
    known = {t.id: t for t in tasks}
    played = [e for e in episodes if e.stop is not StopReason.INFRASTRUCTURE]
    by_rule: Counter[str] = Counter()
    clean = 0
    for episode in played:
        rules = {e.rule for e in find_user_errors(known[episode.task_id], episode.messages)}
        by_rule.update(rules)
        clean += not rules
    said = [m.content or "" for e in played for m in e.messages if m.role == "user"]
    return {
        "episodes": len(played),
        "failed": len(episodes) - len(played),
        "goal_kept": fmean(is_success(e.reward) for e in played) if played else 0.0,
        "without_errors": clean / len(played) if played else 0.0,
        "errors": {rule: by_rule[rule] / len(played) for rule in RULES if by_rule[rule]},
        "never_stops": sum(e.stop.truncated for e in played) / max(1, len(played)),
        "user_messages": len(said) / max(1, len(played)),
        "words": fmean(len(t.split()) for t in said) if said else 0.0,
    }


def report(metrics: Mapping[str, Mapping[str, Any]], tasks: int) -> str:
    """The fidelity of each user, as a Markdown table."""
    lines = [f"# Users, in conversations with the scripted expert on {tasks} held-out tasks\n"]
    lines += ["| measure | " + " | ".join(metrics) + " |", "|---" * (len(metrics) + 1) + "|"]
    rows = [("goal kept", "goal_kept"), ("without any error", "without_errors"), ("never stops", "never_stops")]
    for title, key in rows:
        lines.append(f"| {title} | " + " | ".join(f"{f[key]:.1%}" for f in metrics.values()) + " |")
    for rule in RULES:
        if any(rule in f["errors"] for f in metrics.values()):
            shares = " | ".join(f"{f['errors'].get(rule, 0.0):.1%}" for f in metrics.values())
            lines.append(f"| {rule}: {RULES[rule]} | {shares} |")
    lines.append(
        "| messages a conversation | " + " | ".join(f"{f['user_messages']:.1f}" for f in metrics.values()) + " |"
    )
    lines.append("| words a message | " + " | ".join(f"{f['words']:.1f}" for f in metrics.values()) + " |")
    return "\n".join(lines) + "\n"
