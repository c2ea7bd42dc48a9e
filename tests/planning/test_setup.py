"""What the planner makes of a configuration's sections about scale is what the recipes make of them."""

from __future__ import annotations

import pytest

from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.planning.assumptions import Assumptions
from muarl.planning.models import PUBLISHED
from muarl.planning.plan import make_plan
from muarl.planning.setup import Deployment, deployment, notes

SHAPE = PUBLISHED["Qwen/Qwen3-8B"]


def run_of(*overrides: str) -> PlannedRun:
    return PlannedRun.of(load_config("quickstart", ["model.dtype=bfloat16", "rl.practice.repeat=0", *overrides]))


def of(*overrides: str) -> Deployment:
    run = run_of(*overrides)
    return deployment(run, run.rl, SHAPE)


FSDP = ("learner.kind=fsdp", "learner.processes=4")
VLLM = ("engine.kind=vllm",)


def test_one_process_holds_everything_as_the_model_is_loaded() -> None:
    found = of()
    assert (found.gpus, found.learner.shards, found.server) == (1, 1, None)
    assert (found.learner.trained_bytes, found.learner.reference_bytes, found.engine_bytes) == (2, 2, 2)
    assert not found.learner.start
    assert of(*FSDP).learner.start, "its own sampler has the model"


def test_shards_are_float32_and_everything_beside_them_as_it_is_computed_with() -> None:
    learner = of(*FSDP, *VLLM).learner
    assert (learner.shards, learner.trained_bytes, learner.compute_bytes, learner.reference_bytes) == (4, 4, 2, 2)
    full = of(*FSDP, *VLLM, "learner.precision=float32").learner
    assert (full.compute_bytes, full.reference_bytes) == (4, 4)


def test_adapters_need_no_second_model_of_reference() -> None:
    learner = of("learner.lora={rank: 8, targets: [q_proj, v_proj]}", "rl.kl_coef=0.001").learner
    assert (learner.rank, learner.targets, learner.reference, learner.trained_bytes) == (
        8,
        ("q_proj", "v_proj"),
        "adapter",
        4,
    )
    assert learner.start
    assert of("rl.kl_coef=0").learner.reference == "none"
    assert of(*FSDP, "learner.offload_reference=true", "rl.kl_coef=0.001").learner.reference == "host"
    assert of(*FSDP, "learner.offload_optimizer=true").learner.offload


def test_servers_beside_a_learner_share_its_gpus_unless_they_begin_after_them() -> None:
    assert of(*FSDP, *VLLM).shared
    apart = of(*FSDP, *VLLM, "engine.first_device=4", "engine.servers=2", "engine.tensor_parallel=2")
    assert not apart.shared
    assert apart.gpus == 8
    assert not of(*FSDP, *VLLM, "engine.urls=['there:8000']").shared


def test_on_a_cluster_each_process_has_its_own_gpus() -> None:
    each = ("cluster.sampler_gpus=2", "engine.tensor_parallel=2", "cluster.learner_gpus=1")
    run = run_of(*FSDP, *VLLM, "cluster.samplers=3", *each)
    found = deployment(run, run.rl, SHAPE)
    assert (found.engines, found.shared, found.gpus) == (3, False, 4 + 3 * 2)
    assert not found.learner.start
    assert list(notes(run, run.user)) == []


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("cluster.sampler_gpus=1", "engine.tensor_parallel=2"), "tensor_parallel is 2"),
        (("cluster.learner_gpus=2",), "works on one GPU"),
        (("cluster.sampler_gpus=1", "engine.max_sequences=4"), "the others wait"),
        (("cluster.sampler_gpus=1", "user.kind=sampled", "user.checkpoint=base"), "which is not planned for"),
    ],
)
def test_what_does_not_go_together_is_noted(overrides: tuple[str, ...], words: str) -> None:
    run = run_of(*FSDP, *VLLM, *overrides)
    assert any(words in note for note in notes(run, run.user))


def test_running_ahead_is_read_from_the_configuration() -> None:
    assert (of().ahead, of().in_turns) == (1.0, False)
    assert (of("rl.asynchrony=one_step_off").ahead, of("rl.asynchrony=one_step_off").in_turns) == (2.0, True)
    assert of("rl.asynchrony=bounded", "rl.staleness=3").ahead == 4.0


def test_a_sampler_without_room_for_one_conversation_does_not_fit() -> None:
    long = ("model.max_context=32768", "learner.pack_tokens=32768", "learner.recompute=true")
    own = ("cluster.sampler_gpus=1", "cluster.learner_gpus=1", "model.dtype=bfloat16")
    config = PlannedRun.of(load_config("quickstart", [*FSDP, *VLLM, *long, *own, "engine.memory=0.75"]))
    shape = PUBLISHED["Qwen/Qwen3-14B"]
    assert make_plan(config, shape, Assumptions()).fits
    problems = make_plan(config, shape, Assumptions(gpu="l40s")).problems
    assert any("one conversation may grow to 32,768" in p for p in problems)


def test_adapters_sent_alone_are_little() -> None:
    lora = (*FSDP, *VLLM, "learner.lora={rank: 16}")
    config = [
        load_config("quickstart", ["model.dtype=bfloat16", *lora, *more]) for more in (("engine.lora_rank=0",), ())
    ]
    whole, alone = (make_plan(PlannedRun.of(c), SHAPE, Assumptions()).step["weights_sent"] for c in config)
    assert whole == 2 * SHAPE.parameters
    assert alone == 4 * SHAPE.adapter_parameters(16), "adapters are trained and sent in float32"
