"""The client itself: one request in, one answer out, however often it takes."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from muarl.accounts.budgets import count
from muarl.basics.copies import SharedInCopies
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.keys import host_of, is_meant_for, is_named, read_secret
from muarl.basics.untrusted import parse_json
from muarl.endpoints.cache import ResponseCache, request_key
from muarl.endpoints.config import DEFAULT_BASE_URL, USUAL_KEY, EndpointSettings, parse_endpoint
from muarl.endpoints.connections import Connections
from muarl.endpoints.failures import EndpointFailure, HTTPStatusError, Outages, classify, unsupported_parameter
from muarl.endpoints.replies import (
    MalformedReply,
    Reply,
    read_chat,
    read_embeddings,
    read_ranking,
    read_token_counts,
    tells_usage,
)
from muarl.types.chat import Requestor, ToolSpec
from muarl.types.episode import Usage

if TYPE_CHECKING:
    from tenacity import RetryCallState

log = logging.getLogger(__name__)

CHAT = "/chat/completions"

NOBODY = 2
"""How often an address at which nobody listens is asked before a run begins."""


class Endpoint(SharedInCopies):
    """A model behind an OpenAI-compatible server. One object serves all episodes of a run, in one event loop at a time;
    whoever opened it closes it (``async with``, or ``aclose``).

    ``Endpoint(model="MODEL", base_url="http://HOST:PORT/v1")``: these and further fields of EndpointSettings, such as
    ``temperature``, as ``options``, or all of them as ``config``.

    ``api_key``: the key itself, empty for none; None reads it from where the config says. ``connections``: shared with
    other endpoints, and closed by whoever made them.

    ``sleep`` and ``jitter`` (a number in [0, 1)) are for tests. The jitter has a generator of its own, so that retries
    do not disturb anybody's seeds.
    """

    def __init__(
        self,
        config: EndpointSettings | None = None,
        *,
        api_key: str | None = None,
        connections: Connections | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] | None = None,
        **options: Any,
    ) -> None:
        config = _settings(config, options)
        self.config = config
        self._key = api_key
        self._connections = Connections(redirects=True) if connections is None else connections
        self._shares = connections is not None
        self._sleep = sleep
        self._jitter = jitter or random.Random().random
        self._total = Usage()
        self._cache = ResponseCache(config.cache) if config.cache is not None else None
        self._unsupported: set[str] = set()
        self.outages = Outages()
        self._open: _Live | None = None

    @classmethod
    def of(cls, spec: str, **options: Any) -> Endpoint:
        """The endpoint ``MODEL`` (at OPENAI_BASE_URL) or ``MODEL@http://HOST:PORT/v1``. ``options``: fields of
        EndpointSettings, such as ``temperature``. ConfigError if the text has another form."""
        return cls(parse_endpoint(spec if spec.startswith("endpoint:") else f"endpoint:{spec}", **options))

    def __repr__(self) -> str:
        return f"Endpoint({self.config.model!r}, {self.config.url!r}, api_key=***)"

    @property
    def model(self) -> str:
        """The model name as the server knows it."""
        return self.config.model

    @property
    def about(self) -> str:
        """Which model at which host is asked, and with which key, in a line for a terminal."""
        name = self.config.api_key_env
        key = f"with the key {name}" if is_named(name) else "without a key"
        if not name and is_named(USUAL_KEY) and not is_meant_for(USUAL_KEY, self.config.url):
            key += f" (api_key_env is empty; where it is not your choice, {USUAL_KEY} is not allowed: see SECURITY.md)"
        text = f"{self.config.model} at {host_of(self.config.url)} {key}"
        return "".join(c if c.isprintable() else "?" for c in text)

    @property
    def usage(self) -> Usage:
        """Everything this endpoint has used so far, failed requests included."""
        return self._total

    @property
    def cost_text(self) -> str:
        """The money spent so far in words: dollars, or that it is unknown because no price was given; at least so many
        where answers did not say how many tokens they took."""
        if self.config.price is None:
            return f"unknown (no price given for {self.config.model})"
        least = f"at least ${self._total.cost:.4f} ({self._total.uncounted} answers do not say their tokens)"
        return least if self._total.uncounted else f"${self._total.cost:.4f}"

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = "auto",
        seed: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        requestor: Requestor = "assistant",
        boundary: str = "agent",
        empty_ok: bool = False,
    ) -> Reply:
        """Send a conversation in the OpenAI form and read the answer.

        ``temperature``, ``top_p`` and ``max_tokens`` left None are the config's. ``requestor`` marks the tool calls in
        the answer; ``boundary`` names whose failure it is if this raises. An empty reply is retried unless
        ``empty_ok``.

        Raises InfrastructureError: not retryable for a wrong key, an unknown model or a refused request; retryable once
        the attempts or the deadline are used up. PromptRefused (a subclass) if only this conversation is at fault.
        """
        body: dict[str, Any] = {"model": self.config.model, "messages": [dict(m) for m in messages]}
        if tools:
            body["tools"] = [t.to_openai() for t in tools]
            body["tool_choice"] = tool_choice
        options = {
            "seed": seed,
            "temperature": self.config.temperature if temperature is None else temperature,
            "top_p": self.config.top_p if top_p is None else top_p,
            "max_tokens": self.config.max_tokens if max_tokens is None else max_tokens,
        }
        body.update({k: v for k, v in options.items() if v is not None})
        return await self._chat(body, requestor, boundary, empty_ok, self.config.attempts)

    async def embed(self, texts: Sequence[str], *, boundary: str = "world") -> list[list[float]]:
        """The embedding of each text, all of one length (``POST /embeddings``). Raises as ``chat`` does."""
        body = {**self.config.extra, "model": self.config.model, "input": list(texts), "encoding_format": "float"}
        answer, _, _ = await self._ask("/embeddings", body, partial(read_embeddings, count=len(texts)), boundary)
        return list(answer)

    async def rerank(self, query: str, documents: Sequence[str], *, boundary: str = "world") -> list[float]:
        """How relevant each document is for a query, as the model scores it (``POST /rerank``, as Cohere, Jina and vLLM
        have it). Raises as ``chat`` does."""
        body = {**self.config.extra, "model": self.config.model, "query": query, "documents": list(documents)}
        answer, _, _ = await self._ask("/rerank", body, partial(read_ranking, count=len(documents)), boundary)
        return list(answer)

    async def check(self, *, boundary: str = "agent") -> None:
        """Make one tiny request, so that a wrong key or an unreachable server is found before any work starts.

        A server that fails is asked as often as any request of the run is, so that no run is refused for what it would
        bear later; where nobody listens at all, only twice. Raises InfrastructureError with ``retryable`` False,
        whatever went wrong. A rate limit is no failure here.
        """
        body = {
            "model": self.config.model,
            "messages": [{"role": "user", "content": "Answer with the word ready."}],
            "max_tokens": 16,
        }
        try:
            await self._chat(body, "assistant", boundary, True, self.config.attempts, cached=False, calls=NOBODY)
        except InfrastructureError as problem:
            if isinstance(problem, EndpointFailure) and problem.rate_limited:
                log.warning("%s", problem)
                return
            raise InfrastructureError(str(problem), boundary=boundary, retryable=False) from None

    async def aclose(self) -> None:
        """Close all connections. The endpoint can be used again afterwards, in another event loop, too."""
        self._open = None
        if not self._shares:
            await self._connections.aclose()

    async def __aenter__(self) -> Endpoint:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _chat(
        self,
        body: dict[str, Any],
        requestor: Requestor,
        boundary: str,
        empty_ok: bool,
        attempts: int,
        cached: bool = True,
        calls: int | None = None,
    ) -> Reply:
        read = partial(read_chat, requestor=requestor, empty_ok=empty_ok)
        body = {**self.config.extra, **body}
        reply, usage, stored = await self._ask(
            CHAT, body, read, boundary, attempts=attempts, cached=cached, calls=calls
        )
        return replace(cast(Reply, reply), usage=usage, cached=stored)

    async def _ask(
        self,
        path: str,
        body: dict[str, Any],
        read: Callable[[object], Any],
        boundary: str,
        *,
        attempts: int | None = None,
        cached: bool = True,
        calls: int | None = None,
    ) -> tuple[Any, Usage, bool]:
        """What ``read`` makes of the answer to a request, what it took, and whether it came from the cache. ``read``
        raises MalformedReply for an answer that is asked for again."""
        attempts = self.config.attempts if attempts is None else attempts
        cache = self._cache if cached else None
        where = self.config.url if path == CHAT else self.config.url + path
        key = request_key(where, body) if cache is not None else ""
        stored = cache.get(key) if cache is not None else None
        if stored is not None:
            try:
                prompt, completion = read_token_counts(stored)
                return read(stored), Usage(prompt_tokens=prompt, completion_tokens=completion), True
            except MalformedReply:
                pass  # An edited or damaged file: ask again and overwrite it.
        live = await self._live(boundary)
        async with live.slots:
            request = _Request(self, live.key, path, body, read, boundary)
            try:
                answer = await request.run(attempts, attempts if calls is None else calls)
                self.outages.over()
            except InfrastructureError as problem:
                problem.usage = request.usage
                raise
            finally:
                self._total += request.usage
                count(request.usage, boundary)
        if cache is not None:
            cache.put(key, {**body}, request.response)
        return answer, request.usage, False

    async def _live(self, boundary: str) -> _Live:
        loop = asyncio.get_running_loop()
        live = self._open
        if live is not None and live.loop is loop:
            return live
        if live is not None and not live.loop.is_closed():
            raise RuntimeError(f"{self!r} serves another event loop: close it there first, or make one for each")
        if live is not None:
            await self.aclose()
        key = self._read_key(boundary) if self._key is None else self._key
        self._open = _Live(loop, asyncio.Semaphore(self.config.concurrency), key)
        return self._open

    def _read_key(self, boundary: str) -> str:
        """The key (``muarl.basics.keys``); empty where a server of one's own may do without. No message may hold it."""
        name = self.config.api_key_env
        where = f"endpoint {self.config.model} at {self.config.url}"
        try:
            key = read_secret(name)
        except ConfigError as problem:
            raise InfrastructureError(f"{where}: {problem}", boundary=boundary, retryable=False) from None
        if not key and self.config.url.startswith(DEFAULT_BASE_URL):
            text = f"{where}: no API key: set {name} in the environment, or {name}_FILE to a file that holds it"
            if not name:
                text = f"{where}: it needs an API key, and api_key_env names none"
            raise InfrastructureError(text, boundary=boundary, retryable=False)
        return key


