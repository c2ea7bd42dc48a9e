"""benches/swapped_users.py: RL against both kinds of users, evaluated on both, with the smallest settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from support.page_examples import module_of


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).parents[2] / "benches" / "swapped_users.py"
    module = module_of(path)
    module.ran = []  # type: ignore[attr-defined]

    def launch(words: list[str]) -> int:
        module.ran.append(words)  # type: ignore[attr-defined]
        return CliRunner().invoke(app, words).exit_code

    monkeypatch.setattr(module, "launch", launch)
    return module


@pytest.mark.slow
def test_each_agent_meets_both_users_and_what_is_finished_is_kept(
    bench: Any,
    base_run: Path,
    small: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = tmp_path / "runs"
    given = small("rl.steps=1", "rl.eval_every=0", "eval.tasks=3", "user.tries=2", "eval_user.tries=2")
    words = ["swapped_users.py", "--user", str(base_run), "--seeds", "4", "--runs-dir", str(runs), *given]
    monkeypatch.setattr(sys, "argv", words)
    bench.main()
    assert [w[0] for w in bench.ran] == ["train", "eval", "eval"] * 2
    found = json.loads((runs / "swapped-users.json").read_text())
    assert {(a, on) for a, row in found.items() for on in row} == {
        (a, on) for a in ("user model", "agenda") for on in ("user model", "agenda")
    }
    users = {
        folder.name: json.loads((folder / "summary.json").read_text())["user_eval"]
        for folder in runs.glob("swap-*-on-*")
    }
    assert all(("user model" in user) == name.endswith("on-user-model") for name, user in users.items()), users
    table = capsys.readouterr().out
    assert table.count("| user model |") >= 2 and "points" in table
    bench.ran.clear()
    bench.main()
    assert not bench.ran, "finished runs are kept"


def test_the_gap_is_between_means_on_the_same_users(bench: Any) -> None:
    found = {
        "user model": {"user model": {0: 90.0, 1: 92.0}, "agenda": {0: 80.0, 1: 82.0}},
        "agenda": {"user model": {0: 89.0, 1: 91.0}, "agenda": {0: 90.0, 1: 90.0}},
    }
    text = "\n".join(bench.table(found))
    assert "On user model: RL against the user model +1.0 points (within 3)" in text
    assert "On agenda: RL against the user model -9.0 points (not within 3)" in text
    assert "| agenda | user model | 89.0 | 91.0 | 90.0 |" in text
