"""``muarl chat``: a person, or a simulated user, talks with an agent about a generated task at the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.domains.generated import NAMES, SPLITS, generated

if TYPE_CHECKING:
    from rich.console import Console

    from muarl.agents.base import Agent, AgentSession, AgentTurn
    from muarl.chat import Message, ToolSpec
    from muarl.domains.base import Task, World
    from muarl.episode import Episode, TokenTrace
    from muarl.users.base import UserFactory

TURNS = 100
"""How often the agent may act. Unlike in training, a person decides when it is enough."""


def chat(
    agent: Annotated[
        str,
        typer.Argument(help="A checkpoint folder, base, expert, do-nothing, endpoint:MODEL or endpoint:MODEL@URL."),
    ] = "expert",
    user: Annotated[
        str, typer.Option("--user", "-u", help="Who plays the customer: human (you), agenda, or endpoint:MODEL@URL.")
    ] = "human",
    domain: Annotated[str, typer.Option("--domain", help=f"The generated domain: {', '.join(NAMES)}.")] = NAMES[0],
    size: Annotated[str, typer.Option("--size", help="The world's size, such as tiny or official.")] = "tiny",
    split: Annotated[
        str, typer.Option("--split", help="Where the task comes from: train, validation or test.")
    ] = "test",
    task: Annotated[int, typer.Option("--task", min=0, help="The task's number in its split.")] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the agent and of a simulated user.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the episode to this JSONL file.")] = None,
) -> None:
    """Talk with an agent about a generated task, or watch a simulated user do it.

    The task's story is shown first: you play that customer. The agent's tool calls and what they return appear dimly as
    they happen. Ctrl-D ends the conversation, which is then scored: is the world in the state that the task asks for?

    [bold]Examples[/bold]

      muarl chat runs/NAME/checkpoints/last

      muarl chat expert --task 7

      muarl chat endpoint:MODEL@http://localhost:8000/v1 --size official

      muarl chat expert --user agenda      (watch)
    """
    import asyncio

    from rich.console import Console

    asyncio.run(_chat(Console(highlight=False), agent, user, domain, size, split, task, seed, out))


async def _chat(
    console: Console,
    agent_spec: str,
    user_spec: str,
    domain_name: str,
    size: str,
    split: str,
    index: int,
    seed: int,
    out: Path | None,
) -> None:
    from muarl.conversation import Limits, run_episode
    from muarl.episode import StopReason, write_episodes
    from muarl.errors import InfrastructureError
    from muarl.recipes.setting import GENERATED_RULES
    from muarl.rewards.outcome import score

    task = _task(domain_name, size, split, index)
    domain = generated(domain_name).domain(size)
    agent = make_agent(agent_spec, domain_name)
    make_user = make_chat_user(user_spec, console)
    person = user_spec == "human"
    sides = (("agent", getattr(agent, "endpoint", None)), ("user", getattr(make_user, "endpoint", None)))
    endpoints = {boundary: endpoint for boundary, endpoint in sides if endpoint is not None}
    world = domain.world(task)
    try:
        # A wrong key or address should be known before anybody has typed a word.
        for boundary, endpoint in endpoints.items():
            await endpoint.check(boundary=boundary)
        _introduce(console, task, agent.name, make_user.name, person)
        episode = await run_episode(
            task,
            world,
            ShownAgent(agent, console, show_user=not person),
            make_user(task, seed=seed),
            Limits(turns=TURNS, tool_errors=TURNS),
            seed=seed,
            episode_id=f"chat-{task.id}",
            user_name=make_user.name,
            rules=GENERATED_RULES,
        )
    finally:
        for endpoint in endpoints.values():
            await endpoint.aclose()
    if not person and episode.messages[-1].role == "user":
        _show_speech(console, "User", "green", episode.messages[-1].content)
    if episode.stop is not StopReason.INFRASTRUCTURE:
        episode.verdict = await score(task, world, episode.messages, episode.stop)
    _conclude(console, episode, world)
    if out is not None:
        write_episodes(out, [episode])
        console.print(f"The episode is in {out}.", markup=False)
    if episode.stop is StopReason.INFRASTRUCTURE:
        boundary = str(episode.tags.get("boundary", "agent"))
        raise InfrastructureError(episode.error or "the conversation broke off", boundary=boundary)


def make_agent(spec: str, domain: str = NAMES[0]) -> Agent:
    """The agent that a person names: scripted ones and endpoints here, checkpoints through the recipes."""
    if spec == "expert":
        from muarl.agents.expert import ExpertAgent

        return ExpertAgent(make=generated(domain).expert)
    if spec == "do-nothing":
        from muarl.agents.idle import IdleAgent

        return IdleAgent()
    if spec.startswith("endpoint:"):
        from muarl.agents.endpoint import EndpointAgent
        from muarl.endpoints import Endpoint, parse_endpoint

        return EndpointAgent(Endpoint(parse_endpoint(spec)))
    from muarl.recipes.engines import load_agent

    return load_agent(spec)


def make_chat_user(spec: str, console: Console) -> UserFactory:
    """The customer that a person names. ConfigError for an unknown one."""
    from muarl.errors import ConfigError

    if spec == "human":
        from muarl.users.human import HumanUserFactory

        return HumanUserFactory(before=_Prompt(console))
    if spec == "agenda":
        from muarl.users.agenda import AgendaUserFactory

        return AgendaUserFactory()
    if spec.startswith("endpoint:"):
        from muarl.endpoints import Endpoint, parse_endpoint
        from muarl.users.llm import LLMUserFactory

        return LLMUserFactory(Endpoint(parse_endpoint(spec)))
    raise ConfigError(f"--user: {spec!r} is unknown; use human, agenda, endpoint:MODEL or endpoint:MODEL@URL")


def _task(domain: str, size: str, split: str, index: int) -> Task:
    from muarl.errors import ConfigError

    world = generated(domain)
    for option, value, known in (("--size", size, world.sizes), ("--split", split, SPLITS)):
        if value not in known:
            raise ConfigError(f"{option}: {value!r} is unknown; use one of {', '.join(known)}")
    return world.tasks(split, 1, size=size, start=index)[0]


class ShownAgent:
    """An agent whose calls, their results and whose words appear on the console as they happen."""

    def __init__(self, agent: Agent, console: Console, *, show_user: bool = False) -> None:
        self.name = agent.name
        self._agent = agent
        self._console = console
        self._show_user = show_user

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> AgentSession:
        opened = self._agent.open(system, tools, seed=seed, session=session)
        return _ShownSession(opened, self._console, self._show_user)


class _ShownSession:
    def __init__(self, session: AgentSession, console: Console, show_user: bool) -> None:
        self._session = session
        self._console = console
        self._show_user = show_user

    @property
    def tokens(self) -> TokenTrace | None:
        return self._session.tokens

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        for message in new:
            if message.role == "tool":
                self._dim(f"  {'✗' if message.error else '←'} {_shorten(message.content or '')}")
            elif message.role == "user" and self._show_user:
                _show_speech(self._console, "User", "green", message.content)
        with self._console.status("[dim]the agent is working[/dim]"):
            turn = await self._session.act(new)
        calls = turn.message.tool_calls
        if turn.message.content:
            # What is said beside a call reaches nobody, so it is shown as dimly as the call.
            if calls:
                self._dim(f"  ({_shorten(turn.message.content)})")
            else:
                _show_speech(self._console, "Agent", "cyan", turn.message.content)
        for call in calls:
            arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
            unreadable = f"  unreadable: {call.invalid}" if call.invalid else ""
            self._dim(f"  → {call.name}({_shorten(arguments)}){unreadable}")
        return turn

    def close(self) -> None:
        self._session.close()

    def _dim(self, line: str) -> None:
        self._console.print(line, style="dim", markup=False)


class _Prompt:
    """Prints the prompt for the person's next line; before the first, the greeting too."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, conversation: Sequence[Message]) -> None:
        if len(conversation) == 1:
            _show_speech(self._console, "Agent", "cyan", conversation[0].content)
        self._console.print("[bold green]You[/bold green]    ", end="")


