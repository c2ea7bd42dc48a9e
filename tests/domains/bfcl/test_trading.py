"""TradingBot: what its tools answer and change, in both revisions; expected values are upstream's."""

from __future__ import annotations

import pytest

from muarl_worlds.bfcl.trading import REVISIONS

LONG = {
    "WATCH_LIST_EXTENSION": ["AB", {"__ellipsis__": True}, "CD"],
    "TRANSACTION_HISTORY_EXTENSION": [{"type": "deposit", "amount": 1.0, "timestamp": "2024-05-01 22:14:05.858817"}],
    "MA_5_EXTENSION": [1.5, 2.5],
    "MA_20_EXTENSION": [3.5],
    "TECHNOLOGY_EXTENSION": ["LGY"],
    "AUTOMOBILE_EXTENSION": ["UNUGJ"],
    "ORDER_DETAIL_EXTENSION": {"overview": "{symbol} and {symbol}"},
}
BUYING = {"order_type": "Buy", "symbol": "AAPL", "price": 10, "amount": 2}


def loaded(revision, config=None, long_context=None, logged_in=True):
    bot = REVISIONS[revision]()
    bot.load(config or {}, long_context)
    if logged_in:
        bot.trading_login("ann", "pw")
    return bot


@pytest.fixture(params=["v3", "v4"])
def bot(request):
    return loaded(request.param)


def test_state_has_upstreams_attributes_in_upstreams_order(bot):
    assert list(bot.state()) == [
        "orders", "account_info", "authenticated", "market_status", "order_counter", "stocks", "watch_list",
        "transaction_history", "long_context",
    ]  # fmt: skip
    assert list(bot.orders) == [12345, 12446]
    assert len(bot.stocks) == 11


def test_order_numbers_of_a_scenario_become_numbers_where_they_can():
    bot = loaded("v4", {"orders": {"7": {"id": 7}, "order_type": "Buy"}})
    assert bot.get_order_history() == {"history": [7, "order_type"]}
    assert bot.get_order_details(8) == {
        "error": "Order with ID 8 not found.Here is the list of orders_id: [7, 'order_type']"
    }


def test_funding_the_account_is_recorded_at_a_drawn_time(bot):
    assert bot.fund_account(500) == {"status": "Account funded successfully", "new_balance": 10500.0}
    assert bot.fund_account(1.5)["new_balance"] == 10501.5
    assert bot.transaction_history == [
        {"type": "deposit", "amount": 500, "timestamp": "2024-09-02 05:40:15"},
        {"type": "deposit", "amount": 1.5, "timestamp": "2024-09-01 12:26:34"},
    ]
    day = bot.get_transaction_history("2024-09-01", "2024-09-02")["transaction_history"]
    assert [t["amount"] for t in day] == [1.5]
    assert bot.fund_account(0) == {"error": "Funding amount must be positive."}
    with pytest.raises(ValueError, match="time data 'soon' does not match format '%Y-%m-%d'"):
        bot.get_transaction_history("soon")


def test_an_order_is_open_at_once_but_said_to_be_pending(bot):
    placed = bot.place_order("Sell", "AAPL", 10, 2)
    assert placed == {"order_id": 12446, "order_type": "Sell", "status": "Pending", "price": 10.0, "amount": 2}
    assert bot.get_order_details(12446)["status"] == "Open"
    assert bot.cancel_order(12446) == {"order_id": 12446, "status": "Cancelled"}
    assert bot.cancel_order(12345) == {"error": "Can't cancel order 12345. Order is already completed."}
    assert bot.cancel_order(1) == {"error": "Order with ID 1 not found."}


def test_only_v4_asks_for_the_funds_that_an_order_takes():
    order = {**BUYING, "price": 227.16, "amount": 100}
    assert loaded("v3").place_order(**order)["status"] == "Pending"
    assert loaded("v4").place_order(**order) == {
        "error": "Insufficient funds: required $22716.00 but only $10000.00 available."
    }
    assert loaded("v4").place_order(**order | {"order_type": "Sell"})["status"] == "Pending"
    with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
        loaded("v4").place_order(**order | {"amount": float("inf")})


def test_v3_makes_transactions_and_v4_withdraws():
    old, new = loaded("v3", {"market_status": "Open"}), loaded("v4", {"market_status": "Open"})
    taken = {"status": "Withdrawal successful", "new_balance": 9900.0}
    assert old.make_transaction(12345, "withdrawal", 100) == taken
    assert new.withdraw_funds(100) == taken
    assert old.transaction_history == new.transaction_history
    assert old.make_transaction(12345, "deposit", 50) == {"status": "Deposit successful", "new_balance": 9950.0}
    assert old.make_transaction(1, "deposit", 50) == {"error": "Account with ID 1 not found."}
    assert old.make_transaction(12345, "gift", 50) == {
        "error": "Invalid transaction type. Use 'deposit' or 'withdrawal'."
    }
    assert new.withdraw_funds(10**6) == {"error": "Insufficient funds for withdrawal."}
    assert loaded("v4").withdraw_funds(1) == {"error": "Market is closed. Transactions are not allowed."}


