"""Several seeds as one: means and bands are those of the runs, over the steps that all of them have."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.observe.rundir import RunDirectory
from muarl_tools.experiments.seeds import band, seeds_page, spreads


def make_run(folder: Path, name: str, success: float, steps: int = 3) -> RunDirectory:
    run = RunDirectory(folder, name)
    for step in range(steps):
        run.log({"success": success * (step + 1) / steps, "turns": 5.0}, phase="rl", step=step)
    run.log({"success": success / 2}, phase="validation", step=1)
    run.write_summary({"rl": {"success": success}, "do_nothing": 0.1, "rl_greedy": None})
    return run


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    return [make_run(tmp_path, "x-seed0", 0.6), make_run(tmp_path, "x-seed1", 0.9), make_run(tmp_path, "x-seed2", 0.3)]


def test_scores_are_means_with_the_lowest_and_highest_seed(runs: list[RunDirectory]) -> None:
    found = {s.label: s for s in spreads(runs)}
    after = found["Held-out success after RL"]
    assert (after.mean, after.low, after.high) == (pytest.approx(0.6), 0.3, 0.9)
    assert after.values == {"x-seed0": 0.6, "x-seed1": 0.9, "x-seed2": 0.3}
    assert found["Validation success, last"].mean == pytest.approx(0.3)
    assert found["Do-nothing baseline"].low == 0.1
    assert "Held-out success, greedy decoding" not in found


def test_success_without_any_violation_has_a_row_below_each_success(runs: list[RunDirectory]) -> None:
    label = "Held-out success after RL, without any violation"
    found = {s.label: s for s in spreads(runs)}
    assert found[label].values == {} and "not checked" in seeds_page("x", runs)
    for run, clean in zip(runs, (0.2, 0.6, 0.1), strict=True):
        share = {"value": clean, "interval": [0, 1], "n": 10}
        run.write_summary({"rl": {"success": 0.9, "success_without_violation": share}})
    labels = [s.label for s in spreads(runs)]
    assert labels.index(label) == labels.index("Held-out success after RL") + 1
    found = {s.label: s for s in spreads(runs)}
    assert (found[label].mean, found[label].low, found[label].high) == (pytest.approx(0.3), 0.1, 0.6)
    assert ">10.0%<" in seeds_page("x", runs) and ">60.0%<" in seeds_page("x", runs)


def test_a_band_covers_the_steps_that_all_runs_have() -> None:
    mean, around = band([[(0, 1.0), (1, 3.0), (2, 9.0)], [(0, 2.0), (1, 5.0)], []])
    assert mean == [(0, 1.5), (1, 4.0)]
    assert around == [(0, 1.0, 2.0), (1, 3.0, 5.0)]
    assert band([]) == ([], [])


def test_the_page_shows_scores_by_seed_and_bands(runs: list[RunDirectory]) -> None:
    page = seeds_page("x", runs)
    assert page.count('class="spread after"') >= 1 and 'class="spread base"' in page
    assert ">60.0%<" in page and ">30.0%<" in page and ">90.0%<" in page
    for seed in ("seed0", "seed1", "seed2"):
        assert f">{seed}<" in page
    assert "<script" not in page


def test_runs_without_figures_give_a_page_all_the_same(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "<b>")
    run.write_summary({})
    assert "&lt;b&gt;" in seeds_page("<b>", [run])


def test_scores_of_several_domains_have_rows_of_their_own(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, f"x-seed{n}", 0.5) for n in range(2)]
    for n, run in enumerate(runs):
        run.write_summary({"rl": {"success": 0.5}, "by_domain": {"a": {"rl": 0.4 + n / 5}, "b": {"do_nothing": 0.1}}})
    found = {s.label: s for s in spreads(runs)}
    assert found["Held-out success after RL, a"].mean == pytest.approx(0.5)
    assert found["Do-nothing baseline, b"].high == 0.1
