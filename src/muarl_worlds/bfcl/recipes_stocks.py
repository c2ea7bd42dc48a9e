"""What users want done with stocks (TradingBot)."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.plan import Plan
from muarl_worlds.bfcl import pools
from muarl_worlds.bfcl.recipes import asked, drawn, number, one_of, recipe, slot
from muarl_worlds.bfcl.recipes_people import HANDLE, MESSAGES, NAME, PASSWORD, user_id

TRADING = "TradingBot"


def _orders(d: Any, *statuses: str) -> list[str]:
    orders = d.tables[TRADING].orders
    return [n for n in orders if orders[n].status in statuses]


def _watched(wanted: bool) -> Any:
    """The companies that are watched, or those that are not."""
    return lambda d: [n for n, symbol in pools.SYMBOLS.items() if (symbol in d.tables[TRADING].watch_list) == wanted]


COMPANY = asked(
    slot("company", one_of(pools.COMPANIES), lambda d: pools.COMPANIES), "Of which company?", "I mean {}.",
    "The company is {}.", guess=("Apple", "Tesla"),
)  # fmt: skip
AMOUNT = asked(
    slot("amount", r"\d+", lambda d: pools.AMOUNTS), "How many shares?", "I want {} shares.", "Make it {} shares.",
    guess=("10", "100"),
)  # fmt: skip
PRICE = slot("price", r"\d+\.\d+", lambda d: pools.PRICES)
ORDER = slot("order", r"\d+", lambda d: _orders(d, "Open", "Pending"))
DOLLARS = asked(
    slot("dollars", r"\d+", lambda d: range(100, 10_000, 25)), "How much?", "Make it {} dollars.", "It is {} dollars.",
    guess=("1000", "500"),
)  # fmt: skip


def _symbol(it: Plan) -> str:
    return str(it.look("get_symbol_by_name", name=it.company).symbol)


@recipe(
    TRADING, "buy {amount} shares of {company} at the market price",
    "get me {amount} shares of {company} at market price",
    "place a buy order for {amount} shares of {company} at what they cost now",
    "buy shares of {company} at the market price", "buy some {company} stock at the market price",
    "buy {amount} shares at the market price", "get me {amount} shares at what they cost now", slots=(COMPANY, AMOUNT),
    needs="trading_login", open=True, tiny=True, weight=1.5,
)  # fmt: skip
def stock_buy(it: Plan) -> None:
    symbol = _symbol(it)
    price = it.look("get_stock_info", symbol=symbol).price
    placed = it.do("place_order", order_type="Buy", symbol=symbol, price=price, amount=int(it.amount))
    it.order = placed.order_id


@recipe(
    TRADING, "sell {amount} shares of {company} at {price} dollars each",
    "place an order to sell {amount} shares of {company} for {price} dollars a share", slots=(COMPANY, AMOUNT, PRICE),
    needs="trading_login", open=True,
)  # fmt: skip
def stock_sell(it: Plan) -> None:
    symbol = _symbol(it)
    placed = it.do("place_order", order_type="Sell", symbol=symbol, price=float(it.price), amount=int(it.amount))
    it.order = placed.order_id


@recipe(
    TRADING, "cancel order {order}", "call off order {order}", "take back my order number {order}", slots=(ORDER,),
    tiny=True,
)  # fmt: skip
def stock_cancel(it: Plan) -> None:
    it.do("cancel_order", order_id=int(it.order))


@recipe(
    TRADING, "cancel the order you just placed", "call that last order off again",
    when=lambda d: "order" in d.user and d.user.order in _orders(d, "Open"), narrow=True, weight=2.0,
)  # fmt: skip
def stock_cancel_last(it: Plan) -> None:
    it.do("cancel_order", order_id=it.order)


@recipe(
    TRADING, "put {company} on my watchlist", "add {company} to the stocks I watch",
    slots=(drawn(COMPANY, _watched(False)),), narrow=True, tiny=True,
)  # fmt: skip
def stock_watch(it: Plan) -> None:
    it.do("add_to_watchlist", stock=_symbol(it))


@recipe(
    TRADING, "take {company} off my watchlist", "remove {company} from the stocks I watch",
    slots=(drawn(COMPANY, _watched(True)),), needs="trading_login", narrow=True,
)  # fmt: skip
def stock_unwatch(it: Plan) -> None:
    it.do("remove_stock_from_watchlist", symbol=_symbol(it))


@recipe(
    TRADING, "put {dollars} dollars into my trading account", "add {dollars} dollars to my trading account",
    "put money into my trading account", "top up my trading account", slots=(DOLLARS,), needs="trading_login",
    open=True,
)  # fmt: skip
def stock_fund(it: Plan) -> None:
    it.do("fund_account", amount=float(it.dollars))


@recipe(
    TRADING, "take {dollars} dollars out of my trading account", "withdraw {dollars} dollars from my trading account",
    "take money out of my trading account", "withdraw money from my trading account", slots=(DOLLARS,),
    needs="trading_login", open=True,
)  # fmt: skip
def stock_withdraw(it: Plan) -> None:
    it.do("withdraw_funds", amount=float(it.dollars))


@recipe(
    TRADING, "log me out of my trading account", "sign me out for trading",
    when=lambda d: d.tables[TRADING].authenticated, narrow=True,
)  # fmt: skip
def stock_logout(it: Plan) -> None:
    it.do("trading_logout")


@recipe(
    TRADING, "tell me the price of {company}", "look up the price of {company}",
    "check for me what one share of {company} costs", slots=(COMPANY,), narrow=True, tiny=True,
)  # fmt: skip
def stock_price(it: Plan) -> None:
    it.symbol = _symbol(it)
    it.price = number(it.look("get_stock_info", symbol=it.symbol).price)
    it.answer("{symbol} at ${price}.", tell="{price}")


@recipe(
    TRADING, "tell me the balance of my trading account", "look up how much money is in my trading account",
    needs="trading_login", narrow=True,
)  # fmt: skip
def stock_balance(it: Plan) -> None:
    it.balance = number(it.look("get_account_info").balance)
    it.answer("The balance is ${balance}.", tell="{balance}")


@recipe(
    TRADING, "tell me the price in order {order}", "look up at which price order {order} was placed",
    slots=(drawn(ORDER, lambda d: list(d.tables[TRADING].orders)),),
)  # fmt: skip
def stock_order(it: Plan) -> None:
    it.price = number(it.look("get_order_details", order_id=int(it.order)).price)
    it.answer("Order {order} is at ${price}.", tell="{price}")


@recipe(
    (TRADING, MESSAGES), "send {name} the current price of {company}, nothing but the number",
    "look up what {company} costs and message {name} just that number", slots=(COMPANY, NAME), needs="message_login",
    weight=2.0,
)  # fmt: skip
def stock_tell(it: Plan) -> None:
    price = number(it.look("get_stock_info", symbol=_symbol(it)).price)
    it.do("send_message", receiver_id=user_id(it), message=price)


@recipe(
    TRADING, 'log in to my trading account {handle} with the password "{password}"',
    'sign me in for trading as {handle}, password "{password}"', slots=(HANDLE, PASSWORD),
)  # fmt: skip
def trading_login(it: Plan) -> None:
    it.do("trading_login", username=it.handle, password=it.password)
