"""What the tests of rollouts share: the model that comes with muarl as an agent."""

from __future__ import annotations

import pytest

from muarl.agents.sampled import SampledAgent


@pytest.fixture(scope="session")
def base_agent() -> SampledAgent:
    """The checkpoint ``base``, sampled on the processor."""
    from muarl.backends.checkpoint_names import checkpoint_folder
    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.checkpoints import load_policy

    policy = load_policy(checkpoint_folder("base"))
    return SampledAgent.of(TorchEngine(policy.model), policy.tokenizer, context=2048, turn_tokens=128)
