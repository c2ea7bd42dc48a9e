"""TAU1 retail on a small shop: its results, texts and oddities."""

from __future__ import annotations

import copy
import json

import pytest

from muarl.types.chat import ToolCall
from muarl_worlds.tau.tau1.retail import Tau1Retail

ADDRESS = {"address1": "1 Elm St", "address2": "", "city": "Reno", "country": "USA", "state": "NV", "zip": "89501"}


def variant(item_id, price, available=True):
    return {"item_id": item_id, "options": {"size": item_id}, "available": available, "price": price}


def item(item_id, price):
    return {"name": "Mug", "product_id": "P", "item_id": item_id, "price": price, "options": {"size": item_id}}


def order(order_id, status, *items, method="card_1", amount=30.0):
    paid = {"transaction_type": "payment", "amount": amount, "payment_method_id": method}
    return {
        "order_id": order_id, "user_id": "ann_1", "address": dict(ADDRESS), "items": list(items), "fulfillments": [],
        "status": status, "payment_history": [paid],
    }  # fmt: skip


TABLES = {
    "orders": {
        "#1": order("#1", "pending", item("S", 10.1), item("M", 20.2)),
        "#2": order("#2", "delivered", item("S", 10.1), item("S", 10.1), item("M", 20.2)),
        "#3": order("#3", "pending", item("S", 10.1), method="gift_card_1", amount=10.1),
    },
    "products": {
        "P": {
            "name": "Mug",
            "product_id": "P",
            "variants": {v["item_id"]: v for v in map(variant, "SMLX", (10.1, 20.2, 30.3, 99.0), (1, 1, 1, 0))},
        }
    },
    "users": {
        "ann_1": {
            "name": {"first_name": "Ann", "last_name": "Ó Hara"},
            "address": dict(ADDRESS),
            "email": "Ann@example.com",
            "payment_methods": {
                "card_1": {"source": "credit_card", "brand": "visa", "last_four": "1111", "id": "card_1"},
                "gift_card_1": {"source": "gift_card", "balance": 15, "id": "gift_card_1"},
                "paypal_1": {"source": "paypal", "id": "paypal_1"},
            },
            "orders": ["#1", "#2", "#3"],
        }
    },
}


@pytest.fixture(params=["official", "fixed"])
def world(request):
    return Tau1Retail(database=copy.deepcopy(TABLES), policy="p", semantics=request.param).world()


@pytest.fixture
def official():
    return Tau1Retail(database=copy.deepcopy(TABLES), policy="p", semantics="official").world()


def use(world, name, /, **arguments):
    return world.call("assistant", ToolCall("1", name, arguments))


def shown(world, name, /, **arguments):
    return json.loads(use(world, name, **arguments).content)


def balance(world):
    return world.toolkit().db.users.peek("ann_1")["payment_methods"]["gift_card_1"]["balance"]


def test_records_are_shown_as_they_are_in_the_file(world):
    assert use(world, "get_user_details", user_id="ann_1").content == json.dumps(TABLES["users"]["ann_1"])
    assert "\\u00d3 Hara" in use(world, "get_user_details", user_id="ann_1").content
    assert use(world, "get_order_details", order_id="#2").content == json.dumps(TABLES["orders"]["#2"])
    assert shown(world, "get_product_details", product_id="P") == TABLES["products"]["P"]
    assert use(world, "list_all_product_types").content == '{"Mug": "P"}'
    assert use(world, "find_user_id_by_email", email="ANN@example.COM").content == "ann_1"
    found = use(world, "find_user_id_by_name_zip", first_name="ann", last_name="ó hara", zip="89501")
    assert found.content == "ann_1"
    for name, arguments in (
        ("find_user_id_by_email", {"email": "x"}),
        ("find_user_id_by_name_zip", {"first_name": "ann", "last_name": "ó hara", "zip": "0"}),
        ("get_user_details", {"user_id": "x"}),
    ):
        result = use(world, name, **arguments)
        assert (result.content, result.error) == ("Error: user not found", True)


def test_each_item_gets_its_own_variant_and_the_sum_stays_unrounded(world):
    done = shown(
        world, "modify_pending_order_items", order_id="#1", item_ids=["S", "M"], new_item_ids=["L", "S"],
        payment_method_id="card_1",
    )  # fmt: skip
    assert [(i["item_id"], i["price"], i["options"]) for i in done["items"]] == [
        ("L", 30.3, {"size": "L"}),
        ("S", 10.1, {"size": "S"}),
    ]
    assert done["status"] == "pending (item modified)"
    amount = 30.3 - 10.1 + (10.1 - 20.2)
    assert done["payment_history"][-1] == {
        "transaction_type": "payment", "amount": amount, "payment_method_id": "card_1"
    }  # fmt: skip
    again = use(world, "modify_pending_order_address", order_id="#1", **ADDRESS)
    assert again.content == "Error: non-pending order cannot be modified"


def test_the_same_item_may_be_chosen_again_and_an_item_swapped_twice(world):
    same = {"order_id": "#1", "item_ids": ["S"], "new_item_ids": ["S"], "payment_method_id": "gift_card_1"}
    done = shown(world, "modify_pending_order_items", **same)
    assert done["payment_history"][-1]["transaction_type"] == "refund" and balance(world) == 15.0
    fresh = world.domain.world()
    twice = {**same, "item_ids": ["S", "M"], "new_item_ids": ["M", "L"], "payment_method_id": "card_1"}
    done = shown(fresh, "modify_pending_order_items", **twice)
    assert [i["item_id"] for i in done["items"]] == ["L", "M"]  # the first M found is the one just put there


