"""TRL's environment_factory: conversations by methods are the same as natively, and failures count for nothing."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.extras import is_installed
from muarl.basics.seeds import derive_seed
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message
from support.scripted_replies import Outcome
from support.trainers import AS_NATIVELY, GENERATED, BrokenUsers, Told, as_if_installed, native_outcome, sayable

with as_if_installed():
    from muarl_integrations.blocking import OVER
    from muarl_integrations.trl import LedByTools, UserAsTool


def say(environment: LedByTools, message: Message) -> str:
    """A reply as TRL's tool loop brings it."""
    if not message.tool_calls:
        return str(environment.talk_to_user(message=message.content))  # type: ignore[attr-defined]
    (call,) = message.tool_calls
    return str(getattr(environment, call.name)(**call.arguments))


def compare(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **played: Any
) -> Counter[float | None]:
    """How often each reward was given, in conversations that were compared with native ones."""
    led = UserAsTool(environment.name, **played)()
    rewards: Counter[float | None] = Counter()
    for number, task in enumerate(tasks, 1):
        native = native_outcome(environment, task, replies, derive_seed(0, 0, number), **played)
        assert task.origin is not None
        shown = [led.reset(task=str(task.origin.address))]
        left = list(replies[task.id])
        while led.result is None:
            shown.append(say(led, left.pop(0) if left else Message("assistant", "Anything else?")))
        assert led.result.episode is not None
        assert Outcome.of(led.result.episode) == native
        void = native.stop == "infrastructure"  # as TAU2 has it where the policy is to blame
        assert led.get_reward() == (0.0 if void else native.reward)
        heard = [text for role, text, _, _, whose in native.said if role == "tool" and whose == "assistant"]
        assert all(any(text in answer for answer in shown) for text in heard)
        rewards[native.reward] += 1
    return rewards


@AS_NATIVELY
def test_methods_give_the_same_conversations_as_natively(told: Told) -> None:
    if told.many and not is_installed("trl"):
        pytest.skip("TRL is not installed, and many conversations take minutes")
    told.check(compare(told.environment, told.tasks, sayable(told.replies), **told.means))


@pytest.mark.parametrize("name", GENERATED)
def test_transformers_reads_the_schemas_of_the_tools(name: str) -> None:
    get_json_schema = pytest.importorskip("transformers.utils").get_json_schema
    place = find(name).place()
    led = UserAsTool(name)()
    for spec in place.tools(place.example_task("train")):
        read = get_json_schema(getattr(led, spec.name))["function"]
        assert read["description"] == spec.description
        assert read["parameters"].get("required", []) == list(spec.parameters.get("required", ()))
        assert list(read["parameters"]["properties"]) == list(spec.parameters["properties"])
        for argument, given in spec.parameters["properties"].items():
            got = read["parameters"]["properties"][argument]
            assert " ".join(given["description"].split()) in got["description"]
            assert got["type"] == given["type"]
            assert "$ref" not in str(given) or "$defs" in got["description"]


def test_every_rollout_has_a_customer_of_its_own_and_the_same_again_in_another_run() -> None:
    factory = UserAsTool("retail-generated")
    row = factory.rows("train", 1)[0]
    first, second = factory(), factory()
    again = UserAsTool("retail-generated")()
    said = [first.reset(**row), second.reset(**row), first.reset(**row)]
    assert len(set(said)) > 1
    assert again.reset(**row) == said[0]


def test_the_tools_are_methods_that_anybody_can_list() -> None:
    led = UserAsTool("retail-generated", user_tool="say")()
    methods = {n for n, _ in inspect.getmembers(type(led), inspect.isfunction) if not n.startswith("_")}
    assert methods - {"reset", "get_reward"} == {*type(led).offered, "say"}
    assert type(led).__name__ == "RetailGenerated"


