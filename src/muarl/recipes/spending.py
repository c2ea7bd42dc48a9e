"""What a training run has spent at endpoints, on disk as it is spent, and the budget that it must stop at."""

from __future__ import annotations

from muarl.config import RunConfig
from muarl.config.sections import EndpointConfig, UserConfig
from muarl.episode import Episode, Usage
from muarl.errors import BudgetError, ConfigError
from muarl.files import append_line, drop_broken_tail, read_lines, write_text
from muarl.observe.rundir import RunDirectory
from muarl.recipes.common import judge_endpoint
from muarl.recipes.participants import judge_specs
from muarl.rollout import Budget

FILE = "spending.jsonl"
MOST_LINES = 10_000
"""Beyond so many lines the file is summed up in one when it is next opened."""


class Spending:
    """The account of a run's folder, one line for every conversation that cost something, whatever became of it later:
    what was learned from it may be played again, the money is gone.

    Judges are counted where they are asked from this process.
    """

    def __init__(self, config: RunConfig, run: RunDirectory) -> None:
        self._path = run.path / FILE
        self._bounds = config.budget
        self._judges = [e for e in map(judge_endpoint, judge_specs(config)) if e is not None]
        drop_broken_tail(self._path)
        rows = read_lines(self._path)
        self.total = sum((Usage(**{k: row[k] for k in Usage().to_json()}) for row in rows), Usage())
        if len(rows) > MOST_LINES:
            write_text(self._path, "")
            self._write("earlier", self.total)
        self._judged = self._judges_used()

    def add(self, episode: Episode) -> None:
        """Enter what a conversation cost, and what judges have used since the last one."""
        judged, before = self._judges_used(), self._judged.to_json()
        self._judged = judged
        newly = Usage(**{k: v - before[k] for k, v in judged.to_json().items()})
        used = episode.user_usage + newly
        self.total = self.total + used
        if used.requests:
            self._write(episode.id, used)

    def budget(self) -> Budget:
        """What is left of the budget, for one rollout whose conversations are entered as they end."""
        before = self.total
        judged = self._judges_used().to_json()

        def besides() -> Usage:
            now = self._judges_used().to_json()
            return before + Usage(**{k: v - judged[k] for k, v in now.items()})

        return Budget(self._bounds.max_cost, self._bounds.max_tokens, besides, users_only=True)

    def check(self) -> None:
        """BudgetError if the budget is spent."""
        if Budget(self._bounds.max_cost, self._bounds.max_tokens).gone(self.total) is not None:
            raise self.spent()

    def spent(self) -> BudgetError:
        """The error that ends a run whose budget is spent."""
        tokens = self.total.prompt_tokens + self.total.completion_tokens
        return BudgetError(
            f"The budget of this run is spent: ${self.total.cost:.2f} and {tokens:,} tokens by now "
            f"(budget.max_cost: {self._bounds.max_cost}, budget.max_tokens: {self._bounds.max_tokens}). What was "
            "learned is kept. With a larger budget (--resume RUN budget.max_cost=...) it goes on from here"
        )

    def _judges_used(self) -> Usage:
        return sum((e.usage for e in self._judges), Usage())

    def _write(self, what: str, used: Usage) -> None:
        append_line(self._path, {"id": what, **used.to_json()})


def check_prices(config: RunConfig, *users: UserConfig) -> None:
    """ConfigError where the cost is bounded and nobody knows what a model of these users, or a judge, costs."""
    if config.budget.max_cost is None:
        return
    asked: list[tuple[str, EndpointConfig]] = [
        ("user.endpoint" if user is config.user else "eval_user.endpoint", user.endpoint)
        for user in users
        if user.kind == "llm" and user.endpoint is not None
    ]
    unknown = [
        (f"{where} ({e.model})", f"{where}.prompt_price and .completion_price")
        for where, e in asked
        if not (e.prompt_price or e.completion_price)
    ]
    judges = [e for e in map(judge_endpoint, judge_specs(config)) if e is not None and e.config.price is None]
    unknown += [(f"the judge {e.model}", "eval.prices") for e in judges]
    if unknown:
        who, where = unknown[0]
        raise ConfigError(
            f"budget.max_cost: what {who} costs is not known; say it in {where}, or bound the tokens by "
            "budget.max_tokens"
        )
