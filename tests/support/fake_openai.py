"""A local OpenAI-compatible server for tests: scripted answers, faults on demand, a record of what was asked.

    with FakeOpenAI([text("Hello"), status(429, {"Retry-After": "1"}), text("Again")]) as server:
        ... requests to server.url get these answers in turn, the last one from then on

An answer may also be a function of the request's JSON body that returns an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """One HTTP response. ``delay``: seconds before it is sent. ``cut``: the connection is dropped instead; ``half``: in
    the middle of the body."""

    body: bytes
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    half: bool = False


Script = Answer | Callable[[dict[str, Any]], Answer]


@dataclass(frozen=True)
class Asked:
    """One request as the server got it. ``at``: time.monotonic()."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float


def completion(
    content: str | None = None,
    *,
    tool_calls: Sequence[Mapping[str, Any]] = (),
    finish_reason: str | None = None,
    prompt_tokens: int = 10,
    completion_tokens: int = 5,
    delay: float = 0.0,
    name: str = "chatcmpl-1",
    **message: Any,
) -> Answer:
    """A chat completion. ``tool_calls`` in the API's own form (see ``call``); ``name``: its id; ``message``: further
    message fields."""
    said: dict[str, Any] = {"role": "assistant", "content": content, **message}
    if tool_calls:
        said["tool_calls"] = list(tool_calls)
    body = {
        "id": name,
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "message": said,
                "finish_reason": finish_reason or ("tool_calls" if tool_calls else "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
    return Answer(json.dumps(body).encode(), delay=delay)


def text(content: str, **options: Any) -> Answer:
    """A completion that says this."""
    return completion(content, **options)


def call(name: str, arguments: str | Mapping[str, Any], id: str = "call_1") -> dict[str, Any]:  # noqa: A002
    """A tool call as the API sends it; arguments given as a string go out unchanged."""
    sent = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": sent}}


def json_answer(body: Mapping[str, Any]) -> Answer:
    """Any JSON object, such as an answer of an embedding model."""
    return Answer(json.dumps(body).encode())


def status(number: int, headers: Mapping[str, str] | None = None, message: str = "no", **error: Any) -> Answer:
    """An error as the API sends it; ``error`` holds further fields, such as code or param."""
    return Answer(json.dumps({"error": {"message": message, **error}}).encode(), number, headers or {})


def nonsense(body: str = "<html>It works!</html>") -> Answer:
    """A success that is no completion."""
    return Answer(body.encode(), headers={"Content-Type": "text/html"})


def slow(seconds: float) -> Answer:
    """A right answer that takes its time."""
    return completion("late", delay=seconds)


CUT = Answer(b"", cut=True)
"""The connection is dropped without an answer."""

BROKEN_OFF = Answer(json.dumps({"choices": [], "padding": "x" * 200}).encode(), half=True)
"""The connection is dropped in the middle of an answer."""


class FakeOpenAI:
    """The server. ``key``: the only API key it accepts, None for any. ``models``: those it knows, None for all.

    ``requests``: everything asked so far. ``peak``: the most requests in flight at once.
    """

    def __init__(
        self,
        script: Script | Sequence[Script] = (),
        *,
        key: str | None = None,
        models: Sequence[str] | None = None,
    ) -> None:
        self.script: list[Script] = list(script) if isinstance(script, Sequence) else [script]
        self.key = key
        self.models = models
        self.requests: list[Asked] = []
        self.peak = 0
        self._open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Quiet(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        os.environ.setdefault("NO_PROXY", "127.0.0.1")  # Or a proxy of this machine's would get the requests.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [r.body for r in self.requests]

    def answer(self, asked: Asked) -> Answer:
        """Decide the answer; counts the request."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(asked)
            chosen: Script = text("ok")
            if self.script:
                chosen = self.script[min(number, len(self.script) - 1)]
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            given = asked.headers.get("authorization", "").removeprefix("Bearer ")
            return status(401, message=f"Incorrect API key provided: {given}", code="invalid_api_key")
        if asked.path not in ("/v1/chat/completions", "/v1/embeddings", "/v1/rerank"):
            return status(404, message="Not Found")
        if self.models is not None and asked.body.get("model") not in self.models:
            name = asked.body.get("model")
            return status(404, message=f"The model `{name}` does not exist", code="model_not_found")
        return chosen(asked.body) if callable(chosen) else chosen


class _Quiet(ThreadingHTTPServer):
    request_queue_size = 512  # or of many who connect at once, some wait for TCP to try again

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up in the middle of a request is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeOpenAI

    def do_POST(self) -> None:
        fake = self.fake
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        with fake._lock:
            fake._open += 1
            fake.peak = max(fake.peak, fake._open)
        try:
            answer = fake.answer(Asked(self.path, headers, json.loads(raw), time.monotonic()))
            if answer.delay:
                fake._closing.wait(answer.delay)
        finally:
            # Before the answer goes out: the client may send its next request as soon as it has this one.
            with fake._lock:
                fake._open -= 1
        if answer.cut:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        with contextlib.suppress(OSError):
            self.send_response(answer.code)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.half else answer.body)
            if answer.half:
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Quiet."""
