"""JSON Schema from hints, and the checks against it."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from muarl.domains.schema import tool_schema


class Leg(BaseModel):
    number: str
    stops: list[Leg] = []


class Tools:
    def book(
        self,
        legs: list[Leg | dict],
        cabin: Literal["economy", "business"],
        seats: Annotated[int, Field(ge=1, le=9)],
        extra: dict[str, int] | None = None,
        rate: float = 1.0,
        anything=None,
    ):
        pass

    def chain(self, leg: Leg):
        pass

    def no_names(self, *things: str):
        pass


GOOD = {"legs": [], "cabin": "economy", "seats": 1}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({}, None),
        ({"legs": [{"number": "1"}, {}], "extra": {"a": 1}, "rate": 2, "anything": [None]}, None),
        ({"extra": None}, None),
        ({"cabin": "first"}, "'cabin' must be one of 'economy', 'business'"),
        ({"seats": 0}, "'seats' must be at least 1"),
        ({"seats": 10}, "'seats' must be at most 9"),
        ({"seats": 1.5}, "'seats' must be a whole number, not a number (1.5)"),
        ({"legs": ["x"]}, "'legs[0]' must be an object"),
        ({"extra": {"a": "b"}}, "'extra.a' must be a whole number"),
        ({"rate": "fast"}, "'rate' must be a number"),
    ],
)
def test_arguments_are_checked_against_the_schema(change, part):
    problem = tool_schema(Tools.book).check({**GOOD, **change})
    assert problem is None if part is None else part in problem


def test_models_may_refer_to_themselves_and_become_objects():
    schema = tool_schema(Tools.chain)
    deep = {"leg": {"number": "1", "stops": [{"number": "2", "stops": [{"number": 3}]}]}}
    assert "'leg.stops[0].stops[0].number' must be a string" in schema.check(deep)
    converted = schema.convert({"leg": {"number": "1", "stops": [{"number": "2"}]}})
    assert isinstance(converted["leg"], Leg) and converted["leg"].stops[0].number == "2"


def test_parameters_must_have_names():
    with pytest.raises(TypeError, match="'things'"):
        tool_schema(Tools.no_names)
