"""The API objects of one BFCL episode, and what running a call on them gives: the text that the model reads.

Official semantics are BFCL's: a call string is rewritten and evaluated (see ``calls``), nothing is checked, and what a
call did before it failed stays done. With ``checked`` (training), a call is taken as it stands, its arguments are
checked against the tool's schema first, a read changes nothing, and a call that fails leaves the state as it was.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from muarl.domains.tooling import Tool, tools_of
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.apis import api_class
from muarl_worlds.bfcl.calls import CallReader, ToolNames, ToolRef, parse
from muarl_worlds.bfcl.expressions import weight
from muarl_worlds.bfcl.syntax import UnsupportedSyntax

ERROR = "Error during execution: "
"""How the text of a call that raised begins."""

MAX_TEXT = 1_000_000
"""The longest text that a call may give, in characters."""

MAX_GIVEN = 30_000_000
"""How much the arguments of all writing calls of an episode may weigh together: what they say may stay in the state."""

MAX_TEXTS = 30_000_000
"""The most that the calls of one episode may give together."""

_SUGGESTION = re.compile(r"(?<=')\. Did you mean '\w+'\?\Z")
"""What Python 3.13 adds to the error for an unknown argument; BFCL's texts are those of Python 3.11."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call gave: the exact text. ``error``: it raised, or gave an object that says "error".

    ``wrote``: it changed the state by a tool that writes.
    """

    content: str
    error: bool = False
    wrote: bool = False


@cache
def tool_names(revision: Revision, classes: tuple[str, ...]) -> ToolNames:
    """The tools of some classes. KeyError if there is no such class. No two classes have a tool of the same name."""
    owners = {tool: name for name in classes for tool in class_tools(revision, name)}
    writers = (tool for tool, name in owners.items() if class_tools(revision, name)[tool].kind == "write")
    return ToolNames(classes, owners, frozenset(writers))


@cache
def class_tools(revision: Revision, name: str) -> Mapping[str, Tool]:
    """The tools of a class, by name. KeyError if there is no such class."""
    return tools_of(api_class(revision, name))


def load_apis(
    revision: Revision,
    classes: Iterable[str],
    config: Mapping[str, Any],
    long_context: LongContext | None = None,
) -> dict[str, Api]:
    """New objects of these classes in a scenario's initial state; a class that it leaves out has its own defaults."""
    made: dict[str, Api] = {}
    for name in classes:
        kind = api_class(revision, name)
        made[name] = kind()
        if not kind.stateless:
            made[name].load(config.get(name, {}), long_context)
    return made


