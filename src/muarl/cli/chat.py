"""``muarl chat``: a person, or a simulated user, talks with an agent about a task at the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.cli import options
from muarl.cli.environment_approval import single
from muarl.cli.options import in_runs, option, unknown_player
from muarl.observe.terminal import clear, echo, working

if TYPE_CHECKING:
    from rich.console import Console

    from muarl.config.sections import RunConfig
    from muarl.domains.base import World
    from muarl.domains.tasks import Task
    from muarl.endpoints.client import Endpoint
    from muarl.environments.environment import Environment
    from muarl.types.episode import Episode
    from muarl.users.base import UserFactory

TURNS = 100
"""How often the agent may act. Unlike in training, a person decides when it is enough."""


def chat(
    agent: Annotated[
        str,
        typer.Argument(
            help="A run or checkpoint folder, base, expert, do-nothing, endpoint:MODEL or endpoint:MODEL@URL."
        ),
    ] = "expert",
    settings: Annotated[list[str] | None, options.settings_argument("model.max_context=4096")] = None,
    user: Annotated[str, option("--user", "Or human: you.", show_default=True)] = "human",
    domain: options.Domain = None,
    size: Annotated[str | None, option("--size", "Default: that of the run, or the smallest.")] = None,
    split: Annotated[str, option("--split", show_default=True)] = "test",
    task: Annotated[int, option("--task", "its number in the split.", min=0, show_default=True)] = 0,
    seed: options.DrawSeed = 0,
    hints: Annotated[
        bool, typer.Option("--hints/--no-hints", help="Suggest the simulated customer's next line to you.")
    ] = True,
    out: Annotated[Path | None, option("--out", "the episode, as a line of JSON.")] = None,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Talk with an agent about a generated task, or watch a simulated user do it.

    Shows the task's scenario first: you play that customer, and Enter alone sends what a simulated user would say. Tool
    calls and their results are printed dimmed. Ctrl-D ends the conversation, which is then scored by the final state of
    the database. A checkpoint plays in its run's own domain and size, with its context, turn length and thinking.

      muarl chat runs/NAME
      muarl chat expert --task 7
      muarl chat runs/NAME --domain airline-generated --size official model.max_context=16384
      muarl chat endpoint:MODEL --domain ./clinic.py:CLINIC
      muarl chat endpoint:MODEL@http://localhost:8000/v1 --size official
      muarl chat expert --user agenda      (watch)
    """
    import asyncio

    from muarl.observe.screen import Screen

    with working("Preparing the conversation"):
        from muarl.recipes.chatting import chat_config

        agent = in_runs(agent, runs_dir)
        config, own = chat_config(agent, single(domain), size, split, settings or ())
        if own is not None and own.values:
            echo(own.describe(), err=True)
        console = Screen(highlight=False)
        asyncio.run(_chat(console, config, agent, user, task, seed, hints, out, limits=own is not None))


