"""What pass^1 and pass^2 tell: the same as the outcomes that they were computed of."""

from __future__ import annotations

import random
from statistics import fmean, variance

import pytest

from muarl.accounts.pass_hat import pass_hats_of
from muarl.basics.errors import ConfigError
from muarl_tools.compare.power import single_variance
from muarl_tools.compare.published import PublishedScore, gap


def outcomes(seed: int, tasks: int = 50, trials: int = 4) -> list[list[bool]]:
    rng = random.Random(seed)
    chances = [rng.betavariate(0.9, 0.6) for _ in range(tasks)]
    return [[rng.random() < chance for _ in range(trials)] for chance in chances]


def published(found: list[list[bool]], name: str = "agent") -> PublishedScore:
    hats = pass_hats_of(found, (1, 2))
    return PublishedScore(name, len(found), len(found[0]), hats[1].value, hats[2].value)


@pytest.mark.parametrize("seed", range(5))
def test_the_noise_is_that_of_the_outcomes(seed: int) -> None:
    found = outcomes(seed)
    score = published(found)
    means = [fmean(trials) for trials in found]
    assert score.variance == pytest.approx(variance(means) / len(means))
    within = single_variance(found)
    assert within is not None and within.within is not None
    assert score.variance_same_tasks == pytest.approx(within.within / 2 / (50 * 4))
    low, high = score.interval
    assert low < score.first < high


def test_a_single_trial_is_a_share_of_tasks() -> None:
    score = PublishedScore("agent", 50, 1, 0.38)
    assert score.variance == pytest.approx(0.38 * 0.62 / 49) and score.variance_same_tasks is None
    assert gap(score, PublishedScore("other", 50, 1, 0.56)).p_same_tasks is None


def test_p_values_are_right_about_as_often_as_they_say() -> None:
    """Of agents that are equally good at tasks of the same kind, drawn anew for each, one in twenty differs."""
    ps = [gap(published(outcomes(n)), published(outcomes(n + 10_000))).p for n in range(600)]
    assert 0.03 < fmean(p is not None and p < 0.05 for p in ps) < 0.08


def test_a_clear_rank_and_a_rank_of_noise() -> None:
    best, near, far = (PublishedScore(n, 114, 4, a, b) for n, a, b in (
        ("best", 0.816, 0.718), ("near", 0.807, 0.71), ("far", 0.5, 0.38)
    ))  # fmt: skip
    close, wide = gap(best, near), gap(best, far)
    assert close.p is not None and close.p > 0.5 and close.tasks is not None and close.tasks > 10_000
    assert wide.p is not None and wide.p < 1e-6 and wide.tasks is not None and wide.tasks < 60
    assert gap(best, best).tasks is None and gap(best, best).p == 1.0
    assert gap(near, best).difference == -close.difference and gap(near, best).p == close.p
    perfect = PublishedScore("perfect", 50, 4, 1.0, 1.0)
    assert gap(perfect, perfect).p is None and perfect.interval == (1.0, 1.0)


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ((1, 4, 0.5, 0.4), "2 tasks at least"),
        ((50, 4, 0.5, None), "pass.2 goes with several trials"),
        ((50, 1, 0.5, 0.4), "pass.2 goes with several trials"),
        ((50, 4, 62.5, 55.3), "must be a share"),
        ((50, 4, 0.5, 0.6), "no more than it"),
        ((50, 4, 0.9, 0.1), "no 50 tasks have"),
    ],
)
def test_figures_that_cannot_be(figures: tuple[int, int, float, float | None], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PublishedScore("agent", *figures)
