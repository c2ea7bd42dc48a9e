"""Exact tests: against closed forms, published figures and enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.accounts.strata import holm
from muarl_tools.compare import significance
from muarl_tools.compare.differences import indistinct_groups, rank_range
from muarl_tools.compare.significance import mcnemar, sign_flip, sign_flip_counts, stratified, t_quantile


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (3, 12, 0.03515625),  # scipy.stats.binomtest(3, 15)
        (0, 6, 0.03125),
        (8, 3, 0.2265625),  # Stata's manual, mcci 8 8 3 16: 0.2266
    ],
)
def test_mcnemar_is_the_binomial_test_of_the_tasks_that_differ(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(p, rel=1e-9)


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_sign_flips_are_counted_exactly(differences: list[int]) -> None:
    observed = abs(sum(differences))
    flipped = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
               for signs in product((-1, 1), repeat=len(differences))]  # fmt: skip
    expected = sum(f >= observed for f in flipped) / len(flipped)
    assert sign_flip_counts(differences) == pytest.approx(expected, abs=1e-12)
    assert sign_flip([Fraction(d, 6) for d in differences]) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 25), st.integers(0, 25), st.integers(0, 40))
def test_with_one_trial_a_task_sign_flips_are_mcnemars_test(first: int, second: int, same: int) -> None:
    differences = [1] * first + [-1] * second + [0] * same
    assert sign_flip_counts(differences) == pytest.approx(mcnemar(first, second), rel=1e-9)
    counts = [(1, 1, 0, 1)] * first + [(0, 1, 1, 1)] * second + [(1, 1, 1, 1)] * same
    assert stratified(counts) == pytest.approx(mcnemar(first, second), rel=1e-9)


def test_random_signs_come_near_the_exact_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [3, -1, 2, 2, 1, -2, 3, 1, 1, -1, 2]
    exact = sign_flip_counts(differences)
    monkeypatch.setattr(significance, "LARGEST", 1)
    assert sign_flip_counts(differences) == pytest.approx(exact, abs=0.005)
    assert 0 < sign_flip_counts([1] * 200) < 1e-4  # never 0, whatever was drawn


def test_one_task_of_even_trials_is_fishers_exact_test() -> None:
    assert stratified([(3, 4, 1, 4)]) == pytest.approx(34 / 70)  # the lady tasting tea, two-sided: 0.4857


strata = st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda s: st.tuples(st.integers(0, s[0]), st.just(s[0]), st.integers(0, s[1]), st.just(s[1]))
)


@given(st.lists(strata, min_size=1, max_size=3))
def test_trials_within_tasks_are_counted_exactly(counts: list[tuple[int, int, int, int]]) -> None:
    observed = abs(sum(Fraction(a, n) - Fraction(b, m) for a, n, b, m in counts))
    expected = Fraction(0)
    for chosen in product(*(range(min(a + b, n) + 1) for a, n, b, _ in counts)):
        gap, weight = Fraction(0), Fraction(1)
        for k, (a, n, b, m) in zip(chosen, counts, strict=True):
            rest = a + b - k
            weight *= Fraction(comb(n, k) * comb(m, rest), comb(n + m, a + b)) if rest <= m else 0
            gap += Fraction(k, n) - Fraction(rest, m)
        expected += weight * (abs(gap) >= observed)
    assert stratified(counts) == pytest.approx(float(expected), abs=1e-9)


def test_more_sums_than_can_be_counted_are_approximated(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [(3 + i % 2, 5, 2 + i % 3, 5) for i in range(60)]
    exact = stratified(counts)
    monkeypatch.setattr(significance, "LARGEST", 1)
    assert stratified(counts) == pytest.approx(
        exact, rel=0.25
    )  # without a correction for continuity, as there are many sums
    assert stratified([(2, 2, 2, 2)]) == 1.0


def test_holm_as_r_has_it() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])  # p.adjust(p, "holm")
    assert holm([0.04, 0.001, 0.6]) == pytest.approx([0.08, 0.003, 0.6])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_between_the_plain_and_bonferronis(p_values: list[float]) -> None:
    for p, q in zip(p_values, holm(p_values), strict=True):
        assert p <= q <= 1.0
        # Bonferroni's multiplies by the number of all; Holm's may be held up by a smaller p-value before it.
        assert q <= max(min(1.0, r * len(p_values)) for r in p_values if r <= p) + 1e-12


@pytest.mark.parametrize(("freedom", "value"), [(1, 12.7062), (4, 2.7764), (10, 2.2281), (30, 2.0423), (1000, 1.9623)])
def test_students_t_as_in_the_tables(freedom: int, value: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(value, abs=5e-5)
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(0.4, freedom)


def test_groups_overlap_where_likeness_does() -> None:
    # A from C can be told, B from neither.
    assert indistinct_groups(3, {(0, 2)}) == [(0, 1), (1, 2)]
    assert indistinct_groups(3, set()) == [(0, 1, 2)]
    assert indistinct_groups(3, {(0, 1), (0, 2), (1, 2)}) == [(0,), (1,), (2,)]
    assert rank_range(1, {(0, 2)}, 3) == (1, 3)
    assert rank_range(0, {(0, 2)}, 3) == (1, 2)


@given(st.integers(1, 6), st.data())
def test_groups_are_largest_sets_without_a_pair_that_can_be_told(count: int, data: st.DataObject) -> None:
    all_pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    apart = set(data.draw(st.lists(st.sampled_from(all_pairs), unique=True))) if all_pairs else set()
    found = indistinct_groups(count, apart)
    near = {(i, j) for i, j in all_pairs if (i, j) not in apart}
    assert {i for group in found for i in group} == set(range(count))
    for group in found:
        assert not any((i, j) in apart for i in group for j in group)
        outside = set(range(count)) - set(group)
        assert not any(all((min(i, o), max(i, o)) in near for i in group) for o in outside)
