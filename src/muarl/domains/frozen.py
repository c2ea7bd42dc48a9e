"""Records of a shared base: read-only JSON values, their plain copies, and their canonical text."""

from __future__ import annotations

import json
from typing import Any, NoReturn

_MISSING: Any = object()
"""There is no such record."""
_DELETED: Any = object()
"""In place of a record that a world has removed."""


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("this record is shared and read-only; take it with db.table[key] to change it")


class FrozenDict(dict[str, Any]):
    """A JSON object of the shared base. Reading is a dict's; every way of changing it raises TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        return (FrozenDict, (dict(self),))

    def __deepcopy__(self, memo: Any) -> Any:
        return thaw(self)

    def __copy__(self) -> Any:
        return dict(self)


class FrozenList(list[Any]):
    """A JSON array of the shared base. Reading is a list's; every way of changing it raises TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> Any:
        return (FrozenList, (list(self),))

    def __deepcopy__(self, memo: Any) -> Any:
        return thaw(self)

    def __copy__(self) -> Any:
        return list(self)


def freeze(value: Any) -> Any:
    """A read-only deep copy of a JSON value."""
    if isinstance(value, dict):
        return FrozenDict({k: freeze(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(v) for v in value])
    return value


def thaw(value: Any) -> Any:
    """A plain deep copy of a JSON value; other values (pydantic models) are copied by their own means."""
    kind = type(value)
    if kind is FrozenDict or kind is dict:
        return {k: thaw(v) if isinstance(v, (dict, list)) else v for k, v in value.items()}
    if kind is FrozenList or kind is list:
        return [thaw(v) if isinstance(v, (dict, list)) else v for v in value]
    return value.model_copy(deep=True) if hasattr(value, "model_copy") else value


def canonical(value: Any) -> str:
    """Canonical JSON text: keys sorted, Python's default separators, ASCII. TAU2 hashes databases in this form.

    1 and 1.0 differ, as they do for TAU2. Values that JSON has no form for become ``str(value)``.
    """
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, default=str)
