"""A tiny world's observations: records in few words, each value right behind its key, and their reading back.

A tiny model learns to copy a value from behind its key. One line for an object's own fields, and one for each object
within it: ``order_id F-10001; status placed``, then ``items: dish_id D-1001; name Pad Thai`` for each in a list and
``account> balance 20.00`` for a single one. A list of objects has a line for each behind a dash, in which the fields of
an object within it have names such as ``flight.origin``.

What is read back is what was written: a text that looks like something else stands in quotation marks (``card "92058";
reserved "no"``), and a record that cannot be written so that it is read back stays JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d\d)?")
_LINE = re.compile(r"(\w+)([:>]) (.*)")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_QUOTED_FIELD = re.compile(rf"\S+ {_QUOTED}(?=; |\Z)")
_QUOTED_PART = re.compile(rf"{_QUOTED}(?=, |\Z)")


def write(value: Any, texts: Collection[str] = ()) -> str:
    """A tool's result in compact form; texts as they are, what has no such form as JSON.

    A text that would be read back as something else stands in quotation marks. ``texts``: fields that always hold
    texts, and so need none.
    """
    written = _written(value, texts)
    if written is not None and _same(value, read(written, texts)):
        return written
    return json.dumps(value, ensure_ascii=not isinstance(value, str), default=str)


def _written(value: Any, texts: Collection[str]) -> str | None:
    """The compact form of a result; None where it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        flat = [_flat(one) for one in value]
        if not any(isinstance(field, Mapping) or _objects(field) for one in flat for field in one.values()):
            return "\n".join(f"- {_fields(one, texts)}" for one in flat)
    if not isinstance(value, Mapping) or _is_deep(value):
        return None
    lines = [_fields(value, texts)]
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            lines.append(f"{key}> {_fields(inner, texts)}")
        elif isinstance(inner, list) and inner and isinstance(inner[0], Mapping):
            lines += [f"{key}: {_fields(one, texts)}" for one in inner if isinstance(one, Mapping)]
    return "\n".join(line for line in lines if line)


def _same(value: Any, read_back: Any) -> bool:
    """Whether this was read of a value. Amounts are written with two digits; what JSON does not know, as its text."""
    if isinstance(value, float):
        return isinstance(read_back, float) and abs(value - read_back) <= 0.006
    if isinstance(value, Mapping):
        return (
            isinstance(read_back, dict)
            and value.keys() == read_back.keys()
            and all(_same(value[k], read_back[k]) for k in read_back)
        )
    if isinstance(value, list):
        return isinstance(read_back, list) and len(value) == len(read_back) and all(map(_same, value, read_back))
    if value is None or isinstance(value, bool):
        return read_back is value
    if isinstance(value, int):
        return isinstance(read_back, int) and not isinstance(read_back, bool) and value == read_back
    return isinstance(read_back, str) and read_back == (value if isinstance(value, str) else str(value))


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the fields of the objects within it as its own."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= (
            {f"{key}.{name}": inner for name, inner in value.items()} if isinstance(value, Mapping) else {key: value}
        )
    return flat


def _is_deep(value: Mapping[str, Any]) -> bool:
    """Whether it holds objects that hold objects."""
    inner = [one for one in value.values() if isinstance(one, Mapping)]
    inner += [
        one for several in value.values() if isinstance(several, list) for one in several if isinstance(one, Mapping)
    ]
    return any(isinstance(deep, Mapping) or _objects(deep) for one in inner for deep in one.values())


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _scalar(value: Any, *, text: bool = False) -> str:
    """A value as it stands behind its key. ``text``: it is one of a field that always holds a text."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return f"[{', '.join(_part(one) for one in value)}]"
    if isinstance(value, float):
        return f"{value:.2f}"
    written = str(value)
    alone = "\n" not in written and _read_fields(f"x {written}", ("x",) if text else ()) == {"x": written}
    return written if isinstance(value, int) or alone else json.dumps(written, ensure_ascii=False)


def _part(value: Any) -> str:
    """One value of a list. Within its quotation marks stands no "; ", at which fields are told apart."""
    written = _scalar(value)
    if isinstance(value, str) and not written.startswith('"') and _list(f"[{written}]") != [value]:
        written = json.dumps(value, ensure_ascii=False)
    return written.replace("; ", ";\\u0020") if isinstance(value, str) else written


def _fields(record: Mapping[str, Any], texts: Collection[str]) -> str:
    """An object's own fields; lists only where they hold no objects."""
    own = {k: v for k, v in record.items() if not isinstance(v, Mapping)}
    plain = {k: v for k, v in own.items() if not (isinstance(v, list) and v and isinstance(v[0], Mapping))}
    return "; ".join(f"{k} {_scalar(v, text=_in(texts, k))}" for k, v in plain.items())


def _in(texts: Collection[str], key: Any) -> bool:
    return bool(texts) and str(key).rpartition(".")[2] in texts


def read(text: str, texts: Collection[str] = ()) -> Any:
    """An observation, JSON or compact, as data; a text that is neither stays one. ``texts``: see ``write``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in ("{", "["):
            return text
    if text.startswith("- "):
        rows = [_read_fields(line.removeprefix("- "), texts) for line in text.split("\n")]
        return [_nested(row) for row in rows] if all(rows) else text
    data: dict[str, Any] = {}
    for line in text.split("\n"):
        inner = _LINE.fullmatch(line)
        fields = _read_fields(inner[3] if inner else line, texts)
        if not fields:
            return text
        if inner is None:
            data |= fields
        elif inner[2] == ">":
            data[inner[1]] = fields
        elif isinstance(before := data.get(inner[1]), list):
            before.append(fields)
        else:
            data[inner[1]] = [fields]
    return data


def _read_fields(line: str, texts: Collection[str]) -> dict[str, Any]:
    pairs = [field.partition(" ") for field in split_fields(line)]
    return {key: _value(text, text_only=_in(texts, key)) for key, space, text in pairs if space and _is_name(key)}


def split_fields(line: str) -> list[str]:
    """The fields of one line, each with its key."""
    return _split(line, "; ", _QUOTED_FIELD)


def _split(text: str, mark: str, quoted: re.Pattern[str]) -> list[str]:
    """A text split at every mark that does not stand in quotation marks."""
    if '"' not in text:
        return text.split(mark)
    parts: list[str] = []
    start = 0
    while True:
        within = quoted.match(text, start)
        end = within.end() if within else text.find(mark, start)
        if end in (-1, len(text)):
            return [*parts, text[start:]]
        parts.append(text[start:end])
        start = end + len(mark)


def _is_name(key: str) -> bool:
    return key.islower() and all(part.isidentifier() for part in key.split("."))


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of ``_flat``."""
    nested: dict[str, Any] = {}
    for key, value in row.items():
        outer, dot, inner = key.partition(".")
        if dot:
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[key] = value
    return nested


def _value(text: str, *, text_only: bool = False) -> Any:
    if text.startswith('"') and text.endswith('"'):
        try:
            return json.loads(text)
        except ValueError:
            return text
    if text_only:
        return text
    if text.startswith("[") and text.endswith("]"):
        return _list(text)
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return {"none": None, "yes": True, "no": False}.get(text, text)


def _list(text: str) -> list[Any]:
    return [_value(part) for part in _split(text[1:-1], ", ", _QUOTED_PART) if part]
