"""From the configuration to vLLM's arguments, environment and transport; what cannot be is told by its field."""

import asyncio
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from muarl.backends.engines import Backend
from muarl.backends.local import local_learner
from muarl.backends.vllm import transport, vllm_settings
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.inference.vllm import settings as settings_module
from muarl.inference.vllm.loops import LoopThread
from muarl.inference.vllm.settings import VllmSettings, engine_arguments, environ, environment, weights_alone
from muarl.learning.checkpoints import Policy
from muarl.learning.settings import LearnerConfig
from support.tiny_families import GENERIC, OWN, tiny_family
from support.waiting import happened


@pytest.fixture
def cpu(monkeypatch):
    monkeypatch.setattr(settings_module, "on_cpu", lambda: True)


@pytest.fixture
def folder(tmp_path):
    fields = {
        "num_hidden_layers": 2, "num_key_value_heads": 2, "num_attention_heads": 4, "head_dim": 32,
        "hidden_size": 128, "max_position_embeddings": 512,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(fields))
    return tmp_path


def config(*overrides):
    return load_config("quickstart", ["engine.kind=vllm", *overrides])


def compute(*overrides):
    return Compute.of(config(*overrides))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["engine.kind=torch", "engine.servers=2"], "servers: only engine.kind=vllm"),
        (["engine.servers=1", "engine.urls=[a:1]"], "servers and urls"),
        (["engine.urls=[node7]"], "'node7' must be HOST:PORT"),
        (["engine.urls=['http://node7:80']"], "must be HOST:PORT"),
        (["engine.urls=[node7:99999]"], "must be HOST:PORT"),
        (["engine.update=nccl"], "nccl needs servers of our own: set engine.servers"),
        (["engine.update=stream"], "set engine.urls"),
        (["engine.update=shared_memory", "engine.urls=[a:1]"], "use stream or file"),
        (["engine.update=file"], "engine.update_folder"),
        (["engine.memory=1.2"], "engine.memory"),
        (["engine.deadline=0"], "engine.deadline"),
    ],
)
def test_what_does_not_go_together_is_told(overrides, words):
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_settings_follow_the_configuration(tmp_path):
    policy = SimpleNamespace(path=tmp_path)
    found = vllm_settings(policy, compute("engine.cache_gib=2", "engine.tensor_parallel=4", "model.max_context=1024"))
    assert found == VllmSettings(
        str(tmp_path), max_context=1024, max_sequences=256, tensor_parallel=4, cache_gib=2.0, seed=found.seed
    )
    assert VllmSettings.from_json(found.to_json()) == found
    with pytest.raises(ConfigError, match="cannot be read"):
        VllmSettings.from_json('{"model": "x", "more": 1}')


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        ([], "shared_memory"),
        (["engine.servers=2"], "shared_memory"),
        (["engine.update_folder=/x"], "file"),
        (["engine.urls=[a:1]"], "stream"),
        (["engine.urls=[a:1]", "engine.update_folder=/x"], "file"),
        (["engine.servers=2", "engine.update=nccl"], "nccl"),
    ],
)
def test_how_weights_travel(overrides, kind):
    policy = SimpleNamespace(model=torch.nn.Linear(1, 1))
    assert transport(policy, compute(*overrides)).kind == kind


def test_weights_travel_by_nccl_where_learner_and_servers_have_gpus_of_their_own(monkeypatch):
    parameter = SimpleNamespace(device=torch.device("cuda:0"))
    policy = SimpleNamespace(model=SimpleNamespace(parameters=lambda: iter([parameter])))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    own = ["engine.servers=2", "engine.first_device=1"]
    assert transport(policy, compute(*own)).kind == "nccl"
    assert transport(policy, compute(*own, "engine.tensor_parallel=2")).kind == "shared_memory"  # too few
    assert transport(policy, compute("engine.servers=2")).kind == "shared_memory"  # the learner's is among them
    assert transport(policy, compute(*own, "learner.kind=fsdp")).kind == "shared_memory"  # no weights in this process


