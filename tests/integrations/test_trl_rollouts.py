"""TRL's rollout_func: muarl's conversations with TRL's tokens, id for id, and failures that count for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

pytest.importorskip("renderers", reason="muarl[train] is not installed")

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.extras import is_installed
from muarl.basics.seeds import derive_seed
from muarl.chat_formats.choice import chat_format
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.types.chat import Message
from support.scripted_replies import Outcome
from support.trainers import AS_NATIVELY, BrokenUsers, Told, as_if_installed, native_outcome, sayable

with as_if_installed():
    from muarl_integrations.trl_rollouts import UserTurns, WaitingTurns, episode_reward


class Scripted:
    """A trainer that generates the replies of each conversation, as ``listening`` tells it which wait."""

    waiting: ClassVar[list[int]] = []

    def __init__(self, replies: Sequence[Sequence[Message]], *, length: int = 10_000, logprobs: bool = False) -> None:
        from transformers import PreTrainedTokenizerFast

        self.processing_class = PreTrainedTokenizerFast.from_pretrained(str(checkpoint_folder("base")))
        self.args = SimpleNamespace(max_completion_length=length, temperature=1.0)
        self.model = SimpleNamespace(
            config=SimpleNamespace(get_text_config=lambda: SimpleNamespace(max_position_embeddings=100_000))
        )
        self.chat = chat_format(self.processing_class)
        self.left = [list(each) for each in replies]
        self.contexts: list[list[int]] = [[] for _ in replies]
        self.batches: list[int] = []
        self.logprobs = logprobs

    def _generate_single_turn(self, prompts: list[list[int]], images: Any, fields: Any, count: int) -> Any:
        assert images is None and fields == {} and count == 1
        self.batches.append(len(prompts))
        ids = []
        for number, prompt in zip(self.waiting, prompts, strict=True):
            left, context = self.left[number], self.contexts[number]
            assert prompt[: len(context)] == context, "the ids of another conversation"
            ids.append(self.chat.reply_ids(left.pop(0) if left else Message("assistant", "Anything else?")))
            self.contexts[number] = [*prompt, *ids[-1]]
        return ids, [[-0.5] * len(row) for row in ids] if self.logprobs else None


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted trainers are told which conversations they generate for, by the numbers of their prompts."""
    answer = WaitingTurns._answer

    def answered(turns: WaitingTurns, waiting: Any, generate: Any) -> None:
        Scripted.waiting = [int(asked.session.partition("/")[0]) for asked in waiting]
        answer(turns, waiting, generate)

    monkeypatch.setattr(WaitingTurns, "_answer", answered)


def addresses(name: str, count: int) -> list[str]:
    return [f"{name}:test:{number}" for number in range(count)]


def compare(
    environment: Environment, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **played: Any
) -> Counter[float | None]:
    """How often each reward was given, in conversations that were played in one batch and compared with native ones."""
    trainer, turns = Scripted([replies[task.id] for task in tasks]), UserTurns(patience=60, **played)
    columns = turns([str(task.origin.address) for task in tasks if task.origin is not None], trainer)
    said = _parsed(trainer, replies)
    for number, (task, episode) in enumerate(zip(tasks, turns.episodes, strict=True)):
        native = native_outcome(environment, task, said, derive_seed(0, 1, number), **played)
        assert Outcome.of(episode) == native
        void = native.stop == "infrastructure"  # as TAU2 has it where the policy is to blame
        assert columns["muarl_reward"][number] == (0.0 if void else native.reward)
        assert columns["prompt_ids"][number] + columns["completion_ids"][number] == trainer.contexts[number]
    assert trainer.batches[0] == len(tasks)
    return Counter(columns["muarl_reward"])


def _parsed(trainer: Scripted, replies: Mapping[str, Sequence[Message]]) -> dict[str, list[Message]]:
    """The replies as they are read out of their ids."""
    chat = trainer.chat
    return {name: [chat.parse(chat.reply_ids(m)) for m in each] for name, each in replies.items()}


@AS_NATIVELY
def test_ids_give_the_same_conversations_as_natively(told: Told) -> None:
    if told.many and not is_installed("trl"):
        pytest.skip("TRL is not installed, and many conversations take minutes")
    told.check(compare(told.environment, told.tasks, sayable(told.replies), **told.means))


def test_what_was_sampled_is_learned_from_and_nothing_else() -> None:
    hello = Message("assistant", "What is your order?")
    trainer, turns = Scripted([[hello]], logprobs=True), UserTurns()
    columns = turns(addresses("retail-generated", 1), trainer)
    ids, mask = columns["completion_ids"][0], columns["env_mask"][0]
    said = trainer.chat.reply_ids(hello)
    assert ids[: len(said)] == said and mask[: len(said) + 1] == [*[1] * len(said), 0]
    assert columns["logprobs"][0] == [-0.5 if sampled else 0.0 for sampled in mask]
    assert len(mask) == len(ids) and sum(mask) == turns.episodes[0].tokens.sampled_count  # type: ignore[union-attr]


