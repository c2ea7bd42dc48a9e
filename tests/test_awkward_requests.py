"""Requests over HTTP, and texts that become tokens, take time in proportion to their length, whatever stands in them:
a server answers everybody in one event loop. Processor time of client and server together, in one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer

from loop_kit import small_tokenizer
from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder
from muarl.basics.web.addresses import listen
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.environments.registry import find
from muarl.types.chat import Message, ToolCall
from muarl_tools.checks.user.proxy.http import ProxyServer
from muarl_tools.checks.user.proxy.service import GuardingProxy, ProxySettings
from muarl_tools.serve_environments.http import EnvironmentServer
from muarl_tools.serve_environments.service import EnvironmentService, ServedEnvironments
from support.awkward import SHAPES, too_slow
from support.chat_families import CASES, TOOLS, Case, form, modes
from support.chat_server import TOKEN, TellingSampler, serving
from support.fake_openai import Answer, FakeOpenAI
from support.fake_openai import text as completed

LENGTH = 60_000
ODD = (
    *SHAPES,
    "日",
    "🙂",
    "\u0301",
    "\x00",
    "\x1b[2J",
    "\t",
    "\ud800",
    "[[",
    '{"a":',
    "<|im_end|>",
    "<tool_call>\n",
    " a",
)
HELLO = {"role": "user", "content": "Hi"}
NAME = "retail-generated"
pytestmark = pytest.mark.slow

Post = Callable[[str, Any], httpx.Response]
Ask = Callable[[Post, str], object]


@contextmanager
def asking(url: str, token: str) -> Iterator[Post]:
    """Sends JSON, which may hold halves of characters, and refuses answers that blame the server."""
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=600) as client:

        def post(path: str, body: Any) -> httpx.Response:
            answer = client.post(path, content=json.dumps(body).encode())
            assert answer.status_code < 500, (path, answer.text[:300])
            return answer

        yield post


def chat(post: Post, *messages: Any, **more: Any) -> None:
    post("/chat/completions", {"model": "m", "messages": [*messages], **more})


def called(text: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": text}
    return {"role": "assistant", "content": text, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


MODEL: dict[str, Ask] = {
    "chat": lambda post, text: chat(post, {"role": "system", "content": text}, {"role": "user", "content": text}),
    "call": lambda post, text: chat(post, HELLO, called(text), {"role": "tool", "tool_call_id": "c", "content": text}),
    "tools": lambda post, text: chat(
        post,
        HELLO,
        tools=[{"type": "function", "function": {"name": "look", "description": text, "parameters": {"title": text}}}],
    ),
    "responses": lambda post, text: post("/responses", {"model": "m", "instructions": text, "input": text}),
    "completions": lambda post, text: post("/completions", {"model": "m", "prompt": text}),
    "no JSON": lambda post, text: post("/chat/completions", text),
}


@pytest.mark.parametrize("context", [2048, 10_000_000])
@pytest.mark.parametrize("name", MODEL)
def test_requests_of_the_model_server(name: str, context: int) -> None:
    sampler = TellingSampler(Qwen3Format(small_tokenizer()), "Hi")
    with (
        serving(sampler, small_tokenizer(), context=context, body=16 << 20, raw_prompts=True) as live,
        asking(live.address, TOKEN) as post,
    ):
        assert too_slow(lambda text: MODEL[name](post, text), LENGTH, ODD) == []


@pytest.mark.parametrize("written", ["{}", '<tool_call>\n{{"name": "look", "arguments": {{"a": "{}"}}}}\n</tool_call>'])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_a_model_says(written: str, streamed: bool) -> None:
    def say(text: str) -> None:
        sampler = TellingSampler(Qwen3Format(small_tokenizer()), written.format(text), step=1 if streamed else LENGTH)
        with serving(sampler, small_tokenizer(), context=1 << 30, most=1 << 30) as live:
            with asking(live.address, TOKEN) as post:
                chat(post, HELLO, stream=streamed, stop=["no such end"])

    whole = [shape for shape in ODD if shape.isprintable() or shape == "\n"]  # others are none in a JSON text
    assert too_slow(say, LENGTH // 4 if streamed else LENGTH, whole) == []


@contextmanager
def environments() -> Iterator[tuple[Post, list[str], str]]:
    """``env serve``, what a model says that it asks, and that model's address."""
    said = ["Hello."]

    def answer(body: dict[str, Any]) -> Answer:
        return completed(said[0])

    with ExitStack() as stack:
        model = stack.enter_context(FakeOpenAI(answer))
        service = EnvironmentService(ServedEnvironments(environments=[find(NAME)]))
        server = EnvironmentServer(service, listen("127.0.0.1", 0), token=TOKEN, grace=1.0).start()
        stack.enter_context(server)
        yield stack.enter_context(asking(server.where.url, TOKEN)), said, model.url


