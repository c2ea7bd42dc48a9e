"""What tools answer, as a plan reads it: records whose fields are attributes, and texts with places for values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from muarl.basics.copies import SharedInCopies
from muarl.domains.overlay import sampled
from muarl.language.values import join, normal, say_date, say_day_first

PLACE = re.compile(r"\{([a-z_][\w.]*)(?:\|(\w+))?\}")
"""A place in a text that a value fills: ``{order}``, ``{o.total|money}``."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


class Record(SharedInCopies):
    """An object of JSON with its fields as attributes: ``booking.status``, and by name: ``booking["status"]``.

    A field that it does not have is an AttributeError that names those it has; ``"status" in booking`` asks first.
    It has no methods of its own, so that fields may have any name.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._fields:
            raise AttributeError(f"the record has no field {name!r}; it has {', '.join(self._fields) or 'none'}")
        value = self._fields[name]
        return value if type(value) in _SCALARS else wrapped(value)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __eq__(self, other: object) -> bool:
        return self._fields == (other._fields if isinstance(other, Record) else other)

    def __hash__(self) -> int:
        return hash(tuple(self._fields))

    def __repr__(self) -> str:
        return f"Record({self._fields})"


def wrapped(value: Any) -> Any:
    """JSON as plans read it: objects as records, also within lists."""
    if type(value) in _SCALARS:  # by far most values, and told apart faster than by asking for a Mapping
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return Record(value)
    return [wrapped(one) for one in value] if isinstance(value, (list, tuple)) else value


def plain(value: Any) -> Any:
    """The JSON behind what plans read."""
    if isinstance(value, Record):
        return value._fields
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def rows(value: Any) -> list[Any]:
    """The records of a list, or of a mapping from ids to records; of a database's large table some from all over it."""
    value = plain(value) if isinstance(value, Record) else value
    if isinstance(value, Mapping):
        return [wrapped(one) for one in sampled(value)]
    return [wrapped(one) for one in value] if isinstance(value, Iterable) and not isinstance(value, str) else []


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same: numbers by value, texts without regard to case."""
    return bool(normal(plain(one)) == normal(plain(other)))


def fill(text: str, values: Mapping[str, Any], spoken: Mapping[str, str] | None = None) -> str:
    """A text with its places filled. ``spoken``: forms of slots to use instead of their values.

    LookupError names a place that nothing is known for, or whose value has not the form that it should have.
    """

    def put(match: re.Match[str]) -> str:
        path, form = match[1], match[2]
        if form is None and spoken is not None and path in spoken:
            return spoken[path]
        return show(at(path, values), form)

    return PLACE.sub(put, text)


def at(path: str, values: Mapping[str, Any]) -> Any:
    """What stands at a place of a text, such as "o.total". LookupError if nothing does."""
    first, *rest = path.split(".")
    if first not in values:
        raise LookupError(f"nothing is called {first!r}; there are {', '.join(values)}")
    value = values[first]
    for part in rest:
        try:
            value = value[part]
        except (AttributeError, TypeError, KeyError):
            raise LookupError(f"{first!r} has no {'.'.join(rest)!r}") from None
    return value


def show(value: Any, form: str | None) -> str:
    """A value in words: ``money``, ``euro``, ``pound``, ``plain`` (money without its sign), ``date``, ``day_first``,
    ``list``, ``lower``, or as it is.

    LookupError for a value that has no such form, and for a form that there is not.
    """
    if form is None:
        return f"{value:.2f}" if isinstance(value, float) else str(value)
    if form not in _FORMS:
        raise LookupError(f"there is no form {form!r}; there are {', '.join(_FORMS)}")
    try:
        return _FORMS[form](value)
    except (TypeError, ValueError):
        raise LookupError(f"{plain(value)!r} has no form {form!r}") from None


_FORMS: Mapping[str, Callable[[Any], str]] = {
    "money": lambda value: f"${float(value):,.2f}",
    "euro": lambda value: f"€{float(value):,.2f}",
    "pound": lambda value: f"£{float(value):,.2f}",
    "plain": lambda value: f"{float(value):.2f}",
    "date": lambda value: say_date(str(value)),
    "day_first": lambda value: say_day_first(str(value)),
    "list": lambda value: join([str(one) for one in rows(value)]),
    "lower": lambda value: show(value, None).lower(),
}
