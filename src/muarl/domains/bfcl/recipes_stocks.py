"""What users want done with stocks (TradingBot)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import NOTHING, Draw, Memory, Missing, Plan, Recipe, Slots, Step, number
from muarl.domains.bfcl.recipes_people import MESSAGES

TRADING = "TradingBot"


def _company(draw: Draw) -> Slots:
    return {"company": draw.pick(pools.COMPANIES)}


def _symbol(slots: Slots) -> Generator[Step, Any, str]:
    found = yield "get_symbol_by_name", {"name": slots["company"]}
    return str(found["symbol"])


def _draw_buy(draw: Draw) -> Slots:
    return {**_company(draw), "amount": draw.pick(pools.AMOUNTS)}


def _buy(slots: Slots, memory: Memory) -> Plan:
    symbol = yield from _symbol(slots)
    stock = yield "get_stock_info", {"symbol": symbol}
    placed = yield (
        "place_order",
        {"order_type": "Buy", "symbol": symbol, "price": stock["price"], "amount": int(slots["amount"])},
    )
    memory["order"] = placed["order_id"]
    return NOTHING


def _draw_sell(draw: Draw) -> Slots:
    return {**_draw_buy(draw), "price": draw.pick(pools.PRICES)}


def _sell(slots: Slots, memory: Memory) -> Plan:
    symbol = yield from _symbol(slots)
    placed = yield (
        "place_order",
        {"order_type": "Sell", "symbol": symbol, "price": float(slots["price"]), "amount": int(slots["amount"])},
    )
    memory["order"] = placed["order_id"]
    return NOTHING


def _draw_order(draw: Draw) -> Slots:
    orders = draw.state[TRADING]["orders"]
    return {"order": str(draw.pick([n for n, order in orders.items() if order["status"] in ("Open", "Pending")]))}


def _cancel(slots: Slots, memory: Memory) -> Plan:
    yield "cancel_order", {"order_id": int(slots["order"])}
    return NOTHING


def _draw_last_order(draw: Draw) -> Slots:
    orders = draw.state[TRADING]["orders"]
    draw.pick([n for n, order in orders.items() if n == draw.memory.get("order") and order["status"] == "Open"])
    return {}


def _cancel_last(slots: Slots, memory: Memory) -> Plan:
    yield "cancel_order", {"order_id": memory["order"]}
    return NOTHING


def _draw_unwatched(draw: Draw) -> Slots:
    watched = draw.state[TRADING]["watch_list"]
    return {"company": draw.pick([n for n, symbol in pools.SYMBOLS.items() if symbol not in watched])}


def _draw_watched(draw: Draw) -> Slots:
    watched = draw.state[TRADING]["watch_list"]
    return {"company": draw.pick([n for n, symbol in pools.SYMBOLS.items() if symbol in watched])}


def _watch(tool: str, argument: str) -> Any:
    def plan(slots: Slots, memory: Memory) -> Plan:
        symbol = yield from _symbol(slots)
        yield tool, {argument: symbol}
        return NOTHING

    return plan


def _draw_fund(draw: Draw) -> Slots:
    return {"dollars": str(draw.rng.randrange(4, 400) * 25)}


def _fund(slots: Slots, memory: Memory) -> Plan:
    yield "fund_account", {"amount": float(slots["dollars"])}
    return NOTHING


def _price(slots: Slots, memory: Memory) -> Plan:
    symbol = yield from _symbol(slots)
    stock = yield "get_stock_info", {"symbol": symbol}
    return f"{symbol} at ${number(stock['price'])}.", number(stock["price"])


def _balance(slots: Slots, memory: Memory) -> Plan:
    account = yield "get_account_info", {}
    return f"The balance is ${number(account['balance'])}.", number(account["balance"])


def _draw_any_order(draw: Draw) -> Slots:
    return {"order": str(draw.pick(list(draw.state[TRADING]["orders"])))}


def _order_price(slots: Slots, memory: Memory) -> Plan:
    order = yield "get_order_details", {"order_id": int(slots["order"])}
    return f"Order {slots['order']} is at ${number(order['price'])}.", number(order["price"])


def _draw_tell_price(draw: Draw) -> Slots:
    return {**_company(draw), "name": draw.pick(list(draw.state[MESSAGES]["user_map"])[1:])}


def _tell_price(slots: Slots, memory: Memory) -> Plan:
    symbol = yield from _symbol(slots)
    stock = yield "get_stock_info", {"symbol": symbol}
    found = yield "get_user_id", {"user": slots["name"]}
    yield "send_message", {"receiver_id": found["user_id"], "message": number(stock["price"])}
    return NOTHING


def _draw_trading_login(draw: Draw) -> Slots:
    return {"handle": draw.pick(pools.HANDLES), "password": draw.pick(pools.PASSWORDS)}


def _trading_login(slots: Slots, memory: Memory) -> Plan:
    yield "trading_login", {"username": slots["handle"], "password": slots["password"]}
    return NOTHING


_NO_AMOUNT = Missing(
    ("buy shares of {company} at the market price", "buy some {company} stock at the market price"),
    "How many shares?",
    ("I want {amount} shares.", "Make it {amount} shares."),
    ("10", "100"),
)
_NO_COMPANY = Missing(
    ("buy {amount} shares at the market price", "get me {amount} shares at what they cost now"),
    "Of which company?",
    ("I mean {company}.", "The company is {company}."),
    ("Apple", "Tesla"),
)
_NO_DOLLARS = Missing(
    ("put money into my trading account", "top up my trading account"),
    "How much?",
    ("Make it {dollars} dollars.", "It is {dollars} dollars."),
    ("1000", "500"),
)

RECIPES = (
    Recipe(
        "stock_buy", (TRADING,), _draw_buy, _buy,
        (
            "buy {amount} shares of {company} at the market price",
            "get me {amount} shares of {company} at market price",
            "place a buy order for {amount} shares of {company} at what they cost now",
        ),
        needs="trading_login", open=True, tiny=True, weight=1.5, missing={"amount": _NO_AMOUNT, "company": _NO_COMPANY},
    ),
    Recipe(
        "stock_sell", (TRADING,), _draw_sell, _sell,
        (
            "sell {amount} shares of {company} at {price} dollars each",
            "place an order to sell {amount} shares of {company} for {price} dollars a share",
        ),
        needs="trading_login", open=True,
    ),
    Recipe(
        "stock_cancel", (TRADING,), _draw_order, _cancel,
        ("cancel order {order}", "call off order {order}", "take back my order number {order}"),
        tiny=True,
    ),
    Recipe(
        "stock_cancel_last", (TRADING,), _draw_last_order, _cancel_last,
        ("cancel the order you just placed", "call that last order off again"),
        narrow=True, weight=2.0,
    ),
    Recipe(
        "stock_watch", (TRADING,), _draw_unwatched, _watch("add_to_watchlist", "stock"),
        ("put {company} on my watchlist", "add {company} to the stocks I watch"),
        narrow=True, tiny=True,
    ),
    Recipe(
        "stock_unwatch", (TRADING,), _draw_watched, _watch("remove_stock_from_watchlist", "symbol"),
        ("take {company} off my watchlist", "remove {company} from the stocks I watch"),
        needs="trading_login", narrow=True,
    ),
    Recipe(
        "stock_fund", (TRADING,), _draw_fund, _fund,
        ("put {dollars} dollars into my trading account", "add {dollars} dollars to my trading account"),
        needs="trading_login", open=True, missing={"dollars": _NO_DOLLARS},
    ),
    Recipe(
        "stock_price", (TRADING,), _company, _price,
        (
            "tell me the price of {company}", "look up the price of {company}",
            "check for me what one share of {company} costs",
        ),
        narrow=True, tiny=True,
    ),
    Recipe(
        "stock_balance", (TRADING,), lambda draw: {}, _balance,
        ("tell me the balance of my trading account", "look up how much money is in my trading account"),
        needs="trading_login", narrow=True,
    ),
    Recipe(
        "stock_order", (TRADING,), _draw_any_order, _order_price,
        ("tell me the price in order {order}", "look up at which price order {order} was placed"),
    ),
    Recipe(
        "stock_tell", (TRADING, MESSAGES), _draw_tell_price, _tell_price,
        (
            "send {name} the current price of {company}, nothing but the number",
            "look up what {company} costs and message {name} just that number",
        ),
        needs="message_login", weight=2.0,
    ),
)  # fmt: skip

LOGINS = (
    Recipe(
        "trading_login", (TRADING,), _draw_trading_login, _trading_login,
        (
            'log in to my trading account {handle} with the password "{password}"',
            'sign me in for trading as {handle}, password "{password}"',
        ),
    ),
)  # fmt: skip
