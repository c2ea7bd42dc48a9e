"""Users played by an LLM behind an OpenAI-compatible endpoint, prompted as in TAU2, or in a benchmark's own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.types.chat import GREETING, Message, ToolSpec, to_openai
from muarl.users.base import User, UserTurn
from muarl.users.guidelines import Guidelines, Style, correction, load_guidelines
from muarl.users.strata.panel import Strata
from muarl.users.traits.levels import TraitRanges, TraitUser, behaviour_text

MessagesOf = Callable[[Sequence[Message]], Sequence[Mapping[str, Any]]]
"""From the conversation as the user sees it to what the model is sent, in the OpenAI form."""


class PromptedUser:
    """Says what the model answers to ``messages_of(conversation)``; an empty answer is what it says, too."""

    def __init__(self, endpoint: Endpoint, messages_of: MessagesOf) -> None:
        self._endpoint, self._messages_of = endpoint, messages_of

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Ask the model. InfrastructureError if the endpoint fails."""
        sent = [dict(m) for m in self._messages_of(conversation)]
        answer = await self._endpoint.chat(sent, boundary="user", empty_ok=True)
        return UserTurn(Message("user", answer.content or ""), answer.usage)

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """Nothing to take note of."""


ToolsOf = Callable[[Task], Sequence[ToolSpec]]


def flip_roles(conversation: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation from the user's chair, in the OpenAI form.

    The agent's text becomes role user, the user's own messages (tool calls included) role assistant, and the results of
    the user's own tools stay tool messages. An empty conversation begins with the agent's greeting.
    """
    swapped = {"assistant": "user", "user": "assistant"}
    messages = conversation or (Message("assistant", GREETING),)
    return [{**to_openai(m), "role": swapped.get(m.role, m.role)} for m in messages]


class LLMUser:
    """One user in one episode. It keeps no state of its own: each reply is a function of the conversation."""

    def __init__(
        self,
        endpoint: Endpoint,
        system: str,
        *,
        tools: Sequence[ToolSpec] = (),
        seed: int | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        empty_ok: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.empty_ok = empty_ok
        self.system = system
        self.tools = tuple(tools)
        self.seed = seed
        self.temperature = temperature
        self.max_tokens = max_tokens

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """The user's next message: text, or calls of its own tools. InfrastructureError if the endpoint fails."""
        return await self._ask(self.system, conversation)

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """Nothing to take note of."""

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """The same, where the system prompt ends with what was wrong with its last try."""
        said = rejected.content or "".join(f"(a call of {call.name})" for call in rejected.tool_calls)
        return await self._ask(f"{self.system}\n\n{correction(said, faults)}", conversation)

    async def _ask(self, system: str, conversation: Sequence[Message]) -> UserTurn:
        answer = await self.endpoint.chat(
            [{"role": "system", "content": system}, *flip_roles(conversation)],
            tools=self.tools,
            seed=self.seed,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            requestor="user",
            boundary="user",
            empty_ok=self.empty_ok,
        )
        message = Message("user", answer.content, tool_calls=answer.tool_calls, reasoning=answer.reasoning)
        return UserTurn(message, answer.usage)


class LLMUserFactory:
    """Makes simulated users that a language model plays, one for each episode.

    ``name`` says which model and which guidelines: scores depend on both.

    ``guidelines``: a style (see ``load_guidelines``) or guidelines of one's own. ``tools``: the user's tools, the same
    for all tasks or a function of the task. ``temperature`` and ``max_tokens``: None for the endpoint's settings. The
    episode's seed goes with every request unless ``send_seed`` is off. ``empty_ok``: an empty answer is what the user
    says, rather than a failure. ``traits``: levels that every user's own are drawn from, which the model is told.
    ``strata``: what every user's persona is drawn from (users/strata), likewise.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        guidelines: Style | Guidelines = "auto",
        tools: Sequence[ToolSpec] | ToolsOf = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        name: str | None = None,
        send_seed: bool = True,
        empty_ok: bool = False,
        traits: TraitRanges | None = None,
        strata: Strata | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.empty_ok = empty_ok
        self.traits, self.strata = traits or None, strata or None
        self.send_seed = send_seed
        self.temperature = temperature
        self.max_tokens = max_tokens
        self._tools = tools
        self._with_tools: Guidelines | None = None
        if isinstance(guidelines, Guidelines):
            self.guidelines = self._with_tools = guidelines
        else:
            self.guidelines = load_guidelines(guidelines)
            self._style = guidelines
        options = "".join(f", {part}" for part in (self.traits, self.strata) if part)
        self.name = name or f"llm:{endpoint.model} ({self.guidelines.name} guidelines{options})"

    async def aclose(self) -> None:
        """Close its connections."""
        await self.endpoint.aclose()

    def __call__(self, task: Task, *, seed: int) -> User:
        tools = tuple(self._tools(task) if callable(self._tools) else self._tools)
        system = self._guidelines_for(tools).system_prompt(task.scenario)
        levels = None if self.traits is None else self.traits.draw(seed)
        persona = None if self.strata is None else self.strata.draw(seed)
        if persona is not None:
            levels = persona.on(levels)
        if levels is not None:
            like = behaviour_text(levels, () if persona is None else persona.sentences)
            system = "\n\n".join(part for part in (system, like) if part)
        user = LLMUser(
            self.endpoint,
            system,
            tools=tools,
            seed=seed if self.send_seed else None,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            empty_ok=self.empty_ok,
        )
        if persona is not None and levels is not None:
            return TraitUser(user, levels, strata=persona.tags(), decided=persona.traits)
        return user if levels is None else TraitUser(user, levels)

    def _guidelines_for(self, tools: Sequence[ToolSpec]) -> Guidelines:
        if not tools:
            return self.guidelines
        if self._with_tools is None:
            self._with_tools = load_guidelines(self._style, tools=True)
        return self._with_tools