def step(post: Post, message: Any) -> None:
    begun = post("/sessions", {"split": "train", "index": 1}).json()
    post(f"/sessions/{begun['id']}/step", {"message": message})


def action(post: Post, text: str) -> None:
    begun = post("/environments", {"domain": NAME, "task_id": f"{NAME}:train:1"}).json()
    post(f"/environments/{begun['id']}/step", {"action": text})


ENVIRONMENT: dict[str, Ask] = {
    "text": step,
    "call": lambda post, text: step(post, called(text)),
    "argument": lambda post, text: step(post, called(json.dumps({"order_id": text}))),
    "action": action,
    "called action": lambda post, text: action(post, f"get_order_details({text})"),
    "value of an action": lambda post, text: action(post, f"calculate(expression={text!r})"),
    "task": lambda post, text: post("/sessions", {"task": text}),
    "task of ART": lambda post, text: post("/environments", {"domain": NAME, "task_id": text}),
}


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_requests_of_env_serve(name: str) -> None:
    with environments() as (post, _, _):
        assert too_slow(lambda text: ENVIRONMENT[name](post, text), LENGTH, ODD) == []


def test_conversations_that_env_serve_plays() -> None:
    with environments() as (post, said, url):

        def run(text: str) -> None:
            said[0] = text
            post("/run", {"split": "train", "index": 1, "base_url": url, "model": "m", "limits": {"turns": 2}})

        assert too_slow(run, LENGTH, ODD) == []


@pytest.mark.parametrize("where", ["request", "reply"])
def test_the_proxy_of_simulated_users(where: str) -> None:
    said = ["Yes, please."]
    scenario = {"role": "system", "content": "You are Ann Lee, zip code 53111."}

    def answer(body: dict[str, Any]) -> Answer:
        return completed(said[0])

    def ask(text: str) -> None:
        if where == "reply":
            said[0] = text
            chat(post, scenario, HELLO)
        else:
            chat(post, {"role": "system", "content": text}, *({"role": r, "content": text} for r in ROLES))

    with FakeOpenAI(answer) as upstream:
        proxy = GuardingProxy(ProxySettings(upstream.url, key="k"))
        with ProxyServer(proxy, listen("127.0.0.1", 0), token=TOKEN, grace=1.0).start() as server:
            with asking(server.address, TOKEN) as post:
                assert too_slow(ask, LENGTH, ODD) == []


ROLES = ("user", "assistant", "user")


@pytest.mark.parametrize("name", SHIPPED)
def test_tokens_of_the_shipped_checkpoints(name: str) -> None:
    made = Qwen3Format(Tokenizer.from_file(str(checkpoint_folder(name) / "tokenizer.json")))

    def there_and_back(text: str) -> None:
        ids = made.prompt("", (), [Message("user", text)])
        made.parse(ids)
        made.reply_ids(Message("assistant", text, (ToolCall("call_0", "look", {"order": text}),)))

    assert too_slow(there_and_back, 200_000 if name == "base" else LENGTH, ODD) == []


FAMILIES = list({case.family: case for case in CASES}.values())


@pytest.mark.parametrize("case", FAMILIES, ids=str)
def test_tokens_of_chat_formats(case: Case) -> None:
    made = form(case, modes(case)[0])
    mark = "W1234"
    reply = made.text(made.reply_ids(Message("assistant", "", (ToolCall("call_0", "look_up", {"order": mark}),))))
    before, _, behind = reply.partition(mark)

    def there_and_back(text: str) -> None:
        made.prompt(text, TOOLS, [Message("user", text)])
        made.reply_ids(Message("assistant", text, (ToolCall("call_0", "look_up", {"order": text}),)))
        whole = text.encode("utf-8", "replace").decode()
        for said in (text, f"{before}{whole}{behind}", f"{before}{whole}"):
            # As a model writes it: its control tokens count as such.
            ids = made.tokenizer.encode(said) if said is text else made.tokenizer._tokenizer.encode(said).ids
            made.parse(ids, tools=TOOLS)

    assert too_slow(there_and_back, LENGTH // 3, ODD) == []