def _show_speech(console: Console, who: str, colour: str, text: str | None) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{who:<7}", f"bold {colour}"), _printable(text or "")))


def _introduce(console: Console, task: Task, agent: str, user: str, person: bool) -> None:
    from rich.panel import Panel
    from rich.text import Text

    title = "You are this customer" if person else f"The customer, played by {user}"
    console.print(Panel(Text(task.scenario), title=title, subtitle=f"agent: {agent}", title_align="left"))
    if person:
        console.print("Ctrl-D ends the conversation.", style="dim")


def _conclude(console: Console, episode: Episode, world: World) -> None:
    """Why it ended, what changed, the reward, and what it cost."""
    console.print()
    rows: dict[str, Any] = {"ended by": episode.stop.value.replace("_", " ")}
    rows["changes"] = ", ".join(w.name for w in world.writes) or "none"
    if episode.verdict is not None:
        parts = ", ".join(
            f"{name} {'right' if value else 'wrong'}" for name, value in episode.verdict.breakdown.items()
        )
        rows["reward"] = f"{episode.verdict.reward:g}" + (f" ({parts})" if parts else "")
    for side, usage in (("agent", episode.agent_usage), ("user", episode.user_usage)):
        if usage.requests:
            tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens in {usage.requests} requests"
            rows[f"{side} used"] = tokens + (f", ${usage.cost:.4f}" if usage.cost else ", cost unknown")
    for name, value in rows.items():
        console.print(f"{name:>12}  {value}", style="dim", markup=False)


def _printable(text: str) -> str:
    """Without control characters: what a model says must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _shorten(text: str, limit: int = 300) -> str:
    line = " ".join(_printable(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
