"""Who may ask, how much, how long; and how the server ends."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from loop_kit import small_tokenizer
from muarl.chat_formats.guarded import GuardedTokenizer
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl_tools.serve_model.http import ChatServer
from support.chat_server import TOKEN, TellingSampler, asked, client, serving
from support.waiting import until

KEY = {"authorization": f"Bearer {TOKEN}"}


def made(*replies: Any, **how: Any) -> tuple[TellingSampler, Any]:
    telling = {k: how.pop(k) for k in ("step", "pause") if k in how}
    sampler = TellingSampler(Qwen3Format(small_tokenizer()), *(replies or ("Hi",)), **telling)
    return sampler, serving(sampler, small_tokenizer(), **how)


def post(server: ChatServer, **more: Any) -> httpx.Response:
    how: dict[str, Any] = {"headers": KEY, "json": {"model": "m", "messages": asked()}, "timeout": 20, **more}
    return httpx.post(f"{server.address}/chat/completions", **how)


def test_strangers_are_refused() -> None:
    sampler, server = made()
    with server as live:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": TOKEN},
            {"authorization": "Basic eDp5"},
        ):
            answer = post(live, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
            assert TOKEN not in answer.text
        with client(live, "wrong") as api, pytest.raises(openai.AuthenticationError):
            api.chat.completions.create(model="m", messages=asked())
        assert not sampler.seen
        assert post(live).status_code == 200
        # What tells nothing needs no token on loopback: some harnesses wait for it without theirs.
        root = live.address.removesuffix("/v1")
        assert httpx.get(f"{root}/health").json() == {"status": "ok"}
        assert httpx.get(f"{root}/v1/models").status_code == 200
        assert httpx.get(f"{root}/v1/models/m").status_code == 401


def test_a_run_may_be_called_by_its_own_name_alone() -> None:
    _, server = made("Hi", "Hi", name="runs/mine")
    with server as live:
        for name, code in (("runs/mine", 200), ("mine", 200), ("ine", 404), ("", 404), ("others/mine", 404)):
            answer = post(live, json={"model": name, "messages": asked()})
            assert answer.status_code == code, (name, answer.text)
        assert "this server has 'runs/mine'" in answer.text
        assert httpx.get(f"{live.address}/models/mine", headers=KEY).json()["id"] == "runs/mine"


def test_beyond_loopback_only_health_is_open() -> None:
    _, server = made(host="0.0.0.0")
    with server as live:
        root = live.address.removesuffix("/v1")
        assert httpx.get(f"{root}/health").status_code == 200
        assert httpx.get(f"{root}/v1/models").status_code == 401
        assert httpx.get(f"{root}/v1/models", headers=KEY).status_code == 200


def test_names_that_are_not_ours_are_refused() -> None:
    _, server = made()
    with server as live:
        odd = (
            f"localhost:{live.port}@evil",
            "me@localhost",
            "[::1]evil",
            "[::1",
            "localhost:80,evil",
            "localhost:99999",
        )
        for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", *odd):
            assert post(live, headers=KEY | {"host": name}).status_code == 421
        for name in (f"localhost:{live.port}", "127.0.0.1", "[::1]:9", f"LOCALHOST:{live.port + 1}"):
            assert post(live, headers=KEY | {"host": name}).status_code == 200
    _, server = made(host="0.0.0.0", names=("models.example",))
    with server as live:
        for name, status in (("evil.example", 421), ("models.example", 200), ("10.0.0.1:80", 200)):
            assert post(live, headers=KEY | {"host": name}).status_code == status


def test_no_other_pages_may_read_the_answers() -> None:
    _, server = made()
    with server as live:
        answer = post(live, headers=KEY | {"origin": "http://evil.example"})
        assert not [h for h in answer.headers if h.startswith("access-control")]
        asked_first = httpx.options(f"{live.address}/chat/completions", headers={"origin": "http://evil.example"})
        assert asked_first.status_code in (401, 405)


def test_large_and_broken_bodies() -> None:
    sampler, server = made(body=10_000)
    with server as live:
        assert post(live, json={"model": "m", "messages": asked("x" * 20_000)}).status_code == 413

        def pieces() -> Any:  # of unknown length
            for _ in range(40):
                yield b" " * 1000

        assert post(live, json=None, content=pieces()).status_code == 413
        broken = post(live, json=None, content=b'{"model"')
        assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")
        assert httpx.get(f"{live.address}/chat/completions", headers=KEY).status_code == 405
        assert httpx.get(f"{live.address}/nothing", headers=KEY).json()["error"]["message"]
        assert not sampler.seen
        assert post(live).status_code == 200


NEST = 5000
USER = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    "more",
    [
        '"x": ' + "[" * NEST + "]" * NEST,
        '"x": ' + "[" * 100_000,
        '"messages": ' + "[" * 900 + "]" * 900,
        '"chat_template_kwargs": ' + '{"a":' * 900 + "1" + "}" * 900,
        '"tools": [{"type": "function", "function": {"name": "f", "parameters": ' + '{"a":' * 900 + "1" + "}" * 902,
        '"seed": ' + "9" * 5000,
        '"seed": 9223372036854775808',
        '"seed": -9223372036854775809',
        '"max_tokens": 100000000000000000000',
        '"max_completion_tokens": 100000000000000000000',
        '"top_k": 100000000000000000000',
        '"temperature": 1' + "0" * 400,
        '"n": 100000000000000000000',
    ],
)
def test_depth_and_numbers_beyond_bounds_are_the_clients_mistake(more: str) -> None:
    sampler, server = made()
    body = json.dumps({"model": "m", "messages": [USER]})[:-1] + f", {more}}}"
    with server as live:
        answer = post(live, json=None, content=body.encode())
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        assert not sampler.seen


@pytest.mark.parametrize("messages", [[{**USER, "content": "ab" * 1_000_000}], [USER, {**USER, "content": "x"}] * 9000])
def test_what_is_much_too_long_never_becomes_tokens(messages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = GuardedTokenizer.encode

    def counted(self: GuardedTokenizer, text: str, add_special_tokens: bool = False) -> Any:
        encoded.append(len(text))
        return encode(self, text, add_special_tokens)

    monkeypatch.setattr(GuardedTokenizer, "encode", counted)
    sampler, server = made(body=16 << 20)
    with server as live:
        answer = post(live, json={"model": "m", "messages": messages})
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "context_length_exceeded"
        assert "maximum context length" in answer.text and not sampler.seen
        assert sum(encoded) < 100_000, "of millions of characters"


def test_a_head_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.basics.web.server.HEAD_SECONDS", 0.3)
    _, server = made()
    with server as live:
        with socket.create_connection(("127.0.0.1", live.port), timeout=10) as silent:
            with socket.create_connection(("127.0.0.1", live.port), timeout=10) as slow:
                slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n")
                assert slow.recv(1000) == b""
            assert silent.recv(1000) == b""
        assert post(live).status_code == 200


def test_a_body_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.basics.web.guard.BODY_SECONDS", 0.3)
    _, server = made()
    with server as live, socket.create_connection(("127.0.0.1", live.port), timeout=10) as slow:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        slow.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in slow.recv(1000)


def test_a_full_queue_is_told_to_come_back() -> None:
    sampler, server = made("word " * 30, pause=0.01, most=3)
    with server as live, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(live), range(8)))
        codes = [a.status_code for a in answers]
        assert set(codes) == {200, 429}
        assert codes.count(200) >= 3
        assert sampler.most <= 3
        late = next(a for a in answers if a.status_code == 429)
        assert int(late.headers["retry-after"]) >= 1
        assert late.json()["error"]["code"] == "rate_limit_exceeded"
        assert post(live, json={"model": "m", "messages": asked(), "n": 4}).status_code == 429
        assert live.service.engine.under_way == 0


@pytest.mark.parametrize("stream", [False, True])
def test_who_goes_away_frees_the_slot(stream: bool) -> None:
    sampler, server = made("word " * 400, pause=0.01)
    with server as live:
        body = {"model": "m", "messages": asked(), "stream": stream}
        if stream:
            with httpx.stream("POST", f"{live.address}/chat/completions", json=body, headers=KEY) as answer:
                next(answer.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                post(live, json=body, timeout=0.5)
        until(lambda: sampler.cancelled == 1)
        until(lambda: live.service.engine.under_way == 0)
        assert sampler.running == 0
        sampler.replies = ("Hi",)
        assert post(live).status_code == 200  # and nothing of it is left behind
        assert len(live.service.served.memory) == 1


def test_the_end_waits_for_what_is_under_way() -> None:
    sampler, server = made("word " * 40, pause=0.02, grace=20)
    with server as live, ThreadPoolExecutor(2) as pool:
        whole = pool.submit(post, live)
        streamed = pool.submit(post, live, json={"model": "m", "messages": asked(), "stream": True})
        until(lambda: sampler.running == 2)
        live.stop()
        until(lambda: live.service.engine.stopping)
        assert whole.result().status_code == 200
        assert streamed.result().text.endswith("data: [DONE]\n\n")
    assert sampler.cancelled == 0


def test_the_end_does_not_wait_for_ever() -> None:
    sampler, server = made("word " * 4000, pause=0.02, grace=0.3)
    with server as live, ThreadPoolExecutor(2) as pool:
        whole = pool.submit(post, live)
        streamed = pool.submit(post, live, json={"model": "m", "messages": asked(), "stream": True})
        until(lambda: sampler.running == 2)
        live.stop()
        assert whole.result().status_code == 503
        assert whole.result().json()["error"]["code"] == "shutting_down"
        said = [json.loads(e.removeprefix("data: ")) for e in streamed.result().text.split("\n\n") if e]
        assert said[-1]["error"]["code"] == "shutting_down"
    assert sampler.cancelled == 2
    assert not [t for t in threading.enumerate() if t.name in ("sampler", "muarl serve")]
