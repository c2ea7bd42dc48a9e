"""``muarl generate``: tasks of a generated domain, and what agents that do not try earn on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.domains.generated import NAMES, SPLITS, generated
from muarl.errors import ConfigError

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.domains.base import Task


def generate(
    domain: Annotated[str, typer.Option("--domain", help=f"The generated domain: {', '.join(NAMES)}.")] = NAMES[0],
    size: Annotated[str, typer.Option("--size", help="The domain's size, such as tiny or official.")] = "tiny",
    split: Annotated[str, typer.Option("--split", help="Which tasks: train, validation or test.")] = "test",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many tasks.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the tasks.")] = 0,
    show: Annotated[int, typer.Option("--show", min=0, help="Number of tasks to print in full.")] = 2,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write all tasks to this JSON-lines file.")] = None,
) -> None:
    """Show generated tasks, and what doing nothing and always transferring earn on them.

    The same size, split, seed and number always give the same task. Every task's gold actions have been replayed.

    [bold]Examples[/bold]

      muarl generate

      muarl generate --size official --split train --count 20 --show 5

      muarl generate --count 1000 --show 0 --out tasks.jsonl
    """
    world = generated(domain)
    for option, value, known in (("--size", size, world.sizes), ("--split", split, SPLITS)):
        if value not in known:
            raise ConfigError(f"{option}: {value!r} is unknown; use one of {', '.join(known)}")
    made = world.tasks(split, count, size=size, seed=seed)
    if out is not None:
        from muarl.files import write_text

        write_text(out, "".join(json.dumps(task_row(task), ensure_ascii=False) + "\n" for task in made))
    for task in made[:show]:
        typer.echo(f"{task.id}  {dict(task.tags)}\n{task.scenario}")
        for action in task.actions or ():
            typer.echo(f"  {action.name}({json.dumps(dict(action.arguments), ensure_ascii=False)})")
        typer.echo()
    intents = Counter(str(task.tags["intent"]) for task in made)
    typer.echo(f"{len(made)} {split} tasks of {domain}, size {size} (seed {seed})")
    typer.echo("  " + ", ".join(f"{name} {n / len(made):.0%}" for name, n in intents.most_common()))
    for name, reward in baselines(made, domain, size, seed=seed).items():
        typer.echo(f"  reward of {name:<16} {reward:6.1%}")
    if out is not None:
        typer.echo(f"Written to {out}")


def baselines(made: Sequence[Task], domain: str, size: str, *, seed: int = 0) -> dict[str, float]:
    """Mean reward in [0, 1] of doing nothing, always transferring, and the scripted expert, against the agenda user.

    Where there is no tool to transfer with, that agent is left out.
    """
    import asyncio

    from muarl.agents.expert import ExpertAgent
    from muarl.agents.idle import IdleAgent, TransferAgent
    from muarl.config import load_config
    from muarl.recipes.common import make_users, play
    from muarl.recipes.setting import make_setting

    config = load_config("quickstart", [f"domain.name={domain}", f"domain.size={size}"])
    setting, users = make_setting(config), make_users(config.eval_user)
    agents: list[Agent] = [IdleAgent(), ExpertAgent(make=generated(domain).expert)]
    if any(spec.name.startswith("transfer") for spec in setting.domain.tool_specs()):
        agents.insert(1, TransferAgent())
    rewards = {}
    for agent in agents:
        episodes = asyncio.run(play(setting, agent, users, made, 1, seed=seed)).episodes
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
