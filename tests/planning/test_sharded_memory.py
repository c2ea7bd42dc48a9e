"""What two processes of a sharded learner hold, against the planner's shares."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.model_support import model_shape
from muarl.config.load import load_config
from muarl.planning import memory
from muarl.planning.memory import LearnerSetup
from support.sharded import episodes, settings, several

pytestmark = pytest.mark.slow


def test_each_process_holds_its_share_of_the_optimiser(tmp_path: Path) -> None:
    shape = model_shape(load_config("quickstart").model.checkpoint)
    learner = several(checkpoint_folder("base"), settings(), 2)
    try:
        learner.policy_step(episodes(0))
        saved = learner.save(tmp_path / "step-1")
    finally:
        learner.close()
    parts = []
    for file in sorted(saved.glob("trainer-*.safetensors")):
        tensors = {k: t for k, t in load_file(file).items() if k.startswith("optimizer/") and not k.endswith("/step")}
        parts.append(sum(t.numel() * t.element_size() for t in tensors.values()))
    expected = memory.learner_memory(shape, LearnerSetup(shards=2))["optimiser"]
    assert sum(parts) == pytest.approx(2 * expected, abs=1)
    # Rows of an odd number cannot be halved: the first process then has one more.
    assert parts[0] == pytest.approx(expected, rel=0.01)
