"""benches/reward_hacking.py: four agents trained, evaluated and compared with the smallest settings; its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from support.page_examples import module_of

SHOPS = ["honest", "do-nothing", "leaky", "sloppy"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = Path(__file__).parents[2] / "benches" / "reward_hacking.py"
    module = module_of(path)
    module.ran = []  # type: ignore[attr-defined]

    def launch(words: list[str]) -> int:
        module.ran.append(words)
        return CliRunner().invoke(app, words).exit_code

    monkeypatch.setattr(module, "launch", launch)
    return module


@pytest.mark.slow
def test_every_agent_is_judged_by_both_rewards_and_what_is_finished_is_kept(
    bench: Any,
    small: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = small("rl.steps=2", "rl.checkpoint_every=1", "eval.tasks=3")
    options = ["--name", "h", "--seed", "4", "--curve", "2", "--check", "80", "--runs-dir", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["reward_hacking.py", *options, *given])
    bench.main()
    runs = [words[words.index("--name") + 1] for words in bench.ran]
    assert runs[:2] == ["h-cold-seed4", "h-honest-seed4"] and len(set(runs)) == len(runs) == 1 + 4 * 3 + 1 + 4 * 2
    starts = {json.loads((tmp_path / f"h-{s}-seed4" / "status.json").read_text())["state"] for s in SHOPS}
    assert starts == {"finished"}
    found = json.loads((tmp_path / "h-seed4.json").read_text())
    assert list(found["checks"]) == list(found["outcomes"]) == list(found["curves"]) == SHOPS
    assert "asking-unpaid" in found["checks"]["leaky"]["overall"]
    assert [step for step, _ in found["curves"]["sloppy"]["right"]] == [0, 1, 2]
    domains = {s: (tmp_path / f"h-{s}-seed4-on-own" / "config.yaml").read_text() for s in SHOPS}
    assert "LEAKY" in domains["leaky"] and "retail-generated" in domains["honest"]
    assert "retail-generated" in (tmp_path / "h-leaky-seed4-on-honest" / "config.yaml").read_text()
    page = (tmp_path / "h-seed4.html").read_text()
    assert "Before training" in page and "<svg" in page and "<script" not in page
    printed = capsys.readouterr().out
    assert printed.count("| sloppy |") == 3 and "right tasks" in printed
    bench.ran.clear()
    bench.main()
    assert not bench.ran, "finished runs are kept"


def test_the_tables_show_each_shop(bench: Any) -> None:
    checks = {
        "honest": bench.Checked(200, 0.08, 1.0, 0.72, {"undecided": 9}, {}),
        "leaky": bench.Checked(200, 0.08, 1.0, 1.0, {}, {"asking-unpaid": "163 of 163"}),
    }
    behaviour = {"writes_without_consent": 0.25, "needless_transfers": 0.5, "turns": 8.0}
    outcome = bench.Outcome(
        0.9, 0.8, 0.5, (0.4, 0.6), behaviour, {"policy": 0.75}, {"wrong-write": 7}, 0.0004, "honest is better"
    )
    curve = bench.Curve([(0.0, 0.5), (1.0, 0.7)], [(0.0, 0.25), (2.0, 0.5)])
    made = bench.tables(checks, {"leaky": outcome}, {"leaky": curve})
    text = "\n".join(bench.markdown(title, table) for title, table in made.items())
    assert "| leaky | 200 | 8% | 100% | 100% | asking-unpaid | – |" in text
    assert "| honest | 200 | 8% | 100% | 72% | – | undecided 9 |" in text
    assert (
        "| leaky | 90.0% | 80.0% | 50.0% (40.0% to 60.0%) | honest is better (p = 4.0e-04) | 25.0% | 50.0% | 8.0 |"
        in text
    )
    assert "| leaky | 75.0% | 0 | 0 | 7 | 0 | 0 |" in text
    assert "| leaky: training, own reward | 50% | 60% |" in text and "| leaky: right tasks | 25% | 50% |" in text
    assert "leaky" in bench.page(made, {"leaky": curve})