def test_the_cache_is_as_large_as_needed_and_fits(cpu, folder, monkeypatch):
    token = 2 * 2 * 2 * 32 * 4
    monkeypatch.setattr(settings_module, "free_memory", lambda: 1 << 40)
    settings = VllmSettings(str(folder), max_context=512, max_sequences=8)
    assert engine_arguments(settings)["kv_cache_memory_bytes"] >= 8 * 512 * token
    monkeypatch.setattr(settings_module, "free_memory", lambda: 16 * 512 * token)
    assert engine_arguments(settings)["kv_cache_memory_bytes"] == 4 * 512 * token
    monkeypatch.setattr(settings_module, "free_memory", lambda: 512 * token)
    with pytest.raises(ConfigError, match="too little next to the model .* engine.cache_gib"):
        engine_arguments(settings)
    with pytest.raises(ConfigError, match="engine.cache_gib: 0.0001 GiB cannot hold one sequence"):
        engine_arguments(replace(settings, cache_gib=0.0001))
    assert engine_arguments(replace(settings, cache_gib=1.0))["kv_cache_memory_bytes"] == 1 << 30


def test_arguments_that_matter(cpu, folder, monkeypatch):
    settings = VllmSettings(str(folder), max_context=512, max_sequences=8)
    found = engine_arguments(settings)
    assert found["enable_prefix_caching"] is True and found["logprobs_mode"] == "processed_logprobs"
    assert found["enforce_eager"] is True and "gpu_memory_utilization" not in found and "enable_lora" not in found
    assert engine_arguments(replace(settings, lora_rank=20))["max_lora_rank"] == 32
    with pytest.raises(ConfigError, match="rank is 999"):
        engine_arguments(replace(settings, lora_rank=999))
    with pytest.raises(ConfigError, match="model.max_context is 513, but .* at most 512 tokens"):
        engine_arguments(replace(settings, max_context=513))
    with pytest.raises(CheckpointError, match="config.json: cannot be read"):
        engine_arguments(replace(settings, model=str(folder / "none")))
    monkeypatch.setattr(settings_module, "on_cpu", lambda: False)
    found = engine_arguments(replace(settings, memory=0.5, nccl=True))
    assert found["gpu_memory_utilization"] == 0.5 and found["enforce_eager"] is False
    assert "kv_cache_memory_bytes" not in found and found["weight_transfer_config"] == {"backend": "nccl"}


@pytest.mark.parametrize(
    ("layers", "kept"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"]}, True),
        ({"layer_types": ["linear_attention", "full_attention"]}, False),
        ({"layers_block_type": ["mamba", "mlp", "attention"]}, False),
    ],
)
def test_on_a_cpu_prefixes_are_only_kept_of_layers_with_keys_and_values(cpu, folder, layers, kept, monkeypatch):
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(fields | layers))
    settings = VllmSettings(str(folder), max_context=512, max_sequences=8)
    assert engine_arguments(settings)["enable_prefix_caching"] is kept
    monkeypatch.setattr(settings_module, "on_cpu", lambda: False)
    assert engine_arguments(settings)["enable_prefix_caching"] is True


