"""What ``muarl chat`` shows: the story, what is said and called as it happens, and how it ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muarl.agents.base import AgentTurn
from muarl.basics.untrusted import visible
from muarl.runs.own_settings import TINY
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import StopReason

if TYPE_CHECKING:
    from rich.console import Console

    from muarl.agents.base import Agent, AgentSession
    from muarl.config.parts import Compute
    from muarl.domains.base import World
    from muarl.domains.tasks import Task
    from muarl.types.episode import Episode, TokenTrace

SAME_FAILURES = 3
"""A call that has failed so often, word for word, ends the conversation: the agent is stuck."""


class ShownAgent:
    """An agent whose calls, their results and whose words appear on the console as they happen. One that makes the same
    failing call again and again is stopped."""

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
        self._calls: dict[str | None, ToolCall] = {}
        self._failures: Counter[str] = Counter()

    @property
    def tokens(self) -> TokenTrace | None:
        return self._session.tokens

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        for message in new:
            if message.role == "tool":
                self._dim(f"  {'✗' if message.error else '←'} {shorten(message.content or '')}")
            elif message.role == "user" and self._show_user:
                show_speech(self._console, "User", "green", message.content)
        if self._stuck(new):
            return AgentTurn(Message("assistant", ""), StopReason.TOOL_ERRORS)
        with self._console.status("[dim]the agent is working[/dim]"):
            turn = await self._session.act(new)
        calls = turn.message.tool_calls
        self._calls = {call.id: call for call in calls}
        if turn.message.content:
            # What is said beside a call reaches nobody, so it is shown as dimly as the call.
            if calls:
                self._dim(f"  ({shorten(turn.message.content)})")
            else:
                said = turn.message.content if turn.stop is None else shorten(turn.message.content)
                show_speech(self._console, "Agent", "cyan", said)
        for call in calls:
            arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
            unreadable = f"  unreadable: {call.invalid}" if call.invalid else ""
            self._dim(f"  → {call.name}({shorten(arguments)}){unreadable}")
        return turn

    def _stuck(self, new: Sequence[Message]) -> bool:
        """Whether one of the calls just answered has now failed SAME_FAILURES times, word for word."""
        stuck = False
        for message in new:
            call = self._calls.get(message.tool_call_id) if message.role == "tool" else None
            if call is None:
                continue
            key = f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}"
            self._failures[key] = self._failures[key] + 1 if message.error else 0
            stuck |= self._failures[key] >= SAME_FAILURES
        return stuck

    def close(self) -> None:
        self._session.close()

    def _dim(self, line: str) -> None:
        self._console.print(line, style="dim", markup=False)


class Prompt:
    """Prints the prompt for the person's next line and what Enter alone would send; before the first line, the greeting
    too."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, conversation: Sequence[Message], suggested: str | None) -> None:
        if len(conversation) == 1:
            show_speech(self._console, "Agent", "cyan", conversation[0].content)
        if suggested:
            self._console.print(f"       Enter sends: {printable(suggested)}", style="dim", markup=False)
        self._console.print("[bold green]You[/bold green]    ", end="")


def introduce(
    console: Console,
    task: Task,
    agent: str,
    user: str,
    *,
    person: bool,
    parameters: int | None,
    caller: str = "customer",
) -> None:
    """The story, who plays, and what can be expected of a tiny model. ``caller``: what a user is called."""
    from rich.panel import Panel
    from rich.text import Text

    title = f"You are this {caller}" if person else f"The {caller}, played by {user}"
    about = Text(f"agent: {agent}")
    console.print(Panel(Text(visible(task.scenario)), title=Text(title), subtitle=about, title_align="left"))
    if parameters is not None and parameters < TINY:
        console.print(
            f"A model of {parameters / 1e6:.2f}M parameters: it understands sentences like those of its simulated "
            f"{caller}s, and little else.",
            style="dim",
        )
    if person:
        console.print(f"Enter alone sends the simulated {caller}'s line. Ctrl-D ends the conversation.", style="dim")


def conclude(console: Console, episode: Episode, world: World, compute: Compute | None) -> None:
    """Why it ended, what changed, the reward, and what it cost. ``compute``: of a checkpoint that served."""
    console.print()
    rows: dict[str, Any] = {"ended by": episode.stop.value.replace("_", " ")}
    rows["that is"] = explained(episode.stop, compute)
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
        if value:
            console.print(f"{name:>12}  {value}", style="dim", markup=False)


def explained(stop: StopReason, compute: Compute | None) -> str:
    """What a stop reason means, with the setting that decides it; empty where its name says all."""
    if stop is StopReason.CONTEXT_FULL and compute is not None:
        return (
            f"policy, tools and conversation fill the context of {compute.model.max_context:,} tokens "
            "(model.max_context=N sets another, as far as the model reads)"
        )
    if stop is StopReason.TURN_LENGTH and compute is not None:
        most = compute.rollout.tokens_per_turn
        return (
            f"a reply was cut at {most:,} token{'' if most == 1 else 's'} "
            "(rollout.tokens_per_turn=N sets another length): "
            "a small model may never end its reply to a message unlike its training data"
        )
    return {
        StopReason.CONTEXT_FULL: "the conversation fills the model's context",
        StopReason.TURN_LENGTH: "a reply reached the longest that is allowed",
        StopReason.TOOL_ERRORS: f"the same call failed {SAME_FAILURES} times: the agent is stuck",
        StopReason.EMPTY_REPLY: "the agent's reply held neither words nor a call",
        StopReason.TRANSFER: "the agent transferred to a human agent",
        StopReason.MAX_TURNS: "the agent acted as often as it may",
    }.get(stop, "")


def show_speech(console: Console, who: str, colour: str, text: str | None) -> None:
    """One side's words."""
    from rich.text import Text

    console.print(Text.assemble((f"{who:<7}", f"bold {colour}"), printable(text or "")))


def printable(text: str) -> str:
    """Without control characters: what a model says must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def shorten(text: str, limit: int = 300) -> str:
    """On one line of at most so many characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