def test_v3_opens_the_market_and_sets_prices():
    bot = loaded("v3")
    hours = ["09:29 AM", "09:30 AM", "4:00 pm", "04:01 PM"]
    assert [bot.update_market_status(h)["status"] for h in hours] == ["Closed", "Open", "Open", "Closed"]
    assert bot.update_stock_price("ZETA", 44.18) == {"symbol": "ZETA", "old_price": 22.09, "new_price": 44.18}
    assert bot.get_stock_info("ZETA")["percent_change"] == 100.0
    assert bot.update_stock_price("ZETA", 0) == {"error": "New price must be a positive value."}


def test_each_revision_has_its_own_tools_and_words():
    old, new = loaded("v3"), loaded("v4")
    assert not hasattr(new, "make_transaction") and not hasattr(old, "withdraw_funds")
    assert old.add_to_watchlist("AAPL") == {"symbol": ["NVDA", "AAPL"]}
    assert new.add_to_watchlist("AAPL") == {"watchlist": ["NVDA", "AAPL"]}
    assert old.get_symbol_by_name("Gorilla") == {"symbol": "Stock not found"}
    assert new.get_symbol_by_name("Gorilla") == {"symbol": "GORI"}


def test_the_watch_list_and_prices(bot):
    bot.add_to_watchlist("NOPE")
    assert bot.get_watchlist() == {"watchlist": ["NVDA"]}
    assert bot.remove_stock_from_watchlist("NVDA") == {"status": "Stock NVDA removed from watchlist successfully."}
    assert bot.remove_stock_from_watchlist("NVDA") == {"error": "Stock NVDA not found in watchlist."}
    assert bot.filter_stocks_by_price(["AAPL", "NOPE", "ZETA"], 0, 30) == {"filtered_stocks": ["NOPE", "ZETA"]}
    assert bot.notify_price_change(["AAPL", "NVDA", "TSLA"], 0.17) == {
        "notification": "Stocks AAPL, NVDA have significant price changes."
    }
    assert bot.get_available_stocks("Automobile") == {"stock_list": ["TSLA", "F", "GM"]}
    assert bot.get_available_stocks("Fishing") == {"stock_list": []}


def test_without_logging_in_some_tools_answer_with_lists():
    bot = loaded("v4", logged_in=False)
    assert bot.get_watchlist() == ["Error: User not authenticated. Please log in to view the watchlist."]
    assert isinstance(bot.get_order_history(), list) and isinstance(bot.get_transaction_history(), list)
    assert bot.place_order(**BUYING) == {"error": "User not authenticated. Please log in to place an order."}
    assert bot.get_account_info() == {"error": "User not authenticated. Please log in to view account information."}


def test_long_context_lengthens_what_is_shown_and_not_the_state():
    bot = loaded("v4", long_context=LONG)
    before = loaded("v4").state() | {"long_context": True}
    assert bot.get_watchlist() == ["NVDA", "AB", ..., "CD"]
    assert bot.get_stock_info("AAPL")["MA(5)"] == [1.5, 2.5]
    assert bot.get_order_details(12345)["metadata"] == {"overview": "AAPL and AAPL"}
    assert bot.get_available_stocks("Technology")["stock_list"][-1] == "LGY"
    assert len(bot.get_transaction_history("2030-01-01")["transaction_history"]) == 1
    assert bot.state() == before


def test_what_long_context_shows_belongs_to_nobody_else():
    bot = loaded("v3", long_context=LONG)
    bot.get_stock_info("AAPL")["MA(5)"].append(0)
    bot.get_transaction_history()["transaction_history"][0]["amount"] = 0
    assert LONG["MA_5_EXTENSION"] == [1.5, 2.5]
    assert LONG["TRANSACTION_HISTORY_EXTENSION"][0]["amount"] == 1.0


def test_a_copy_goes_its_own_way(bot):
    bot.fund_account(500)
    twin = bot.copy()
    assert twin.state() == bot.state()
    before = repr(bot.state())
    twin.fund_account(1.5)
    twin.place_order(**BUYING)
    twin.cancel_order(12446)
    twin.add_to_watchlist("AAPL")
    assert repr(bot.state()) == before
    bot.fund_account(1.5)
    assert bot.transaction_history == twin.transaction_history
