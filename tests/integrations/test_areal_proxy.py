"""A conversation behind AReaL's own proxy and workflow, with an engine that says what is scripted."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from muarl.basics.extras import is_installed
from muarl.environments.registry import find
from muarl_integrations.areal import MuarlAgent
from muarl_integrations.spoken import read_hermes
from support.fake_openai import FakeOpenAI, status
from support.qwen_text import as_text, qwen_tokenizer
from support.scripted_replies import Outcome, Replies, natively, written

if not is_installed("areal"):
    pytest.skip(
        "areal is not installed: it needs torch below 2.11, and muarl's lock has a later one", allow_module_level=True
    )

from areal.api import ModelRequest, ModelResponse
from areal.experimental.openai import client as areal_client
from areal.experimental.openai.proxy import proxy_rollout_server as proxy
from areal.experimental.openai.proxy.server import DEFAULT_ADMIN_API_KEY
from areal.experimental.openai.proxy.workflow import OpenAIProxyWorkflow
from areal.infra import workflow_context


class Engine:
    """AReaL's inference engine: says the texts, one after another."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.texts, self.seen = tokenizer, [], []  # type: ignore[var-annotated]

    async def agenerate(self, request: ModelRequest) -> ModelResponse:
        text = self.texts[len(self.seen)] if len(self.seen) < len(self.texts) else "Anything else?"
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        self.seen.append([*request.input_ids, *ids])
        return ModelResponse(list(request.input_ids), ids, [-0.25] * len(ids), [1] * len(ids), tokenizer=self.tokenizer)


def parsed(text: str, *_: Any, **__: Any) -> Any:
    """AReaL leaves tool calls to SGLang's or vLLM's parser; here they are Hermes's."""
    message = read_hermes(text, len(text))
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(dict(c.arguments))}}
        for c in message.tool_calls
    ]
    read = [areal_client.ChatCompletionMessageFunctionToolCall.model_validate(call) for call in calls]
    return read or None, message.content or "", "tool_calls" if read else "stop"


@pytest.fixture(scope="module")
def served() -> Iterator[Any]:
    """AReaL's proxy at an address of its own, and its engine."""
    patch = pytest.MonkeyPatch()
    engine = Engine(qwen_tokenizer())
    client = areal_client.ArealOpenAI(
        engine=engine, tokenizer=engine.tokenizer, chat_template_type="concat", api_key="none", base_url="http://none"
    )
    patch.setattr(proxy, "_openai_client", client)
    patch.setattr(proxy, "_admin_api_key", DEFAULT_ADMIN_API_KEY)
    patch.setattr(areal_client, "process_tool_calls", parsed)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(proxy.app, log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield SimpleNamespace(engine=engine, address=f"http://127.0.0.1:{listening.getsockname()[1]}")
    server.should_exit = True
    thread.join(10)
    patch.undo()


async def exported(served: Any, agent: Any, row: Any, texts: Sequence[str]) -> Any:
    """What AReaL trains on of an episode."""
    served.engine.texts, served.engine.seen = list(texts), []
    workflow_context.set(workflow_context.WorkflowContext(task_id=7))
    workflow = OpenAIProxyWorkflow("inline", agent, proxy_addr=served.address, export_style="concat")
    return await workflow.arun_episode(None, row)


async def test_an_episode_is_one_sequence_with_the_reward_that_muarl_gives_natively(served: Any) -> None:
    environment = find("retail-generated")
    tasks = environment.make_tasks("test", 5)
    said = await asyncio.to_thread(written, environment, tasks)
    texts = {t.id: [as_text(m) for m in said[t.id]] for t in tasks}
    spoken = {name: [read_hermes(text, n) for n, text in enumerate(each)] for name, each in texts.items()}
    native = await asyncio.to_thread(natively, environment, tasks, Replies(spoken), 3)
    for task in tasks:
        if any(call.invalid for message in spoken[task.id] for call in message.tool_calls):
            continue  # AReaL's parsers leave them out
        row = {"task": str(task.origin.address), "seed": 3}  # type: ignore[union-attr]
        found = await exported(served, MuarlAgent(options={"max_tokens": 400}), row, texts[task.id])
        (leaf,) = found.values()
        assert leaf.reward == Outcome.of(native[task.id]).reward
        tensors = leaf.to_tensor_dict()
        assert tensors["input_ids"][0].tolist() == served.engine.seen[-1], "every turn continues the tokens before"
        assert int(tensors["loss_mask"].sum()) > len(texts[task.id])


async def test_a_failure_rejects_the_trajectory(served: Any) -> None:
    row = {"task": "retail-generated:test:1"}
    with FakeOpenAI(status(401)) as user, pytest.raises(Exception, match="refuses the API key"):
        await exported(served, MuarlAgent(user=f"endpoint:u@{user.url}"), row, [])
