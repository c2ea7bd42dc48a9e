"""What a training run has spent at endpoints, on disk as it is spent, and the budget that it must stop at."""

from __future__ import annotations

from collections.abc import Callable

from muarl.accounts.budgets import Budget, Reserve, RolloutEnd, besides_of
from muarl.basics.errors import BudgetError
from muarl.basics.files import append_line, drop_broken_tail, read_lines, write_text
from muarl.config.keeping import BudgetConfig
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode, Usage

FILE = "spending.jsonl"
EARLIER = "earlier"
"""The line that sums up those before."""
MOST_LINES = 10_000
"""Beyond so many lines the file is summed up in one when it is next opened."""


class Spending:
    """The account of a run's folder, one line for every conversation that cost something, whatever became of it later:
    what was learned from it may be played again, the money is gone.

    Judges are counted by conversation too, wherever it was played.
    """

    def __init__(self, bounds: BudgetConfig, run: RunDirectory) -> None:
        self._path = run.path / FILE
        self._bounds = bounds
        self._reserve = Reserve()
        drop_broken_tail(self._path)
        rows = read_lines(self._path)
        self.total = Usage()
        for row in rows:
            used = Usage.from_json(row)
            self.total += used
            if row["id"] != EARLIER:
                self._reserve.learn(used)
        if len(rows) > MOST_LINES:
            write_text(self._path, "")
            self._write(EARLIER, self.total)

    def add(self, episode: Episode) -> None:
        """Enter what a conversation cost, its judge included."""
        used = episode.user_usage + besides_of(episode)
        self.total = self.total + used
        if used.requests:
            self._write(episode.id, used)

    def budget(self) -> Budget:
        """What is left of the budget, for a rollout whose conversations are entered as they end."""
        bounds = self._bounds
        return Budget(
            bounds.max_cost,
            bounds.max_tokens,
            lambda: self.total,
            users_only=True,
            accounted=True,
            reserve=self._reserve,
        )

    async def begin(self) -> Callable[[Episode | None], None]:
        """Wait until the budget has room for another conversation, which begins now. The answer is to be called with
        it once it has ended, or with None if it was broken off. BudgetError if the budget is spent."""
        budget = self.budget()
        while budget.gone(Usage()) is None and not budget.admits(Usage()):
            await self._reserve.changed()
        if budget.gone(Usage()) is not None:
            raise self.spent()
        ticket = self._reserve.begin()

        def ended(episode: Episode | None) -> None:
            if episode is not None:
                self.add(episode)
            self._reserve.end(ticket, None if episode is None else budget.whole(episode))

        return ended

    def spent(self) -> BudgetError:
        """The error that ends a run whose budget is spent."""
        tokens = self.total.prompt_tokens + self.total.completion_tokens
        if self.budget().gone(Usage()) is RolloutEnd.UNCOUNTED:
            return BudgetError(
                f"The budget of this run cannot be kept: {RolloutEnd.UNCOUNTED.why}. What was learned is kept. Let the "
                "server say it, or resume without a budget (--resume RUN budget.max_cost=null budget.max_tokens=null)"
            )
        return BudgetError(
            f"The budget of this run is spent: ${self.total.cost:.2f} and {tokens:,} tokens by now "
            f"(budget.max_cost: {self._bounds.max_cost}, budget.max_tokens: {self._bounds.max_tokens}). What was "
            "learned is kept. Resume with a larger budget (--resume RUN budget.max_cost=...)"
        )

    def _write(self, what: str, used: Usage) -> None:
        append_line(self._path, {"id": what, **used.to_json()})
