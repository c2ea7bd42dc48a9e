"""Generated shops: the same from the same seed, whole in themselves, and in TAU2's schema."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.kit.people import Maker
from muarl_worlds.tau import people
from muarl_worlds.tau.retail import catalogue as cat
from muarl_worlds.tau.retail.domain import Retail
from muarl_worlds.tau.retail.shop import SIZES, ShopSize, make_address, make_tables
from support.retail_shop import use

QUICK = settings(max_examples=25)


def make_shop(seed, size: ShopSize, allow=lambda first, last: True):
    return make_tables(Maker(random.Random(seed), size.users, size.pooled, allow))


def check_whole(tables, size):
    """Every reference leads somewhere, every sum is right."""
    products, users, orders = (tables[t] for t in ("products", "users", "orders"))
    assert len(users) == size.users
    assert len(products) == (6 if size.pooled else size.products)
    variants = {v["item_id"]: (p, v) for p in products.values() for v in p["variants"].values()}
    assert len(variants) == sum(len(p["variants"]) for p in products.values()), "two variants share an item id"
    assert sorted(o for u in users.values() for o in u["orders"]) == sorted(orders)
    for key, product in products.items():
        assert key == product["product_id"] == cat.product_id(product["name"])
        assert len(product["variants"]) > 1
        options = [tuple(v["options"].items()) for v in product["variants"].values()]
        assert len(set(options)) == len(options), "two variants are alike"
        assert all(len(o) <= size.options for o in options)
    for key, user in users.items():
        assert key == user["user_id"]
        assert size.orders[0] <= len(user["orders"]) <= size.orders[1]
        assert all(m == method["id"] for m, method in user["payment_methods"].items())
        sources = [m["source"] for m in user["payment_methods"].values()]
        assert sources and len(set(sources)) == len(sources), "a source names one method only"
    for key, order in orders.items():
        assert key == order["order_id"]
        owner = users[order["user_id"]]
        assert key in owner["orders"]
        assert 1 <= len(order["items"]) <= size.items[1]
        assert len({i["name"] for i in order["items"]}) == len(order["items"]), "a name names one item only"
        for item in order["items"]:
            product, variant = variants[item["item_id"]]
            assert (item["name"], item["product_id"]) == (product["name"], product["product_id"])
            assert (item["price"], item["options"]) == (variant["price"], variant["options"])
        paid = order["payment_history"][0]
        assert paid["payment_method_id"] in owner["payment_methods"]
        assert paid["amount"] == pytest.approx(sum(i["price"] for i in order["items"]))
        assert len(order["payment_history"]) == (2 if order["status"] == "cancelled" else 1)
        assert bool(order["fulfillments"]) == (order["status"] in ("processed", "delivered"))
        assert (order["cancel_reason"] in cat.REASONS) == (order["status"] == "cancelled")


@pytest.mark.parametrize("size", ["tiny", "small", "medium", "official"])
def test_every_size_makes_a_whole_shop(size):
    tables = make_shop("a", SIZES[size])
    check_whole(tables, SIZES[size])
    assert {o["status"] for o in tables["orders"].values()} <= {"pending", "processed", "delivered", "cancelled"}


def test_the_official_size_is_the_benchmarks():
    tables = make_shop("a", SIZES["official"])
    assert (len(tables["products"]), len(tables["users"])) == (50, 500)
    assert 900 < len(tables["orders"]) < 1100


@given(st.text(max_size=20), st.sampled_from(["tiny", "small"]))
@QUICK
def test_any_seed_makes_a_whole_shop_and_the_same_one_again(seed, size):
    tables = make_shop(seed, SIZES[size])
    check_whole(tables, SIZES[size])
    assert json.dumps(tables) == json.dumps(make_shop(seed, SIZES[size]))
    assert json.dumps(tables) != json.dumps(make_shop(seed + "x", SIZES[size]))


def test_names_are_only_those_that_are_allowed():
    tables = make_shop("a", SIZES["small"], lambda first, last: first < "M")
    assert all(u["name"]["first_name"] < "M" for u in tables["users"].values())


def test_a_tiny_shop_uses_the_pools_alone():
    """Or the tiny model's tokenizer would not have its ids as single tokens."""
    methods = {i for ids in cat.PAYMENT_IDS.values() for i in ids}
    for seed in range(30):
        tables = make_shop(str(seed), SIZES["tiny"])
        assert set(tables["orders"]) <= set(cat.ORDER_IDS)
        for product in tables["products"].values():
            assert product["name"] in list(cat.PRODUCTS)[:16] and set(product["variants"]) <= set(cat.ITEM_IDS)
            assert all(f"{v['price']:.2f}" in cat.PRICES for v in product["variants"].values())
            assert all(len(v["options"]) == 1 for v in product["variants"].values())
        for user in tables["users"].values():
            assert user["name"]["first_name"] in people.FIRST_NAMES and user["name"]["last_name"] in people.LAST_NAMES
            assert set(user["payment_methods"]) <= methods and len(user["payment_methods"]) == 2
            assert user["address"]["zip"] in people.ZIPS and user["address"]["address1"] in people.STREETS


def test_addresses_have_tau2s_fields_as_text():
    for size in SIZES.values():
        address = make_address(random.Random(0), size)
        assert sorted(address) == ["address1", "address2", "city", "country", "state", "zip"]
        assert all(isinstance(v, str) and v for v in address.values()) and len(address["zip"]) == 5


def test_the_catalogue_has_no_two_ids_or_words_alike():
    pools = [
        cat.ORDER_IDS,
        cat.ITEM_IDS,
        people.ZIPS,
        cat.PRICES,
        people.FIRST_NAMES,
        people.LAST_NAMES,
        people.STREETS,
    ]
    assert all(len(set(p)) == len(p) for p in pools)
    assert len({cat.product_id(n) for n in cat.PRODUCTS}) == len(cat.PRODUCTS) == 50
    for options in cat.PRODUCTS.values():  # an option's value alone says which option it is
        values = [v for values in options.values() for v in values]
        assert len(set(values)) == len(values)


def test_the_official_tools_run_on_a_generated_shop():
    tables = make_shop("a", SIZES["small"])
    world = Retail(database=tables, policy="", semantics="official").world()
    user = next(iter(tables["users"].values()))
    found = use(world, "find_user_id_by_name_zip", **user["name"], zip=user["address"]["zip"])
    assert found.content == user["user_id"] == use(world, "find_user_id_by_email", email=user["email"]).content
    assert json.loads(use(world, "get_user_details", user_id=user["user_id"]).content) == user
    for order in tables["orders"].values():
        assert json.loads(use(world, "get_order_details", order_id=order["order_id"]).content) == order
    for product in tables["products"].values():
        assert json.loads(use(world, "get_product_details", product_id=product["product_id"]).content) == product
        for item in product["variants"]:
            assert not use(world, "get_item_details", item_id=item).error
    assert set(json.loads(use(world, "list_all_product_types").content)) == {
        p["name"] for p in tables["products"].values()
    }