def test_nothing_swapped_leaves_an_integer_zero(official):
    nothing = {"item_ids": [], "new_item_ids": [], "payment_method_id": "paypal_1"}
    done = shown(official, "exchange_delivered_order_items", order_id="#2", **nothing)
    assert repr(done["exchange_price_difference"]) == "0" and done["status"] == "exchange requested"
    assert repr(shown(official, "modify_pending_order_items", order_id="#1", **nothing)["payment_history"][-1]) == (
        "{'transaction_type': 'refund', 'amount': 0, 'payment_method_id': 'paypal_1'}"
    )


@pytest.mark.parametrize("name", ["modify_pending_order_items", "exchange_delivered_order_items"])
def test_what_a_swap_is_refused_for(world, name):
    pending = name == "modify_pending_order_items"
    right = {
        "order_id": "#1" if pending else "#2", "item_ids": ["S"], "new_item_ids": ["L"], "payment_method_id": "card_1"
    }  # fmt: skip
    kind, purpose = ("non-pending", "modified") if pending else ("non-delivered", "exchanged")
    for wrong, text in (
        ({"order_id": "#9"}, "order not found"),
        ({"order_id": "#2" if pending else "#1"}, f"{kind} order cannot be {purpose}"),
        ({"item_ids": ["S", "S", "S"]}, "S not found"),
        ({"item_ids": ["S", "M"]}, "the number of items to be exchanged should match"),
        ({"new_item_ids": ["X"]}, "new item X not found or available"),
        ({"new_item_ids": ["Q"]}, "new item Q not found or available"),
        ({"payment_method_id": "card_9"}, "payment method not found"),
        (
            {"payment_method_id": "gift_card_1"},
            f"insufficient gift card balance to pay for the {'new item' if pending else 'price difference'}",
        ),
    ):
        before = world.full_hash()
        assert use(world, name, **{**right, **wrong}).content == f"Error: {text}"
        assert world.full_hash() == before
    assert not use(world, name, **right).error


def test_a_new_payment_method_pays_and_the_old_one_is_refunded(world):
    def change(order_id, method):
        return use(world, "modify_pending_order_payment", order_id=order_id, payment_method_id=method).content

    assert change("#1", "gift_card_1") == "Error: insufficient gift card balance to pay for the order"
    assert change("#1", "card_1") == "Error: the new payment method should be different from the current one"
    assert change("#1", "none") == "Error: payment method not found"
    assert change("#2", "card_1") == "Error: non-pending order cannot be modified"
    history = json.loads(change("#3", "card_1"))["payment_history"]
    assert [(p["transaction_type"], p["payment_method_id"]) for p in history[1:]] == [
        ("payment", "card_1"),
        ("refund", "gift_card_1"),
    ]
    assert balance(world) == 25.1
    assert change("#3", "paypal_1") == "Error: there should be exactly one payment for a pending order"


def test_cancelling_refunds_every_payment_entry(world):
    assert use(world, "cancel_pending_order", order_id="#2", reason="no longer needed").content == (
        "Error: non-pending order cannot be cancelled"
    )
    done = shown(world, "cancel_pending_order", order_id="#3", reason="ordered by mistake")
    assert (done["status"], done["cancel_reason"]) == ("cancelled", "ordered by mistake")
    assert [p["transaction_type"] for p in done["payment_history"]] == ["payment", "refund"] and balance(world) == 25.1


def test_returns_go_to_the_original_method_or_a_gift_card(world):
    right = {"order_id": "#2", "item_ids": ["M", "S"], "payment_method_id": "gift_card_1"}
    for wrong, text in (
        (
            {"payment_method_id": "paypal_1"},
            "payment method should be either the original payment method or a gift card",
        ),
        ({"payment_method_id": "none"}, "payment method not found"),
        ({"item_ids": ["S", "L"]}, "some item not found"),
        ({"order_id": "#1"}, "non-delivered order cannot be returned"),
    ):
        assert use(world, "return_delivered_order_items", **{**right, **wrong}).content == f"Error: {text}"
    assert shown(world, "return_delivered_order_items", **right)["return_items"] == ["M", "S"]


def test_addresses_are_stored_as_given(official):
    odd = {**ADDRESS, "address2": None, "zip": 89501}
    assert shown(official, "modify_user_address", user_id="ann_1", **odd)["address"] == odd
    assert shown(official, "modify_pending_order_address", order_id="#1", **odd)["address"] == odd


def test_what_an_official_error_half_did_stays_done_and_fixed_undoes_it():
    tables = copy.deepcopy(TABLES)
    tables["orders"]["#3"]["payment_history"].append({"amount": 1.0, "payment_method_id": "gift_card_9"})
    for semantics in ("official", "fixed"):
        world = Tau1Retail(database=tables, policy="p", semantics=semantics).world()
        result = use(world, "cancel_pending_order", order_id="#3", reason="ordered by mistake")
        assert (result.content, result.error) == ("Error: 'gift_card_9'", True)
        assert balance(world) == (25.1 if semantics == "official" else 15)


def test_an_official_error_in_the_middle_of_an_exchange_leaves_the_status_behind(official):
    mixed = {"item_ids": ["S", "M"], "new_item_ids": ["L", "S"], "payment_method_id": "card_1"}
    assert not use(official, "exchange_delivered_order_items", order_id="#2", **mixed).error
    world = official.domain.world()
    odd = {"item_ids": "", "new_item_ids": {}, "payment_method_id": "card_1"}  # empty of another kind passes
    assert shown(world, "exchange_delivered_order_items", order_id="#2", **odd)["exchange_items"] == []
