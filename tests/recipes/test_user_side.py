"""Episodes from the side of a user model: exact masks, what is rewarded, and samples of the user's own tokens."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from loop_kit import Puppet, RecordingSampler, call, say, small_tokenizer
from muarl.accounts.metrics import VIOLATIONS
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import ConfigError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.config.rl import RlConfig
from muarl.inference.base import SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import Policy, load_policy
from muarl.recipes.training.reference_user import ReferenceUser, check_same_tokens
from muarl.recipes.training.user_side import REWARD, UserReward, agent_fails, user_side
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rollout import Group
from muarl.types.chat import Message
from muarl.types.episode import ADVANTAGE, USER_TOKENS, Episode, StopReason, TokenTrace, Turn, Verdict
from muarl.users.constraints import VOID
from muarl.users.sampled import SampledUserFactory
from support.toy_shop import Toy, toy_task

CHAT = Qwen3Format(small_tokenizer())
TASK = replace(toy_task(), scenario="You are Mia. You want to be rid of order #W12.")


def play(*replies: Any, keeps: bool = True, **options: Any) -> tuple[Episode, RecordingSampler]:
    sampler = RecordingSampler(CHAT, *replies)
    factory = SampledUserFactory(sampler, CHAT, keeps_tokens=keeps, **options)
    agent = Puppet(say(None, call("look", order_id="#W12")), "Shall I?", "It is done.")
    return asyncio.run(run_episode(TASK, Toy().world(), agent, factory(TASK, seed=1), episode_id="e")), sampler


def test_the_mask_is_on_what_the_user_sampled_and_on_nothing_else() -> None:
    episode, sampler = play("Cancel #W12.", "word " * 30, "Thanks. ###STOP###", turn_tokens=24)
    side = user_side(episode)
    trace, spans = side.tokens, [t.span for t in side.turns if t.message.role == "user"]
    assert trace is not None and len(spans) == len(sampler.gave) == 3
    for span, gave, (_, prompt, _) in zip(spans, sampler.gave, sampler.seen, strict=True):
        assert span is not None
        assert tuple(trace.ids[slice(*span)]) == gave.ids
        assert tuple(trace.logprobs[slice(*span)]) == gave.logprobs
        assert tuple(trace.ids[: span[0]]) == prompt, "each message is learned in the context that it was sampled in"
    sampled = {place for span in spans if span for place in range(*span)}
    assert [place in sampled for place in range(len(trace))] == trace.loss_mask
    assert {v for v, own in zip(trace.versions, trace.loss_mask, strict=True) if own} == {sampler.version}
    assert {v for v, own in zip(trace.versions, trace.loss_mask, strict=True) if not own} == {-1}
    assert all(t.span is None and t.version is None for t in side.turns if t.message.role != "user")
    assert USER_TOKENS not in side.tags and USER_TOKENS in episode.tags
    assert Episode.from_json(side.to_json()).tokens == trace


def test_of_messages_that_were_thrown_away_no_token_is_kept() -> None:
    class Strict:
        def hears(self, text: str) -> None: ...
        def said(self, text: str) -> None: ...
        def problem(self, text: str) -> str | None:
            return "bad" if "wrong" in text else None

    class Draws(RecordingSampler):
        async def sample(self, prompt_ids: Any, params: Any, *, session: str | None = None) -> Any:
            self.turn[session] = len(self.gave)
            return await super().sample(prompt_ids, params, session=session)

    sampler = Draws(CHAT, "wrong one", "wrong two", "Cancel #W12.", "No.", "Yes.", "Bye. ###STOP###")
    factory = SampledUserFactory(sampler, CHAT, tries=3, make_check=lambda task: Strict(), keeps_tokens=True)

    async def talk() -> list[Message]:
        user: Any = factory(TASK, seed=1)
        said = [(await user.reply([Message("assistant", "Hi!")])).message]
        rejected = (await user.reply([Message("assistant", "Hi!"), said[0], Message("assistant", "Shall I?")])).message
        said.append((await user.again([], rejected, ["wrong"])).message)
        turns = [
            Turn(Message("assistant", "Hi!")),
            Turn(said[0]),
            Turn(Message("assistant", "Shall I?")),
            Turn(said[1]),
        ]
        side = user_side(Episode("e", "t", "toy", turns, StopReason.MAX_TURNS, tags=dict(user.episode_tags())))
        shown = CHAT.text([i for i, own in zip(side.tokens.ids, side.tokens.loss_mask, strict=True) if own])  # type: ignore[union-attr]
        assert shown == "Cancel #W12.<|im_end|>Yes.<|im_end|>"
        return said

    assert [m.content for m in asyncio.run(talk())] == ["Cancel #W12.", "Yes."]


def test_a_message_that_was_not_sampled_has_no_tokens() -> None:
    episode, sampler = play("Hm.", context=sampler_context())
    side = user_side(episode)
    spans = [t.span for t in side.turns if t.message.role == "user"]
    assert episode.messages[-1].content == "###STOP###" and spans[-1] is None
    assert side.tokens is not None and side.tokens.sampled_count == sum(len(g.ids) for g in sampler.gave)


def sampler_context() -> int:
    """Room for the first message and no more."""
    _, sampler = play("Hm.", "###STOP###")
    return len(sampler.seen[1][1])


def test_tokens_are_kept_where_they_are_asked_for_alone() -> None:
    episode, _ = play("Bye. ###STOP###", keeps=False)
    assert USER_TOKENS not in episode.tags
    with pytest.raises(ValueError, match="were not kept"):
        user_side(episode)


def judged(number: int, reward: float, *, stop: StopReason = StopReason.USER_STOP, violations: int = 0,
           void: bool = False) -> Episode:  # fmt: skip
    trace = TokenTrace()
    trace.append_given([1, 2])
    trace.append_sampled([3 + number, 4], [-0.5, -0.25], 0)
    verdict = Verdict(reward, audit={VIOLATIONS: float(violations)})
    tags: dict[str, Any] = {VOID: [{"rule": "goal", "message": 1, "detail": "x"}]} if void else {}
    return Episode(f"g#{number}", "t", "toy", [], stop, group="g", tokens=trace, verdict=verdict, tags=tags)


@pytest.mark.parametrize(
    ("reward", "stop", "violations", "fails"),
    [
        (1.0, StopReason.USER_STOP, 0, False),
        (0.0, StopReason.USER_STOP, 0, True),
        (1.0, StopReason.USER_STOP, 1, True),
        (0.0, StopReason.TRANSFER, 0, True),
        (0.0, StopReason.EMPTY_REPLY, 0, True),
        (0.0, StopReason.MAX_TURNS, 0, False),
        (0.0, StopReason.CONTEXT_FULL, 0, False),
        (0.0, StopReason.MAX_TURNS, 2, True),
    ],
)
def test_an_agent_ends_wrong_unless_only_length_cut_it(
    reward: float, stop: StopReason, violations: int, fails: bool
) -> None:
    assert agent_fails(judged(0, reward, stop=stop, violations=violations)) is fails


def test_hard_pays_for_the_agents_failure_and_never_for_a_void_one() -> None:
    group = Group("t", "g", [judged(0, 1.0), judged(1, 0.0), judged(2, 0.0, void=True), judged(3, 1.0)])
    samples, figures = UserReward().samples([group], RlConfig(group_size=4))
    advantages = [float(s.advantage) for s in samples]  # type: ignore[arg-type]
    assert advantages[1] > advantages[0] == advantages[3] > advantages[2]
    assert [s.ids for s in samples] == [e.tokens.ids for e in group.episodes if e.tokens]
    assert [list(s.weights) for s in samples] == [[0.0, 0.0, 1.0, 1.0]] * 4
    assert [e.tags[REWARD] for e in group.episodes] == [0.0, 1.0, 1.0, 0.0]
    assert [e.tags[ADVANTAGE] for e in group.episodes] == advantages
    assert figures == {"groups_kept": 1.0, "groups_equal": 0.0, "reward": pytest.approx(1 / 3)}


def test_a_group_whose_users_are_all_void_teaches_nothing() -> None:
    group = Group("t", "g", [judged(n, float(n % 2), void=True) for n in range(4)])
    samples, figures = UserReward().samples([group], RlConfig(group_size=4))
    assert samples == [] and figures == {"groups_kept": 1.0, "groups_equal": 1.0}


@pytest.fixture(scope="module")
def policy(base_run: Path) -> Policy:
    return load_policy(checkpoint_folder(str(base_run)))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_reference_scores_the_exact_tokens_as_the_sampler_did(policy: Policy, temperature: float) -> None:
    engine, prompt = TorchEngine(policy.model, max_slots=4, max_context=64), (5, 6, 7)

    async def sample(seed: int) -> TokenTrace:
        trace = TokenTrace()
        trace.append_given(prompt)
        for more in range(2):
            found = await engine.sample(tuple(trace.ids), SamplingParams(9, temperature=temperature, seed=seed + more))
            trace.append_sampled(found.ids, found.logprobs, found.version)
            trace.append_given([8, 9])
        return trace

    traces = [asyncio.run(sample(seed)) for seed in (1, 20)] + [TokenTrace([5], [False], [0.0], [-1])]
    own = [fmean(lp for lp, mine in zip(t.logprobs, t.loss_mask, strict=True) if mine) for t in traces[:2]]
    likely = ReferenceUser(policy, temperature=temperature, token_budget=64)(traces)
    assert likely == pytest.approx([*own, 0.0], abs=1e-4)
    near = ReferenceUser(policy, likeness="kl", temperature=temperature, token_budget=64)(traces)
    assert near == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)


def test_a_reference_with_other_tokens_is_refused(policy: Policy) -> None:
    check_same_tokens(policy, policy)
    with pytest.raises(ConfigError, match=r"user_rl\.reference.*another tokenizer"):
        check_same_tokens(load_policy(checkpoint_folder("base")), policy)