class Instances:
    """The API objects of one episode.

    ``label``: what BFCL would put into the names of the objects, which show where a call's string literals name a tool:
    the model's name and the entry's id. ``checked``: see above.
    """

    __slots__ = ("_checked", "_given", "_label", "_names", "_revision", "_texts", "_wrote", "apis")

    def __init__(
        self, revision: Revision, apis: Mapping[str, Api], *, label: str = "model", checked: bool = False
    ) -> None:
        self.apis = dict(apis)
        self._revision, self._label, self._checked = revision, label, checked
        self._names = tool_names(revision, tuple(apis))
        self._texts = self._given = 0
        self._wrote = False

    def copy(self, *, label: str | None = None, checked: bool | None = None) -> Instances:
        """Other objects in the same state."""
        return Instances(
            self._revision,
            {name: api.copy() for name, api in self.apis.items()},
            label=self._label if label is None else label,
            checked=self._checked if checked is None else checked,
        )

    def execute(self, text: str) -> CallOutcome:
        """Run a call string."""
        self._wrote = False
        try:
            value = self._evaluate(text)
            content = result_text(value)
        except Exception as error:
            return self._failed(error)
        return self._done(value, content)

    def run(self, owner: str, tool: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """Run a tool of a class with named arguments, which are taken as they are."""
        self._wrote = False
        try:
            if self._names.owners.get(tool) != owner:
                raise AttributeError(f"'{owner}' object has no attribute '{tool}'")
            value = self._invoke(ToolRef(owner, tool), (), arguments)
            content = result_text(value)
        except Exception as error:
            return self._failed(error)
        return self._done(value, content)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """Run a tool by its name alone, with named arguments."""
        owner = self._names.owners.get(tool)
        if owner is None:
            self._wrote = False
            return self._failed(NameError(f"name '{tool}' is not defined"))
        return self.run(owner, tool, arguments)

    def state(self) -> dict[str, dict[str, Any]]:
        """The public attributes of every object, by class; live, not to be changed."""
        return {name: api.state() for name, api in self.apis.items()}

    def digest(self, *, private: bool = False) -> str:
        """64 hex digits of the public state, the same for states that BFCL's checker takes for equal.

        ``private``: of all attributes, what BFCL does not compare included.
        """
        parts = {
            name: {k: plain(v) for k, v in vars(api).items() if private or not k.startswith("_")}
            for name, api in self.apis.items()
        }
        text = json.dumps(parts, sort_keys=True, default=repr)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def object_name(self, owner: str) -> str:
        """What BFCL calls the object of a class."""
        if self._revision == "v3":
            return f"{self._label}_{owner.lower()}_instance"
        return f"{self._label}_{owner}_instance"

    def _evaluate(self, text: str) -> Any:
        parsed = parse(text, self._names, rewrite=not self._checked)
        if parsed.problem is not None:
            raise UnsupportedSyntax(parsed.problem)
        if parsed.plain is not None:
            return self._invoke(*parsed.plain)
        assert parsed.tree is not None
        reader = CallReader(self._names, parsed.mark, self._invoke, self.object_name)
        try:
            value = reader.read(parsed.tree)
        except Exception as error:
            raise UnsupportedSyntax(reader.named(error_text(error))) from None
        if isinstance(value, ToolRef) or callable(value):
            raise UnsupportedSyntax("this is a function that is not called")
        return value

    def _invoke(self, ref: ToolRef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if ref.tool in self._names.writers:
            self._given += weight([args, dict(kwargs)])
            if self._given > MAX_GIVEN:
                raise UnsupportedSyntax("too much has been written")
        if self._checked:
            return self._invoke_checked(ref, args, kwargs)
        value = getattr(self.apis[ref.owner], ref.tool)(*args, **kwargs)
        if ref.tool in self._names.writers and not _is_error(value):
            self._wrote = True
        return value

    def _invoke_checked(self, ref: ToolRef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        known = class_tools(self._revision, ref.owner)[ref.tool]
        order = list(known.schema.spec.parameters.get("properties", {}))
        given = dict(zip(order, args, strict=False))
        twice = next((name for name in given if name in kwargs), None)
        if len(args) > len(order) or twice is not None:
            wrong = "too many arguments" if twice is None else f"the argument '{twice}' is given twice"
            raise UnsupportedSyntax(f"{ref.tool}: {wrong}.")
        given |= kwargs
        problem = known.schema.check(given)
        if problem is not None:
            raise UnsupportedSyntax(f"{ref.tool}: {problem}")
        before = self.apis[ref.owner].copy()
        failed = True
        try:
            value = getattr(self.apis[ref.owner], ref.tool)(**known.schema.convert(given))
            failed = _is_error(value)
        finally:
            if failed or known.kind != "write":
                self.apis[ref.owner] = before
        self._wrote |= known.kind == "write" and not failed
        return value

    def _done(self, value: Any, content: str) -> CallOutcome:
        self._texts += len(content)
        if len(content) > MAX_TEXT or self._texts > MAX_TEXTS:
            return CallOutcome(f"{ERROR}the result is too long", True, self._wrote)
        return CallOutcome(content, _is_error(value), self._wrote)

    def _failed(self, error: Exception) -> CallOutcome:
        content = ERROR + error_text(error)
        self._texts += len(content)
        if len(content) > MAX_TEXT or self._texts > MAX_TEXTS:
            content = f"{ERROR}the call is too long"
        return CallOutcome(content, True, self._wrote)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and "error" in value


def result_text(value: Any) -> str:
    """A tool's result as BFCL shows it: text as it is, an object as JSON if that can be, else as Python writes it."""
    if type(value) is str:
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            pass
    return str(value)


def error_text(error: Exception) -> str:
    """The text of an error, the same on every Python."""
    if isinstance(error, MemoryError):
        return "the call is too large"
    text = str(error)
    return _SUGGESTION.sub("", text) if isinstance(error, TypeError) else text


def plain(value: Any) -> Any:
    """A value in a form in which equal ones are written the same: an object by its own public attributes."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {f"{type(k).__name__}:{k}" if isinstance(k, str) else f":{plain(k)}": plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, random.Random):
        return hashlib.sha256(repr(value.getstate()).encode()).hexdigest()
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    named = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_") and k != "parent"}
    return {k: plain(v) for k, v in named.items()} if named else repr(value)


def json_state(state: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A state as JSON values, in Python's writing (repr) where JSON has no form for one."""
    return {name: {key: _json(value) for key, value in attributes.items()} for name, attributes in state.items()}


def _json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, default=_form))
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _form(value: Any) -> Any:
    """What stands for a value that JSON does not know: a file tree as names and contents, a set as a sorted list."""
    if hasattr(value, "to_json"):
        return value.to_json()
    return sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else repr(value)
