"""The same recipes with the learner in several processes: what they log, what they leave, and how they go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.learning.checkpoints import load_policy
from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart, rl, sft

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("coin")]
SHARDED = ("learner.kind=fsdp", "learner.processes=2", "learner.deadline=300")
COMPARED = ("update/loss", "update/grad_norm", "kl", "entropy", "update/loss_tokens", "nll", "agent_nll", "grad_norm")


def rows(run: Path, phase: str) -> list[dict[str, float]]:
    return [
        {k: v for k, v in row.items() if k in COMPARED}
        for row in RunDirectory.at(run).read_metrics()
        if row["phase"] == phase
    ]


def test_training_in_two_processes_is_that_of_one_and_is_taken_up_by_one(configure: Callable[..., Any]) -> None:
    """From the same weights the same episodes, the same update, nearly the same weights (Adam's first step makes much
    of the rounding of gradients that are nearly 0)."""
    small = ("rl.steps=1", "rl.kl_coef=0.05")
    one, two = rl.run(configure(*small, name="one")), rl.run(configure(*small, *SHARDED, name="two"))
    ours, theirs = rows(two, "rl"), rows(one, "rl")
    assert len(ours) == len(theirs) == 1
    assert ours[0].keys() == theirs[0].keys() >= {"update/loss", "kl"}
    assert ours[0] == pytest.approx(theirs[0], rel=1e-4, abs=1e-5)
    mine, others = (dict(load_policy(checkpoint_folder(str(run))).model.named_parameters()) for run in (two, one))
    assert all(float((mine[n] - others[n]).detach().abs().mean()) < 1e-5 for n in mine)
    again = rl.run(configure("rl.steps=2", "rl.kl_coef=0.05", name="two").model_copy(update={"resume": two}))
    assert [row["step"] for row in RunDirectory.at(again).read_metrics() if row["phase"] == "rl"] == [0, 1]


def test_what_a_cold_start_in_two_processes_leaves_is_evaluated_and_trained_further(
    configure: Callable[..., Any],
) -> None:
    small = ("sft.steps=2", "rl.steps=1", "eval.tasks=2")
    one = sft.run(configure(*small, name="one"))
    run = quickstart.run(configure(*small, *SHARDED, name="two"))
    for ours, theirs in zip(rows(run, "cold_start"), rows(one, "cold_start"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    update = next(row for row in RunDirectory.at(run).read_metrics() if row["phase"] == "rl")
    assert update["update/loss_tokens"] > 0
    assert update["update/logprob_gap_max"] < 1e-3, "sampler and learner both have the cold start's weights"
