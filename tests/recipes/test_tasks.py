"""Which tasks a run plays: intents, official splits, rounds; and what cannot be played."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.domains.tasks import Task
from muarl.environments import task_draws
from muarl.environments.benchmark import draw_of
from muarl.environments.configure import place_of
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from support.toy_shop import Toy

LLM = ["eval_user.kind=llm", "eval_user.endpoint.model=m", "eval_user.endpoint.base_url=http://127.0.0.1:9/v1"]
TAU2 = ["domain.name=tau2-retail", *LLM]


@pytest.fixture
def tau2(shared_data: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl_worlds import install

    monkeypatch.setenv("MUARL_DATA", str(tmp_path_factory.mktemp("data")))
    install.add("tau2", shared_data / "tau2")


def test_wished_intents_come_in_full_number_and_never_twice() -> None:
    place = place_of(load_config("quickstart", ["domain.intents=[cancel, exchange_unavailable]"]))
    draws = [place.draw("train", 6, 3, start) for start in (0, 6, 12)]
    assert {t.tags["intent"] for d in draws for t in d} <= {"cancel", "exchange_unavailable"}
    assert [len(d) for d in draws] == [6, 6, 6]
    assert len({t.id for d in draws for t in d}) == 18
    assert [t.id for t in draws[1]] == [t.id for t in place.draw("train", 6, 3, 6)]


def test_an_unknown_intent_is_told_with_the_known_ones() -> None:
    config = load_config("quickstart", ["domain.intents=[cancel, retrun]"])
    with pytest.raises(ConfigError, match=r"no intent 'retrun'; known: .*return, two_requests"):
        place_of(config)


def test_intents_are_looked_for_until_all_are_seen() -> None:
    made = list[int]()

    def tasks(split: str, index: int) -> Task:
        made.append(index)
        return Task(
            f"{split}-{index}", "toy", "", actions=None, tags={"intent": ("cancel", "return", "cancel")[index % 3]}
        )

    shop = Environment(name="shop", domain=Toy, tasks=tasks)
    assert task_draws.known_intents(shop, "official", ("return",)) == {"cancel", "return"} and len(made) == 2
    assert (
        task_draws.known_intents(shop, "official", ("retrun",)) == {"cancel", "return"}
        and len(made) < task_draws.TRIES_PER_TASK
    )


def test_an_intent_that_hardly_occurs_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_draws, "TRIES_PER_TASK", 2)
    monkeypatch.setattr(task_draws, "known_intents", lambda environment, size, wanted: {"outside"})
    place = place_of(load_config("quickstart", ["domain.intents=[outside]"]))
    with pytest.raises(ConfigError, match="too seldom"):
        place.draw("train", 4, 0, 0)


def test_a_policy_file_replaces_the_policy_or_is_named(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Be brief.")
    assert place_of(load_config("quickstart", [f"domain.policy={tmp_path / 'policy.md'}"])).system == "Be brief."
    with pytest.raises(ConfigError, match=r"domain.policy: .*absent.md: cannot be read"):
        place_of(load_config("quickstart", [f"domain.policy={tmp_path / 'absent.md'}"]))


def test_a_misspelt_judge_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="judge"):
        place_of(load_config("quickstart", ["eval.judge=perhaps"]))


def test_benchmark_data_that_are_not_installed_are_told(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "nothing"))
    result = muarl("eval", *TAU2)
    assert result.exit_code == 2
    assert "muarl data add tau2" in result.stderr
    assert not (tmp_path / "runs").exists()


draw_official = draw_of(find("tau2-retail").official())


class FakeTasks:
    """Official splits of ten and four."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = {"train": tuple(f"t{i}" for i in range(10)), "test": tuple("abcd")}
        monkeypatch.setattr("muarl_worlds.tau.tau2_benchmark.tasks", lambda domain, split: found[split])


