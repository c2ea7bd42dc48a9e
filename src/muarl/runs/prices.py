"""What the models behind a run's endpoints cost, and the bounds on it: that a bound is set where a command keeps to it,
and can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from muarl.basics.errors import ConfigError
from muarl.config.keeping import BudgetConfig
from muarl.config.section import EndpointConfig, UserConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.config.stages import ColdstartConfig
from muarl.environments.retrieval import models_of, with_models
from muarl.runs.roles import Cast, Judges, Role

Bounded = Literal["eval", "budget", "coldstart"]
"""The section of the configuration whose ``max_cost`` and ``max_tokens`` a command keeps to."""

WHOSE: Mapping[Bounded, str] = {
    "eval": "evaluations (muarl eval)",
    "budget": "training runs (muarl sft, train, quickstart)",
    "coldstart": "cold starts (muarl coldstart)",
}
KINDS = ("max_cost", "max_tokens")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sections that bound what commands may spend."""

    eval: EvalConfig
    budget: BudgetConfig
    coldstart: ColdstartConfig

    @classmethod
    def of(cls, config: RunConfig) -> Bounds:
        """Those of a configuration."""
        return cls(config.eval, config.budget, config.coldstart)

    def name(self, own: Bounded) -> str | None:
        """The name of a bound that a command keeps to, None if there is none."""
        return next((f"{own}.{kind}" for kind in KINDS if getattr(getattr(self, own), kind) is not None), None)

    def check(self, own: Bounded, *, asks: bool) -> None:
        """ConfigError where other commands are bounded by this configuration, and this one is not: it was meant to be.
        ``asks``: whether the run asks any model at an endpoint; else there is nothing to bound."""
        if not asks:
            return
        for kind in KINDS:
            if getattr(getattr(self, own), kind) is not None:
                continue
            for other, whose in WHOSE.items():
                if (value := getattr(getattr(self, other), kind)) is not None:
                    raise ConfigError(
                        f"{other}.{kind} bounds {whose}, and nothing here: set {own}.{kind}={value:g} to bound this "
                        f"run, or {other}.{kind}=null"
                    )


def check_prices(cast: Cast, bounds: Bounds, *users: Role) -> None:
    """ConfigError where a training's cost is bounded and nobody knows what a model of these users, or a judge, costs,
    or where only other commands are bounded."""
    asked: list[tuple[str, EndpointConfig]] = [
        (f"{role}.endpoint", user.endpoint)
        for role, user in ((role, cast.user_of(role)) for role in users)
        if user.kind == "llm" and user.endpoint is not None
    ]
    asked += list(models_of(cast.retrieval).items())
    judges = Judges.of(cast.eval, cast.domains)
    bounds.check("budget", asks=bool(asked or judges.models))
    if bounds.budget.max_cost is None:
        return
    unknown = [
        (f"{where} ({e.model})", f"{where}.prompt_price and .completion_price")
        for where, e in asked
        if not (e.prompt_price or e.completion_price)
    ]
    unknown += [(f"the judge {model}", "eval.prices") for model in judges.unpriced]
    if unknown:
        who, where = unknown[0]
        raise ConfigError(
            f"budget.max_cost: what {who} costs is not known; say it in {where}, or bound the tokens by "
            "budget.max_tokens"
        )


def with_prices(config: RunConfig) -> RunConfig:
    """The configuration with ``eval.concurrency`` and ``eval.prices`` where they belong. ConfigError where a bound on
    the cost is set and a price is missing."""
    ev, rollout = config.eval, config.rollout
    if ev.concurrency is not None:
        rollout = rollout.model_copy(update={"concurrency": ev.concurrency})
    agent = ev.endpoint and _priced(ev.endpoint, ev)
    user = config.eval_user
    if user.endpoint is not None:
        user = user.model_copy(update={"endpoint": _priced(user.endpoint, ev)})
    ev = ev.model_copy(update={"endpoint": agent})
    update: dict[str, Any] = {"eval": ev, "eval_user": user, "rollout": rollout}
    if config.retrieval.asked:
        full = with_models(config.retrieval)
        models = {name.partition(".")[2]: _priced(section, ev) for name, section in models_of(full).items()}
        update["retrieval"] = full.model_copy(update=models) if models else full
    priced = config.model_copy(update=update)
    _check_eval_bound(Cast.of(priced), Bounds.of(priced))
    return priced


def _priced(section: EndpointConfig, ev: EvalConfig) -> EndpointConfig:
    if section.prompt_price or section.completion_price or section.model not in ev.prices:
        return section
    prompt, completion = ev.prices[section.model]
    return section.model_copy(update={"prompt_price": prompt, "completion_price": completion})


def _check_eval_bound(cast: Cast, bounds: Bounds) -> None:
    ev = cast.eval
    sections = [ev.endpoint if ev.agent == "endpoint" else None, _model_of(cast.eval_user)]
    if ev.solo:
        sections = sections[:1]
    asked_sections = [s for s in (*sections, *models_of(cast.retrieval).values()) if s is not None]
    judges = Judges.of(ev, cast.domains)
    bounds.check("eval", asks=bool(asked_sections or judges.models))
    asked = [s.model for s in asked_sections if not (s.prompt_price or s.completion_price)] + judges.unpriced
    if asked and ev.max_cost is not None:
        raise ConfigError(
            f"eval.max_cost: what {asked[0]} costs is not known; say it in eval.prices "
            f"(eval.prices={{{asked[0]}: [2, 8]}}: dollars for a million prompt and completion tokens), or bound the "
            "tokens by eval.max_tokens"
        )


def _model_of(user: UserConfig) -> EndpointConfig | None:
    return user.endpoint if user.kind == "llm" else None
