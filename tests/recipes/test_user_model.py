"""User models: what they learn from, how they play, and what a fidelity page says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.accounts.intervals import wilson
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.users import make_users, sampled_users
from muarl.basics.errors import DataError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import load_policy
from muarl.recipes.user_fidelity import pooled, report
from muarl.recipes.user_model import user_samples
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, read_episodes, write_episodes
from muarl.users.sampled import SampledUserFactory, from_the_users_chair

Muarl = Callable[..., Any]
SCENARIO = "You are Vera Rossi, your zip code is 52173. You want to cancel order #W1."
TALK = (
    Message("assistant", GREETING),
    Message("user", "Please cancel order #W1."),
    Message("assistant", None, (ToolCall("c", "look", {"order_id": "#W1"}),)),
    Message("tool", "pending", tool_call_id="c", name="look"),
    Message("assistant", "Shall I cancel it?"),
    Message("user", "Yes. ###STOP###"),
)


@pytest.fixture(scope="module")
def chat(base_run: Path) -> Qwen3Format:
    return Qwen3Format(load_policy(checkpoint_folder(str(base_run))).tokenizer)


def test_from_the_users_chair_the_agent_is_the_other_one() -> None:
    seen = from_the_users_chair(TALK)
    assert [(m.role, m.content) for m in seen] == [
        ("user", GREETING),
        ("assistant", "Please cancel order #W1."),
        ("user", "Shall I cancel it?"),
        ("assistant", "Yes. ###STOP###"),
    ]


def episode(*messages: Message) -> Episode:
    return Episode("e", "t", "shop", [Turn(m) for m in messages], StopReason.USER_STOP)


def test_the_loss_is_on_what_the_user_says_and_on_nothing_else(chat: Qwen3Format) -> None:
    (sample,) = user_samples([(SCENARIO, episode(*TALK))], chat)
    learnt = [i for i, w in zip(sample.ids, sample.weights, strict=True) if w]
    assert chat.text(learnt) == "Please cancel order #W1.<|im_end|>Yes. ###STOP###<|im_end|>"
    assert SCENARIO in chat.text(sample.ids)
    assert "look" not in chat.text(sample.ids), "the agent's calls are none of the user's business"


def test_users_with_tools_are_left_out(chat: Qwen3Format) -> None:
    acted = Message("user", None, (ToolCall("u", "toggle", {}, "user"),))
    with pytest.raises(DataError, match="only speaks"):
        user_samples([(SCENARIO, episode(*TALK[:2], acted))], chat)


def test_how_many_conversations_are_left_out_is_said(muarl: Muarl, tmp_path: Path) -> None:
    acted = Message("user", None, (ToolCall("u", "toggle", {}, "user"),))
    talks = [episode(*TALK), episode(*TALK[:2], acted), episode(*TALK)]
    for talk in talks:
        talk.tags["user_scenario"] = SCENARIO
    write_episodes(tmp_path / "talks.jsonl", talks)
    few = ("rollout.max_turns=30", "sft.steps=1", "sft.batch=2", "eval.tasks=1", "model.max_context=400")
    result = muarl("sft-user", "--name", "who", f"sft.demonstrations_file={tmp_path / 'talks.jsonl'}", *few)
    assert result.exit_code == 0, result.output
    assert "1 of 3 conversations are left out: their users call tools" in result.output.replace("\n", " ")
    assert json.loads((tmp_path / "runs" / "who" / "summary.json").read_text())["conversations"] == 2


@pytest.mark.parametrize("command", [("sft-user",), ("sft-user", "--measure", "base")])
def test_a_user_model_is_refused_where_users_have_tools(muarl: Muarl, tmp_path: Path, command: tuple[str, ...]) -> None:
    result = muarl(*command, "--name", "who", "--domain", "telecom-generated", "domain.size=tiny")
    assert result.exit_code == 2
    assert "users of telecom-generated have tools of their own (check_status_bar," in result.stderr
    assert not (tmp_path / "runs" / "who").exists(), "before anything is begun"


def test_a_split_that_the_measurement_has_not_is_told_before_the_training(muarl: Muarl, tmp_path: Path) -> None:
    result = muarl("sft-user", "--name", "who", "eval.split=bogus")
    assert result.exit_code == 2
    assert "eval.split: retail-generated has no tasks for the split 'bogus'" in result.stderr.replace("\n", " ")
    assert not (tmp_path / "runs" / "who").exists(), "before anything is begun"


@pytest.mark.parametrize(
    ("part", "missing"), [("expert", "has no scripted expert"), ("rule_based_user", "has no rule-based user")]
)
def test_who_the_measurement_needs_is_asked_for_before_the_training(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, missing: str
) -> None:
    talk = episode(*TALK)
    talk.tags["user_scenario"] = SCENARIO
    write_episodes(tmp_path / "talks.jsonl", [talk])
    monkeypatch.chdir(tmp_path)
    lines = (
        "from dataclasses import replace",
        "from muarl.environments.registry import find",
        f'SHOP = replace(find("retail-generated"), name="own-shop", {part}=None)',
    )
    Path("own_shop.py").write_text("\n".join(lines) + "\n")
    given = ("--domain", "./own_shop.py:SHOP", f"sft.demonstrations_file={tmp_path / 'talks.jsonl'}")
    result = muarl("sft-user", "--name", "who", *given)
    assert result.exit_code == 2, result.output
    said = result.stderr.replace("\n", " ")
    assert f"own-shop {missing}" in said and "sft-user measures" in said and "docs/domains.md" in said
    assert not (tmp_path / "runs" / "who").exists(), "before anything is begun"


class Parrot:
    """A sampler that says a fixed line, and notes what it was given."""

    version = 0

    def __init__(self, chat: Qwen3Format, line: str) -> None:
        self.ids = tuple(chat.reply_ids(Message("assistant", line)))
        self.prompts: list[tuple[int, ...]] = []
        self.closed: list[str] = []

    async def sample(self, prompt_ids: Any, params: SamplingParams, *, session: str | None = None) -> Completion:
        self.prompts.append(tuple(prompt_ids))
        return Completion(self.ids, tuple(0.0 for _ in self.ids), "stop", 0)

    def close_session(self, session: str) -> None:
        self.closed.append(session)


def test_what_a_user_model_sees_grows_by_what_is_new_exactly_as_it_was_trained(chat: Qwen3Format) -> None:
    parrot = Parrot(chat, "Please cancel order #W1.")
    user: Any = SampledUserFactory(parrot, chat)(Task("t", "shop", SCENARIO, ()), seed=1)
    first = asyncio.run(user.reply(TALK[:1])).message
    assert (first.role, first.content) == ("user", "Please cancel order #W1.")
    parrot.ids = tuple(chat.reply_ids(Message("assistant", "Yes. ###STOP###")))
    asyncio.run(user.reply([TALK[0], first, TALK[4]]))
    (trained,) = user_samples([(SCENARIO, episode(*TALK))], chat)
    lived = [*parrot.prompts[-1], *parrot.ids]
    assert lived == list(trained.ids)
    assert parrot.prompts[1][: len(parrot.prompts[0])] == parrot.prompts[0]
    user.close()
    assert len(parrot.closed) == 1


def test_a_conversation_that_outgrows_the_model_is_given_up(chat: Qwen3Format) -> None:
    user = SampledUserFactory(Parrot(chat, "Hm."), chat, context=20)(Task("t", "shop", SCENARIO, ()), seed=1)
    assert asyncio.run(user.reply(TALK[:1])).message.content == "###STOP###"


@pytest.mark.slow
def test_a_user_model_is_trained_measured_and_trained_against(muarl: Muarl, tmp_path: Path) -> None:
    small = ("rollout.max_turns=30", "sft.demonstrations=20", "sft.steps=2", "eval.tasks=4", "model.max_context=400")
    result = muarl("sft-user", "--name", "who", *small)
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "who"
    found = json.loads((run / "summary.json").read_text())["fidelity"]
    assert found["agenda"]["goal_kept"] == 1.0 and found["agenda"]["errors"] == {}
    assert 0.0 <= found["user model"]["goal_kept"] <= 1.0
    assert "| goal kept |" in (run / "report.md").read_text()
    result = muarl(
        "train", "--name", "rl", "user.kind=sampled", f"user.checkpoint={run}", "rl.steps=1", "rl.eval_every=0"
    )
    assert result.exit_code == 0, result.output
    result = muarl("sft-user", "--measure", str(run), *small, "eval.seeds=[3,4]", "eval.tasks=3")
    assert result.exit_code == 0, result.output
    measured = tmp_path / "runs" / "user-fidelity"
    again = json.loads((measured / "summary.json").read_text())
    assert again["fidelity"]["user model"]["episodes"] == 6 and again["fidelity"]["agenda"]["goal_kept"] == 1.0
    by_seed = again["fidelity_by_seed"]["user model"]
    kept = sum(one["goal_kept"] for one in by_seed.values())
    assert set(by_seed) == {"3", "4"} and again["fidelity"]["user model"]["goal_kept"] == kept / 6
    assert not list((measured / "checkpoints").iterdir()), "nothing is trained"
    talks = {seed: list(read_episodes(measured / "episodes" / f"user-model-seed{seed}.jsonl")) for seed in (3, 4)}
    assert [len(talk) for talk in talks.values()] == [3, 3]
    assert {e.task_id for e in talks[3]}.isdisjoint(e.task_id for e in talks[4])
    assert "| 4 | 3 |" in (measured / "report.md").read_text()


def test_a_user_model_holds_as_many_conversations_as_are_played_in_the_engines_number_format(base_run: Path) -> None:
    given = ["user.kind=sampled", f"user.checkpoint={base_run}", "rollout.concurrency=3", "engine.dtype=bfloat16"]
    config = load_config("quickstart", given)
    places = places_of(config)
    users = make_users(config.user, places, Compute.of(config)).same
    assert isinstance(users, SampledUserFactory) and isinstance(users.sampler, TorchEngine)
    assert users.sampler.max_slots == 3 and users.sampler._cached.weights.dtype == torch.bfloat16
    alone = sampled_users(config.user)
    assert isinstance(alone.sampler, TorchEngine) and alone.sampler._cached.weights.dtype == torch.float32


def test_a_user_model_of_demonstrations_is_that_of_the_run(muarl: Muarl, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = []
    made = TorchEngine.__init__

    def watched(self: TorchEngine, *given: Any, **named: Any) -> None:
        slots.append(named["max_slots"])
        made(self, *given, **named)

    monkeypatch.setattr(TorchEngine, "__init__", watched)
    small = ("rollout.concurrency=3", "sft.demonstrations=4", "sft.steps=1", "sft.batch=2")
    result = muarl("sft", "--name", "cold", "user.kind=sampled", "user.checkpoint=base", *small)
    assert result.exit_code == 0, result.output
    assert slots == [3]


def test_what_is_measured_is_not_trained(muarl: Muarl) -> None:
    result = muarl("sft-user", "--measure", "runs/who", "--checkpoint", "base")
    assert result.exit_code == 2
    assert "--checkpoint" in result.stderr


def counts(episodes: int, kept: int, **errors: int) -> dict[str, Any]:
    return {
        "episodes": episodes, "failed": 0, "goal_kept": kept, "without_errors": kept, "errors": errors,
        "never_stops": 0, "user_messages": 4 * episodes, "words": 12 * episodes, "sampled_again": episodes,
        "unmended": 0,
        "cpu_seconds": 2.0 * episodes,
    }  # fmt: skip


def test_seeds_are_pooled_by_conversations() -> None:
    found = pooled([counts(30, 30), counts(10, 8, contradicts=2)])
    assert found["episodes"] == 40 and found["goal_kept"] == 38 / 40
    assert found["goal_kept_interval"] == list(wilson(38, 40))
    assert found["errors"] == {"contradicts": 2 / 40} and list(found["error_intervals"]) == ["contradicts"]
    assert (found["user_messages"], found["words"], found["sampled_again"], found["cpu_seconds"]) == (4, 3, 0.25, 2.0)
    assert "| goal kept | 95.0% |" in report({"user model": found}, {0: counts(30, 30), 1: counts(10, 8)})


def test_a_user_model_must_be_named(muarl: Muarl) -> None:
    result = muarl("train", "user.kind=sampled")
    assert result.exit_code == 2
    assert "checkpoint" in result.stderr


def test_episodes_that_do_not_tell_their_scenario_cannot_teach_a_user(muarl: Muarl, tmp_path: Path) -> None:
    write_episodes(tmp_path / "e.jsonl", [episode(*TALK)])
    result = muarl("sft-user", f"sft.demonstrations_file={tmp_path / 'e.jsonl'}")
    assert result.exit_code == 2
    assert "user_scenario" in result.stderr.replace("\n", " ")