def test_training_goes_round_the_official_tasks_in_ever_new_order(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeTasks(monkeypatch)
    draws = [tuple(draw_official("train", 3, 7, step * 3)) for step in range(30)]
    assert all(len(set(d)) == 3 for d in draws), "no draw holds a task twice"
    rounds = [sum(draws[i : i + 3], ()) for i in range(0, 30, 3)]
    assert all(len(set(r)) == 9 for r in rounds), "nor does a round"
    assert all(a != b for a, b in pairwise(rounds))
    assert set().union(*rounds) == {f"t{i}" for i in range(10)}, "and in time every task is met"
    assert draws[5] == tuple(draw_official("train", 3, 7, 15)), "a function of the arguments alone"
    assert draws[0] != tuple(draw_official("train", 3, 8, 0))


def test_a_draw_larger_than_the_split_is_the_split(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeTasks(monkeypatch)
    assert sorted(draw_official("train", 32, 0, 64)) == sorted(f"t{i}" for i in range(10))
    assert list(draw_official("test", 200, 0, 0)) == list("abcd")
    assert list(draw_official("test", 2, 5, 0)) == ["a", "b"]


def test_a_benchmark_without_validation_tasks_gives_some_of_its_training_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="rl.eval_every=0"):
        draw_official("validation", 1, 0, 0)
    FakeTasks(monkeypatch)
    validating = draw_of(find("tau2-retail").official(), validating=True)
    train, held = set(validating("train", 32, 0, 0)), set(validating("validation", 32, 0, 0))
    assert (len(train), len(held)) == (8, 2) and train | held == {f"t{i}" for i in range(10)}
    assert held == set(validating("validation", 32, 9, 0)), "the same ones in every run"
    assert list(validating("test", 9, 0, 0)) == list("abcd")


@pytest.mark.data
@pytest.mark.usefixtures("tau2")
def test_official_splits_do_not_meet() -> None:
    train = {t.id for start in range(0, 300, 32) for t in draw_official("train", 32, 0, start)}
    test = {t.id for t in draw_official("test", 200, 0, 0)}
    assert (len(train), len(test)) == (74, 40)
    assert not train & test


@pytest.mark.data
@pytest.mark.usefixtures("tau2")
@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ("train", [], ["train_on_benchmark=true"]),
        ("sft", [], ["train_on_benchmark=true"]),
        ("train", ["train_on_benchmark=true"], ["tau2-retail has no rule-based user", "user.kind=llm"]),
        ("sft", ["train_on_benchmark=true", "user.kind=llm", "user.endpoint.model=m"], ["sft.demonstrations_file"]),
        ("train", ["train_on_benchmark=true", "rl.eval_every=5"], ["tau2-retail has no rule-based user"]),
        ("eval", ["eval.split=validation"], ["no validation tasks"]),
        ("eval", ["eval.agent=expert"], ["tau2-retail has no scripted expert"]),
        ("base", [], ["tau2-retail has no scripted expert and no rule-based user", "muarl domains"]),
    ],
)
def test_what_a_benchmark_cannot_do_is_told_first(
    muarl: Callable[..., Any], tmp_path: Path, command: str, options: list[str], words: list[str]
) -> None:
    result = muarl(command, *TAU2, *options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("recipe", ["rl", "sft", "quickstart"])
def test_a_benchmark_is_not_trained_on_unasked_from_python_either(recipe: str, tmp_path: Path) -> None:
    config = load_config("quickstart", ["domain.name=tau2-retail", f"runs_dir={tmp_path / 'runs'}"])
    with pytest.raises(ConfigError, match="train_on_benchmark=true"):
        importlib.import_module(f"muarl.recipes.{recipe}").run(config)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("command", "setting", "more"),
    [
        ("sft", "sft.demonstrations_file", []),
        ("sft", "sft.demonstrations_file", ["--dry-run"]),
        ("quickstart", "sft.demonstrations_file", []),
        ("sft-user", "sft.demonstrations_file", []),
        ("train", "rl.replay", []),
        ("train", "rl.replay", ["--dry-run"]),
    ],
)
def test_conversations_about_a_benchmark_are_not_learned_from_unasked(
    muarl: Callable[..., Any], tmp_path: Path, command: str, setting: str, more: list[str]
) -> None:
    run = tmp_path / "measured"
    (run / "episodes").mkdir(parents=True)
    (run / "status.json").write_text('{"command": "eval"}')
    (run / "config.yaml").write_text("domain: {name: tau2-retail}")
    (run / "episodes" / "eval.jsonl").write_text("")
    result = muarl(command, f"{setting}={run / 'episodes' / 'eval.jsonl'}", *more)
    assert result.exit_code == 2, result.output
    told = " ".join(result.stderr.split())
    assert f"{setting}: " in told and "benchmark's own tasks (tau2-retail)" in told
    assert "train_on_benchmark=true" in told and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("command", "role"), [("train", "user"), ("eval", "eval_user"), ("sft", "user")])
def test_scripted_users_have_no_lines_for_generated_tasks(
    muarl: Callable[..., Any], tmp_path: Path, command: str, role: str
) -> None:
    result = muarl(command, f"{role}.kind=scripted")
    assert result.exit_code == 2
    assert f"{role}.kind=agenda" in result.stderr
    assert not (tmp_path / "runs").exists()
