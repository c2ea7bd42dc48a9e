"""ACEBench as a Domain: which classes a task involves, what its tools look like, and the world that they make."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Domain, Renderer, Semantics, World
from muarl.domains.docstrings import parse_docstring
from muarl.domains.frozen import canonical
from muarl.domains.schema import ToolSchema, tool_schema
from muarl.domains.tasks import Task
from muarl.domains.tooling import Tool
from muarl.types.chat import Requestor, ToolCall, ToolResult, ToolSpec
from muarl_worlds.acebench import documents
from muarl_worlds.acebench.classes import CLASSES, class_named
from muarl_worlds.acebench.execute import (
    ERROR,
    AceExecutor,
    Category,
    Native,
    error_text,
    instances_of,
    json_form,
    saved,
    tools_of,
)
from muarl_worlds.acebench.scenario import AceScenario, Language

_POLICIES = Path(__file__).parent / "policies"
_CALLS = {"en": "Function Calls:", "zh": "函数调用："}
"""The heading of what upstream's policies say of calls written as text."""


class AceBench(Domain):
    """ACEBench's phone and travel desk in one language.

    A task's ``initial_data`` says what its world is made of, all optional: ``classes``, the names of the classes it
    involves (default: all); ``config``, settings by class as upstream's ``initial_config``; ``state``, attributes by
    class for worlds other than upstream's; ``category``, "multi_turn" (default) or "multi_step"; ``functions``, the
    documents of the tools that are offered, where they are not the classes' own.

    In "official" semantics calls run as in upstream's executors, quirks included. In "fixed" they are checked first, a
    call that fails changes nothing, errors say what is wrong, results are JSON, only tools that exist are offered, and
    what upstream's classes do not check is checked (``AceScenario._fixed``). A subclass may add tools of its own, which
    need no instance.
    """

    name: ClassVar[str] = "acebench"

    def __init__(
        self,
        language: Language = "en",
        *,
        policy: str | None = None,
        tools: Sequence[str] | None = None,
        render: Renderer | None = None,
        semantics: Semantics = "fixed",
    ) -> None:
        if language not in CLASSES:
            raise ConfigError(f"language: must be one of {', '.join(CLASSES)}, not {language!r}")
        super().__init__(policy=policy, render=render, semantics=semantics)
        self.language: Language = language
        self._own = frozenset(self._tools)
        everything = {**toolbox(language), **self._tools}
        unknown = [n for n in tools or () if n not in everything]
        if unknown:
            raise ConfigError(f"tools: {self.name} has no tool {unknown[0]!r}; it has {', '.join(everything)}")
        self._tools = {n: t for n, t in everything.items() if tools is None or n in tools}

    def classes_of(self, task: Task | None) -> tuple[str, ...]:
        """The classes that a task involves. DataError names one that there is not."""
        wanted = tuple(_setting(task, "classes", tuple(CLASSES[self.language])))
        for name in wanted:
            if name not in CLASSES[self.language]:
                raise DataError(f"task {getattr(task, 'id', None)!r}: class {name!r} is unknown")
        return wanted

    def specs_for(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools of the classes that the task involves, or those its own documents describe."""
        involved = CLASSES[self.language]
        there = {tool: None for name in self.classes_of(task) for tool in tools_of(involved[name])}
        there |= dict.fromkeys(self._own)
        documents = _setting(task, "functions", None)
        if documents is None:
            return tuple(self._tools[name].schema.spec for name in there if name in self._tools)
        given = tuple(spec_of(document) for document in documents)
        if self.semantics == "official":
            return given
        return tuple(spec for spec in given if spec.name in there and spec.name in self._tools)

    def policy_for(self, task: Task) -> str:
        """The policy given to the domain, else upstream's for the classes involved: the travel desk's, the phone's.

        In "fixed" semantics without what it says of calls written as text. Upstream has none for multi-step tasks,
        whose agent is told to work alone; such tasks get one of ours.
        """
        if self._policy_text:
            return self._policy_text
        native = self.semantics == "fixed"
        if native and _setting(task, "category", "multi_turn") == "multi_step":
            return policy("alone", self.language)
        classes = self.classes_of(task)
        named = [n for n, c in (("travel", "Travel"), ("phone", "BaseApi")) if c in classes]
        return "".join(policy(name, self.language, native=native) for name in named)

    def world(self, task: Task | None = None) -> AceWorld:
        """The fresh state of one episode."""
        return AceWorld(self, task)

    def instances(self, task: Task | None) -> dict[str, AceScenario]:
        """Fresh objects of the classes that a task involves."""
        config, state = _setting(task, "config", {}), _setting(task, "state", None)
        fixed = self.semantics == "fixed"
        if fixed:  # upstream misspells one class in a configuration
            config = {class_named(name) or name: settings for name, settings in config.items()}
        return instances_of(self.language, self.classes_of(task), config, state, fixed=fixed)


class AceWorld(World):
    """One episode's live state: ``instances`` by class name."""

    __slots__ = ("_methods", "executor")

    domain: AceBench

    def __init__(self, domain: AceBench, task: Task | None) -> None:
        self.domain, self.task = domain, task
        self.writes: list[ToolCall] = []
        self._kits = {}
        category: Category = _setting(task, "category", "multi_turn")
        self.executor = AceExecutor(domain.instances(task), category)
        self._methods = self.executor.methods
        domain.prepare(self)

    @property
    def instances(self) -> dict[str, AceScenario]:
        """The live objects."""
        return self.executor.instances

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Run one call."""
        return next(iter(self.call_all(requestor, [call])))

    def call_all(self, requestor: Requestor, calls: Iterable[ToolCall]) -> Iterator[ToolResult]:
        """Run the calls of one message. In "official" semantics they are run together, before the first result, and in
        a multi-turn task all of them answer ERROR if one fails."""
        wanted = list(calls)
        broken = next((c.invalid for c in wanted if c.invalid is not None), None)
        if self.domain.semantics == "fixed" or broken is not None or requestor != "assistant":
            for call in wanted:
                yield self._call_fixed(requestor, call)
            return
        yield from self._call_official(wanted)

    def execute_message(self, message: str) -> list[Any] | str:
        """What upstream's executor answers a message in which calls stand as text. Undecodable: see ``AceExecutor``."""
        return self.executor.respond(message)

    def final_state(self) -> list[dict[str, Any]]:
        """The scored attributes of every class through JSON. In "official" semantics nothing if nothing was run."""
        return self.executor.final_state() if self.domain.semantics == "official" else saved(self.instances)

    def state(self) -> dict[str, dict[str, Any]]:
        """All attributes by class, live."""
        return {name: instance.state() for name, instance in self.instances.items()}

    def digest(self) -> str:
        """64 hex digits of the whole state, equal if and only if two states are."""
        return hashlib.sha256(canonical(json_form(self.state())).encode()).hexdigest()

    def json_state(self) -> Mapping[str, Mapping[str, Any]]:
        """All attributes, by class."""
        found: Mapping[str, Mapping[str, Any]] = json_form(self.state())
        return found

    def full_hash(self, requestor: Requestor = "assistant") -> str | None:
        """``digest``; None for the user, who has no state."""
        return self.digest() if requestor == "assistant" else None

    def invoke(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool without checks or rendering; whatever it raises passes through."""
        if requestor != "assistant":
            raise ValueError("User tools not available")
        result, found = None, False
        for owner in self._owners(name):
            result, found = getattr(owner, name)(**arguments), True
        if not found:
            raise ValueError(f"Tool '{name}' not found.")
        return result

    def _owners(self, name: str) -> tuple[Any, ...]:
        return (self.domain,) if name in self.domain._own else self._methods.get(name, ())

    def _call_official(self, calls: Sequence[ToolCall]) -> list[ToolResult]:  # type: ignore[override]
        texts: list[str | Native] = [
            c.raw if c.raw is not None else (c.name, c.arguments) for c in calls if c.raw != ""
        ]
        answers = self.executor.run(texts)
        if self.executor.category == "multi_turn" and answers == list(ERROR):
            return [ToolResult(ERROR, True) for _ in calls]
        results, left = [], iter(answers)
        for call in calls:
            if call.raw == "":  # a message that is executed without any call in it
                results.append(ToolResult(""))
                continue
            answer = next(left)
            failed = isinstance(answer, str) and answer.startswith("Error during execution: ")
            if not failed and self._writes(call.name):
                self.writes.append(call)
            results.append(ToolResult(result_text(answer), failed))
        return results

    def _writes(self, name: str) -> bool:
        found = toolbox(self.domain.language).get(name)
        return found is not None and found.kind == "write" and name in self._methods

    def _call_fixed(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        domain = self.domain
        owners = self._owners(call.name) if requestor == "assistant" and call.name in domain._tools else ()
        if call.invalid is not None:
            return _problem(f"the tool call could not be read: {call.invalid}")
        if not owners:
            there = [n for n in domain._tools if self._owners(n)] if requestor == "assistant" else []
            return _problem(f"there is no tool {call.name!r}. Tools: {', '.join(there) or 'none'}.")
        known = domain._tools[call.name]
        wrong = known.schema.check(call.arguments)
        if wrong is not None:
            return _problem(f"{call.name}: {wrong}")
        before = [(o, o.copy()) for o in owners if isinstance(o, AceScenario)]
        result: Any = None
        try:
            for owner in owners:
                result = getattr(owner, call.name)(**call.arguments)
            content = domain.render(call.name, result)
        except Exception as problem:
            _restore(before)
            return _problem(error_text(problem) or type(problem).__name__)
        if known.kind != "write":
            _restore(before)  # a read changes nothing, whatever its code does
        elif _succeeded(result, before):
            self.writes.append(call)
        self.executor.ran = True
        domain.sync(self)
        return ToolResult(content)


@cache
def toolbox(language: Language) -> Mapping[str, Tool]:
    """Every tool of the language's classes, with descriptions in that language."""
    found: dict[str, Tool] = {}
    for cls in CLASSES[language].values():
        for name in tools_of(cls):
            if name not in found:
                method = inspect.getattr_static(cls, name)
                schema = tool_schema(method)
                if language == "zh":
                    schema = _in_chinese(schema, name)
                found[name] = Tool(name, method.__tool_kind__, schema)
    return found


def _in_chinese(schema: ToolSchema, name: str) -> ToolSchema:
    text = next(tools[name] for tools in documents.ZH.values() if name in tools)
    description, arguments = parse_docstring(text)
    parameters = json.loads(json.dumps(schema.spec.parameters))
    for argument, words in arguments.items():
        parameters["properties"][argument]["description"] = words
    return replace(schema, spec=replace(schema.spec, description=description, parameters=parameters))


def spec_of(document: Mapping[str, Any]) -> ToolSpec:
    """A tool as one of upstream's documents describes it, its parameters as JSON Schema."""
    parameters = _schema(document["parameters"])
    return ToolSpec(document["name"], document["description"], parameters, doc=document)


_TYPES = {"dict": "object", "list": "array"}


def _schema(given: Any) -> Any:
    """Upstream's types in JSON Schema's words; a required name that no property has is left out."""
    if not isinstance(given, Mapping):
        return given
    out = dict(given)
    if "type" in out:
        out["type"] = _TYPES.get(out["type"], out["type"])
    if isinstance(out.get("properties"), Mapping):
        out["properties"] = {name: _schema(value) for name, value in out["properties"].items()}
        out["required"] = [name for name in out.get("required", []) if name in out["properties"]]
    if "items" in out:
        out["items"] = _schema(out["items"])
    return out


@cache
def policy(name: str, language: Language, *, native: bool = False) -> str:
    """One of the policies: "phone", "travel" (upstream's), "alone" (ours). ``native``: for calls that are not text."""
    text = (_POLICIES / f"{name}_{language}.md").read_text(encoding="utf-8")
    if not native or _CALLS[language] not in text:
        return text
    before, _, after = text.partition(_CALLS[language])
    return before + after.split("\n", 2)[2].lstrip("\n")


def result_text(answer: Any) -> str:
    """One of an executor's results as the text of a tool message; ``read_result`` is its inverse."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def read_result(text: str) -> Any:
    """What upstream's history shows for a result: JSON if it is some, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _setting(task: Task | None, name: str, default: Any) -> Any:
    given = None if task is None or task.initial_data is None else task.initial_data.get(name)
    return default if given is None else given


def _problem(text: str) -> ToolResult:
    return ToolResult(json.dumps({"error": text}, ensure_ascii=False), True)


def _restore(before: Sequence[tuple[AceScenario, AceScenario]]) -> None:
    for instance, old in before:
        instance.__dict__.clear()
        instance.__dict__.update(old.__dict__)


def _succeeded(result: Any, before: Sequence[tuple[AceScenario, AceScenario]]) -> bool:
    if isinstance(result, Mapping) and "status" in result:
        return result["status"] is True
    return not before or any(vars(instance) != vars(old) for instance, old in before)