async def _chat(
    console: Console,
    config: RunConfig,
    agent_spec: str,
    user_spec: str,
    index: int,
    seed: int,
    hints: bool,
    out: Path | None,
    *,
    limits: bool,
) -> None:
    """One conversation. ``limits``: the agent has those of ``config``."""
    from muarl.environments.registry import find

    declared = find(config.domain.name)
    make_user = make_chat_user(user_spec, console, declared, hints=hints)
    from muarl.agents.endpoint import EndpointAgent
    from muarl.cli.chat_screen import ShownAgent, introduce, show_speech
    from muarl.domains.faults.layer import FaultLayer
    from muarl.environments.configure import place_of
    from muarl.recipes.chatting import chat_agent
    from muarl.rollouts.conversation import run_episode
    from muarl.rollouts.rules import Limits
    from muarl.types.episode import StopReason
    from muarl.users.llm import LLMUserFactory

    place, task = place_of(config, with_rl=False), _task(declared, config, index)
    agent = chat_agent(agent_spec, config, place)
    person = user_spec == "human"
    endpoints: dict[str, Endpoint] = {}
    if isinstance(agent, EndpointAgent):
        endpoints["agent"] = agent.endpoint
    if isinstance(make_user, LLMUserFactory):
        endpoints["user"] = make_user.endpoint
    world = place.domain.world(task)
    try:
        # A wrong key or address should be known before anybody has typed a word.
        for boundary, endpoint in endpoints.items():
            console.print(f"{boundary}: {endpoint.about}", markup=False, style="dim")
            await endpoint.check(boundary=boundary)
        clear()
        introduce(
            console, task, agent.name, make_user.name,
            person=person, parameters=_parameters(agent), caller=declared.caller,
        )  # fmt: skip
        episode = await run_episode(
            task,
            world,
            ShownAgent(agent, console, show_user=not person),
            make_user(task, seed=seed),
            Limits(turns=TURNS, tool_errors=TURNS),
            seed=seed,
            episode_id=f"chat-{task.id}",
            user_name=make_user.name,
            rules=place.rules,
            system=place.system_prompt(task),
            faults=FaultLayer(place.faults, seed, spared=place.transfer_tools) if place.faults else None,
        )
    finally:
        for endpoint in endpoints.values():
            await endpoint.aclose()
    if not person and episode.messages[-1].role == "user":
        show_speech(console, "User", "green", episode.messages[-1].content)
    if episode.stop is not StopReason.INFRASTRUCTURE:
        episode.verdict = await place.score(task, world, episode)
    _conclude(console, episode, world, config if limits else None, out)


def _conclude(console: Console, episode: Episode, world: World, limits: RunConfig | None, out: Path | None) -> None:
    """Say how it ended, and write it. InfrastructureError for one that broke off."""
    from muarl.basics.errors import InfrastructureError
    from muarl.cli.chat_screen import conclude
    from muarl.config.parts import Compute
    from muarl.types.episode import StopReason, write_episodes

    conclude(console, episode, world, None if limits is None else Compute.of(limits))
    if out is not None:
        write_episodes(out, [episode])
        console.print(f"The episode is in {out}.", markup=False)
    if episode.stop is StopReason.INFRASTRUCTURE:
        boundary = str(episode.tags.get("boundary", "agent"))
        raise InfrastructureError(episode.error or "the conversation broke off", boundary=boundary)


def _task(declared: Environment, config: RunConfig, index: int) -> Task:
    from muarl.basics.errors import ConfigError

    tasks = declared.make_tasks(config.eval.split, 1, size=config.domain.size, start=index)
    if not tasks:
        raise ConfigError(f"--task: the split {config.eval.split} of {declared.name} has no task number {index}")
    return tasks[0]


def make_chat_user(spec: str, console: Console, environment: Environment, *, hints: bool = True) -> UserFactory:
    """The customer that a person names; ``hints``: a simulated one suggests lines to a person. ConfigError for an
    unknown one."""
    if spec == "human":
        from muarl.cli.chat_screen import Prompt
        from muarl.users.agenda import AgendaUserFactory
        from muarl.users.human import HumanUserFactory

        make = environment.rule_based_user if hints else None
        return HumanUserFactory(before=Prompt(console), suggests=None if make is None else AgendaUserFactory(make))
    if spec == "agenda":
        from muarl.users.agenda import AgendaUserFactory

        return AgendaUserFactory(environment.needed_user())
    if spec.startswith("endpoint:"):
        from muarl.endpoints.client import Endpoint
        from muarl.endpoints.config import parse_endpoint
        from muarl.users.llm import LLMUserFactory

        return LLMUserFactory(Endpoint(parse_endpoint(spec)))
    raise unknown_player("--user", spec, ("human", "agenda"))


def _parameters(agent: Any) -> int | None:
    """How many parameters a checkpoint's model has; None for other agents."""
    model = getattr(getattr(agent, "sampler", None), "model", None)
    return None if model is None else sum(p.numel() for p in model.parameters())
