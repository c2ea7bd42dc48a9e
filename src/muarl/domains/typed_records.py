"""How a scenario's tools say what they answer: typed records, of which an output schema is made.

A record is a ``TypedDict`` marked with ``@record("order_id")``: an object of the world, known by that field. What is
marked ``Volatile`` may differ from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

T = TypeVar("T")
RECORD, VOLATILE = "x-record", "x-volatile"
"""Keywords of output schemas: the field that an object is known by; a field that may differ from look to look."""

Date = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", description="a date, such as 2026-03-14")]
Time = Annotated[str, Field(pattern=r"^\d\d:\d\d$", description="a time of day, such as 14:30")]
Money = Annotated[float, Field(ge=0, description="US dollars")]


def Id(prefix: str, digits: int) -> Any:
    """The field of an id: a prefix and so many digits."""
    example = f"{prefix}{'123456789'[:digits]}"
    return Field(pattern=f"^{prefix}\\d{{{digits}}}$", description=f"an id, such as {example}")


Volatile = Field(json_schema_extra={VOLATILE: True})


def record(key: str | None = None) -> Callable[[type[T]], type[T]]:
    """Mark a ``TypedDict``: closed to other fields, and, where ``key`` is given, a record known by that field."""
    extra: dict[str, Any] = {} if key is None else {RECORD: key}
    return with_config(ConfigDict(extra="forbid", json_schema_extra=extra))


@cache
def output_schema(method: Any) -> dict[str, Any]:
    """The JSON schema of what a tool's method returns, from its hint; a method without one may return anything."""
    hint = get_type_hints(method, include_extras=True).get("return", Any)
    return TypeAdapter(hint).json_schema()


__all__ = [
    "RECORD", "VOLATILE", "Date", "Id", "Money", "Time", "TypedDict", "Volatile", "output_schema", "record",
]  # fmt: skip
