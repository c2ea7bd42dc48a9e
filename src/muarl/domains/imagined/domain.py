"""A domain whose tools a model plays, behind any OpenAI-compatible endpoint; and what is kept of it, so that the same
conversation can be had again without the model.

Specs and policy are the scenario's own, arguments are checked as everywhere. An answer must fit the tool's output
schema and must not contradict the ledger; one that does is asked for again with the reason, a bounded number of times.
A model that cannot do it is no failure of the agent's: InfrastructureError, and the episode is not scored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from muarl.basics.errors import DataError, InfrastructureError
from muarl.basics.seeds import derive_seed
from muarl.domains.base import Domain, Renderer, World
from muarl.domains.frozen import canonical
from muarl.domains.imagined.ledger import Ledger
from muarl.domains.imagined.prompt import Unusable, again, prompt, read_answer
from muarl.domains.imagined.scenario import ImaginedTool, ServiceDescription
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import Kind
from muarl.endpoints.client import Endpoint
from muarl.types.chat import Requestor, ToolCall, ToolResult, ToolSpec
from muarl.types.episode import Usage


@dataclass(frozen=True, slots=True)
class ImaginedCall:
    """One call and how it was answered."""

    name: str
    arguments: Mapping[str, Any]
    observation: str
    """What the agent saw."""
    error: bool = False
    answers: tuple[str, ...] = ()
    """The model's own texts, the last of which was used; none where the ledger knew the answer."""
    rejected: tuple[str, ...] = ()
    """Why each of the others was not used."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly."""
        return {
            "name": self.name,
            "arguments": dict(self.arguments),
            "observation": self.observation,
            "error": self.error,
            "answers": list(self.answers),
            "rejected": list(self.rejected),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ImaginedCall:
        """The inverse of ``to_json``. DataError if a field is missing."""
        try:
            return cls(
                data["name"],
                dict(data["arguments"]),
                data["observation"],
                bool(data.get("error", False)),
                tuple(data.get("answers", ())),
                tuple(data.get("rejected", ())),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise DataError(f"a recorded call of a tool lacks or spoils a field: {problem}") from None


class Teacher(Protocol):
    """Whoever plays the tools."""

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        """The answer to a prompt about a call, and what it cost."""
        ...


@dataclass
class ReplayedTeacher:
    """A teacher that repeats what another one said, in order. DataError where it is asked something else."""

    calls: Sequence[ImaginedCall]
    _left: list[tuple[ImaginedCall, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._left = [(call, text) for call in self.calls for text in call.answers]

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        """The next recorded text."""
        if not self._left:
            raise DataError(f"{call.name} was called, and the recorded conversation has no further answers")
        recorded, text = self._left.pop(0)
        if (recorded.name, dict(recorded.arguments)) != (call.name, dict(call.arguments)):
            raise DataError(f"{call.name} was called with other arguments, or where {recorded.name} was recorded")
        return text, Usage()


Fact = tuple[str, Mapping[str, Any], Any]
"""A call and what it would answer: tool, arguments, result."""
FactsOf = Callable[[Task], Sequence[Fact]]


class EndpointTeacher:
    """Plays tools through an endpoint. ``endpoint.usage`` has what it costs in all."""

    def __init__(self, endpoint: Endpoint, *, temperature: float | None = None, max_tokens: int | None = None) -> None:
        self.endpoint, self.temperature, self.max_tokens = endpoint, temperature, max_tokens

    async def play(self, call: ToolCall, messages: Sequence[Mapping[str, Any]], seed: int) -> tuple[str, Usage]:
        """The model's answer. InfrastructureError if the endpoint fails."""
        reply = await self.endpoint.chat(
            messages,
            seed=seed,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            boundary="world",
            empty_ok=True,
        )
        return reply.content or "", reply.usage


class ImaginedDomain(Domain):
    """A scenario whose tools a teacher plays: an Endpoint, or anything with its ``play``.

    ``tries``: how often an answer is asked for at most. ``facts``: what the world must say about a task's user, known
    beforehand (the ledger starts with it). ``situation``: what the teacher is told of the user, the task's scenario
    by default. ``render``: as for any domain.
    """

    name: ClassVar[str] = "imagined"

    def __init__(
        self,
        scenario: ServiceDescription,
        teacher: Endpoint | Teacher,
        *,
        tries: int = 4,
        facts: FactsOf | None = None,
        situation: Callable[[Task], str] = lambda task: task.scenario,
        render: Renderer | None = None,
    ) -> None:
        if tries < 1:
            raise ValueError(f"tries must be at least 1, not {tries}")
        super().__init__(database={}, policy=scenario.policy, render=render)
        self.scenario = scenario
        self.teacher: Teacher = EndpointTeacher(teacher) if isinstance(teacher, Endpoint) else teacher
        self.tries, self.facts, self.situation = tries, facts, situation

    @property
    def endpoint(self) -> Endpoint | None:
        """The endpoint that plays the tools, None for another teacher."""
        return self.teacher.endpoint if isinstance(self.teacher, EndpointTeacher) else None

    async def aclose(self) -> None:
        """Close the connections of an endpoint that plays the tools."""
        if self.endpoint is not None:
            await self.endpoint.aclose()

    def tool_names(self, requestor: Requestor = "assistant") -> tuple[str, ...]:
        """The names of the agent's tools; the user has none."""
        return tuple(self.scenario.by_name) if requestor == "assistant" else ()

    def tool_specs(self, requestor: Requestor = "assistant") -> tuple[ToolSpec, ...]:
        """The agent's tools, as a model sees them; the user has none."""
        return tuple(t.spec for t in self.scenario.tools) if requestor == "assistant" else ()

    def kind_of(self, tool_name: str) -> Kind:
        """ "read", "write" or "generic". KeyError if there is no such tool."""
        return self.scenario.by_name[tool_name].kind

    def world(self, task: Task | None = None) -> ImaginedWorld:
        """The fresh state of one episode: an empty ledger, or one with the task's facts."""
        return ImaginedWorld(self, task)


class ImaginedWorld(World):
    """One episode's live state. ``ledger``: what has been said; ``calls``: how each call was answered, for replays;
    ``usage``: what the teacher has used. Its tools are waited for in ``answers``; ``call`` cannot be used."""

    domain: ImaginedDomain

    def __init__(self, domain: ImaginedDomain, task: Task | None) -> None:
        super().__init__(domain, None)
        self.task = task
        self.ledger = Ledger(domain.scenario.id_fields)
        self.calls: list[ImaginedCall] = []
        self.usage = Usage()
        for name, arguments, result in domain.facts(task) if domain.facts is not None and task is not None else ():
            self.ledger.keep(domain.scenario.by_name[name], arguments, result)
        self._start = len(self.ledger.events)

    async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
        """The results of all calls of one message, in order. InfrastructureError where the teacher is of no use."""
        for call in calls:
            yield await self._answer(requestor, call)

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Tools that a model plays must be waited for: InfrastructureError, always."""
        raise InfrastructureError(
            f"{call.name} is played by a model and must be waited for: use World.answers",
            boundary="world",
            retryable=False,
        )

    def digest(self) -> str:
        """What was written so far: equal for the same successful writes in any order."""
        return canonical(sorted(canonical({"name": c.name, "arguments": dict(c.arguments)}) for c in self.writes))

    async def _answer(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        tool = self.domain.scenario.by_name.get(call.name) if requestor == "assistant" else None
        if call.invalid is not None:
            return ToolResult(f"Error: the tool call could not be read: {call.invalid}", True)
        if tool is None:
            names = ", ".join(self.domain.tool_names(requestor)) or "none"
            return ToolResult(f"Error: there is no tool {call.name!r}. Tools: {names}.", True)
        problem = tool.arguments.check(call.arguments)
        if problem is not None:
            return ToolResult(f"Error: {call.name}: {problem}", True)
        if call.name == self.domain.scenario.transfer:
            return self._note(call, ToolResult("Transfer successful"))
        before = self.ledger.answer_to(tool, call.arguments)
        if before is not None:
            return self._note(call, ToolResult(self.domain.render(call.name, before)))
        return await self._ask(tool, call)

    async def _ask(self, tool: ImaginedTool, call: ToolCall) -> ToolResult:
        """The teacher's answer, asked for until it can be used."""
        task = self.task
        situation = self.domain.situation(task) if task is not None else ""
        messages = prompt(self.domain.scenario, tool, call.arguments, self.ledger, situation)
        texts: list[str] = []
        rejected: list[str] = []
        for attempt in range(self.domain.tries):
            seed = derive_seed("imagined", "" if task is None else task.id, len(self.calls), attempt)
            text, usage = await self.domain.teacher.play(call, messages, seed)
            self.usage += usage
            texts.append(text)
            try:
                failed, value = self._checked(text, tool, call)
            except Unusable as problem:
                rejected.append(str(problem))
                messages = [*messages, *again(text, str(problem))]
                continue
            return self._take(tool, call, failed, value, texts, rejected)
        raise InfrastructureError(
            f"the model that plays {call.name} gave no usable answer in {self.domain.tries} tries; the last one: "
            f"{rejected[-1]}",
            boundary="world",
        )

    def _checked(self, text: str, tool: ImaginedTool, call: ToolCall) -> tuple[bool, Any]:
        failed, value = read_answer(text, tool)
        wrong = self.ledger.error_problem(tool, call.arguments) if failed else None
        problems = [wrong] if wrong else [] if failed else self.ledger.problems(tool, call.arguments, value)
        if problems:
            raise Unusable("it contradicts what is known: " + "; ".join(problems[:5]))
        return failed, value

    def _take(
        self,
        tool: ImaginedTool,
        call: ToolCall,
        failed: bool,
        value: Any,
        texts: Sequence[str],
        rejected: Sequence[str],
    ) -> ToolResult:
        if failed:
            self.ledger.keep_error(tool, call.arguments, value)
            return self._note(call, ToolResult(f"Error: {value}", True), texts, rejected)
        self.ledger.keep(tool, call.arguments, value)
        if tool.kind == "write":
            self.writes.append(call)
        return self._note(call, ToolResult(self.domain.render(call.name, value)), texts, rejected)

    def _note(
        self, call: ToolCall, result: ToolResult, texts: Sequence[str] = (), rejected: Sequence[str] = ()
    ) -> ToolResult:
        imagined_call = ImaginedCall(
            call.name, dict(call.arguments), result.content, result.error, tuple(texts), tuple(rejected)
        )
        self.calls.append(imagined_call)
        return result


def goal_met(task: Task, world: World) -> bool | None:
    """Whether the writes that succeeded are the task's own, in any order; None for a task without gold actions.

    The most that can be said of a world that has no state but what a model has said of it.
    """
    if task.actions is None:
        return None
    kinds = {a.name: world.domain.kind_of(a.name) for a in task.actions if a.name in world.domain.tool_names()}
    expected = [a for a in task.actions if kinds.get(a.name) == "write"]
    for call in world.writes:
        match = next((a for a in expected if _matches(a, call)), None)
        if match is None:
            return False
        expected.remove(match)
    return not expected


def _matches(action: Action, call: ToolCall) -> bool:
    if action.name != call.name:
        return False
    names = set(action.arguments) | set(call.arguments) if action.compare_args is None else set(action.compare_args)
    return all(action.arguments.get(n) == call.arguments.get(n) for n in names)
