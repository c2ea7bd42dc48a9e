"""tinker-cookbook's own rollouts over muarl's message environments, with a policy that samples what is scripted."""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tinker_cookbook", reason="tinker-cookbook is not installed: pip install 'muarl[tinker]'")

from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.exceptions import AllTrajectoriesFailedError
from tinker_cookbook.rl.rollout_strategy import FailFast, MinViableGroup, RetryOnFailure
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.tokenizer_utils import register_tokenizer, unregister_tokenizer
from transformers import PreTrainedTokenizerFast

import muarl
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message
from muarl_integrations import tinker_cookbook as adapter
from muarl_integrations.tinker_cookbook import MuarlDatasetBuilder, MuarlGroupBuilder
from support.scripted_replies import Outcome, Replies, natively
from support.served import Users
from support.texts import WithUsers, as_text, read_back
from support.trainers import AS_NATIVELY, Told

BASE = Path(muarl.__file__).parent / "assets" / "base" / "tokenizer.json"
MODEL = "muarl/tests"


@pytest.fixture(autouse=True)
def tokenizer() -> Any:
    made = PreTrainedTokenizerFast(tokenizer_file=str(BASE), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    register_tokenizer(MODEL, lambda: made)
    yield made
    unregister_tokenizer(MODEL)


class Policy:
    """Samples the texts, by how often the agent has spoken; ``cut``: the reply is cut, and has no end."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], *, cut: bool = False) -> None:
        self.tokenizer, self.texts, self.cut = tokenizer, texts, cut
        self.prompts: list[str] = []

    async def __call__(self, model_input: Any, stop: Any, **_: Any) -> TokensWithLogprobs:
        prompt = self.tokenizer.decode(model_input.to_ints())
        self.prompts.append(prompt)
        turns = [p.count("<|im_start|>assistant") for p in (self.prompts[0], prompt)]
        number = turns[1] - turns[0]  # a benchmark's agent has greeted before
        text = self.texts[number] if number < len(self.texts) else "Anything else?"
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        ids += [] if self.cut else [self.tokenizer.convert_tokens_to_ids("<|im_end|>")]
        return TokensWithLogprobs(
            tokens=ids, maybe_logprobs=[-0.5] * len(ids), stop_reason="length" if self.cut else "stop"
        )


def builder(task: Task, conversations: Any = None, group_size: int = 1, **more: Any) -> MuarlGroupBuilder:
    row = {"task": str(task.origin.address), "seed": 3}
    return MuarlGroupBuilder(row, group_size, MODEL, "qwen3_instruct", conversations, **more)


async def compare(
    tokenizer: Any,
    environment: Environment,
    tasks: Sequence[Task],
    replies: Mapping[str, Sequence[Message]],
    **more: Any,
) -> Counter[float | None]:
    """The rewards of the tasks, whose conversations were compared with native ones."""
    native = await asyncio.to_thread(natively, environment, tasks, Replies(read_back(replies)), 3, **more)
    led = WithUsers(users=more.get("users"), own_judge=more.get("judge"))
    for task in tasks:
        outcome, group = Outcome.of(native[task.id]), builder(task, led)
        policy = Policy(tokenizer, [as_text(m) for m in replies[task.id]])
        made: list[Any] = []
        make = adapter.MuarlMessageEnv

        def kept(*args: Any, make: Any = make, made: list[Any] = made) -> Any:
            made.append(make(*args))
            return made[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adapter, "MuarlMessageEnv", kept)
            rollout = do_group_rollout(group, policy, strategy=FailFast())  # type: ignore[arg-type]
            if outcome.stop == "infrastructure":
                with pytest.raises(InfrastructureError):
                    await rollout
                continue
            found = await rollout
        assert found.get_total_rewards() == [outcome.reward]
        assert Outcome.of(made[0].result.episode) == outcome
        (trajectory,) = found.trajectories_G
        assert trajectory.transitions[-1].metrics.items() >= dict(outcome.parts).items()
        for text in (m.content for m in native[task.id].messages if m.role == "user" and not m.tool_calls):
            assert text in tokenizer.decode(trajectory.final_ob.to_ints())
    return Counter(Outcome.of(episode).reward for episode in native.values())


@AS_NATIVELY
async def test_the_same_replies_give_the_same_as_natively(told: Told, tokenizer: Any) -> None:
    told.check(await compare(tokenizer, told.environment, told.tasks, told.replies, **told.means))


async def test_recipes_load_the_data_set() -> None:
    made = MuarlDatasetBuilder(
        environment="retail-generated", model_name_for_tokenizer=MODEL, renderer_name="qwen3_instruct",
        batch_size=2, group_size=4, count=5, test_count=3,
    )  # fmt: skip
    train, test = await made()
    assert len(train) == 2 and test is not None and len(test) == 3
    first = train.get_batch(0)
    assert [b.row["task"] for b in first] == ["retail-generated:train:0", "retail-generated:train:1"]
    assert first[0].logging_tags() == ["retail-generated"]
    assert len(await pickle.loads(pickle.dumps(first[0])).make_envs()) == 4
    assert test.get_batch(2)[0].row["task"] == "retail-generated:test:2" and test.get_batch(2)[0].group_size == 1
    with pytest.raises(ConfigError, match="no tasks for the split"):
        await MuarlDatasetBuilder(
            environment="retail-generated", model_name_for_tokenizer=MODEL, batch_size=1, group_size=1, split="dev"
        )()


async def test_failures_are_retried_and_never_rewarded(tokenizer: Any) -> None:
    task = find("retail-generated").task("test", 0)
    wrong = InfrastructureError("the user's server is down", boundary="user")

    class Once(Users):
        made = 0

        def __call__(self, task: Task, *, seed: int) -> Any:
            self.made += 1
            return Users("Hi.", *([wrong] if self.made == 1 else ["Well?"]))(task, seed=seed)

    policy: Any = Policy(tokenizer, ["Hello."])
    group = builder(task, WithUsers(users=Once()), 3)
    found = await do_group_rollout(group, policy, strategy=RetryOnFailure())
    assert len(found.trajectories_G) == 3 and len(found.rollout_errors) == 1
    assert "the user's server is down" in found.rollout_errors[0].error_message
    assert group._made == [], "all are closed"
    never = builder(task, WithUsers(users=Users("Hi.", wrong)), 2)
    with pytest.raises(AllTrajectoriesFailedError):
        await do_group_rollout(never, policy, strategy=MinViableGroup(max_retries=0))


async def test_what_is_cut_has_reward_0_and_is_closed(tokenizer: Any) -> None:
    group = builder(find("retail-generated").task("test", 0))
    policy: Any = Policy(tokenizer, ["Well, I think that"], cut=True)
    found = await do_group_rollout(group, policy, strategy=FailFast())
    assert found.get_total_rewards() == [0.0] and found.trajectories_G[0].stop_reason == "max_tokens"
    assert group._made == []
    long = builder(find("retail-generated").task("test", 0), max_trajectory_tokens=100)
    found = await do_group_rollout(long, Policy(tokenizer, []), strategy=FailFast())  # type: ignore[arg-type]
    assert found.get_total_rewards() == [0.0] and found.trajectories_G[0].stop_reason == "max_tokens"


async def test_what_the_policy_wrote_stays_in_its_prompts(tokenizer: Any) -> None:
    policy = Policy(tokenizer, ['Let me see.\n<tool_call>\n{"name": "x", bad}\n</tool_call>', "Anything else?"])
    await do_group_rollout(builder(find("retail-generated").task("test", 0)), policy, strategy=FailFast())  # type: ignore[arg-type]
    assert '{"name": "x", bad}' in policy.prompts[1] and "could not be read" in policy.prompts[1]
