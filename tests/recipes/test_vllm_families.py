"""Commands on models of other families than Qwen's, with vLLM as the sampler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.learning.checkpoints import load_policy, load_tokenizer, save_policy
from muarl.observe.rundir import RunDirectory
from support.tiny_families import tiny_family
from support.vllm_families import vllm_shape

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.usefixtures("coin")]

WITH_VLLM = ("engine.kind=vllm", "engine.max_sequences=8", "engine.cache_gib=0.25")


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_training_and_evaluation(name: str, muarl: Callable[..., Any], base_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    tokenizer = load_tokenizer(checkpoint_folder(str(base_run)))
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    start = save_policy(tmp_path / "start", tiny_family(name, vllm_shape(name) | sizes), tokenizer)
    words = (*WITH_VLLM, "eval.tasks=2", "eval.baseline=false")
    result = muarl("train", "rl.steps=2", "rl.lr=0.003", f"model.checkpoint={start}", "name=rl", *words)
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "rl"
    steps = [row for row in RunDirectory.at(run).read_metrics() if row["phase"] == "rl"]
    assert [row["step"] for row in steps] == [0, 1]
    for row in steps:
        assert row["samples"] and row["update/nonfinite"] == 0
        assert row["update/logprob_gap_max"] < 1e-3, "what is trained is what vLLM sampled"
    before, after = load_policy(start).model, load_policy(checkpoint_folder(str(run))).model
    moved = [float((a - b).detach().abs().max()) for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    assert max(moved) > 1e-4

    result = muarl("eval", "--checkpoint", str(run), "--name", "scored", *words)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "runs" / "scored" / "summary.json").read_text())["evaluation"]["tasks"] == 2
