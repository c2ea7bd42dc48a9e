"""A domain as its author writes it, and what a world answers to good and bad calls."""

from __future__ import annotations

import importlib.util
import sys
import timeit
from enum import Enum

import pytest
from pydantic import BaseModel

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.types.chat import ToolCall


class Order(BaseModel):
    amount: float
    notes: list[str] = []


class Money(Enum):
    CASH = "cash"
    CARD = "card"


class BookshopDatabase(BaseModel):
    orders: dict[str, Order] = {"#B1": Order(amount=30.0)}
    log: dict[str, dict[str, int]] = {"count": {"n": 0}}


class Bookshop(Domain):
    policy = "Be kind."
    database = BookshopDatabase

    @tool(writes=True)
    def refund(self, order_id: str, amount: float, way: Money = Money.CARD) -> Order:
        """Refund part of an order.

        order_id: the order, such as '#B1042'.
        """
        if order_id not in self.db.orders:
            raise ValueError(f"there is no order {order_id}")
        order = self.db.orders[order_id]
        self.db.log["count"]["n"] += 1
        order.notes.append(way.value)
        order.amount -= amount
        if order.amount < 0:
            raise ValueError("that is more than was paid")
        return order

    @tool
    def look(self, order_id: str) -> Order:
        """Look at an order."""
        order = self.db.orders[order_id]
        order.amount = 0.0  # a careless author
        return order

    @tool(kind="generic")
    def add(self, parts: list[Order]) -> float:
        """Add amounts."""
        return sum(p.amount for p in parts)


def call(world, name, requestor="assistant", **arguments):
    return world.call(requestor, ToolCall("1", name, arguments, requestor))


@pytest.mark.filterwarnings("ignore:tool look:muarl.domains.authoring.AuthoringWarning")
def test_a_domain_from_hints_docstring_and_a_pydantic_model():
    shop = Bookshop()
    assert shop.name == "bookshop" and shop.policy_text == "Be kind."
    spec = shop.tool_specs()[0]
    assert (spec.name, spec.description) == ("refund", "Refund part of an order.")
    assert spec.parameters["properties"]["order_id"]["description"] == "the order, such as '#B1042'."
    assert spec.parameters["required"] == ["order_id", "amount"]
    assert [shop.kind_of(n) for n in shop.tool_names()] == ["write", "read", "generic"]
    world = shop.world()
    assert call(world, "refund", order_id="#B1", amount=10, way="cash").content == '{"amount": 20.0, "notes": ["cash"]}'
    assert call(world, "add", parts=[{"amount": 1}, {"amount": 2.5}]).content == "3.5"
    assert [c.name for c in world.writes] == ["refund"]
    assert call(shop.world(), "look", order_id="#B1").content == '{"amount": 0.0, "notes": []}'


@pytest.mark.filterwarnings("ignore:tool look:muarl.domains.authoring.AuthoringWarning")
def test_a_domain_without_a_name_is_called_by_its_class_whichever_is_made_first():
    Domain()

    class Library(Domain):
        pass

    class Archive(Library):
        name = "archive"

    assert (Library.name, Library().name, Archive().name) == ("library", "library", "archive")


def test_a_write_that_raises_leaves_the_database_as_it_was_and_a_read_never_changes_it():
    shop = Bookshop()
    world = shop.world()
    call(world, "refund", order_id="#B1", amount=5)
    before = world.digest(), world.full_hash()
    assert call(world, "refund", order_id="#B1", amount=100).content == "Error: that is more than was paid"
    call(world, "look", order_id="#B1")
    assert (world.digest(), world.full_hash()) == before != (shop.world().digest(), shop.world().full_hash())
    assert len(world.writes) == 1


def test_official_semantics_undo_nothing_and_check_nothing():
    world = Bookshop(semantics="official").world()
    before = world.digest()
    assert call(world, "refund", order_id="#B1", amount=100, way=Money.CASH).error
    assert world.digest() != before
    assert call(world, "refund").content == (
        "Error: Bookshop.refund() missing 2 required positional arguments: 'order_id' and 'amount'"
    )
    assert call(world, "nope").content == "Error: Tool 'nope' not found."
    assert call(world, "look", "user", order_id="#B1").content == "Error: User tools not available"
    assert "got multiple values for keyword argument 'requestor'" in (
        world.call("assistant", ToolCall("1", "look", {"requestor": 1})).content
    )


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("refnd", {}, "there is no tool 'refnd'. Tools: refund, look, add."),
        ("refund", {"order_id": "#B1"}, "missing argument 'amount'. Arguments: order_id, amount, way (optional)."),
        ("refund", {"order_id": "#B1", "amount": 1, "why": 2}, "unexpected argument 'why'"),
        ("refund", {"order_id": 7, "amount": 1}, "argument 'order_id' must be a string, not a whole number (7)."),
        ("refund", {"order_id": "#B1", "amount": "1"}, "argument 'amount' must be a number, not a string ('1')."),
        ("refund", {"order_id": "#B1", "amount": True}, "must be a number, not true or false (True)."),
        ("refund", {"order_id": "#B1", "amount": None}, "must be a number, not null."),
        ("refund", {"order_id": "#B1", "amount": 1, "way": "gold"}, "must be one of 'cash', 'card'"),
        ("add", {"parts": {}}, "argument 'parts' must be a list, not an object."),
        ("add", {"parts": [{"amount": 1}, {}]}, "argument 'parts[1]' lacks the field 'amount'."),
        ("add", {"parts": [{"amount": 1, "notes": [3]}]}, "argument 'parts[0].notes[0]' must be a string"),
        ("look", {"order_id": "#B7"}, "Error: '#B7'"),
    ],
)
def test_bad_calls_become_observations_a_model_can_learn_from(name, arguments, part):
    world = Bookshop().world()
    result = world.call("assistant", ToolCall("1", name, arguments))
    assert result.error and result.content.startswith("Error: ") and part in result.content


