"""benches/time_to_95.py: when a target counts as reached, what may not be changed, and the row that it prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.environments.configure import places_of
from support.page_examples import module_of


@pytest.fixture
def bench(repository: Path) -> Any:
    return module_of(repository / "benches" / "time_to_95.py")


def marks(bench: Any, *successes: float) -> list[Any]:
    return [bench.Mark(5 * (n + 1), s, 60.0 * (n + 1), 90.0 * (n + 1)) for n, s in enumerate(successes)]


def test_a_target_is_reached_by_two_validations_in_a_row(bench: Any) -> None:
    found = bench.first_reached(0.95, marks(bench, 0.97, 0.92, 0.94, 0.96, 0.99))
    assert (found.at.steps, found.success) == (20, pytest.approx(0.95)), "one good validation alone is luck"
    assert bench.first_reached(0.95, marks(bench, 0.99)) is None
    assert bench.first_reached(0.95, marks(bench, 0.9, 0.94, 0.95)) is None


@pytest.mark.parametrize(("validated", "confirmed", "holds"), [(0.96, 0.95, "yes"), (0.96, 0.949, "no")])
def test_the_lower_figure_counts(bench: Any, validated: float, confirmed: float, holds: str) -> None:
    reached = bench.Reached(0.95, validated, bench.Mark(20, validated, 240.4, 380.2))
    confirmation = bench.Confirmation(confirmed, (0.93, 0.96), 0.9)
    row = bench.row(reached, confirmation, commit="abc", machine="2 cores", who="me | you")
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert dict(zip(bench.COLUMNS, cells, strict=True)) == {
        "target": "95%", "CPU s": "380", "wall s": "240", "steps": "20", "validation": "96.0%",
        "held-out success (95%)": f"{confirmed:.1%} (93.0% to 96.0%)", "without violation": "90.0%",
        "reached": holds, "commit": "abc", "machine": "2 cores", "who": "me / you",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("eval_user.seed=0", "eval_user.seed stays"),
        ("user.traits=hard", "user.traits stays"),
        ("domain.name=airline-generated", "domain.name stays"),
        ("eval.temperature=0", "eval.temperature stays"),
        ("rl.eval_every=4", "let both be the same"),
        ("rl.steps=9", "no two validations"),
    ],
)
def test_another_exercise_is_refused_before_anything_runs(bench: Any, setting: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        bench.config_of([setting], 0)


def test_settings_of_the_training_may_be_changed(bench: Any) -> None:
    config = bench.config_of(["rl.tasks_per_step=8", "sft.steps=90", "rl.eval_every=4", "rl.checkpoint_every=4"], 3)
    assert (config.rl.tasks_per_step, config.sft.steps, config.rl.eval_every, config.seed) == (8, 90, 4, 3)


def test_tasks_that_were_trained_on_cannot_confirm(bench: Any) -> None:
    config = bench.config_of(["rl.steps=11", "rl.tasks_per_step=2", "sft.demonstrations=8"], 0)
    places = places_of(config)
    bench.check_apart(config, places, places.eval_tasks("test", 20, seed=bench.CONFIRM_SEED))
    trained = places.draw("train", 2, bench.rl_seed(config.rl, 0), 20)
    with pytest.raises(ConfigError, match=r"retail-tiny-train-\d+-20 occurs in training"):
        bench.check_apart(config, places, trained)


@pytest.mark.slow
def test_it_prints_a_row_for_each_target(bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["rl.eval_every=1", "rl.checkpoint_every=1", "rl.steps=4", "rl.tasks_per_step=4", "rl.group_size=4"]
    tiny += ["sft.demonstrations=160", "sft.steps=15", f"runs_dir={tmp_path}", "eval.tasks=20"]
    bench.RULED.pop("eval")  # a validation of 20 tasks instead of 100
    bench.main([*tiny, "--who", "a test", "--targets", "0.2", "1", "--tasks", "20"])
    said = capsys.readouterr().out
    assert "100% was not reached in 4 steps." in said
    rows = re.findall(r"^\| 20% \| (\d+) \| (\d+) \| 2 \| .* \| a test \|$", said, re.MULTILINE)
    assert len(rows) == 1
    assert all(int(seconds) > 0 for seconds in rows[0])
