"""verl's agent loop: its own builder of tokens, parser and output, with a server that says what is scripted."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.extras import is_installed
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.environments.results import PlayResult
from muarl.types.chat import Message
from muarl.users.base import UserTurn
from muarl_integrations.conversations import Conversations
from muarl_integrations.spoken import read_hermes
from support.qwen_text import as_text, qwen_tokenizer
from support.scripted_replies import Outcome, Replies, natively, written
from support.trainers import AS_NATIVELY, Told

if not is_installed("verl"):
    pytest.skip("verl is not installed: pip install 'muarl[verl]'", allow_module_level=True)

from omegaconf import OmegaConf
from verl.experimental.agent_loop import agent_loop as own
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from muarl_integrations.verl import MuarlAgentLoop, rows


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return qwen_tokenizer()


class Server:
    """verl's client of its servers: says the texts, one after another, in each conversation."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], *, cut: int | None = None, logprobs: bool = True) -> None:
        self.tokenizer, self.texts, self.cut, self.logprobs = tokenizer, texts, cut, logprobs
        self.asked: list[tuple[str, list[int], dict[str, Any]]] = []
        self.said: list[list[int]] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], priority: int = 0
    ) -> TokenOutput:
        number = sum(request == request_id for request, *_ in self.asked)
        self.asked.append((request_id, list(prompt_ids), sampling_params))
        text = self.texts[number] if number < len(self.texts) else "Anything else?"
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        ids = ids[: min(self.cut or len(ids), sampling_params["max_tokens"])]
        self.said.append(ids)
        return TokenOutput(
            token_ids=ids,
            log_probs=[-0.25] * len(ids) if self.logprobs else None,
            stop_reason="completed",
            num_preempted=1,
            extra_fields={"min_global_steps": 4 + number, "max_global_steps": 4 + number},
        )


@dataclass(frozen=True)
class Recording(Conversations):
    """Keeps the results; ``others`` take the place of its users, or of its judge."""

    others: Mapping[str, Any] = field(default_factory=dict)
    results: list[PlayResult] = field(default_factory=list)

    def counted(self, result: PlayResult) -> PlayResult:
        self.results.append(super().counted(result))
        return self.results[-1]

    @asynccontextmanager
    async def _means(self, row: Mapping[str, Any]) -> Any:
        async with super()._means(row) as means:
            yield {**means, **self.others}


def config(**rollout: Any) -> Any:
    defaults = {"prompt_length": 60_000, "response_length": 100_000, "multi_turn": {"format": "hermes"}}
    return OmegaConf.create({"actor_rollout_ref": {"rollout": {**defaults, **rollout}}, "data": {}})


def loop(
    tokenizer: Any,
    server: Server,
    users: Any = None,
    *,
    judge: Any = None,
    rollout: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    whole = config(**(rollout or {}))
    made = MuarlAgentLoop(
        trainer_config=own.DictConfigWrap(whole),
        server_manager=server,
        tokenizer=tokenizer,
        processor=None,
        dataset_cls=RLHFDataset,
        data_config=own.DictConfigWrap(whole.data),
        hf_model_type="qwen3",
        tools=own.ToolListWrap([]),
        **more,
    )
    others = {"users": users, "judge": judge}
    made._conversations = Recording(others={name: one for name, one in others.items() if one is not None})
    return made


def row(task: Task, **more: Any) -> dict[str, Any]:
    (made,) = rows([task], seed=3)
    return {**made, "raw_prompt": made["prompt"], "uid": "u", **more}


async def played(
    tokenizer: Any,
    environment: Environment,
    tasks: Sequence[Task],
    said: Mapping[str, Sequence[Message]],
    users: Any = None,
    judge: Any = None,
) -> Counter[float | None]:
    """Each task by the loop and natively, with the same words of the policy; the rewards."""
    texts = {t.id: [as_text(m) for m in said[t.id]] for t in tasks}
    spoken = {name: [read_hermes(text, n) for n, text in enumerate(each)] for name, each in texts.items()}
    native = await asyncio.to_thread(natively, environment, tasks, Replies(spoken), 3, users, judge)
    for task in tasks:
        server = Server(tokenizer, texts[task.id])
        made = loop(tokenizer, server, users, judge=judge, retries=0)
        outcome = Outcome.of(native[task.id])
        if outcome.stop == "infrastructure":
            with pytest.raises(InfrastructureError):
                await made.run({"temperature": 1.0}, **row(task))
        else:
            output = await made.run({"temperature": 1.0}, **row(task))
            assert output.reward_score == outcome.reward
            assert output.extra_fields["muarl"]["stop"] == outcome.stop
            assert output.extra_fields["muarl"]["parts"] == outcome.parts
            scores = output.extra_fields["turn_scores"]  # what the state was worth after each message
            assert scores[-1:] in ([output.reward_score], []) and all(0 <= score <= 1 for score in scores)
            exact(tokenizer, server, output)
        episode = made._conversations.results[-1].episode
        assert Outcome.of(episode) == outcome
    return Counter(Outcome.of(episode).reward for episode in native.values())


def exact(tokenizer: Any, server: Server, output: Any) -> None:
    """The tokens are those that the server saw and said; only the latter are trained on."""
    whole = output.prompt_ids + output.response_ids
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    assert output.prompt_ids == server.asked[0][1]
    for (_, seen, _), said in zip(server.asked, server.said, strict=True):
        assert whole[: len(seen) + len(said)] == seen + said
    trained = [token for token, mask in zip(output.response_ids, output.response_mask, strict=True) if mask]
    assert trained == list(itertools.chain(*server.said))
    assert set(zip(output.response_mask, output.response_logprobs, strict=True)) <= {(1, -0.25), (0, 0.0)}
    assert output.response_mask[-1] == 1, "the customer's last words are nobody's context"


@AS_NATIVELY
async def test_the_same_words_give_the_same_as_natively(tokenizer: Any, told: Told) -> None:
    told.check(await played(tokenizer, told.environment, told.tasks, told.replies, **told.means))


async def test_the_tokens_are_those_of_the_template(tokenizer: Any) -> None:
    task = find("retail-generated").task("test", 1)
    said = await asyncio.to_thread(written, find("retail-generated"), [task])
    server = Server(tokenizer, [as_text(m) for m in said[task.id]], logprobs=False)
    made = loop(tokenizer, server)
    output = await made.run({}, **row(task))
    result = made._conversations.results[-1]
    messages = [{**m, "content": m["content"] or "", "tool_calls": _objects(m)} for m in result.messages]
    whole = tokenizer.apply_chat_template(messages, tools=result.tools, tokenize=False)
    known = tokenizer.decode(tokenizer.encode(whole))  # its small vocabulary lacks some characters
    text = tokenizer.decode(output.prompt_ids + output.response_ids)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(known, text, strict=False)))
    assert known[:same] == text, (known[same - 60 : same + 60], text[same - 60 : same + 60])
    assert output.response_logprobs is None
    assert output.num_turns == len(messages) - 2, "all but the system prompt and the customer's last words"
    assert output.metrics.num_preempted == len(server.said) and output.metrics.tool_calls > 0
    assert output.extra_fields["min_global_steps"] == 4
    assert output.extra_fields["max_global_steps"] == 3 + len(server.said)


