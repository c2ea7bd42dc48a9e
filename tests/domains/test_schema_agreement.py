"""Two validators read tools' schemas: muarl's own, which is fast and words what is wrong for a model, and jsonschema,
which reads whatever a stranger's schema says. On the schemas that muarl makes of type hints they must agree."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from muarl.domains.schema import ToolSchema, tool_schema
from muarl.environments.registry import find


class Address(TypedDict):
    city: str
    zip: int


class Order(BaseModel):
    model_config = {"extra": "forbid"}

    item: str
    count: Annotated[int, Field(ge=1, le=9)] = 1
    parts: list[Order] = []


class Shop:
    def everything(
        self,
        text: str,
        number: int,
        share: Annotated[float, Field(gt=0, lt=1)],
        yes: bool,
        words: list[str],
        prices: dict[str, float],
        kind: Literal["mug", 3, None],
        address: Address,
        order: Order,
        perhaps: int | list[int] | None = None,
        anything: Any = None,
    ) -> None:
        """Take one of everything."""


SCHEMA = tool_schema(Shop.everything)
GOOD: dict[str, Any] = {
    "text": "a", "number": 1, "share": 0.5, "yes": True, "words": ["a"], "prices": {"a": 1.5}, "kind": "mug",
    "address": {"city": "Oslo", "zip": 1}, "order": {"item": "mug", "parts": [{"item": "lid"}]},
}  # fmt: skip
# A float without a fraction is an integer to JSON Schema, and none to Python.
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, -0.25, 1.5]), st.sampled_from(["", "mug", "a"])
)
NAMES = st.sampled_from(["city", "zip", "item", "count", "parts", "a"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)


def agree(schema: ToolSchema, arguments: dict[str, Any]) -> bool:
    """Whether both accept the arguments, or both refuse them; true if so."""
    closed = {**schema.spec.parameters, "additionalProperties": False}
    ours, theirs = schema.check(arguments) is None, Draft202012Validator(closed).is_valid(arguments)
    assert ours == theirs, (arguments, schema.check(arguments))
    return ours


def test_what_a_tool_wants_is_accepted_by_both() -> None:
    assert agree(SCHEMA, GOOD) and agree(SCHEMA, {**GOOD, "perhaps": [1], "anything": {"a": [None]}})


@given(st.dictionaries(st.sampled_from([*SCHEMA.spec.parameters["properties"], "unknown"]), VALUES, max_size=3))
def test_they_agree_on_whatever_a_model_writes(wrong: dict[str, Any]) -> None:
    agree(SCHEMA, {**GOOD, **wrong})


@given(st.sampled_from(sorted(GOOD)), st.sampled_from(["city", "zip", "item", "count", "parts", "other"]), VALUES)
def test_they_agree_on_what_is_left_out_and_put_in(name: str, inner: str, value: Any) -> None:
    agree(SCHEMA, {n: v for n, v in GOOD.items() if n != name})
    for place in ("address", "order"):
        agree(SCHEMA, {**GOOD, place: {**GOOD[place], inner: value}})
        agree(SCHEMA, {**GOOD, place: {n: v for n, v in GOOD[place].items() if n != inner}})


def test_they_agree_on_the_gold_calls_of_made_tasks() -> None:
    for name in ("retail-generated", "airline-generated", "telecom-generated", "hotel-generated"):
        environment = find(name)
        domain = environment.make_domain("tiny")
        specs = {spec.name: spec for spec in domain.tool_specs("assistant")}
        for task in environment.make_tasks("train", 8, size="tiny"):
            for action in task.actions or ():
                if action.requestor == "assistant":
                    closed = {**specs[action.name].parameters, "additionalProperties": False}
                    assert Draft202012Validator(closed).is_valid(dict(action.arguments)), (name, action)
