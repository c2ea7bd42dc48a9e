"""An agent behind an OpenAI-compatible endpoint, with native tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.endpoints.client import Endpoint
from muarl.endpoints.failures import PromptRefused
from muarl.endpoints.replies import AS_READ, Reply
from muarl.types.chat import Message, ToolSpec, to_openai
from muarl.types.episode import StopReason, TokenTrace

NOT_RUN = "Error: the tool call could not be read, so nothing was called."
_ILLEGAL_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class EndpointAgent:
    """An agent that is a model behind an ``Endpoint``, which bounds how many requests run at once.

    ``temperature`` and ``max_tokens`` (tokens a turn may take): None for the endpoint's settings. The episode's seed
    goes with every request unless ``send_seed`` is off. ``tool_choice``: "required" for an agent that may only call
    tools. ``keep_cut``: a reply that the server cut is taken as it is, rather than ending the episode, if there is
    anything in it. ``one_call``: only the first call of a reply is kept, as if the model had made no other.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        name: str | None = None,
        tool_choice: str = "auto",
        send_seed: bool = True,
        keep_cut: bool = False,
        one_call: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.tool_choice = tool_choice
        self.send_seed = send_seed
        self.keep_cut = keep_cut
        self.one_call = one_call
        self.temperature = temperature
        self.top_p = top_p
        self.max_tokens = max_tokens
        self.name = name or f"endpoint:{endpoint.model}"

    async def aclose(self) -> None:
        """Close its connections."""
        await self.endpoint.aclose()

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> EndpointAgentSession:
        """Start an episode. ``session`` is not needed: the server gets the whole conversation each time."""
        return EndpointAgentSession(self, system, tools, seed)


class EndpointAgentSession:
    """One endpoint agent in one episode: it holds the conversation that the server is to see next."""

    def __init__(self, agent: EndpointAgent, system: str, tools: Sequence[ToolSpec], seed: int) -> None:
        self._agent = agent
        self._tools = tuple(tools)
        self._seed = seed
        self._history: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        self._heard = 0  # how much of it was there before the last reply
        self._replaced: list[dict[str, Any]] = []  # this turn's replies that others took the place of, with answers

    @property
    def tokens(self) -> TokenTrace | None:
        """None: the server has its own tokens and does not show them."""
        return None

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        """Send what came and read the answer: text, tool calls, or both.

        A turn that the server cut is ``turn_length``, a conversation that outgrew the model ``context_full``, an answer
        with nothing in it ``empty_reply``. InfrastructureError if the endpoint itself fails.
        """
        self._answer_open_calls(new)
        self._history.extend(to_openai(m) for m in new)
        self._heard, self._replaced = len(self._history), []
        return await self._reply()

    async def again(self, answers: Sequence[Message]) -> AgentTurn:
        """See ``agents.base.Reconsiders``; it ends as ``act`` does."""
        self._replaced += [self._history.pop(), *(to_openai(m) for m in answers)]
        return await self._reply()

    def instead(self, text: str) -> None:
        """See ``agents.base.Reconsiders``."""
        self._history[self._heard :] = [{"role": "assistant", "content": text}]

    async def _reply(self) -> AgentTurn:
        agent = self._agent
        try:
            reply = await agent.endpoint.chat(
                [*self._history, *self._replaced],
                tools=self._tools,
                tool_choice=agent.tool_choice,
                seed=self._seed if agent.send_seed else None,
                temperature=agent.temperature,
                top_p=agent.top_p,
                max_tokens=agent.max_tokens,
                boundary="agent",
                # What the agent says, even if it is nothing, is the agent's doing; asking again would hide it.
                empty_ok=True,
            )
        except PromptRefused as refused:
            if not refused.too_long:
                raise
            return AgentTurn(Message("assistant", None), stop=StopReason.CONTEXT_FULL)
        calls = reply.tool_calls[:1] if agent.one_call else reply.tool_calls
        message = Message("assistant", reply.content, tool_calls=calls, reasoning=reply.reasoning)
        said = reply.said
        if said is not None and isinstance(said.get(AS_READ), Mapping):
            self._history.append(_as_served(said))
        else:
            self._history.append(_as_sent_back(message, said if agent.endpoint.config.verbatim else None))
        return AgentTurn(message, stop=_stop_of(reply, agent.keep_cut), usage=reply.usage, response=reply.id)

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Send these tools too, from the next request on; one takes the place of another of its name."""
        self._tools = tuple({t.name: t for t in (*self._tools, *tools)}.values())

    def _answer_open_calls(self, new: Sequence[Message]) -> None:
        """Servers refuse a conversation in which a call stays unanswered, as it does where a message with a broken call
        passes the word to the user (see Rules.calls_to_run)."""
        answered = {m.tool_call_id for m in new if m.role == "tool"}
        last = self._history[-1] if self._history else {}
        for call in last.get("tool_calls", ()):
            if call["id"] not in answered:
                self._history.append({"role": "tool", "tool_call_id": call["id"], "content": NOT_RUN})

    def fork(self, session: str, *, seed: int | None = None) -> EndpointAgentSession:
        """A copy; see ``agents.base.Forks``. What a server draws by no seed is drawn anew."""
        new = copy(self)
        new._history, new._seed = [*self._history], self._seed if seed is None else seed
        new._replaced = [*self._replaced]
        return new

    def close(self) -> None:
        """Nothing to free."""


def _stop_of(reply: Reply, keep_cut: bool) -> StopReason | None:
    if reply.finish_reason == "length" and not (keep_cut and not reply.empty):
        return StopReason.TURN_LENGTH
    return StopReason.EMPTY_REPLY if reply.empty else None


def _as_sent_back(message: Message, said: Mapping[str, Any] | None) -> dict[str, Any]:
    """The agent's own message as history; ``said``: as the server said it, where it is to go back so.

    Servers refuse the whole request over a call that is not well formed, so a broken one goes back with empty
    arguments; the error observation that answers it says what was wrong. They refuse a message without calls whose
    content is null, too."""
    out = to_openai(message)
    if not message.tool_calls:
        out["content"] = message.content or ""
    for call, sent in zip(message.tool_calls, out.get("tool_calls", ()), strict=True):
        sent["function"]["name"] = _ILLEGAL_IN_NAME.sub("_", call.name)[:64] or "unknown"
        if call.invalid is not None:
            sent["function"]["arguments"] = json.dumps(dict(call.arguments))
    return out if said is None else _verbatim(message, said, out)


def _as_served(said: Mapping[str, Any]) -> dict[str, Any]:
    """A message of `muarl serve` in which calls could not be read: as text, in which it knows its own reply again and
    goes on from the ids that it sampled."""
    return {"role": "assistant", **{name: said[name] for name in ("content", "tool_calls") if said.get(name)}}


def _verbatim(message: Message, said: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The message as the server said it, but for its calls where one is broken, was left out or got another id."""
    out = {"role": "assistant", **{name: value for name, value in said.items() if value is not None}}
    if not message.tool_calls:
        out.pop("tool_calls", None)  # an empty list is refused
        return {"content": "", **out}
    as_said = [(call.get("id"), call["function"].get("name")) for call in said["tool_calls"]]
    as_usual = [(call["id"], call["function"]["name"]) for call in usual["tool_calls"]]
    if as_said != as_usual or any(call.invalid is not None for call in message.tool_calls):
        out["tool_calls"] = usual["tool_calls"]
    return out
