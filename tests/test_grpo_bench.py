"""benches/grpo_step.py: our side of the comparison with TRL runs, with the settings that it says."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
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
    assert all(0 < s["rollout_cpu"] < s["cpu"] for s in steps)

    config = grpo_step.config_for(start, 2, 485, options, processes)
    assert config.process_count == processes
    rl = config.rl
    assert (rl.optimizer, rl.entropy_coef, rl.kl_coef, rl.practice.repeat) == ("adamw", 0.0, 0.0, 0.0), "as TRL's side"
    for name in ("grpo_step", "grpo_shop", "grpo_shop_environment"):
        sys.modules.pop(name, None)


def test_cpu_seconds_count_those_of_children(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(repository / "benches"))
    for name, value in (("OMP_NUM_THREADS", "1"), ("CUDA_VISIBLE_DEVICES", "")):
        monkeypatch.setenv(name, value)
    import grpo_step

    busy = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\nsys.stdin.read()"
    before = grpo_step.cpu_seconds() - time.process_time()
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert grpo_step.cpu_seconds() - time.process_time() - before > 0.4, "another process was busy for 0.5 s"
        child.communicate()
    for name in ("grpo_step", "grpo_shop", "grpo_shop_environment"):
        sys.modules.pop(name, None)
