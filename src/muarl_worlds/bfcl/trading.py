"""TradingBot: orders, funds, prices and a watch list at a stock broker (BFCL trading_bot)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any, ClassVar, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import Draws, Literals, copied, facts, initial, named, twin

_FACTS = facts("trading")
_NOW = datetime(2024, 9, 1, 10, 30)
_DAY = 24 * 60 * 60
"""Seconds after ``_NOW`` in which transactions get their time."""
_OPENS, _CLOSES = time(9, 30), time(16, 0)
_SYMBOLS_V4 = {**_FACTS["symbols"], "Gorilla": "GORI"}
_TIME = "%Y-%m-%d %H:%M:%S"


@named
class _TradingBot(Api):
    """What both revisions have. ``orders``: by number; ``stocks``: by symbol."""

    name = "TradingBot"
    symbols: ClassVar[Mapping[str, str]]
    watch_list_key: ClassVar[str]

    orders: dict[Any, dict[str, Any]]
    account_info: dict[str, Any]
    authenticated: Any
    market_status: Any
    order_counter: Any
    stocks: dict[str, dict[str, Any]]
    watch_list: list[Any]
    transaction_history: list[dict[str, Any]]
    long_context: bool

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        state = initial(config, _FACTS["state"])
        seed = state.pop("random_seed")
        vars(self).update(state)
        self.orders = {int(k) if isinstance(k, str) and k.isdigit() else k: v for k, v in self.orders.items()}
        self.long_context = long_context is not None
        self._literals = Literals(long_context)
        self._random = Draws(seed)

    def copy(self) -> Self:
        return twin(self)

    @tool
    def get_current_time(self) -> dict[str, Any]:
        """Tell the time at the exchange."""
        return {"current_time": "10:30 AM"}

    @tool
    def get_symbol_by_name(self, name: str) -> dict[str, Any]:
        """Look up the symbol of a company's stock.

        name: the company's name.
        """
        return {"symbol": self.symbols.get(name, "Stock not found")}

    @tool
    def get_stock_info(self, symbol: str) -> dict[str, Any]:
        """Show price, change, volume and moving averages of a stock.

        symbol: the stock's symbol.
        """
        if symbol not in self.stocks:
            return {"error": f"Stock with symbol '{symbol}' not found."}
        if self.long_context:
            stock = self.stocks[symbol].copy()
            stock["MA(5)"] = self._literals["MA_5_EXTENSION"]
            stock["MA(20)"] = self._literals["MA_20_EXTENSION"]
            return stock
        return self.stocks[symbol]

    @tool
    def get_order_details(self, order_id: int) -> dict[str, Any]:
        """Show an order.

        order_id: the order's number.
        """
        if order_id not in self.orders:
            known = list(self.orders.keys())
            return {"error": f"Order with ID {order_id} not found.Here is the list of orders_id: {known}"}
        if self.long_context:
            order = self.orders[order_id].copy()
            symbol = order["symbol"]
            texts = self._literals["ORDER_DETAIL_EXTENSION"]
            order["metadata"] = {key: text.format(symbol=symbol) for key, text in texts.items()}
            return order
        return self.orders[order_id]

    @tool(writes=True)
    def cancel_order(self, order_id: int) -> dict[str, Any]:
        """Cancel an order that is not completed.

        order_id: the order's number.
        """
        if order_id not in self.orders:
            return {"error": f"Order with ID {order_id} not found."}
        if self.orders[order_id]["status"] == "Completed":
            return {"error": f"Can't cancel order {order_id}. Order is already completed."}
        self.orders[order_id]["status"] = "Cancelled"
        return {"order_id": order_id, "status": "Cancelled"}

    @tool(writes=True)
    def place_order(self, order_type: str, symbol: str, price: float, amount: int) -> dict[str, Any]:
        """Order shares to be bought or sold.

        order_type: Buy or Sell.
        symbol: the stock's symbol.
        price: the price of one share.
        amount: how many shares.
        """
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to place an order."}
        if symbol not in self.stocks:
            return {"error": f"Invalid stock symbol: {symbol}"}
        if price <= 0 or amount <= 0:
            return {"error": "Price and amount must be positive values."}
        problem = self._unaffordable(order_type, price, amount)
        if problem is not None:
            return {"error": problem}
        price = float(price)
        order_id = self.order_counter
        self.orders[order_id] = {
            "id": order_id,
            "order_type": order_type,
            "symbol": symbol,
            "price": price,
            "amount": amount,
            "status": "Open",
        }
        self.order_counter += 1
        return {
            "order_id": order_id,
            "order_type": order_type,
            "status": "Pending",  # the order itself is already open
            "price": price,
            "amount": amount,
        }

    @tool
    def get_account_info(self) -> dict[str, Any]:
        """Show the account: its number, its balance and its card."""
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to view account information."}
        return self.account_info

    @tool(writes=True)
    def trading_login(self, username: str, password: str) -> dict[str, Any]:
        """Log the user in to the trading system.

        username: the user's name.
        password: the user's password.
        """
        if self.authenticated:
            return {"status": "Already logged in"}
        self.authenticated = True
        return {"status": "Logged in successfully"}

    @tool
    def trading_get_login_status(self) -> dict[str, Any]:
        """Say whether the user is logged in to the trading system."""
        return {"status": bool(self.authenticated)}

    @tool(writes=True)
    def trading_logout(self) -> dict[str, Any]:
        """Log the user out of the trading system."""
        if not self.authenticated:
            return {"status": "No user is currently logged in"}
        self.authenticated = False
        return {"status": "Logged out successfully"}

    @tool(writes=True)
    def fund_account(self, amount: float) -> dict[str, Any]:
        """Pay money into the account.

        amount: how much, in dollars.
        """
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to fund the account."}
        if amount <= 0:
            return {"error": "Funding amount must be positive."}
        self.account_info["balance"] += amount
        self._record("deposit", amount)
        return {"status": "Account funded successfully", "new_balance": self.account_info["balance"]}

    @tool(writes=True)
    def remove_stock_from_watchlist(self, symbol: str) -> dict[str, Any]:
        """Take a stock off the watch list.

        symbol: the stock's symbol.
        """
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to modify the watchlist."}
        if symbol not in self.watch_list:
            return {"error": f"Stock {symbol} not found in watchlist."}
        self.watch_list.remove(symbol)
        return {"status": f"Stock {symbol} removed from watchlist successfully."}

    @tool
    def get_watchlist(self) -> Any:
        """List the symbols on the watch list."""
        if not self.authenticated:
            return ["Error: User not authenticated. Please log in to view the watchlist."]
        if self.long_context:
            more = self._literals["WATCH_LIST_EXTENSION"]
            # Upstream's list has Python's Ellipsis among its symbols, which JSON can only write as an object.
            return [*self.watch_list, *(... if type(symbol) is dict else symbol for symbol in more)]
        return {"watchlist": self.watch_list}

    @tool
    def get_order_history(self) -> Any:
        """List the numbers of all orders."""
        if not self.authenticated:
            return [{"error": "User not authenticated. Please log in to view order history."}]
        return {"history": list(self.orders.keys())}

    @tool
    def get_transaction_history(self, start_date: str | None = None, end_date: str | None = None) -> Any:
        """List the deposits and withdrawals of a period.

        start_date: the first day, as YYYY-MM-DD; without it, from the beginning.
        end_date: the day at whose beginning the period ends, as YYYY-MM-DD; without it, until now.
        """
        if not self.authenticated:
            return [{"error": "User not authenticated. Please log in to view transaction history."}]
        start = datetime.strptime(start_date, "%Y-%m-%d") if start_date else datetime.min
        end = datetime.strptime(end_date, "%Y-%m-%d") if end_date else datetime.max
        found = [t for t in self.transaction_history if start <= datetime.strptime(t["timestamp"], _TIME) <= end]
        if self.long_context:
            found.extend(self._literals["TRANSACTION_HISTORY_EXTENSION"])
        return {"transaction_history": found}

    @tool
    def get_available_stocks(self, sector: str) -> dict[str, Any]:
        """List the symbols of a sector.

        sector: such as Technology or Automobile.
        """
        found = copied(_FACTS["sectors"].get(sector, []))
        if found and self.long_context:
            found.extend(self._literals[f"{sector.upper()}_EXTENSION"])
        return {"stock_list": found}

    @tool
    def filter_stocks_by_price(self, stocks: list[str], min_price: float, max_price: float) -> dict[str, Any]:
        """Pick the stocks whose price lies in a range.

        stocks: the symbols to choose from.
        min_price: the lowest price.
        max_price: the highest price.
        """
        found = [
            symbol
            for symbol in stocks
            if self.stocks.get(symbol, {}).get("price", 0) >= min_price
            and self.stocks.get(symbol, {}).get("price", 0) <= max_price
        ]
        return {"filtered_stocks": found}

    @tool(writes=True)
    def add_to_watchlist(self, stock: str) -> dict[str, Any]:
        """Put a stock on the watch list.

        stock: the stock's symbol.
        """
        if stock not in self.watch_list and stock in self.stocks:
            self.watch_list.append(stock)
        return {self.watch_list_key: self.watch_list}

    @tool
    def notify_price_change(self, stocks: list[str], threshold: float) -> dict[str, Any]:
        """Say which stocks have changed much.

        stocks: the symbols to look at.
        threshold: the change in percent from which on it counts.
        """
        changed = [s for s in stocks if s in self.stocks and abs(self.stocks[s]["percent_change"]) >= threshold]
        if changed:
            return {"notification": f"Stocks {', '.join(changed)} have significant price changes."}
        return {"notification": "No significant price changes in the selected stocks."}

    def _unaffordable(self, order_type: Any, price: Any, amount: Any) -> str | None:
        return None

    def _record(self, kind: str, amount: Any) -> None:
        moment = _NOW + timedelta(seconds=self._random.randint(0, _DAY))
        self.transaction_history.append({"type": kind, "amount": amount, "timestamp": f"{moment:{_TIME}}"})

    def _withdraw(self, amount: Any) -> dict[str, Any]:
        if amount > self.account_info["balance"]:
            return {"error": "Insufficient funds for withdrawal."}
        self.account_info["balance"] -= amount
        self._record("withdrawal", amount)
        return {"status": "Withdrawal successful", "new_balance": self.account_info["balance"]}


@named
class TradingV3(_TradingBot):
    """TradingBot of revision v3."""

    symbols = _FACTS["symbols"]
    watch_list_key = "symbol"

    @tool(writes=True)
    def update_market_status(self, current_time_str: str) -> dict[str, Any]:
        """Open or close the market by the time of day.

        current_time_str: the time, such as 10:30 AM.
        """
        now = datetime.strptime(current_time_str, "%I:%M %p").time()
        self.market_status = "Open" if _OPENS <= now <= _CLOSES else "Closed"
        return {"status": self.market_status}

    @tool(writes=True)
    def make_transaction(self, account_id: int, xact_type: str, amount: float) -> dict[str, Any]:
        """Pay money into the account or take it out while the market is open.

        account_id: the account's number.
        xact_type: deposit or withdrawal.
        amount: how much, in dollars.
        """
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to make a transaction."}
        if self.market_status != "Open":
            return {"error": "Market is closed. Transactions are not allowed."}
        if account_id != self.account_info["account_id"]:
            return {"error": f"Account with ID {account_id} not found."}
        if amount <= 0:
            return {"error": "Transaction amount must be positive."}
        if xact_type == "deposit":
            self.account_info["balance"] += amount
            self._record("deposit", amount)
            return {"status": "Deposit successful", "new_balance": self.account_info["balance"]}
        if xact_type == "withdrawal":
            return self._withdraw(amount)
        return {"error": "Invalid transaction type. Use 'deposit' or 'withdrawal'."}

    @tool(writes=True)
    def update_stock_price(self, symbol: str, new_price: float) -> dict[str, Any]:
        """Set the price of a stock.

        symbol: the stock's symbol.
        new_price: the price of one share.
        """
        if symbol not in self.stocks:
            return {"error": f"Stock with symbol '{symbol}' not found."}
        if new_price <= 0:
            return {"error": "New price must be a positive value."}
        stock = self.stocks[symbol]
        old_price = stock["price"]
        stock["price"] = new_price
        stock["percent_change"] = ((new_price - old_price) / old_price) * 100
        return {"symbol": symbol, "old_price": old_price, "new_price": new_price}


@named
class TradingV4(_TradingBot):
    """TradingBot of revision v4."""

    symbols = _SYMBOLS_V4
    watch_list_key = "watchlist"

    @tool(writes=True)
    def withdraw_funds(self, amount: float) -> dict[str, Any]:
        """Take money out of the account while the market is open.

        amount: how much, in dollars.
        """
        if not self.authenticated:
            return {"error": "User not authenticated. Please log in to make a transaction."}
        if self.market_status != "Open":
            return {"error": "Market is closed. Transactions are not allowed."}
        if amount <= 0:
            return {"error": "Transaction amount must be positive."}
        return self._withdraw(amount)

    def _unaffordable(self, order_type: Any, price: Any, amount: Any) -> str | None:
        if order_type.lower() != "buy":
            return None
        total, balance = float(price) * int(amount), self.account_info.get("balance", 0)
        if total > balance:
            return f"Insufficient funds: required ${total:.2f} but only ${balance:.2f} available."
        return None


REVISIONS: Mapping[Revision, type[Api]] = {"v3": TradingV3, "v4": TradingV4}