def _settings(config: EndpointSettings | None, options: Mapping[str, Any]) -> EndpointSettings:
    """The settings of an endpoint that is given them as a whole, or one by one."""
    names = list(EndpointSettings.__dataclass_fields__)
    for name in options:
        if name not in names:
            raise TypeError(f"Endpoint: there is no option {name!r}; there are {', '.join(names)}")
    if isinstance(config, EndpointSettings) and not options:
        return config
    if config is not None or "model" not in options:
        raise TypeError('Endpoint: give Endpoint(model="MODEL", base_url="http://HOST:PORT/v1"), or EndpointSettings')
    return EndpointSettings(**options)


@dataclass(frozen=True, slots=True)
class _Live:
    """What an open endpoint holds, for one event loop. The key stands here to be struck out of error texts."""

    loop: asyncio.AbstractEventLoop
    slots: asyncio.Semaphore
    key: str = field(repr=False)


class _Request:
    """One request with its retries: sends, reads, counts."""

    def __init__(
        self,
        endpoint: Endpoint,
        key: str,
        path: str,
        body: dict[str, Any],
        read: Callable[[object], Any],
        boundary: str,
    ) -> None:
        self.endpoint = endpoint
        self.key = key
        self.path = path
        self.body = body
        self.read = read
        self.boundary = boundary
        self.usage = Usage()
        self.response: object = None
        self.last: EndpointFailure | None = None
        self.until = 0.0
        self.most = self.most_of_nobody = 1

    async def run(self, attempts: int, calls: int) -> Any:
        """What was read. ``attempts``: how often it is asked at most; ``calls``: the same where nobody listens."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        config = self.endpoint.config
        self.until = time.time() + config.deadline
        self.most, self.most_of_nobody = attempts, min(attempts, calls)

        ends = stop_after_attempt(attempts) | stop_before_delay(config.deadline)

        def stop(state: RetryCallState) -> bool:
            nobody = self.last is not None and self.last.nobody and state.attempt_number >= calls
            return nobody or ends(state)

        retrying = AsyncRetrying(
            sleep=self.endpoint._sleep,
            stop=stop,
            wait=self._wait,
            retry=retry_if_exception(lambda e: isinstance(e, EndpointFailure) and e.again),
            before_sleep=self._note,
            reraise=True,
        )
        problem: EndpointFailure | None = None
        try:
            async with asyncio.timeout(config.deadline):
                return await retrying(self._attempt)
        except TimeoutError:
            text = f"no answer within the deadline of {config.deadline:g} s"
            problem = self._failure(f"{text} (last failure: {self.last.reason})" if self.last else text)
        except EndpointFailure as failure:
            problem = failure.after(self.usage.requests) if failure.again else failure
        # Raised outside the handlers, so that the library's exception, which holds the request, is not carried along.
        raise problem

    async def _attempt(self) -> Any:
        failure: EndpointFailure | None = None
        self.usage += Usage(requests=1, retries=1 if self.usage.requests else 0)
        try:
            async with asyncio.timeout(self.endpoint.config.timeout):
                content = await self._send()
            return self._read(content)
        except MalformedReply as problem:
            failure = self._failure(str(problem))
        except TimeoutError:
            failure = self._failure(f"no answer within {self.endpoint.config.timeout:g} s")
        except Exception as problem:
            failure = classify(problem, self.endpoint.config, self.boundary, secret=self.key)
            if failure is None:
                raise
        self.last = failure
        raise failure

    async def _send(self) -> bytes:
        """Post the request, leaving out what this model has said it does not know; returns the body as it came."""
        endpoint = self.endpoint
        while True:
            body = {k: v for k, v in self.body.items() if k not in endpoint._unsupported}
            if "max_tokens" in endpoint._unsupported and "max_tokens" in self.body:
                body["max_completion_tokens"] = self.body["max_tokens"]
            try:
                return await endpoint._connections.post(f"{endpoint.config.url}{self.path}", self.key, body)
            except HTTPStatusError as problem:
                name = unsupported_parameter(problem)
                if name is None or name in endpoint._unsupported or name not in self.body:
                    raise
                log.warning("%s does not take the parameter %s as given; it is left out", endpoint.model, name)
                endpoint._unsupported.add(name)

    def _read(self, content: bytes) -> Any:
        try:
            body = parse_json(content)
        except ValueError:
            raise MalformedReply("the reply is not JSON; does the base URL end in /v1?") from None
        prompt, completion = read_token_counts(body)
        price = self.endpoint.config.price
        cost = (prompt * price.prompt + completion * price.completion) / 1e6 if price else 0.0
        uncounted = 0 if tells_usage(body) else 1
        self.usage += Usage(prompt_tokens=prompt, completion_tokens=completion, cost=cost, uncounted=uncounted)
        answer = self.read(body)
        self.response = body
        return answer

    def _failure(self, reason: str) -> EndpointFailure:
        return EndpointFailure(reason, self.endpoint.config, self.boundary, again=True)

    def _wait(self, state: RetryCallState) -> float:
        config = self.endpoint.config
        jitter = self.endpoint._jitter()
        if self.last is not None and self.last.retry_after is not None:
            return self.last.retry_after + jitter * config.backoff
        ceiling: float = min(config.max_backoff, config.backoff * 2.0 ** (state.attempt_number - 1))
        return ceiling * (0.5 + 0.5 * jitter)

    def _note(self, state: RetryCallState) -> None:
        log.info("%s; trying again in %.1f s (attempt %d)", self.last, state.upcoming_sleep, state.attempt_number)
        if self.last is not None:
            most = self.most_of_nobody if self.last.nobody else self.most
            self.endpoint.outages.note(self.last, self.until, max(1, most - state.attempt_number))
