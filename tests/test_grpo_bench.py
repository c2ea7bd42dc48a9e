"""benches/grpo_step.py: our side of the comparison with TRL runs, with the settings that it says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_our_side_takes_its_steps(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.syspath_prepend(str(repository / "benches"))
    for name, value in (("OMP_NUM_THREADS", "1"), ("CUDA_VISIBLE_DEVICES", "")):  # it sets what is not set, for good
        monkeypatch.setenv(name, value)
    import grpo_step

    sizes = {"hidden": 32, "layers": 1, "vocabulary": 400, "sft_steps": 2, "sft_batch": 2, "max_completion": 40}
    options = argparse.Namespace(group=2, warmup=1, steps=1, lr=1e-5, seed=0, **sizes)
    start = tmp_path / "start"
    grpo_step.make_start(start, options)
    steps = grpo_step.run_muarl(start, 2, options, processes)
    assert [s["episodes"] for s in steps] == [4, 4]
    assert all(0 < s["rollout_wall"] < s["wall"] and s["sampled_tokens"] > 0 for s in steps)
    assert all(0 < s["rollout_cpu"] < s["cpu"] for s in steps), "that of the processes included"

    config = grpo_step.config_for(start, 2, 485, options, processes)
    assert config.process_count == processes
    rl = config.rl
    assert (rl.optimizer, rl.entropy_coef, rl.kl_coef, rl.practice.repeat) == ("adamw", 0.0, 0.0, 0.0), "as TRL's side"
    for name in ("grpo_step", "grpo_shop", "grpo_shop_environment"):
        sys.modules.pop(name, None)