def _objects(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [{"function": {"name": f["name"], "arguments": json.loads(f["arguments"])}} for f in calls]


async def test_what_is_cut_or_finds_no_room_ends_the_conversation_with_nothing(tokenizer: Any) -> None:
    task = find("retail-generated").task("test", 1)
    made = loop(tokenizer, Server(tokenizer, ["Hello, how are you?"] * 9), max_tokens=3)
    output = await made.run({}, **row(task))
    assert (output.reward_score, output.extra_fields["muarl"]["stop"]) == (0.0, "turn_length")
    assert output.response_mask == [1, 1, 1]
    room = len(tokenizer.encode("Hello, how are you?")) + 4
    made = loop(tokenizer, server := Server(tokenizer, ["Hello, how are you?"] * 9), rollout={"response_length": room})
    output = await made.run({}, **row(task))
    assert (output.reward_score, output.extra_fields["muarl"]["stop"]) == (0.0, "context_full")
    exact(tokenizer, server, output)
    with pytest.raises(ConfigError, match="prompt_length=50 tokens; raise it"):
        await loop(tokenizer, server, rollout={"prompt_length": 50}).run({}, **row(task))


class Failing:
    """Users whose endpoint fails in the first conversations; the others say one line."""

    name = "failing"

    def __init__(self, times: int, retryable: bool = True) -> None:
        self.left, self.retryable = times, retryable

    def __call__(self, task: Task, *, seed: int) -> Failing:
        return self

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        if len(conversation) < 2:
            return UserTurn(Message("user", "Hello."))
        self.left -= 1
        if self.left >= 0:
            raise InfrastructureError("no answer", boundary="user", retryable=self.retryable)
        return UserTurn(Message("user", "###STOP###"))


async def test_a_failure_is_tried_again_and_then_raised_or_dropped(tokenizer: Any) -> None:
    task = find("retail-generated").task("test", 1)
    server = Server(tokenizer, ["Hello."] * 9)
    output = await loop(tokenizer, server, Failing(2)).run({}, **row(task))
    assert output.reward_score == 0.0 and len({request for request, *_ in server.asked}) == 3
    exact(tokenizer, SimpleNamespace(asked=server.asked[-1:], said=server.said[-1:]), output)
    with pytest.raises(InfrastructureError, match="no answer"):
        await loop(tokenizer, server, Failing(3)).run({}, **row(task))
    assert await loop(tokenizer, server, Failing(3), on_failure="drop").run({}, **row(task)) == []
    with pytest.raises(InfrastructureError):
        await loop(tokenizer, server, Failing(1, retryable=False)).run({}, **row(task))


def test_the_loop_is_registered_and_made_by_hydra(tokenizer: Any) -> None:
    import hydra

    assert own._agent_loop_registry["muarl"] == {"_target_": "muarl_integrations.verl.MuarlAgentLoop"}
    whole = config()
    made = hydra.utils.instantiate(
        {**own._agent_loop_registry["muarl"], "name": "muarl", "user": "agenda", "retries": 1, "on_failure": "drop"},
        trainer_config=own.DictConfigWrap(whole),
        server_manager=None,
        tokenizer=tokenizer,
        processor=None,
        dataset_cls=RLHFDataset,
        data_config=own.DictConfigWrap(whole.data),
        hf_model_type="qwen3",
        tools=own.ToolListWrap([]),
    )
    assert isinstance(made, MuarlAgentLoop)
    with pytest.raises(ConfigError, match="on_failure: must be raise or drop"):
        loop(tokenizer, Server(tokenizer, []), on_failure="zero")
