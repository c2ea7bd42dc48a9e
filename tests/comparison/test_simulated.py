"""Intervals, tests and plans on agents of known strength: what is promised is kept, within Monte-Carlo error."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from muarl_tools.compare.comparing import Settings, compare
from muarl_tools.compare.components import grid_components, seed_components, trial_components
from muarl_tools.compare.differences import paired_bootstrap, same_tasks_interval
from muarl_tools.compare.power import difference_variance, needed, single_variance
from support.simulated_agents import (
    TRUE_SHARES,
    Strength,
    as_results,
    component_coverage,
    coverage,
    false_findings,
    grids,
    outcomes,
    planned,
    power_of,
    same_tasks_coverage,
)

COUNT = 300


def error(share: float, count: int = COUNT) -> float:
    """Three standard errors of a share that was counted so often."""
    return 3 * sqrt(share * (1 - share) / count)


@pytest.mark.parametrize(("tasks", "trials"), [(20, 1), (50, 4)])
def test_intervals_of_a_difference_hold_the_true_one(tasks: int, trials: int) -> None:
    how = Strength(lead=0.05, own=0.1)
    assert abs(coverage(np.random.default_rng(1), how, tasks, trials, COUNT) - 0.95) <= error(0.95)


def test_intervals_on_these_tasks_hold_their_own_difference() -> None:
    found = same_tasks_coverage(np.random.default_rng(2), Strength(lead=0.05, own=0.2), 50, 4, COUNT)
    assert abs(found - 0.95) <= error(0.95)


@pytest.mark.parametrize("own", [0.0, 0.2])
def test_equally_good_agents_are_seldom_told_apart(own: float) -> None:
    found = false_findings(np.random.default_rng(3), Strength(own=own), 4, 50, 3, COUNT)
    assert found <= 0.05 + error(0.05)


@pytest.mark.slow
def test_whole_comparisons_make_few_false_findings() -> None:
    random, wrong, count = np.random.default_rng(4), 0, 400
    for _ in range(count):
        chance, _ = Strength().chances(random, 40)
        runs = [as_results(f"agent {n}", outcomes(random, chance, 2)) for n in range(3)]
        found = compare(runs)
        wrong += any(p.better is not None for p in found.pairs)
        assert (len(found.groups) == 1) == all(p.better is None for p in found.pairs)
    assert wrong / count <= 0.05 + error(0.05, count)


@pytest.mark.parametrize(("name", "tasks"), [("tasks", 50), ("trials_same_tasks", 50)])
def test_as_much_as_was_planned_finds_the_difference_as_often_as_planned(name: str, tasks: int) -> None:
    how = Strength(lead=0.06, own=0.15 if name == "tasks" else 0.0)
    random = np.random.default_rng(5)
    plan = planned(random, how, tasks, 4, pilots=60)[name]
    n, m = (plan, 4) if name == "tasks" else (tasks, plan)
    found = power_of(random, how, n, m, COUNT, these_tasks=name == "trials_same_tasks")
    assert abs(found - 0.8) <= error(0.8) + 0.02


def test_half_of_what_was_planned_finds_it_less_often() -> None:
    how, random = Strength(lead=0.06, own=0.15), np.random.default_rng(6)
    plan = planned(random, how, 50, 4, pilots=60)["tasks"]
    assert power_of(random, how, plan // 2, 4, COUNT) < 0.65


def test_no_number_of_trials_is_enough_where_tasks_differ_much() -> None:
    # The second agent solves other tasks: half of them always, half never.
    first = [[True] * 4] * 10 + [[False] * 4] * 10
    second = [[False] * 4] * 9 + [[True] * 4] * 11
    spread = difference_variance(second, first, seeded=False)
    assert (spread.within, spread.between) == (0.0, spread.total)
    plan = needed(spread, 0.03)
    assert plan.hopeless and plan.trials is None
    assert plan.tasks is not None and plan.tasks > 5000


def test_the_formula_of_the_plan() -> None:
    # One trial a task, 20% of tasks differ: variance 0.2; (1.96 + 0.8416)^2 * 0.2 / 0.03^2.
    first = [[True]] * 10 + [[False]] * 10 + [[True]] * 80
    second = [[False]] * 10 + [[True]] * 10 + [[True]] * 80
    plan = needed(difference_variance(first, second, seeded=False), 0.03)
    assert plan.tasks == pytest.approx(7.8489 * (20 / 99) / 0.0009, abs=1)
    assert plan.trials is None and not plan.hopeless and plan.trials_same_tasks is None
    one = single_variance([[True, False]] * 50)
    assert one is not None and one.within == pytest.approx(1.0)
    assert needed(one, 0.03).trials_same_tasks == pytest.approx(7.8489 * 1.0 / (50 * 0.0009), abs=1)
    assert single_variance([[True]]) is None
    with pytest.raises(ValueError, match="difference must be"):
        needed(one, 0.0)


def test_nothing_is_planned_from_runs_that_do_not_vary() -> None:
    for alike in ([[False]] * 2, [[True, True]] * 3, [[True]]):
        plan = needed(difference_variance(alike, alike, seeded=False), 0.03)
        assert plan.alike and {plan.smallest, plan.smallest_same_tasks, plan.tasks, plan.trials_same_tasks} == {None}
    # Tasks differ, trials do not: tasks can be planned, trials cannot.
    first, second = [[True, True]] * 8 + [[False, False]] * 2, [[True, True]] * 9 + [[False, False]]
    plan = needed(difference_variance(first, second, seeded=False), 0.5)
    assert plan.trials_alike and not plan.alike and plan.tasks is not None
    assert {plan.trials, plan.trials_same_tasks, plan.smallest_same_tasks} == {None}
    only = difference_variance([[True, False]], [[True, True]], seeded=False)
    assert only.between is None and needed(only, 0.03).smallest is None, "one task says nothing of others"


def test_what_seeds_share_does_not_count_as_noise() -> None:
    random = np.random.default_rng(7)
    luck = random.random((60, 6))
    first, second = (luck < 0.5).tolist(), (luck < 0.6).tolist()
    paired = difference_variance(second, first, seeded=True)
    alone = difference_variance(second, first, seeded=False)
    assert paired.within is not None and alone.within is not None
    assert paired.within < 0.3 * alone.within


def test_intervals_of_runs_that_never_differ_are_not_empty() -> None:
    low, high = paired_bootstrap([0.0] * 50)
    assert low == -high == pytest.approx(-(1 - 0.05 ** (1 / 50)))
    assert paired_bootstrap([]) == (-1.0, 1.0)
    assert paired_bootstrap([1.0, 1.0]) == (pytest.approx(1 - 2 * (1 - 0.05**0.5)), 1.0)
    found = same_tasks_interval([[True, True]] * 10, [[True, True]] * 10)
    assert found is not None and found[0] < 0 < found[1]
    assert same_tasks_interval([[True]], [[True, False]]) is None


# ── variance components ──────────────────────────────────────────────────────────────────────────────────────────────


def test_components_of_dyestuff_as_published() -> None:
    """Davies' dyestuff yields (Box and Tiao 1973; lme4's Dyestuff): batches 1764.05, within 2451.25."""
    yields = [
        [1545, 1440, 1440, 1520, 1580],
        [1540, 1555, 1490, 1560, 1495],
        [1595, 1550, 1605, 1510, 1560],
        [1445, 1440, 1595, 1465, 1545],
        [1595, 1630, 1515, 1635, 1625],
        [1520, 1455, 1450, 1480, 1445],
    ]
    found = trial_components(yields)  # type: ignore[arg-type]  the formulas are those of any numbers
    assert found is not None
    assert found["task"].variance == pytest.approx(1764.05, abs=0.01)
    assert found["trial"].variance == pytest.approx(2451.25, abs=0.01)


def test_components_are_estimated_without_bias() -> None:
    found = grid_components(grids(np.random.default_rng(8), 4000, 3, 4, 2))
    for name, share in TRUE_SHARES.items():
        assert found[name].share == pytest.approx(share, abs=0.02)
    assert found["repeat"].variance == 0.0


def test_intervals_of_components_hold_the_true_shares() -> None:
    for name, share in component_coverage(np.random.default_rng(9), 50, 150).items():
        assert share >= 0.95 - error(0.95, 150), name


def test_where_only_one_side_is_varied_it_has_all_the_noise() -> None:
    random = np.random.default_rng(10)
    agents = grid_components(grids(random, 500, 4, 1))
    assert [part.name for part in agents.parts] == ["task", "agent"]
    users = grid_components(grids(random, 500, 1, 4))
    assert [part.name for part in users.parts] == ["task", "user"]
    assert agents["agent"].variance == pytest.approx(0.25 - 0.04 - 0.01, abs=0.03)


def test_additive_grids_have_no_interaction() -> None:
    agent, user = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 2.0])
    found = grid_components(np.stack([agent[:, None] + user[None, :]] * 5)[..., None])
    assert found["agent and user"].variance == pytest.approx(0.0)
    assert found["agent"].variance == pytest.approx(agent.var(ddof=1))
    assert found["user"].variance == pytest.approx(user.var(ddof=1))


def test_repeats_of_the_same_seeds_show_what_no_seed_fixes() -> None:
    random = np.random.default_rng(11)
    found = grid_components((random.random((800, 2, 2, 3)) < 0.5).astype(float))
    assert found["repeat"].variance == pytest.approx(0.25, abs=0.01)
    assert abs(found["agent and user"].variance) < 0.01


def test_too_little_says_nothing() -> None:
    assert trial_components([[True], [False]]) is None
    assert trial_components([[True, False]]) is None
    assert seed_components([]) is None


def test_settings_out_of_range_are_refused() -> None:
    from muarl.basics.errors import ConfigError

    for name, value in (("alpha", 0.0), ("alpha", 0.7), ("power", 1.0), ("difference", 0.0), ("difference", 1.0)):
        with pytest.raises(ConfigError, match=r"--(alpha|power|points): must be above"):
            Settings(**{name: value})