def test_a_policy_that_stops_early_gets_nothing_and_what_it_says_later_is_not_heard() -> None:
    factory = UserAsTool("retail-generated")
    led = factory()
    led.reset(**factory.rows("train", 1)[0])
    assert led.get_reward() == 0.0 and led.get_reward() == 0.0
    assert led.result is not None and led.result.stop == "turn_length"
    assert say(led, Message("assistant", "Hello?")) == OVER


def test_wrong_arguments_are_answered_by_the_world() -> None:
    factory = UserAsTool("retail-generated")
    led: Any = factory()
    led.reset(**factory.rows("train", 1)[0])
    assert led.get_order_details(order="1", self=2).startswith("Error")
    assert led.talk_to_user(text="Hi").startswith("Error: give one argument")


@pytest.mark.parametrize("says", [0, 1])
def test_a_failure_is_no_reward(says: int, caplog: pytest.LogCaptureFixture) -> None:
    factory = UserAsTool("retail-generated", users=BrokenUsers(says))
    row = factory.rows("train", 1)[0]
    led: Any = factory()
    assert led.reset(**row) == ("Please help me." if says else "")
    assert OVER in led.talk_to_user(message="What is it?")
    assert led.get_reward() is None
    assert [m.endswith("has no reward: user: no answer") for m in caplog.messages] == [True]
    raising = UserAsTool("retail-generated", users=BrokenUsers(says), raise_failures=True)()
    raising.reset(**row)
    say(raising, Message("assistant", "What is it?"))
    with pytest.raises(InfrastructureError, match="no answer"):
        raising.get_reward()


def test_a_customer_who_is_away_at_the_beginning_is_asked_again() -> None:
    users = BrokenUsers(retryable=True)
    factory = UserAsTool("retail-generated", users=users, retries=2)
    factory().reset(**factory.rows("train", 1)[0])
    assert users.made == 3


def test_what_cannot_be_played_is_refused() -> None:
    led = UserAsTool("retail-generated")()
    with pytest.raises(ConfigError, match="no column 'task'"):
        led.reset(prompt=[])
    with pytest.raises(ConfigError, match="no address of a task"):
        led.reset(task="nonsense")
    with pytest.raises(ConfigError, match="has a tool get_user_details"):
        UserAsTool("retail-generated", user_tool="get_user_details")()


def test_a_factory_can_be_sent_to_another_process() -> None:
    factory = pickle.loads(pickle.dumps(UserAsTool("retail-generated", seed=3)))
    assert factory == UserAsTool("retail-generated", seed=3)
    assert factory().reset(**factory.rows("train", 1)[0])


def test_trl_trains_with_it(tmp_path: Any) -> None:
    """Two prompts of two rollouts; in one group a customer is away, whose rollout TRL leaves out."""
    datasets = pytest.importorskip("datasets", reason="TRL and datasets are not installed")
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from support.trl_runs import settings, tokenizer_and_model

    factory = UserAsTool("retail-generated", users=_SometimesAway())
    seen: list[list[float | None]] = []

    def watching(environments: Any, **_: Any) -> list[float]:
        seen.append([each.get_reward() for each in environments])
        return [0.0 if each.result.failure is None else float("nan") for each in environments]

    tokenizer, model = tokenizer_and_model()
    trainer = trl.GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=datasets.Dataset.from_list(factory.rows("train", 2)),
        environment_factory=factory,
        reward_funcs=watching,
        args=settings(tmp_path, max_completion_length=24, max_tool_calling_iterations=2),
    )
    trainer.train()
    (entry,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert entry["rewards/RetailGenerated/mean"] == 0.0  # NaN if the failed one counted for itself alone
    assert seen == [[None, 0.0, 0.0, 0.0]]


class _SometimesAway(BrokenUsers):
    """The first conversation's customer is away, the others' are there."""

    def __call__(self, task: Any, *, seed: int) -> Any:
        self.says = 0 if not self.made else 30
        return super().__call__(task, seed=seed)
