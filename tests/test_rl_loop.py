"""The training loop to read first: it is short, it learns as ``muarl train`` does, and it runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.config.load import load_config
from muarl.learning.checkpoints import load_policy
from muarl.recipes import rl
from muarl.types.episode import read_episodes
from support.page_examples import module_of

LONGEST = 150


def example(repository: Path) -> Any:
    return module_of(repository / "examples" / "rl_loop.py")


def test_it_is_short_and_uses_nothing_but_the_front_door(repository: Path) -> None:
    text = (repository / "examples" / "rl_loop.py").read_text()
    assert len(text.splitlines()) <= LONGEST
    assert "import muarl\n" in text and "from muarl" not in text and "import muarl." not in text


@pytest.mark.slow
def test_it_makes_the_same_update_as_muarl_train_on_the_same_episodes(repository: Path, tmp_path: Path) -> None:
    loop = example(repository)
    settings = loop.SETTINGS
    config = load_config(
        "quickstart",
        [
            f"runs_dir={tmp_path}", "name=same", "rl.steps=1", "rl.tasks_per_step=6", "rl.group_size=4",
            f"rl.lr={settings.optimizer.lr}", "rl.schedule=constant", "rl.warmup=0", "rl.minibatches=1",
            f"rl.kl_coef={settings.policy.kl_coef}", f"learner.pack_tokens={settings.token_budget}", "rl.eval_every=0",
            "rl.optimizer=adamw", "rl.entropy_coef=0", f"rl.temperature={loop.TEMPERATURE}", "engine.processes=1",
            "rl.save_episodes=all", "rl.checkpoint_every=1", "rl.layers.policy=0", "rl.layers.safety=0",
            f"rollout.tokens_per_turn={loop.TURN_TOKENS}", f"rollout.max_turns={loop.TURNS}",
        ],
    )  # fmt: skip
    run = rl.run(config)
    episodes = list(read_episodes(run / "episodes" / "train-0000.jsonl"))
    assert 0 < sum(e.reward for e in episodes) < len(episodes), "nothing to learn from"
    trainer = loop.Trainer("base", seed=config.seed)
    before = {name: value.clone() for name, value in trainer.learner.weights()}
    metrics = asyncio.run(trainer.learn(episodes))

    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (logged,) = [row for row in rows if row.get("phase") == "rl"]
    for name in ("loss", "grad_norm", "entropy", "kl", "clip_fraction"):
        if name in metrics:
            assert logged[f"update/{name}"] == pytest.approx(metrics[name], rel=1e-6, abs=1e-9), name
    assert {"loss", "grad_norm"} <= metrics.keys() and metrics["grad_norm"] > 0
    after = dict(load_policy(run / "checkpoints" / "rl" / "step-000001", dtype=torch.float32).model.named_parameters())
    mine = dict(trainer.learner.weights())
    assert mine.keys() == after.keys()
    for name, value in mine.items():
        torch.testing.assert_close(value, after[name].detach(), rtol=1e-6, atol=1e-8, msg=name)
    assert any(not torch.equal(mine[name], before[name]) for name in mine), "nothing was learned"


@pytest.mark.slow
def test_it_runs(repository: Path, tmp_path: Path) -> None:
    script = repository / "examples" / "rl_loop.py"
    done = subprocess.run(
        [sys.executable, str(script), "--steps", "1", "--eval-tasks", "4"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    before, step, after = done.stdout.splitlines()
    assert before.startswith("after 0 steps: success") and after.startswith("after 1 steps: success")
    assert step.startswith("step   0  success") and "loss" in step
    assert not any(tmp_path.iterdir()), "it leaves nothing behind"
