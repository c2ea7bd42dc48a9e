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

from muarl.agents.expert import ExpertAgent
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.episode import Episode, StopReason
from muarl.errors import DataError
from muarl.files import write_text
from muarl.learning.packing import Sample
from muarl.observe.metrics import is_success
from muarl.observe.progress import Progress
from muarl.recipes.common import load_model, make_users, open_logger, open_run, prepare, sampled_users
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.evaluate import evaluate_with
from muarl.recipes.setting import Setting, make_setting
from muarl.recipes.sft import check_demonstrations, fit, read_demonstrations
from muarl.rewards.user_errors import RULES, find_user_errors
from muarl.tokens import ChatTokens
from muarl.users.base import UserFactory
from muarl.users.sampled import from_the_users_chair

MOST = 0.5
"""The experts that users are learnt from have bad habits up to this share, so that users meet all sorts of agents."""

BLOCK = 200
"""Conversations that share one draw of bad habits."""


def run(config: RunConfig) -> Path:
    """Train ``model.checkpoint`` as a user and measure it. Returns the run's folder."""
    prepare(config)
    setting = make_setting(config)
    check_demonstrations(config)
    policy = load_model(config.model)
    with open_run(config, "sft-user") as run, Progress() as progress, open_logger(config, run) as logger:
        chat = ChatTokens(policy.tokenizer)
        samples = user_samples(dialogues(config, setting, progress), chat)
        fit(config, policy, samples, run, logger, progress, name="user model")
        tasks = setting.draw(config.eval.split, config.eval.tasks or 200, config.eval.seed, 0)
        section = config.user.model_copy(update={"max_context": config.model.max_context})
        users = {"user model": sampled_users(section, policy), "agenda": make_users(config.user, setting)}
        found = {name: fidelity(config, setting, who, tasks, progress) for name, who in users.items()}
        run.write_summary({"fidelity": found, "conversations": len(samples), "seconds": run.seconds})
        write_text(run.path / "report.md", report(found, len(tasks)))
        progress.say(report(found, len(tasks)))
    return run.path


def dialogues(config: RunConfig, setting: Setting, progress: Progress) -> list[tuple[str, Episode]]:
    """(scenario, conversation) pairs to learn from: a file's, or made by experts of many habits and agenda users.

    DataError if a file's episodes do not say what their scenario was.
    """
    if config.sft.demonstrations_file is not None:
        found = read_demonstrations(config.sft.demonstrations_file)
        missing = next((e.id for e in found if not isinstance(e.tags.get("user_scenario"), str)), None)
        if missing is not None:
            raise DataError(
                f"sft.demonstrations_file: the episode {missing!r} does not say what its user's scenario was "
                '(tags["user_scenario"], as `muarl coldstart` writes it)'
            )
        return [(e.tags["user_scenario"], e) for e in found]
    users = make_users(config.user.model_copy(update={"kind": "agenda"}), setting)
    rng = random.Random(f"user model habits {config.sft.seed} {config.seed}")
    pairs: list[tuple[str, Episode]] = []
    with progress.phase("dialogues", config.sft.demonstrations, "conversations") as phase:
        for start in range(0, config.sft.demonstrations, BLOCK):
            count = min(BLOCK, config.sft.demonstrations - start)
            tasks = setting.draw("train", count, config.sft.seed + 1000 * config.seed, start)
            habits = Habits(**{name: rng.random() * MOST for name in Habits.__dataclass_fields__})
            scenarios = {t.id: t.scenario for t in tasks}
            made = demonstrate(setting, users, tasks, habits, seed=config.seed + start)
            pairs += [(scenarios[e.task_id], e) for e in made]
            phase.advance(count)
    return pairs


def user_samples(pairs: Sequence[tuple[str, Episode]], chat: ChatTokens) -> list[Sample]:
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
    config: RunConfig, setting: Setting, users: UserFactory, tasks: Sequence[Task], progress: Progress
) -> dict[str, Any]:
    """How true a user is to its scenario, in conversations with the clean expert.

    ``goal_kept``: share of conversations that end as the task says (the expert solves all with the agenda user).
    ``errors``: share of conversations by rule (rewards/user_errors.py): wrong or invented facts, leaks, early stops.
    ``never_stops``: share that ran into a limit. ``words``: mean per message.
    """
    expert = ExpertAgent(make=setting.generated.expert if setting.generated is not None else None)
    episodes = evaluate_with(config, setting, expert, users, tasks, progress, label=f"expert with {users.name}")
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


def report(found: Mapping[str, Mapping[str, Any]], tasks: int) -> str:
    """The fidelity of each user, as a Markdown table."""
    lines = [f"# Users, in conversations with the scripted expert on {tasks} held-out tasks\n"]
    lines += ["| measure | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    rows = [("goal kept", "goal_kept"), ("without any error", "without_errors"), ("never stops", "never_stops")]
    for title, key in rows:
        lines.append(f"| {title} | " + " | ".join(f"{f[key]:.1%}" for f in found.values()) + " |")
    for rule in RULES:
        if any(rule in f["errors"] for f in found.values()):
            shares = " | ".join(f"{f['errors'].get(rule, 0.0):.1%}" for f in found.values())
            lines.append(f"| {rule}: {RULES[rule]} | {shares} |")
    lines.append(
        "| messages a conversation | " + " | ".join(f"{f['user_messages']:.1f}" for f in found.values()) + " |"
    )
    lines.append("| words a message | " + " | ".join(f"{f['words']:.1f}" for f in found.values()) + " |")
    return "\n".join(lines) + "\n"
