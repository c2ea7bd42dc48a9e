"""What recipes check before they open anything: each list in its order, so that the first thing wrong is told first."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.environments.environment import Environment
from muarl.runs import checks
from muarl.runs.prices import Bounds
from muarl.runs.roles import Cast

MADE = ("check_tasks", "check_prices", "check_gold", "check_roles", "check_users", "check_memory", "check_disk")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """Names and arguments of the checks that are made; none of them looks at anything."""
    found: list[tuple[str, tuple[Any, ...]]] = []

    def instead(name: str) -> Any:
        def check(*arguments: Any, **more: Any) -> list[str]:
            found.append((name, (*arguments, *more.items())))
            return [f"{name} was made"]

        return check

    for name in MADE:
        monkeypatch.setattr(checks, name, instead(name))
    return found


@pytest.mark.parametrize("recipe", ["rl", "sft", "quickstart", "evaluate"])
def test_an_intent_that_there_is_not_is_refused_before_tasks_are_made(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Environment, "iter_tasks", lambda *_, **__: pytest.fail("tasks were made"))
    config = load_config("quickstart", ["domain.intents=[cancel,nonsense]"])
    with pytest.raises(ConfigError, match=r"domain.intents: there is no intent 'nonsense'; known: cancel, exchange, "):
        checks.check_beforehand(config, recipe, "muarl train")
    checks.check_beforehand(load_config("quickstart", ["domain.intents=[cancel]"]), recipe, "muarl train")


def test_a_training_checks_tasks_people_and_then_the_machine(made: list[tuple[str, tuple[Any, ...]]]) -> None:
    config = load_config("cpu", ["rl.eval_every=5", "budget.max_cost=3"])
    notes = checks.check_rl(config, "environment")  # type: ignore[arg-type]
    assert [name for name, _ in made] == list(MADE) and notes == ["check_tasks was made"]
    roles = next(arguments for name, arguments in made if name == "check_roles")
    assert roles[1:] == ("user", "judge", "eval_user", ("bound", "budget.max_cost"))
    assert dict(made)["check_memory"][1] == "rl"
    without = load_config("cpu", ["rl.eval_every=0"])
    checks.check_rl(without, "environment")  # type: ignore[arg-type]
    last = [arguments for name, arguments in made if name == "check_roles"][-1]
    assert last[1:] == ("user", "judge", ("bound", None)), "who validates is asked only where there is validation"
    users = [arguments[2] for name, arguments in made if name == "check_users"]
    assert users == [{"user": "train", "eval_user": "validation"}, {"user": "train"}]


def test_a_cold_start_needs_nobody_who_samples(made: list[tuple[str, tuple[Any, ...]]]) -> None:
    config = load_config("cpu", ["runs_dir=elsewhere"])
    checks.check_demonstrator(Cast.of(config), Bounds.of(config))
    checks.check_machine(config, config.sft, sampling=False)
    assert [name for name, _ in made] == ["check_prices", "check_roles", "check_memory", "check_disk"]
    assert made[2][1][1:] == ("sft", ("sampling", False)) and made[3][1][1:] == (
        config.runs_dir,
        config.checkpoints,
        config.sft,
    )


def test_a_user_model_s_cold_start_takes_what_a_cold_start_takes(made: list[tuple[str, tuple[Any, ...]]]) -> None:
    """It samples afterwards, so that all of the machine is asked for, but RL's section says nothing about it."""
    config = load_config("cpu")
    checks.check_machine(config, config.sft)
    checks.check_machine(config, config.sft, config.rl)
    assert [arguments[1] for name, arguments in made if name == "check_memory"] == ["sft", "rl"]


def test_a_quickstart_asks_everybody_before_its_environment_is_made(made: list[tuple[str, tuple[Any, ...]]]) -> None:
    config = load_config("quickstart")
    checks.check_quickstart(Cast.of(config), Bounds.of(config))
    assert [name for name, _ in made] == ["check_prices", "check_roles"]
    assert made[1][1][1:4] == ("user", "eval_user", "judge")


def test_a_quickstart_looks_at_tasks_users_and_gold_actions_before_its_cold_start(
    made: list[tuple[str, tuple[Any, ...]]],
) -> None:
    config = load_config("quickstart", ["eval.split=test"])
    assert checks.check_quickstart_tasks(config, "environment") == ["check_tasks was made"]  # type: ignore[arg-type]
    assert [name for name, _ in made] == ["check_tasks", "check_users", "check_gold"]
    assert made[1][1][2] == {"user": "train", "eval_user": "test"}


def test_users_whom_a_training_does_not_have_are_not_looked_at() -> None:
    assert checks.user_splits(load_config("cpu"), "sft") == {"user": "train"}
    assert checks.user_splits(load_config("cpu", ["sft.demonstrations_file=made.jsonl"]), "sft") == {}
    assert checks.user_splits(load_config("cpu", ["rl.replay=runs/other"]), "rl") == {}