def test_each_server_sees_its_own_devices(monkeypatch, folder):
    monkeypatch.setattr(settings_module, "on_cpu", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    settings = VllmSettings(str(folder), tensor_parallel=2, first_device=4)
    assert environment(settings)["CUDA_VISIBLE_DEVICES"] == "4,5"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9,8,7,6,5,3")
    assert environment(settings)["CUDA_VISIBLE_DEVICES"] == "5,3"
    with pytest.raises(ConfigError, match="more GPUs than CUDA_VISIBLE_DEVICES lists"):
        environment(replace(settings, first_device=5))


def test_the_environment_of_the_person_wins_and_is_left_as_it_was(cpu, monkeypatch):
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    monkeypatch.delenv("TORCHDYNAMO_DISABLE", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    values = environment(VllmSettings("x", threads=3))
    assert (values["VLLM_LOGGING_LEVEL"], values["OMP_NUM_THREADS"]) == ("DEBUG", "3")
    before = dict(os.environ)
    with environ(values):
        assert os.environ["TORCHDYNAMO_DISABLE"] == "1"
        os.environ["LOCAL_WORLD_SIZE"] = "7"  # as vLLM does
    assert dict(os.environ) == before


def test_without_vllm_a_run_says_what_to_install(monkeypatch):
    monkeypatch.setattr(settings_module, "LIBRARY", "a_library_that_nobody_has")
    with pytest.raises(ConfigError, match="vLLM is not installed"):
        Backend.of(config()).sampler(SimpleNamespace(path="x", model=torch.nn.Linear(1, 1)))


@pytest.fixture
def given(monkeypatch):
    """What engines are told: their model's folder and deadline, and their first weights."""
    out = []

    class Engine:
        def __init__(self, settings, **options):
            out.append((settings.model, options["deadline"]))

        def load(self, weights, version):
            out.append((dict(weights()), version))

    monkeypatch.setattr("muarl.inference.vllm.engine.VllmEngine", Engine)
    monkeypatch.setattr("muarl.inference.vllm.settings.require_vllm", lambda: None)
    return out


def policy_of(name, folder):
    model = tiny_family(name, {**OWN, **GENERIC}[name])
    folder.mkdir()
    model.save_pretrained(folder)
    return Policy(model, None, folder)


def test_an_engine_begins_with_the_models_present_weights(given, tmp_path):
    """The folder's may be older: a cold start trains the model in memory."""
    policy = policy_of("qwen2", tmp_path / "model")
    Backend.of(config("engine.deadline=7")).sampler(policy)
    assert given[0] == (str(policy.path), 7.0)
    assert given[1][1] == 0
    assert given[1][0]["model.norm.weight"].equal(policy.model.model.norm.weight)


@pytest.mark.parametrize("name", ["gpt_oss", "mixtral"])
def test_weights_that_vllm_cannot_replace_must_be_the_folders(given, tmp_path, name):
    policy = policy_of(name, tmp_path / "model")
    Backend.of(config()).sampler(policy)
    assert len(given) == 1, "it serves the folder's"
    with pytest.raises(ConfigError, match=f"'{name}' from a learner while it runs.*learner.lora"):
        local_learner(policy, compute(), LearnerConfig())
    with torch.no_grad():
        policy.model.model.norm.weight.add_(1.0)
    with pytest.raises(ConfigError, match=f"'{name}' while it runs, and those in .*model are older"):
        Backend.of(config()).sampler(policy)


def test_vllm_sees_no_trainers_tensors(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text(name)
    with weights_alone(tmp_path) as folder:
        assert folder == tmp_path
    for name in ("trainer.json", "trainer.safetensors", "trainer-00001-of-00002.safetensors"):
        (tmp_path / name).write_text(name)
    with weights_alone(tmp_path) as folder:
        assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors", "trainer.json"]
        assert (folder / "model.safetensors").read_text() == "model.safetensors"
    assert not folder.exists() and (tmp_path / "model.safetensors").is_file()


def test_a_loop_in_a_thread_keeps_its_deadlines():
    thread = LoopThread("it")
    assert thread.run(asyncio.sleep(0, "x"), 5, "a") == "x"
    with pytest.raises(InfrastructureError, match="a nap took longer than 0.05 seconds"):
        thread.run(asyncio.sleep(60), 0.05, "a nap")

    async def outside():
        assert await thread.call(asyncio.sleep(0, "y"), 5, "b") == "y"
        with pytest.raises(InfrastructureError, match="a nap took longer"):
            await thread.call(asyncio.sleep(60), 0.05, "a nap")
        begun, seen = [], []

        async def told():
            begun.append(1)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append(1)
                raise

        task = asyncio.create_task(thread.call(told(), 60, "c"))
        await happened(lambda: begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not seen:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(outside(), 20))
    thread.stop()
    with pytest.raises(InfrastructureError, match="it is closed"):
        thread.run(asyncio.sleep(0), 1, "d")
