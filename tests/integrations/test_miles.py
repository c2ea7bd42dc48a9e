"""miles' hooks, called as its agentic generate function and its reward hub call them."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl_integrations.miles import no_failures, reward, run
from support.fake_openai import FakeOpenAI, status, text

FILTERED = SimpleNamespace(dynamic_sampling_filter_path="muarl_integrations.miles.no_failures")


@dataclass
class Sample:
    """What the hooks touch of miles' and slime's class."""

    metadata: dict[str, Any] = field(default_factory=dict)
    reward: float | None = None
    remove_sample: bool = False

    class Status(enum.Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        ABORTED = "aborted"

    status: Any = Status.COMPLETED


async def played(server: FakeOpenAI, **asked: Any) -> Sample:
    """A sample as miles leaves it: the agent function's answer merged into its metadata."""
    sample = Sample({"task": "retail-generated:test:1", "seed": 3})
    address = server.url.removesuffix("/v1")
    told = await run(base_url=address, prompt=[], request_kwargs=asked, metadata={**sample.metadata, "max_seq_len": 9})
    sample.metadata.update(told)
    return sample


async def test_a_sample_is_played_with_the_trainer_s_sampling_and_its_reward_is_read() -> None:
    with FakeOpenAI(text("Hello.")) as server:
        sample = await played(server, temperature=0.7, max_tokens=20, top_k=40, skip_special_tokens=False, seed=11)
        body = server.bodies[0]
    assert (body["temperature"], body["max_tokens"], body["top_k"], body["skip_special_tokens"]) == (0.7, 20, 40, False)
    assert await reward(FILTERED, sample) == 0.0 and await reward(FILTERED, [sample, sample]) == [0.0, 0.0]
    assert sample.metadata["muarl"]["stop"] == "user_stop" and sample.metadata["muarl"]["failure"] is None
    assert no_failures(FILTERED, [sample, [sample]]) and not sample.remove_sample


async def test_what_failed_is_no_reward_and_drops_its_group() -> None:
    with FakeOpenAI(status(500)) as server:
        sample = await played(server)
    assert "reward" not in sample.metadata and sample.metadata["muarl"]["failure"]["boundary"] == "agent"
    with pytest.raises(ConfigError, match=r"--dynamic-sampling-filter-path muarl_integrations\.miles\.no_failures"):
        await reward(SimpleNamespace(dynamic_sampling_filter_path=None), sample)
    assert math.isnan(await reward(FILTERED, sample))
    assert sample.status is Sample.Status.ABORTED and sample.remove_sample and sample.reward is None
    assert not no_failures(FILTERED, [Sample(), sample]) and not no_failures(FILTERED, [[Sample(), sample]])
    raised = Sample()  # miles logs what an agent function raises, and goes on without its answer
    assert math.isnan((await reward(FILTERED, [raised]))[0]) and raised.status is Sample.Status.ABORTED
