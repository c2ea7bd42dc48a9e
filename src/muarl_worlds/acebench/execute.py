"""The instances of one episode, and ACEBench's two executors over them, oddities included.

Upstream (ACEBench/ACEBench, MIT licence) runs the text of each call through ``eval``, once for every instance that has
a method of the first name in it. Here the text is parsed, and only its values are made; of nested calls there is
``dict``, and every other name is undefined. A call to a method that nobody has gives the result of the call before it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, cast

from muarl_worlds.acebench.classes import CLASSES
from muarl_worlds.acebench.decode import decode, parse
from muarl_worlds.acebench.reckon import Reckoner
from muarl_worlds.acebench.scenario import AceScenario, Language, plain_copy

__all__ = ["ERROR", "NO_QUESTIONS", "Category", "AceExecutor", "instances_of", "json_form", "methods"]

Category = Literal["multi_turn", "multi_step"]

ERROR = "Error during execution: {str(e)}"
"""What a multi-turn message with a failing call is answered, one letter at a time; upstream forgot to fill it in."""

NO_QUESTIONS = "Please do not ask me any questions, use the known conditions to solve the problem"
"""What a multi-step message without readable calls is answered."""

MAX_OUTPUT = 4_000_000
"""Results that come to more characters in one message are left out."""

_UNBOUND = object()
_UNBOUND_TEXT = "cannot access local variable 'func_call_result' where it is not associated with a value"
_FIRST_NAME = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")
_SUGGESTION = re.compile(r"(?<=')\. Did you mean '\w+'\?\Z")
"""What Python 3.13 adds to the error for an unknown argument; upstream's texts are those of Python 3.11."""

Native = tuple[str, Mapping[str, Any]]
"""A call that did not come as text: name and arguments."""


def instances_of(
    language: Language,
    classes: Sequence[str],
    config: Mapping[str, Any],
    state: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    fixed: bool = False,
) -> dict[str, AceScenario]:
    """Fresh objects of the classes a task involves, by name. KeyError for an unknown class.

    ``config``: settings by class. Those of BaseApi are taken over by every class after its own, so that a setting left
    out there falls back to its default. ``state``: attributes by class to be put in place last (worlds of one's own).
    """
    made: dict[str, AceScenario] = {}
    for name in classes:
        instance = CLASSES[language][name]()
        instance.load(config.get(name, {}))
        instance.load(config.get("BaseApi", {}))
        if state is not None:
            instance.put(state.get(name, {}))
        if fixed:
            instance._fixed = True
        made[name] = instance
    return made


def methods(instances: Mapping[str, AceScenario]) -> dict[str, tuple[AceScenario, ...]]:
    """The instances that have each tool, in order: a tool that several inherit is run on all of them."""
    found: dict[str, tuple[AceScenario, ...]] = {}
    for instance in instances.values():
        for name in tools_of(type(instance)):
            found[name] = (*found.get(name, ()), instance)
    return found


def tools_of(cls: type[AceScenario]) -> tuple[str, ...]:
    """The names of a class's tools, inherited ones first."""
    return _tools_of(cast(Any, cls))


@cache
def _tools_of(cls: Any) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for owner in reversed(cls.__mro__):
        names.update(dict.fromkeys(n for n, member in vars(owner).items() if hasattr(member, "__tool_kind__")))
    return tuple(names)


