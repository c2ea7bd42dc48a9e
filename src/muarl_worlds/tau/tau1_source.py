"""TAU1's task lists, which its authors keep as Python source.

The source is parsed into a syntax tree and read as data: nothing of it is imported or run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError

TAU1_SPLITS: Mapping[str, tuple[str, ...]] = {"retail": ("test", "train", "dev"), "airline": ("test",)}
"""Each domain's splits; the first is the one that published scores are about."""

_FIELDS = {"Task": ("user_id", "instruction", "actions", "outputs"), "Action": ("name", "kwargs")}
_IGNORED = ("annotator",)


def read_tasks(text: str, place: str) -> list[dict[str, Any]]:
    """The tasks of a ``tasks_*.py`` of TAU1, or of its JSON form: objects with user_id, instruction, actions, outputs.

    DataError with ``place``, and the line where it is Python, if the text is something else.
    """
    if text.lstrip()[:1] in ("[", "{"):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise DataError(f"{place} is not JSON: {problem}") from None
    else:
        rows = _from_python(text, place)
    if not isinstance(rows, list):
        raise DataError(f"{place}: must be a list of tasks")
    return rows


def tasks_json(text: str, place: str) -> str:
    """The JSON form of a ``tasks_*.py``, as it is installed. DataError as ``read_tasks``."""
    return json.dumps(read_tasks(text, place), indent=1, ensure_ascii=False)


def _from_python(text: str, place: str) -> Any:
    """The one list that the source assigns to a name."""
    try:
        body = ast.parse(text).body
        lists = [n.value for n in body if isinstance(n, ast.Assign) and isinstance(n.value, ast.List)]
        if len(lists) != 1:
            raise DataError(f"{place}: it must assign one list of tasks to a name, not {len(lists)}")
        return _value(lists[0], place)
    except SyntaxError as problem:
        raise DataError(f"{place} is not Python: {problem.msg} (line {problem.lineno})") from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise DataError(f"{place} cannot be read as Python: {problem}") from None


def _value(node: ast.expr, place: str) -> Any:
    """A literal, or a call of Task or Action as an object of its arguments."""
    where = f"{place}, line {node.lineno}"
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, bool, int, float))):
        return node.value
    if isinstance(node, ast.List):
        return [_value(item, place) for item in node.elts]
    if isinstance(node, ast.Dict):
        pairs = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                raise DataError(f"{where}: the keys of an object must be strings")
            pairs[key.value] = _value(value, place)
        return pairs
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand, place)
        if type(number) in (int, float):
            return -number
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FIELDS and not node.args:
        return _made(node, node.func.id, place, where)
    raise DataError(f"{where}: only Task(...), Action(...), lists, objects, strings and numbers may stand here")


def _made(node: ast.Call, kind: str, place: str, where: str) -> dict[str, Any]:
    given = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg not in (*_FIELDS[kind], *_IGNORED):
            raise DataError(f"{where}: {kind} has no field {keyword.arg!r}")
        given[keyword.arg] = _value(keyword.value, place)
    missing = [name for name in _FIELDS[kind] if name not in given]
    if missing:
        raise DataError(f"{where}: this {kind} lacks the field {missing[0]!r}")
    return {name: given[name] for name in _FIELDS[kind]}
