"""The sections about where the work is done: who generates, who learns, and on which machines.

Their defaults are this process. Nothing above the protocols Sampler, Executor and Learner knows what they say.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from muarl.config.section import Positive, Section


class EngineConfig(Section):
    """Who generates the policy's tokens."""

    kind: Literal["torch", "vllm"] = Field(
        "torch", description="`torch`: muarl's own engine, in this process. `vllm`: vLLM (extra `vllm`)."
    )
    max_sequences: Positive = Field(
        256, description="Most completions that one vLLM engine generates at once; further ones wait."
    )


class LearnerConfig(Section):
    """Who holds the weights and updates them."""

    kind: Literal["torch", "fsdp"] = Field(
        "torch", description="`torch`: one process. `fsdp`: weights sharded over processes (torch FSDP2)."
    )


class ClusterConfig(Section):
    """Ray: rollout workers, samplers and learners as processes of one or several machines."""

    address: str | None = Field(
        None,
        description="`local` starts a small cluster on this machine, `auto` joins the one that runs here, HOST:PORT "
        "joins one there; null: everything in this process.",
    )