def test_calls_that_are_not_json_become_observations_too():
    bad = ToolCall("1", "look", {}, invalid="Expecting ',' at column 9", raw='{"order_')
    result = Bookshop().world().call("assistant", bad)
    assert result.error and "could not be read: Expecting ',' at column 9" in result.content


def test_tools_render_and_database_can_be_chosen():
    plain = {"orders": {"#B1": {"amount": 1.0}}}
    shop = Bookshop(tools=["look"], render=lambda name, value: f"{name}!", database=plain, policy="p")
    assert shop.tool_names() == ("look",) and shop.policy_text == "p"
    assert "no tool 'refund'" in call(shop.world(), "refund", order_id="#B1", amount=1).content
    with pytest.raises(ConfigError, match="no tool 'refnd'"):
        Bookshop(tools=["refnd"])
    with pytest.raises(ConfigError, match="semantics"):
        Bookshop(semantics="loose")  # type: ignore[arg-type]


def test_a_task_may_bring_its_own_database():
    task = Task("1", "bookshop", "", (), database=Database({"orders": {}, "log": {"count": {"n": 1}}}))
    world = Bookshop().world(task)
    assert call(world, "refund", order_id="#B1", amount=1).content == "Error: there is no order #B1"
    assert world.task is task


def test_policy_and_database_files_lie_beside_the_module(tmp_path):
    (tmp_path / "policy.md").write_text("Always refund.")
    (tmp_path / "shop.json").write_text('{"orders": {"1": {}}}')
    (tmp_path / "own_domain.py").write_text(
        "from pathlib import Path\nfrom muarl.domains.base import Domain\n"
        "class Own(Domain):\n    policy = Path('policy.md')\n    database = Path('shop.json')\n"
    )
    spec = importlib.util.spec_from_file_location("own_domain", tmp_path / "own_domain.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_domain"] = module
    try:
        spec.loader.exec_module(module)
        assert module.Own().policy_text == "Always refund."
        assert "1" in module.Own().world().toolkit().db.orders
        (tmp_path / "policy.md").unlink()
        with pytest.raises(DataError, match=r"Own\.policy: .*policy\.md cannot be read"):
            module.Own()
        (tmp_path / "shop.json").write_text("{")
        with pytest.raises(DataError, match=r"Own\.database: .*shop\.json cannot be read as JSON"):
            _ = module.Own(policy="").base
    finally:
        del sys.modules["own_domain"]


class Phone(Domain):
    """What the user has in hand."""

    name = "phone"
    database = {"phone": {"phone": {"on": False, "line": False}}}

    @tool(writes=True)
    def switch_on(self) -> str:
        """Switch the phone on."""
        self.db.phone["phone"]["on"] = True
        return "on"


class Carrier(Domain):
    """Two sides, kept in step after every call."""

    database = {"lines": {"L1": {"active": False}}}
    user_toolkit = Phone

    @tool(writes=True)
    def activate(self) -> str:
        """Activate the line."""
        self.db.lines["L1"]["active"] = True
        return "done"

    def sync(self, world):
        world.toolkit("user").db.phone["phone"]["line"] = world.toolkit().db.lines.peek("L1")["active"]


def test_users_may_have_tools_and_a_state_of_their_own():
    world = Carrier().world()
    start = world.digest(), world.full_hash("assistant"), world.full_hash("user")
    assert world.domain.tool_names("user") == ("switch_on",)
    assert "no tool 'switch_on'" in call(world, "switch_on").content
    assert call(world, "switch_on", "user").content == "on"
    assert world.full_hash("assistant") == start[1] and world.full_hash("user") != start[2]
    call(world, "activate")
    assert world.toolkit("user").db.phone.peek("phone") == {"on": True, "line": True}
    assert world.digest() != start[0] == Carrier().world().digest()
    assert Bookshop().world().full_hash("user") is None


def test_a_world_is_made_in_microseconds():
    shop = Bookshop()
    shop.world()
    best = min(timeit.repeat(shop.world, number=1000, repeat=5)) / 1000
    assert best < 100e-6  # about 1 microsecond; the bound leaves room for a busy machine