class AceExecutor:
    """Upstream's executor of one episode.

    ``methods``: the instances that have each tool. ``ran``: whether a message was executed, without which nothing is
    scored.
    """

    def __init__(self, instances: dict[str, AceScenario], category: Category) -> None:
        self.instances, self.category = instances, category
        self.methods = methods(instances)
        self.ran = False

    def respond(self, message: str) -> list[Any] | str:
        """What the executor answers a message: results in order, or a text. Undecodable in multi-turn tasks, where
        messages without readable calls do not come here (see ``decode.to_execution``)."""
        if self.category == "multi_turn":
            return self.run([call.text for call in decode(message, others="passed over")])
        try:
            calls = decode(message)
        except ValueError:
            return NO_QUESTIONS
        return self.run([call.text for call in calls])

    def run(self, calls: Sequence[str | Native]) -> list[Any]:
        """Run the calls of one message. The answer has an item for each, or is ERROR letter by letter."""
        previous: Any = _UNBOUND
        results: list[Any] = []
        for call in calls:
            try:
                for result in self._results(call):
                    previous = result
                if previous is _UNBOUND:
                    raise UnboundLocalError(_UNBOUND_TEXT)
                results.append(previous)
            except Exception as problem:
                if self.category == "multi_turn":
                    return list(ERROR)
                results.append(f"Error during execution: {error_text(problem)}")
        self.ran = True
        return answers(results)

    def final_state(self) -> list[dict[str, Any]]:
        """The scored attributes of every class, as JSON; nothing if no message was executed."""
        return saved(self.instances) if self.ran else []

    def copy(self) -> AceExecutor:
        """Another episode in the same state."""
        twin = AceExecutor({name: instance.copy() for name, instance in self.instances.items()}, self.category)
        twin.ran = self.ran
        return twin

    def _results(self, call: str | Native) -> Iterator[Any]:
        if not isinstance(call, str):
            name, arguments = call
            for instance in self.methods.get(name, ()):
                yield getattr(instance, name)(**{k: plain_copy(v) for k, v in arguments.items()})
            return
        first = _FIRST_NAME.search(call)
        targets = () if first is None else self.methods.get(first[1], ())
        if not targets or first is None:
            return
        if first.start():
            call = f"{call[: first.start()]}_instance.{call[first.start() :]}"
        tree = parse(call.lstrip(" \t")).body
        _compile(tree)
        for instance in targets:
            yield _evaluate(tree, getattr(instance, first[1]) if not first.start() else None)


def saved(instances: Mapping[str, AceScenario]) -> list[dict[str, Any]]:
    """The scored attributes of every class, through JSON: whole-number keys become text."""
    return [{name: json_form(instance.saved_state())} for name, instance in instances.items()]


def answers(results: Sequence[Any]) -> list[Any]:
    """Results as upstream shows them: an object as JSON, else Python's own text; and then what JSON makes of that."""
    shown: list[Any] = []
    room = MAX_OUTPUT
    for result in results:
        text = result if isinstance(result, str) else _result_text(result)
        room -= len(text)
        if room < 0:
            text = "Error during execution: the results are too long"
        try:
            shown.append(json.loads(text))
        except (ValueError, RecursionError):
            shown.append(text)
    return shown


def _result_text(result: Any) -> str:
    try:
        return json.dumps(result) if type(result) is dict else str(result)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return str(result)
    except (ValueError, RecursionError) as problem:  # a number of more digits than Python writes
        return f"Error during execution: {problem}"


def json_form(value: Any) -> Any:
    """A value through JSON and back; what JSON has no form for becomes its Python text."""
    try:
        return json.loads(json.dumps(value, default=repr))
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def error_text(problem: Exception) -> str:
    """An error's text as Python 3.11 has it."""
    return _SUGGESTION.sub("", str(problem))


def _compile(tree: ast.expr) -> None:
    """What Python's compiler finds wrong with calls before any is run."""
    for node in ast.walk(tree):
        names = [keyword.arg for keyword in node.keywords] if isinstance(node, ast.Call) else []
        if "__debug__" in names:
            raise SyntaxError("cannot assign to __debug__ (<string>, line 1)")
        if len(names) > len(set(names)):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise SyntaxError(f"keyword argument repeated: {twice} (<string>, line 1)")


def _evaluate(node: ast.expr, method: Callable[..., Any] | None) -> Any:
    """The value of a call's tree, whose function is ``method``; None if that is to be looked up by its name, too."""
    if not isinstance(node, ast.Call):
        raise ValueError("only calls are run")
    function = method if method is not None and isinstance(node.func, ast.Name) else _function(node.func)
    return function(**{str(keyword.arg): _value(keyword.value) for keyword in node.keywords})


def _function(node: ast.expr) -> Callable[..., Any]:
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name) and node.id == "dict":
        return dict
    if isinstance(node, ast.Name):
        raise NameError(f"name '{node.id}' is not defined")
    raise TypeError(f"'{type(Reckoner().value(node)).__name__}' object is not callable")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Call():
            return _evaluate(node, None)
        case ast.Name():
            raise NameError(f"name '{node.id}' is not defined")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)):
            raise NameError(f"name '{name}' is not defined")
        case ast.List():
            return [_value(item) for item in node.elts]
        case ast.Tuple():
            return tuple(_value(item) for item in node.elts)
        case ast.Dict():
            return {_value(k): _value(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    return Reckoner().value(node)
