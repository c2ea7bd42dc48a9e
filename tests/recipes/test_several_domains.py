"""Runs with several domains, from the quickstart to a resumed training: what they draw, measure and leave behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.accounts.metrics import DOMAIN
from muarl.basics.errors import ConfigError
from muarl.observe.listing import list_runs
from muarl.observe.rundir import RunDirectory
from muarl.recipes import evaluate, quickstart, rl
from muarl.recipes.tiny import make_tokenizer
from muarl.runs.own_settings import own_settings
from support import coin as coins
from support.two_domains import listed, write_house

Configure = Callable[..., Any]


@pytest.fixture
def mixed(tmp_path: Path) -> list[str]:
    """Retail and the lamps, half and half."""
    return [listed(("retail-generated", write_house(tmp_path)[0]), 1, 1), "rl.tasks_per_step=4", "rl.group_size=2"]


def test_the_quickstart_measures_every_domain(configure: Configure, mixed: list[str]) -> None:
    folder = quickstart.run(configure(*mixed, "rl.steps=2", "rl.eval_every=1"))
    run = RunDirectory.at(folder)
    summary = run.read_json("summary")
    for name in ("lamps", "retail-generated"):
        assert set(summary["by_domain"][name]) >= {"cold_start", "rl", "rl_greedy", "do_nothing", "demonstrator"}
        assert summary["rl"]["by_domain"][name]["tasks"] == 2
        assert summary["audit"]["rl"]["by_domain"][name]["episodes"] == 2
    assert summary["by_domain"]["lamps"]["demonstrator"] == 1.0
    assert summary["rl"]["tasks"] == 4
    for phase, episodes in (("rl", 4.0), ("validation", 2.0), ("evaluation", 2.0)):
        rows = [row for row in run.read_metrics() if row["phase"] == phase]
        assert rows and all(
            row[f"{DOMAIN}/{n}/episodes"] == episodes for row in rows for n in ("lamps", "retail-generated")
        )
    step = next(row for row in run.read_metrics() if row["phase"] == "rl")
    counted = [step[f"{DOMAIN}/{name}/groups_kept"] for name in ("lamps", "retail-generated")]
    assert counted == [2.0, 2.0] and step["groups_kept"] == 4.0
    page = (folder / "report.html").read_text()
    assert "By domain" in page and "lamps" in page
    (row,) = list_runs(folder)
    assert row.by_domain == {name: summary["by_domain"][name]["rl"] for name in ("lamps", "retail-generated")}
    assert own_settings(str(folder)).values["domain.name"][0] == {
        "name": "retail-generated",
        "size": "tiny",
        "weight": 1.0,
    }


@pytest.mark.slow
def test_a_resumed_run_keeps_its_mix(configure: Configure, muarl: Callable[..., Any], mixed: list[str]) -> None:
    run = str(rl.run(configure(*mixed, "rl.steps=1")))
    refused = muarl("train", "--resume", run, "rl.steps=2", "domain.0.weight=2")
    assert refused.exit_code == 2 and "domain.0.weight was 1.0, not 2.0" in refused.stderr
    single = muarl("train", "--resume", run, "rl.steps=2", "domain.name=retail-generated")
    assert single.exit_code == 2 and "domain.1.name" in single.stderr
    named = muarl("train", "--resume", run, "rl.steps=2", "--domain", "retail-generated")
    assert named.exit_code == 0, named.output  # its own domain, named for its code


@pytest.mark.slow
def test_a_resumed_run_plays_what_an_uninterrupted_one_plays(configure: Configure) -> None:
    coins.allow()
    mixed = listed(("retail-generated", coins.REFERENCE), 1, 1), "rl.tasks_per_step=4", "rl.group_size=2"
    mixed = [*mixed, "rl.save_episodes=all", "rl.checkpoint_every=1", "rl.schedule=constant"]
    whole = RunDirectory.at(rl.run(configure(*mixed, "rl.steps=2", name="whole")))
    short = rl.run(configure(*mixed, "rl.steps=1", name="short"))
    longer = RunDirectory.at(rl.run(configure(*mixed, "rl.steps=2", f"resume={short}", name="short")))
    for step in range(2):
        first, again = (run.read_episodes(f"train-{step:04d}") for run in (whole, longer))
        assert [(e.id, e.tokens.ids if e.tokens else None) for e in first] == [
            (e.id, e.tokens.ids if e.tokens else None) for e in again
        ]
        assert Counter(e.tags[DOMAIN] for e in first) == {"retail-generated": 4, "coin": 4}


def test_rollouts_that_run_ahead_are_mixed_too(configure: Configure, mixed: list[str]) -> None:
    run = RunDirectory.at(rl.run(configure(*mixed, "rl.asynchrony=bounded", "rl.steps=3")))
    rows = [row for row in run.read_metrics() if row["phase"] == "rl"]
    shares = Counter()
    for row in rows:
        shares.update({n: row.get(f"{DOMAIN}/{n}/groups_kept", 0.0) for n in ("lamps", "retail-generated")})
    assert sum(shares.values()) == 12 and min(shares.values()) >= 4


def test_an_evaluation_has_every_figure_by_domain(configure: Configure, tmp_path: Path) -> None:
    both = listed(write_house(tmp_path), 3, 1)
    folder = evaluate.run(configure(both, "eval.agent=expert", "eval.tasks=8", "eval.trials=2"))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["domain"] == "lamps, doors"
    assert summary["evaluation"]["by_domain"]["lamps"]["tasks"] == 6
    assert {n: (p["evaluation"], p["do_nothing"]) for n, p in summary["by_domain"].items()} == {
        "lamps": (1.0, 0.0),
        "doors": (1.0, 0.0),
    }
    report = (folder / "report.md").read_text()
    assert "| doors: success (4 episodes, 2 tasks) | 100.0% |" in report
    episodes = RunDirectory.at(folder).read_episodes("eval")
    assert len({e.id for e in episodes}) == 16
    again = evaluate.run(configure(both, "eval.agent=expert", "eval.tasks=8", "eval.trials=2", f"resume={folder}"))
    assert [e.id for e in RunDirectory.at(again).read_episodes("eval")] == [e.id for e in episodes]


def test_red_team_evaluations_take_one_domain(configure: Configure) -> None:
    with pytest.raises(ConfigError, match=r"this takes one domain, .*domain\.name=retail-generated"):
        evaluate.run(configure("domain=[retail-generated, airline-generated]", "eval.red_team=[all]"))


def test_a_tiny_models_tokenizer_knows_the_words_of_all_domains() -> None:
    from muarl.environments.registry import find

    worlds = [find("retail-generated"), find("airline-generated")]
    tokenizer = make_tokenizer(worlds, ["a short text"])
    for world in worlds:
        assert all(len(tokenizer.encode(piece)) == 1 for piece in list(world.entities())[:20])
