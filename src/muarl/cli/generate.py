"""``muarl generate``: tasks of an environment, and what trivial baselines earn on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.basics.errors import ConfigError
from muarl.cli import options
from muarl.cli.environment_approval import approved, single
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.domains.tasks import Task
    from muarl.environments.environment import Environment

DEFAULT = "retail-generated"


def generate(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help=f"{options.ENVIRONMENT} Default: {DEFAULT}.", callback=approved, show_default=False
        ),
    ] = None,
    domain: options.Domain = None,
    size: options.Smallest = None,
    split: Annotated[str, option("--split", show_default=True)] = "test",
    tasks: Annotated[int, option("--tasks", min=1, show_default=True)] = 200,
    seed: options.DrawSeed = 0,
    show: Annotated[int, option("--show", min=0, show_default=True)] = 2,
    out: Annotated[Path | None, option("--out", "all tasks, as JSON lines.")] = None,
) -> None:
    """Show an environment's tasks, and what doing nothing and always transferring earn on them.

    The same size, split, seed and number always give the same task. Every task's gold actions are replayed.

      muarl generate
      muarl generate airline-generated --size official --split train --tasks 20 --show 5
      muarl generate ./clinic.py:CLINIC
      muarl generate --tasks 1000 --show 0 --out tasks.jsonl
    """
    from muarl.environments.registry import find
    from muarl.rewards.gold import check_tasks

    option = single(domain)
    if name is not None and option not in (None, name):
        raise ConfigError(f"--domain {option}: {name} is given already; remove one of them")
    name = name or option or DEFAULT
    with working(f"Making {tasks:,} tasks of {name}"):
        environment = find(name)
        size = _checked(environment, size, split)
        made = environment.make_tasks(split, tasks, size=size, seed=seed)
        if not made:
            raise ConfigError(f"{environment.name} has no tasks in its split {split}")
        if not environment.replayed:
            check_tasks(environment.make_domain(size), made)
    if out is not None:
        from muarl.basics.files import write_text

        write_text(out, "".join(json.dumps(task_row(task), ensure_ascii=False) + "\n" for task in made))
    for task in made[:show]:
        echo(f"{task.id}  {dict(task.tags)}\n{task.scenario}")
        for action in task.actions or ():
            echo(f"  {action.name}({json.dumps(dict(action.arguments), ensure_ascii=False)})")
        echo()
    echo(f"{len(made)} {split} tasks of {environment.name}{f', size {size}' if size else ''} (seed {seed})")
    if intents := Counter(str(task.tags["intent"]) for task in made if "intent" in task.tags):
        echo("  " + ", ".join(f"{name} {n / len(made):.0%}" for name, n in intents.most_common()))
    with working(f"Playing {len(made):,} tasks with trivial agents and the expert"):
        rewards = baselines(made, name, size, seed=seed)
    for agent, reward in rewards.items():
        echo(f"  reward of {agent:<16} {reward:6.1%}")
    if environment.rule_based_user is None:
        echo("  (it has no rule-based user, so that nothing else is played without a language model)")
    if out is not None:
        echo(f"Written to {out}")


def _checked(environment: Environment, size: str | None, split: str) -> str | None:
    """The size, None where it comes in one. ConfigError for a benchmark, and for a size or split that there is not."""
    if environment.is_benchmark:
        hint = f"; its kind of task is made by {environment.practice}" if environment.practice else ""
        raise ConfigError(f"{environment.name} is a benchmark, whose tasks are fixed{hint}")
    if size is not None:
        environment.check_size(size, "--size")
    environment.check_split(split, "--split")
    return size or (environment.sizes[0] if environment.sizes else None)


def baselines(tasks: Sequence[Task], name: str, size: str | None, *, seed: int = 0) -> dict[str, float]:
    """Mean reward in [0, 1] of doing nothing, always transferring, and the scripted expert, against the rule-based
    user of the environment of that name. Without such a user, of doing nothing alone; an agent that the environment
    has no part for is left out."""
    from muarl.environments.registry import find

    declared = find(name)
    if declared.rule_based_user is None:
        import asyncio

        from muarl.rewards.outcome import do_nothing

        domain = declared.make_domain(size)
        return {"do-nothing": sum(asyncio.run(do_nothing(domain, task)).reward for task in tasks) / len(tasks)}
    from muarl.agents.expert import ExpertAgent
    from muarl.agents.idle import IdleAgent, TransferAgent
    from muarl.backends.users import make_users
    from muarl.basics.event_loop import event_loop
    from muarl.config.load import load_config
    from muarl.environments.configure import places_of
    from muarl.environments.play import play_in

    config = load_config("quickstart", [f"domain.name={json.dumps(name)}", *([f"domain.size={size}"] if size else [])])
    places = places_of(config, with_rl=False)
    users = make_users(config.eval_user, places)
    agents: list[Agent] = [IdleAgent()]
    if any(spec.name.startswith("transfer") for place in places for spec in place.domain.tool_specs()):
        agents.append(TransferAgent())
    if declared.expert is not None:
        agents.append(ExpertAgent(make=declared.expert))
    rewards = {}
    with event_loop() as loop:
        loop.closes(places, users)
        for agent in agents:
            episodes = loop.run(play_in(places, agent, users, tasks, 1, seed=seed)).episodes
            lost = next((episode for episode in episodes if episode.verdict is None), None)
            if lost is not None:
                raise ConfigError(
                    f"{declared.name}: {agent.name} cannot be scored on task {lost.task_id}: {lost.error}"
                )
            rewards[agent.name] = sum(episode.reward for episode in episodes) / len(episodes)
    return rewards


def task_row(task: Task) -> dict[str, Any]:
    """A task as JSON; its database follows from size, split, seed and number."""
    actions = [{"name": a.name, "arguments": dict(a.arguments), "requestor": a.requestor} for a in task.actions or ()]
    return {
        "id": task.id,
        "domain": task.domain,
        "scenario": task.scenario,
        "actions": actions,
        "reward_basis": list(task.reward_basis),
        "communicate_info": list(task.communicate_info),
        "initial_actions": [dict(a) for a in task.initial_actions],
        "env_assertions": [dict(a) for a in task.env_assertions],
        "agenda": task.agenda,
        "tags": dict(task.tags),
    }
