"""Tasks chosen by the success of their kind: estimates, chances, and figures of the tasks as they are drawn."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.config.load import load_config
from muarl.config.rl import PracticeConfig
from muarl.domains.tasks import Kind, Task, kind_of
from muarl.environments.configure import places_of
from muarl.recipes.training.practice import Practice, SuccessByKind, chances_of, played_figures, systematic
from muarl.runs.tasks import check_practice
from muarl.types.episode import Episode, StopReason, Verdict

ON = PracticeConfig(adaptive=True)
SUCCESS = {"easy": 0.98, "even": 0.5, "hard": 0.05}


def task(n: int, intent: str | None = None, **tags: object) -> Task:
    kind = intent or ("easy", "easy", "easy", "even", "hard")[n % 5]
    return Task(f"t{n}", "d", "", (), tags={"intent": kind, **tags})


def episode(of: Task, number: int, reward: float, stop: StopReason = StopReason.USER_STOP) -> Episode:
    verdict = None if stop is StopReason.INFRASTRUCTURE else Verdict(reward)
    return Episode(f"{of.id}-{number}", of.id, "d", [], stop, number, of.id, verdict=verdict, tags=dict(of.tags))


def played(tasks: Sequence[Task], rng: random.Random, size: int = 8) -> list[Episode]:
    return [episode(t, n, float(rng.random() < SUCCESS[str(t.tags["intent"])])) for t in tasks for n in range(size)]


def taught(steps: int = 20, config: PracticeConfig = ON) -> Practice:
    """A practice that has seen tasks of all kinds."""
    practice, rng = Practice(config, 8, seed=0), random.Random("taught")
    for step in range(steps):
        choice = practice.choose([task(n) for n in range(80)], 20, step)
        practice.note([(choice, played(choice.tasks, rng))])
    return practice


def resumed(state: Mapping[str, Any], seed: int = 0) -> Practice:
    """A practice that has nothing to play again, so that it draws nothing."""
    return Practice.resumed(ON, 8, seed, state, places_of(load_config("quickstart")), 0)


def test_a_kind_is_intent_and_difficulty_and_domain() -> None:
    assert kind_of({"intent": "return", "difficulty": 2}) == Kind("return", "2")
    assert kind_of({"intent": "return", "domain": "shop"}) == Kind("return", "", "shop")
    assert kind_of({"persona": "terse"}) is None
    assert str(Kind("return", "2", "shop")) == "shop: return (difficulty 2)"


def test_estimates_begin_even_follow_what_is_seen_and_fade() -> None:
    seen, kind = SuccessByKind(half_life=2.0), Kind("return", "1")
    assert seen.parameters(kind) == (1.0, 1.0)
    seen.observe([(kind, 1.0), (kind, 0.75)])
    assert seen.parameters(kind) == pytest.approx((2.75, 1.25))
    for _ in range(2):
        seen.observe([])
    assert seen.parameters(kind) == pytest.approx((1.875, 1.125)), "half of it after two steps"


def test_another_difficulty_is_where_a_kind_starts_from() -> None:
    seen = SuccessByKind(half_life=10.0)
    seen.observe([(Kind("return", "1"), 1.0)] * 8)
    assert seen.parameters(Kind("return", "2")) == pytest.approx((1.8, 0.2))
    assert seen.mean(Kind("cancel", "1")) == 0.5
    assert seen.mean(Kind("return", "2", "other shop")) == 0.5


def test_the_state_goes_through_a_checkpoint_unchanged() -> None:
    practice = taught(3)
    state = json.loads(json.dumps({"step": 3, **practice.state()}))
    again = resumed(state)
    assert again.state() == practice.state()
    candidates = [task(n) for n in range(80)]
    assert again.choose(candidates, 20, 3) == practice.choose(candidates, 20, 3)
    with pytest.raises(DataError, match="'practice' is not success by kind"):
        resumed({"practice": [["return", "1"]]})


@pytest.mark.parametrize("floor", [0.1, 1.0])
def test_chances_sum_up_and_keep_to_the_floor(floor: float) -> None:
    weights = [0.0] * 30 + [1.0, 50.0]
    found = chances_of(weights, 8.0, floor)
    assert sum(found) == pytest.approx(8.0) and max(found) <= 1.0
    assert min(found) >= floor * 8 / 32 - 1e-12
    assert found[31] == (1.0 if floor < 1 else 0.25)
    assert chances_of([0.0] * 4, 2.0, 0.1) == [0.5] * 4, "none is worth more than another"
    assert chances_of([3.0, 1.0], 2.0, 0.1) == [1.0, 1.0]


def test_every_item_has_its_chance_in_samples_of_one_size() -> None:
    chances, rng, times = chances_of([n % 7 for n in range(20)], 6.0, 0.2), random.Random(1), 20_000
    counts: Counter[int] = Counter()
    for _ in range(times):
        sample = systematic(chances, 6, rng.random())
        assert len(set(sample)) == 6
        counts.update(sample)
    for n, chance in enumerate(chances):
        assert counts[n] / times == pytest.approx(chance, abs=0.02)


def test_kinds_that_teach_are_preferred_and_none_is_forgotten() -> None:
    practice = taught()
    counts: Counter[str] = Counter()
    for number in range(100, 150):
        choice = practice.choose([task(n) for n in range(80)], 20, number)
        assert len({t.id for t in choice.tasks}) == 20
        counts.update(str(t.tags["intent"]) for t in choice.tasks)
    plain, whole = {"easy": 0.6, "even": 0.2, "hard": 0.2}, counts.total()
    assert counts["even"] / whole > 1.5 * plain["even"]
    assert counts["easy"] / whole < 0.8 * plain["easy"]
    for intent, share in plain.items():
        assert counts[intent] / whole >= ON.floor * share


@pytest.mark.slow
def test_what_is_said_of_the_tasks_as_drawn_has_no_bias() -> None:
    plain = 0.6 * SUCCESS["easy"] + 0.2 * SUCCESS["even"] + 0.2 * SUCCESS["hard"]
    rng, state = random.Random("runs"), taught().state()
    estimates, raw = [], []
    for number in range(250):
        practice = resumed(state, number)
        choice = practice.choose([task(n) for n in range(80)], 20, number)
        episodes = played(choice.tasks, rng, 2)
        figures = practice.note([(choice, episodes)])
        estimates.append(figures["success"])
        raw.append(played_figures(episodes)["practice/played_success"])
        assert figures["reward"] == pytest.approx(figures["success"])
    error = stdev(estimates) / len(estimates) ** 0.5
    assert abs(fmean(estimates) - plain) < 4 * error and error < 0.01
    assert abs(fmean(raw) - plain) > 10 * error, "what was played says something else"


def test_figures_say_what_was_played() -> None:
    practice = Practice(PracticeConfig(adaptive=True, candidates=2), 8, seed=0)
    choice = practice.choose([task(n, "return", difficulty=n % 2) for n in range(4)], 4, 0)
    lost = episode(choice.tasks[3], 0, 0.0, StopReason.INFRASTRUCTURE)
    episodes = [episode(t, n, float(n % 2)) for t in choice.tasks[:3] for n in range(4)]
    figures = practice.note([(choice, [*episodes, lost])])
    assert played_figures([*episodes, lost]) == {"practice/played_reward": 0.5, "practice/played_success": 0.5}
    assert played_figures([lost]) == {} and figures["practice/share/return"] == 1.0
    assert figures["success"] == pytest.approx(0.5), "a task without an outcome counts as expected"
    assert figures["practice/kinds"] == 2.0


def test_each_domain_keeps_its_share_and_has_its_own_figures() -> None:
    practice, rng = Practice(ON, 8, seed=0), random.Random(2)
    tasks = [task(n, "easy" if n % 4 else "even", domain="a" if n % 4 else "b") for n in range(80)]
    for number in range(10):
        choice = practice.choose(tasks, 20, number)
        counts = Counter(t.tags["domain"] for t in choice.tasks)
        assert counts == {"a": 15, "b": 5}
        figures = practice.note([(choice, played(choice.tasks, rng))])
    assert figures["success"] == pytest.approx(0.75 * figures["domain/a/success"] + 0.25 * figures["domain/b/success"])


def test_draws_follow_from_seed_and_number_and_hold_different_tasks() -> None:
    config = load_config("quickstart", ["rl.practice.adaptive=true"])
    places = places_of(config)
    practice = Practice(ON, 8, seed=0)
    first, again, next_ = (practice.draw(places, 4, 500_002, number) for number in (0, 0, 1))
    assert first.chances == again.chances and len(first.candidates) == 16
    assert not {t.id for t, _ in first.candidates} & {t.id for t, _ in next_.candidates}
    other = Practice(ON, 8, seed=1).draw(places, 4, 500_002, 0)
    assert [t.id for t in other.tasks] != [t.id for t in first.tasks]


def test_it_is_refused_where_it_cannot_work() -> None:
    with pytest.raises(ConfigError, match=r"practice.adaptive follows the steps one by one, and asynchrony is bounded"):
        load_config("quickstart", ["rl.practice.adaptive=true", "rl.asynchrony=bounded"])

    class Untagged:
        def example_tasks(self, split: str) -> list[Task]:
            return [Task("t", "d", "", ())]

    with pytest.raises(ConfigError, match=r"rl.practice.adaptive: task t has no tag `intent`"):
        check_practice(load_config("quickstart", ["rl.practice.adaptive=true"]).rl.practice, Untagged())  # type: ignore[arg-type]
    check_practice(load_config("quickstart").rl.practice, Untagged())  # type: ignore[arg-type]
