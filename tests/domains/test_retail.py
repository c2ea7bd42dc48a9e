"""Retail's tools on a small shop: TAU2's results, texts and oddities, and what "fixed" semantics mend."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl_worlds.tau.retail.domain import Retail, retail_database
from support.retail_shop import ADDRESS, shop, tables, use


def state(world, table, key):
    return world.toolkit().db[table].peek(key)


@pytest.fixture
def official():
    return shop(semantics="official").world()


@pytest.fixture
def fixed():
    return shop().world()


def test_records_are_shown_as_tau2_shows_them(official):
    text = use(official, "get_user_details", user_id="ann_1").content
    assert '"last_name": "\\u00d6\'Hara"' in text  # ASCII
    assert '"card_1": {"source": "credit_card", "id": "card_1", "brand": "visa", "last_four": "1111"}' in text
    assert '"gift_1": {"source": "gift_card", "id": "gift_1", "balance": 15.0}' in text
    text = use(official, "get_order_details", order_id="#1").content
    assert text.endswith('"return_items": null, "return_payment_method_id": null}') and '"cancel_reason": null' in text
    assert use(official, "list_all_product_types").content == '{"Mug": "P1"}'
    assert use(official, "get_item_details", item_id="X").content == (
        '{"item_id": "X", "options": {"size": "huge"}, "available": false, "price": 99.0}'
    )
    assert use(official, "find_user_id_by_email", email="ann@EXAMPLE.com").content == "ann_1"
    assert (
        use(official, "find_user_id_by_name_zip", first_name="ANN", last_name="ö'hara", zip="53111").content == "ann_1"
    )


def test_the_last_variant_is_given_to_all_items_officially_and_each_its_own_when_fixed(official, fixed):
    change = {"order_id": "#1", "item_ids": ["S", "M"], "new_item_ids": ["L", "S"], "payment_method_id": "card_1"}
    for world in (official, fixed):
        assert not use(world, "modify_pending_order_items", **change).error
    shown = [
        [(i["item_id"], i["price"], i["options"]) for i in state(w, "orders", "#1")["items"]] for w in (official, fixed)
    ]
    assert shown[0] == [("L", 10.1, {"size": "small"}), ("S", 10.1, {"size": "small"})]
    assert shown[1] == [("L", 30.3, {"size": "large"}), ("S", 10.1, {"size": "small"})]
    paid = state(official, "orders", "#1")["payment_history"][-1]
    assert paid == {"transaction_type": "payment", "amount": 30.3 - 10.1 + (10.1 - 20.2), "payment_method_id": "card_1"}
    again = use(official, "modify_pending_order_items", **change)
    assert again.content == "Error: Non-pending order cannot be modified"


def test_gift_cards_pay_and_are_refunded_at_once(official):
    use(official, "cancel_pending_order", order_id="#3", reason="no longer needed")
    assert state(official, "users", "ann_1")["payment_methods"]["gift_1"]["balance"] == 25.1
    history = state(official, "orders", "#3")["payment_history"]
    assert [(p["transaction_type"], p["amount"]) for p in history] == [("payment", 10.1), ("refund", 10.1)]
    too_dear = {"order_id": "#1", "item_ids": ["S"], "new_item_ids": ["L"], "payment_method_id": "gift_1"}
    assert not use(official, "modify_pending_order_items", **too_dear).error
    assert state(official, "users", "ann_1")["payment_methods"]["gift_1"]["balance"] == 4.9


def test_a_new_payment_method_pays_and_the_old_one_is_refunded(official):
    def change(order_id, method):
        return use(official, "modify_pending_order_payment", order_id=order_id, payment_method_id=method).content

    assert change("#1", "gift_1") == "Error: Insufficient gift card balance to pay for the order"
    assert change("#1", "card_1") == "Error: The new payment method should be different from the current one"
    assert change("#1", "none") == "Error: Payment method not found"
    assert change("#2", "pay_1") == "Error: Non-pending order cannot be modified"
    assert not change("#3", "pay_1").startswith("Error")
    assert state(official, "users", "ann_1")["payment_methods"]["gift_1"]["balance"] == 25.1
    assert change("#3", "card_1") == "Error: There should be exactly one payment for a pending order"


def test_exchange_and_return_of_delivered_orders(official):
    exchange = {"order_id": "#2", "item_ids": ["S", "S"], "new_item_ids": ["L", "M"], "payment_method_id": "card_1"}
    world = official.domain.world()
    assert not use(world, "exchange_delivered_order_items", **exchange).error
    changed = state(world, "orders", "#2")
    assert changed["status"] == "exchange requested" and changed["exchange_price_difference"] == 30.3
    assert (changed["exchange_items"], changed["exchange_new_items"]) == (["S", "S"], ["L", "M"])
    for wrong, text in [
        ({"item_ids": ["S", "S", "S"]}, "Number of S not found."),
        ({"item_ids": ["S"]}, "The number of items to be exchanged should match."),
        ({"new_item_ids": ["X", "M"]}, "New item X not found or available"),
        ({"new_item_ids": ["Q", "M"]}, "Variant not found"),
        ({"payment_method_id": "gift_1"}, "Insufficient gift card balance to pay for the price difference"),
        ({"order_id": "#1"}, "Non-delivered order cannot be exchanged"),
    ]:
        assert use(official, "exchange_delivered_order_items", **{**exchange, **wrong}).content == f"Error: {text}"
    back = {"order_id": "#2", "item_ids": ["S"], "payment_method_id": "gift_1"}
    for wrong, text in [
        ({"payment_method_id": "pay_1"}, "Payment method should be the original payment method"),
        ({"item_ids": ["S", "M"]}, "Some item not found"),
        ({"order_id": "#9"}, "Order not found"),
    ]:
        assert use(official, "return_delivered_order_items", **{**back, **wrong}).content == f"Error: {text}"
    assert json.loads(use(official, "return_delivered_order_items", **back).content)["return_items"] == ["S"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_order_details", {}, "RetailTools.get_order_details() missing 1 required positional argument: 'order_id'"),
        ("get_order_details", {"x": 1}, "RetailTools.get_order_details() got an unexpected keyword argument 'x'"),
        ("get_order_details", {"order_id": ["#1"]}, "unhashable type: 'list'"),
        ("get_order_details", {"order_id": None}, "Order not found"),
        ("find_user_id_by_email", {"email": 5}, "'int' object has no attribute 'lower'"),
        ("cancel_pending_order", {"order_id": "#1", "reason": []}, "unhashable type: 'list'"),
        ("cancel_pending_order", {"order_id": "#1", "reason": "whim"}, "Invalid reason"),
        (
            "modify_pending_order_items",
            {"order_id": "#1", "item_ids": None, "new_item_ids": [], "payment_method_id": "card_1"},
            "'NoneType' object is not iterable",
        ),
        (
            "modify_pending_order_items",
            {"order_id": "#1", "item_ids": "S", "new_item_ids": "L", "payment_method_id": []},
            "unhashable type: 'list'",
        ),
        ("calculate", {"expression": "1/0"}, "division by zero"),
        ("nope", {}, "Tool 'nope' not found."),
    ],
)
def test_official_errors_are_pythons_own(official, name, arguments, text):
    result = use(official, name, **arguments)
    assert (result.content, result.error) == (f"Error: {text}", True)


def test_addresses_are_checked_by_pydantic_in_tau2s_words(official, fixed):
    wrong = {"user_id": "ann_1", **ADDRESS, "zip": 53111, "city": None}
    first = use(official, "modify_user_address", **wrong).content.splitlines()[0]
    assert first == "Error: 2 validation errors for UserAddress"
    assert "argument 'city' must be a string" in use(fixed, "modify_user_address", **wrong).content
    assert not use(official, "modify_user_address", **{**wrong, "zip": "1", "city": "Köln"}).error
    assert list(state(official, "users", "ann_1")["address"]) == list(ADDRESS)


def test_empty_lists_pass_and_leave_tau2s_number_types(official):
    nothing = {"item_ids": [], "new_item_ids": [], "payment_method_id": "gift_1"}
    shown = json.loads(use(official, "exchange_delivered_order_items", order_id="#2", **nothing).content)
    assert shown["exchange_price_difference"] == 0 and isinstance(shown["exchange_price_difference"], int)
    shown = json.loads(use(official, "modify_pending_order_items", order_id="#1", **nothing).content)
    refund = shown["payment_history"][-1]
    assert refund["transaction_type"] == "refund" and isinstance(refund["amount"], float)
    assert shown["status"] == "pending (item modified)"


def test_what_an_official_error_half_did_stays_done_and_fixed_undoes_it():
    half_done = tables()
    half_done["users"]["ann_1"]["payment_methods"].pop("card_1")
    half_done["orders"]["#3"]["payment_history"].append(
        {"transaction_type": "refund", "amount": 1.0, "payment_method_id": "card_1"}
    )
    balances = []
    for semantics in ("official", "fixed"):
        world = Retail(database=half_done, policy="", semantics=semantics).world()
        result = use(world, "cancel_pending_order", order_id="#3", reason="ordered by mistake")
        assert result.content == "Error: Payment method not found"
        balances.append(state(world, "users", "ann_1")["payment_methods"]["gift_1"]["balance"])
        assert (world.digest() == world.domain.world().digest()) == (semantics == "fixed")
    assert balances == [25.1, 15.0]


def test_observations_may_be_written_in_another_style():
    domain = shop(render=lambda name, value: f"{name}:{value['status']}", tools=["get_order_details"])
    assert use(domain.world(), "get_order_details", order_id="#2").content == "get_order_details:delivered"
    assert domain.policy_text == "Be exact." and domain.tool_names() == ("get_order_details",)


def test_a_malformed_database_is_named():
    broken = tables()
    del broken["orders"]["#2"]["items"][0]["price"]
    with pytest.raises(DataError, match=r"orders\['#2'\] lacks the field 'price'"):
        retail_database(broken)
    with pytest.raises(DataError, match="lacks the table 'users'"):
        retail_database({"products": {}, "orders": {}})
