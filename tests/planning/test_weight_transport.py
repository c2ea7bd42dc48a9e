"""How weights reach samplers follows from where the parts lie; what cannot be is refused with a remedy."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.parts import Compute, PlannedRun
from muarl.planning.assumptions import Assumptions
from muarl.planning.models import published
from muarl.planning.plan import make_plan
from muarl.planning.setup import deployment
from muarl.planning.weight_transport import weight_transport

WHOLE = ["cluster.learner_gpus=1", "cluster.sampler_gpus=1"]
PARTS = ["cluster.learner_gpus=0.5", "cluster.sampler_gpus=0.5"]
LORA = ["learner.lora.rank=8"]
VLLM = ["engine.kind=vllm"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["cluster.address=local"], "all weights, through the cluster's object store"),
        (WHOLE, "all weights, by torch.distributed from the learner's first process to all samplers (NCCL)"),
        (PARTS, "all weights, through one buffer that learner and samplers see (CUDA IPC)"),
        ([*PARTS, "cluster.samplers=2"], "all weights, through the cluster's object store"),
        ([*PARTS, "cluster.spread=true"], "all weights, through the cluster's object store"),
        ([*PARTS, "learner.kind=fsdp", "learner.processes=2"], "all weights, through the cluster's object store"),
        ([*WHOLE, *LORA], "the adapter alone, through the cluster's object store"),
        ([*WHOLE, *LORA, "cluster.update=broadcast"], "the adapter alone, by torch.distributed"),
        ([*WHOLE, *VLLM], "all weights, through the cluster's object store"),
        ([*WHOLE, *VLLM, "cluster.update=broadcast"], "to all samplers (NCCL): cluster.update=broadcast"),
        (["cluster.address=local", "cluster.update=broadcast"], "to all samplers (gloo): cluster.update=broadcast"),
        (["cluster.address=local", "cluster.update=ipc"], "learner and samplers see (shared memory)"),
        ([*WHOLE, "cluster.update=object_store"], "object store (the machines' own memory): cluster.update="),
        (["learner.kind=fsdp"], "one tensor after another from the learner's processes to this one"),
        (VLLM, "all weights, as files in this machine's memory"),
        ([*VLLM, "engine.servers=2"], "all weights, by NCCL if learner and servers have GPUs of their own"),
        ([*VLLM, *LORA, "engine.servers=2"], "the adapter alone, as files in this machine's memory"),
        ([*VLLM, "engine.urls=[h:1]"], "all weights, over the connection"),
        ([*VLLM, "engine.servers=1", "engine.update=nccl"], "engine.update=nccl"),
    ],
)
def test_where_the_parts_lie_decides(settings: list[str], words: str) -> None:
    transport = weight_transport(Compute.of(load_config("quickstart", ["model.device=auto", *settings])))
    assert transport is not None and words in transport.text


def test_nothing_is_sent_where_the_sampler_reads_the_learners_memory() -> None:
    assert weight_transport(Compute.of(load_config("quickstart", []))) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([*PARTS, "cluster.update=broadcast"], "NCCL takes no two processes on one GPU: set cluster.update=ipc"),
        ([*WHOLE, "cluster.update=ipc"], "ipc needs the learner and all samplers on one GPU"),
        ([*PARTS, "cluster.samplers=2", "cluster.update=ipc"], "parts that make 1 at most"),
        ([*PARTS, "cluster.update=ipc", "cluster.spread=true"], "ipc needs one machine, and spread is true"),
        (["cluster.sampler_gpus=1", "cluster.update=broadcast"], "needs GPUs on both sides or on neither"),
        ([*PARTS, "cluster.update=ipc", "learner.kind=fsdp", "learner.processes=2"], "Set learner.processes=1"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(settings: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match="update") as refused:
        load_config("quickstart", settings)
    assert words in str(refused.value)


def test_a_sampler_that_sleeps_shares_the_learners_memory() -> None:
    shape = published("Qwen/Qwen3-4B")
    assert shape is not None
    settings = ["model.checkpoint=Qwen/Qwen3-4B", "model.max_context=16384", "rollout.concurrency=16"]
    awake, asleep = (
        make_plan(
            PlannedRun.of(load_config("quickstart", [*settings, f"engine.sleep={s}"])), shape, Assumptions()
        ).places[0]
        for s in ("false", "true")
    )
    engine = {n: b for n, b in awake.parts.items() if n.startswith("sampler's")}
    passing = {n: b for n, b in awake.parts.items() if n in ("activations", "logits", "gathered", "casts", "reduced")}
    batch = engine.pop("sampler's batch")
    learner = awake.total - sum(engine.values()) - batch
    assert asleep.total == batch + max(learner, learner - sum(passing.values()) + sum(engine.values()))
    assert asleep.total < awake.total


def test_of_adapters_a_cluster_sends_nothing_else() -> None:
    shape = published("Qwen/Qwen3-4B")
    assert shape is not None
    own = ["model.checkpoint=Qwen/Qwen3-4B", *LORA]
    for settings, rank in (([*own, *WHOLE], 8), (own, 0), ([*own, *WHOLE, *VLLM], 8)):
        run = PlannedRun.of(load_config("quickstart", settings))
        assert deployment(run, run.rl, shape).sent_rank == rank