def test_a_message_is_cut_at_the_length_that_trl_has() -> None:
    trainer, turns = Scripted([[Message("assistant", "What is your order? " * 9)]], length=8), UserTurns()
    columns = turns(addresses("retail-generated", 1), trainer)
    assert turns.episodes[0].stop == "turn_length" and columns["muarl_reward"] == [0.0]
    assert sum(columns["env_mask"][0]) == 8


def test_rollouts_of_a_task_have_customers_of_their_own_and_each_batch_has_others() -> None:
    turns, same = UserTurns(), addresses("retail-generated", 1) * 4
    first = [turns(same, Scripted([[], [], [], []]))["prompt_ids"] for _ in range(2)]
    assert len({tuple(ids) for ids in first[0]}) > 1 and first[0] != first[1]
    assert UserTurns()(same, Scripted([[], [], [], []]))["prompt_ids"] == first[0]


def test_a_failure_is_no_reward_and_nothing_to_learn_from(caplog: pytest.LogCaptureFixture) -> None:
    trainer = Scripted([[]])
    columns = UserTurns(users=BrokenUsers(), retries=0)(addresses("retail-generated", 1), trainer)
    (said,) = caplog.messages
    assert said.startswith("1 of 1 conversations failed and have no reward. The first: user: ") and "no answer" in said
    assert columns["muarl_reward"] == [None] and columns["env_mask"] == [[0]]
    assert columns["prompt_ids"] == columns["completion_ids"] == [[trainer.processing_class.eos_token_id]]
    told: dict[str, float] = {}
    assert episode_reward([None], **columns, log_metric=told.__setitem__) == [None]
    assert told == {"muarl/failed": 1.0}


def test_trl_is_told_how_often_the_task_was_done_and_why_conversations_ended() -> None:
    stops = ["user_stop", "user_stop", "transfer", "infrastructure", "infrastructure"]
    told: dict[str, float] = {}
    rewards = episode_reward([""] * 5, [1.0, 0.5, 0.0, 0.0, None], stops, told.__setitem__, prompts=[""] * 5)
    assert rewards == [1.0, 0.5, 0.0, 0.0, None]
    assert told.pop("muarl/failed") == pytest.approx(0.2)
    assert told.pop("muarl/success") == 0.25  # a benchmark voided one, which counts as 0
    assert told.pop("muarl/stop/user_stop") == 0.5 and told.pop("muarl/stop/transfer") == 0.25
    assert set(told.values()) == {0.0} and "muarl/stop/context_full" in told


def test_a_failure_ends_the_training_where_that_is_asked_for() -> None:
    turns = UserTurns(users=BrokenUsers(), retries=0, raise_failures=True)
    with pytest.raises(InfrastructureError, match="no answer"):
        turns(addresses("retail-generated", 2), Scripted([[], []]))
    assert len(turns.episodes) == 2


def test_what_cannot_be_played_is_refused() -> None:
    for prompt, reason in (("nonsense", "no address of a task"), ([{"role": "user"}], "must be the address")):
        with pytest.raises(ConfigError, match=reason):
            UserTurns()([prompt], Scripted([[]]))  # type: ignore[list-item]


def test_a_trainer_that_fails_ends_the_conversations() -> None:
    trainer = Scripted([[], []])
    trainer._generate_single_turn = None  # type: ignore[assignment]
    with pytest.raises(TypeError):
        UserTurns()(addresses("retail-generated", 2), trainer)


def test_trl_trains_with_it(tmp_path: Any) -> None:
    """The ids that TRL learns from are those of muarl's episodes; a failed conversation moves nothing."""
    datasets = pytest.importorskip("datasets", reason="TRL and datasets are not installed")
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from support.trl_runs import settings, tokenizer_and_model

    learned: list[Any] = []

    class Watched(trl.GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            learned.append(super()._generate_and_score_completions(inputs))
            return learned[-1]

    tokenizer, model = tokenizer_and_model(trl_template=False)
    turns = UserTurns(context=900, users=None)
    trainer = Watched(
        model=model,
        processing_class=tokenizer,
        train_dataset=datasets.Dataset.from_list([{"prompt": a} for a in addresses("retail-generated", 2)]),
        rollout_func=turns,
        reward_funcs=episode_reward,
        args=settings(tmp_path, max_completion_length=48),
    )
    trainer.train()
    (batch,) = learned
    for row, episode in enumerate(turns.episodes):
        trace = episode.tokens
        assert trace is not None
        ids = batch["completion_ids"][row][batch["completion_mask"][row].bool()].tolist()
        assert trace.ids[-len(ids) :] == ids
        assert int((batch["completion_mask"] * batch["tool_mask"])[row].sum()) == trace.sampled_count
    (entry,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert entry["reward"] == sum(e.reward for e in turns.episodes) / 4
    stops = {e.stop.value: sum(o.stop is e.stop for o in turns.episodes) / 4 for e in turns.episodes}
    assert {stop: entry[f"muarl/stop/{stop}"] for stop in stops} == stops and entry["muarl/failed"] == 0
