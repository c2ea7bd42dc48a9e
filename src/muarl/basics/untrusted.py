"""Reading JSON and YAML that somebody else wrote: bounded in size, depth and digits, and refused in one sentence; and
showing their texts on a terminal.

The standard readers take any depth until Python's stack ends (RecursionError), and YAML's aliases multiply a few bytes
into gigabytes. Everything from outside (configurations, run folders, logs, manifests, requests, what models write) is
read here, so that a hostile text is a ValueError like any other malformed one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from muarl.basics.errors import DataError

DEPTH = 100
"""Levels of lists and objects in a text from outside; a model's call may have 32 (see toolcalls.py)."""
FILE_BYTES = 64 << 20
"""Bytes of a JSON file that is read as one value."""
LINE_BYTES = 64 << 20
"""Bytes of a line of JSON lines: an episode of a million tokens has fewer."""
YAML_BYTES = 256 << 10
"""Bytes of a YAML file: the resolved configuration of a run has about ten thousand."""
YAML_DEPTH = 40
YAML_NODES = 50_000
_WORD = 64
"""Most bits of a whole number in YAML."""

_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS = bytes(b for b in range(256) if b not in b'[]{}"')


def parse_json(
    text: str | bytes,
    *,
    depth: int = DEPTH,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
    number: Callable[[str], Any] | None = None,
) -> Any:
    """The value of a JSON text. ValueError if it is no JSON, nested deeper than ``depth`` levels, or holds a whole
    number of thousands of digits. ``pairs``, ``constant``, ``number``: as json.loads' object_pairs_hook,
    parse_constant and parse_float."""
    if levels(text) > depth:
        raise ValueError(f"nested deeper than {depth} levels")
    plain = text if isinstance(text, str) else text.decode("utf-8-sig", "surrogatepass")
    try:
        return json.loads(plain, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
    except ValueError as problem:
        if "integer string conversion" in str(problem):
            raise ValueError("a whole number has thousands of digits") from None
        raise


def parse_finite_json(text: str | bytes) -> Any:
    """The same for what is sent on as JSON again, which has no NaN and no Infinity: ValueError for those, and for a
    number such as 1e999, which would be read as one."""
    return parse_json(text, constant=_no_constant, number=_finite)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def to_float(value: float, place: str) -> float:
    """A number of JSON as a float. DataError names the place of a whole number that is too large to be one."""
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"{place}: a whole number of more than 300 digits is too large.") from None


def levels(text: str | bytes) -> int:
    """How deep the lists and objects of a JSON text are nested, without reading it (so that no depth is a danger)."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    # Without what is escaped, every quote begins or ends a string, and brackets outside of strings are structure.
    bare = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
    brackets = b"".join(bare.split(b'"')[::2])
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def read_text(path: Path, most: int = FILE_BYTES) -> str:
    """The text of a file of at most so many bytes. DataError names the file and what is wrong."""
    try:
        with open(path, "rb") as file:
            raw = file.read(most + 1)
        if len(raw) > most:
            raise DataError(f"{path}: is larger than {most >> 10} KiB, which no such file should be.")
        return raw.decode("utf-8-sig")
    except OSError as problem:
        raise DataError(f"{path}: cannot be read: {problem.strerror or problem}.") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}: is not UTF-8 text: {problem.reason} at byte {problem.start}.") from None


def read_lines(path: Path, most: int = LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, each with its number from 1 and its newline. DataError names one of more than so many bytes,
    which is never read whole."""
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(most + 1):
            number += 1
            if len(line) > most:
                raise DataError(
                    f"{path}, line {number}: is longer than {most >> 20} MiB, which no such line should be."
                )
            yield number, line


def read_json(path: Path, *, most: int = FILE_BYTES) -> Any:
    """The value in a JSON file. DataError names the file and what is wrong."""
    try:
        return parse_json(read_text(path, most))
    except ValueError as problem:
        raise DataError(f"{path}: is not valid JSON: {problem}.") from None


def read_json_object(path: Path, *, most: int = FILE_BYTES) -> dict[str, Any]:
    """The object in a JSON file. DataError, too, if it holds another value."""
    value = read_json(path, most=most)
    if not isinstance(value, dict):
        raise DataError(f"{path}: must hold a JSON object, and holds a {type(value).__name__}.")
    return value


def read_yaml(path: Path, *, label: str | None = None) -> Any:
    """The value in a YAML file. DataError names the file (or ``label``), the line and what is wrong."""
    try:
        return parse_yaml(read_text(path, YAML_BYTES))
    except ValueError as problem:
        raise DataError(f"{label or path}: {problem}.") from None


def parse_yaml(text: str) -> Any:
    """The plain value of a YAML text: mappings, lists, text, numbers, booleans and null; a date stays text.

    ValueError with the line where it holds an alias, a tag, a key twice or one that is no single value, where it
    exceeds the bounds of this module, or is not valid YAML."""
    if len(text) > YAML_BYTES:
        raise ValueError(f"more than {YAML_BYTES >> 10} KiB of YAML")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  a SafeLoader with bounds
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        if isinstance(problem, yaml.constructor.ConstructorError):
            raise ValueError(f"{where}{problem.problem}") from None
        context = f"{problem.context}, " if problem.context else ""
        raise ValueError(f"{where}not valid YAML: {context}{problem.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as problem:
        raise ValueError(f"not valid YAML: {' '.join(str(problem).split())}") from None


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with fewer words: no aliases, tags, merges and dates; bounded; each key once."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent):
            raise _refused(f"*{event.anchor} is an alias; write the value out", event)
        if getattr(event, "tag", None) is not None:
            raise _refused(f"{event.tag} is a tag; write the plain value", event)
        if self._depth >= YAML_DEPTH:
            raise _refused(f"nested deeper than {YAML_DEPTH} levels", event)
        if self._nodes > YAML_NODES:
            raise _refused(f"more than {YAML_NODES} values", event)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key must be a single value, not a list or mapping", key)
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise _refused(f"the key {name!r} occurs twice", key)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """A whole number of at most 64 bits: a longer one is a mistake, or an attack on what would print it."""
        try:
            number = self.construct_yaml_int(node) if len(node.value) <= 2 * _WORD else None
        except ValueError:  # such as 0b or 1_
            return node.value
        if number is None or not -(1 << _WORD - 1) <= number < 1 << _WORD:
            raise _refused(f"a whole number of more than {_WORD} bits", node)
        return number


def _refused(text: str, what: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, text, what.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag.rpartition(":")[2] not in ("timestamp", "merge", "value")]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# Control characters but for tabs and ends of lines, bidirectional overrides, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with such characters as their code points: ``\\u001b`` (which JSON reads as the character itself)."""
    return _UNSEEN.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
