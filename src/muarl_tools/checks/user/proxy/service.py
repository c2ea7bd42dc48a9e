"""What the proxy does with a request: asks upstream, looks, asks again within bounds, counts."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.untrusted import parse_finite_json
from muarl.basics.web.json_api import ApiError, invalid, stopping
from muarl.endpoints.config import check_url
from muarl.endpoints.connections import Connections
from muarl.endpoints.failures import HTTPStatusError, brief
from muarl.types.chat import Message
from muarl.user_errors.conduct import RULES, find_all
from muarl.user_errors.errors import UserError
from muarl.users.guard import GUARDED, fault
from muarl.users.guidelines import correction
from muarl_tools.checks.user.proxy.requests import AskedUser, asked_again, read_answer, read_request

TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
OWN = "muarl"
"""The field of an answer that says what the guard did: {"asked_again", "left"}."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """``upstream``: the API root to ask. ``key``: its API key, empty for none. ``model``: asked for in place of the
    client's; None: the client's. ``rules``, ``retries``: see ``users.guard``. ``timeout``: seconds for one try.
    ``log``: a file that gets a line for each message with a fault. ConfigError for a rule that there is not."""

    upstream: str
    key: str = field(default="", repr=False)
    model: str | None = None
    rules: Collection[str] = GUARDED
    retries: int = 2
    timeout: float = 600.0
    log: Path | None = None

    def __post_init__(self) -> None:
        check_url(self.upstream)
        if unknown := sorted(set(self.rules) - (RULES.keys() - {"judge"})):
            raise ConfigError(f"--rules: there is no rule {unknown[0]!r}; there are: {', '.join(RULES)}")


@dataclass
class ProxyTotals:
    """What the proxy has done so far. ``unread``: answers that could not be read, and went through unchecked."""

    requests: int = 0
    asked_again: int = 0
    fixed: int = 0
    left: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    tokens: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """A plain dict; ``found`` counts faults of all tries by rule, ``left`` those that went through."""
        return {
            "requests": self.requests, "asked_again": self.asked_again, "fixed": self.fixed,
            "found": dict(self.found), "left": dict(self.left), "unread": self.unread, "tokens": dict(self.tokens),
        }  # fmt: skip


class GuardingProxy:
    """Answers chat completions of simulated users. ``stopping``: answer no new ones."""

    def __init__(self, settings: ProxySettings, connections: Connections | None = None) -> None:
        self.settings, self.totals = settings, ProxyTotals()
        self.stopping = False
        self._connections = connections or Connections()
        self._url = f"{settings.upstream.rstrip('/')}/chat/completions"

    async def complete(self, raw: bytes) -> dict[str, Any]:
        """The upstream's answer to a request, checked; its usage is that of all tries. ApiError where there is none."""
        if self.stopping:
            raise stopping()
        body = _object(raw)
        asked = read_request(body)
        body = {k: v for k, v in body.items() if k not in ("stream", "stream_options")}
        if self.settings.model is not None:
            body["model"] = self.settings.model
        self.totals.requests += 1
        answer = await self._post(body)
        message, used, tries = read_answer(answer), _usage(answer), 0
        found = self._look(asked, message)
        history = [(message, found)] if found else []
        while message is not None and found and tries < self.settings.retries:
            tries += 1
            self.totals.asked_again += 1
            said = message.content or "".join(f"(a call of {call.name})" for call in message.tool_calls)
            answer = await self._post(asked_again(body, correction(said, [fault(e) for e in found])))
            message, used = read_answer(answer), used + _usage(answer)
            found = self._look(asked, message)
            if found:
                history.append((message, found))
        self.totals.unread += message is None
        self.totals.fixed += bool(tries and not found)
        self.totals.left.update(e.rule for e in found)
        self.totals.tokens.update(used)
        if history:
            self._note(asked, history, tries, found)
        if used:
            told = answer.get("usage")
            answer["usage"] = {**(told if isinstance(told, Mapping) else {}), **used}
        left = [{"rule": e.rule, "detail": e.detail} for e in found]
        return {**answer, OWN: {"asked_again": tries, "left": left}}

    async def aclose(self) -> None:
        """Close the connections to the upstream."""
        await self._connections.aclose()

    def _look(self, asked: AskedUser, message: Message | None) -> tuple[UserError, ...]:
        if message is None:
            return ()
        errors = find_all(asked.task, [*asked.said, message], user_tools=asked.tools, only=len(asked.said))
        found = tuple(error for error in errors if error.rule in self.settings.rules)
        self.totals.found.update(e.rule for e in found)
        return found

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The upstream's answer. Its errors go to the client with their status, so that the client's own retries work;
        the key is struck out of their text."""
        import aiohttp

        secret = self.settings.key
        try:
            async with asyncio.timeout(self.settings.timeout):
                content = await self._connections.post(self._url, secret, body)
        except HTTPStatusError as problem:
            said = problem.error.get("message") if isinstance(problem.error, Mapping) else problem.error
            told = brief(str(said or "no reason given"), secret)
            code = problem.code if isinstance(problem.code, str) else None
            status = 502 if problem.status in (401, 403) else problem.status  # the proxy's key, not the client's
            wait = problem.headers.get("Retry-After", "")
            after = int(wait) if wait.isdecimal() else None
            raise ApiError(status, f"upstream: {told}", kind="upstream_error", code=code, retry_after=after) from None
        except TimeoutError:
            raise ApiError(
                504, f"upstream: no answer within {self.settings.timeout:g} s", kind="upstream_error"
            ) from None
        except (aiohttp.ClientError, OSError) as problem:
            text = brief(str(problem) or type(problem).__name__, secret)
            raise ApiError(502, f"upstream: unreachable ({text})", kind="upstream_error") from None
        try:
            found = parse_finite_json(content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ApiError(502, "upstream: the answer is not JSON; does --upstream end in /v1?", kind="upstream_error")
        if wrong := _problem(found):
            raise ApiError(502, f"upstream: the answer is no chat completion: {wrong}", kind="upstream_error")
        return found

    def _note(
        self,
        asked: AskedUser,
        history: list[tuple[Message | None, tuple[UserError, ...]]],
        tries: int,
        left: tuple[UserError, ...],
    ) -> None:
        """A line of the log: what was said and what was found, try by try."""
        if self.settings.log is None:
            return
        rows = [
            {"said": m.content if m else None, "faults": [{"rule": e.rule, "detail": e.detail} for e in f]}
            for m, f in history
        ]
        line = {"time": time.time(), "turn": len(asked.said), "asked_again": tries, "tries": rows, "left": len(left)}
        with open(self.settings.log, "a", encoding="utf-8") as out:
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _problem(answer: Mapping[str, Any]) -> str:
    """What in an answer a client could not read, empty if nothing is: choices, messages and calls of other types."""
    choices = answer.get("choices")
    if not isinstance(choices, list | None):
        return "choices is no list"
    for i, choice in enumerate(choices or ()):
        if not isinstance(choice, Mapping):
            return f"choices[{i}] is no object"
        message = choice.get("message")
        if not isinstance(message, Mapping | None):
            return f"choices[{i}].message is no object"
        calls = None if message is None else message.get("tool_calls")
        if not isinstance(calls, list | None) or not all(isinstance(call, Mapping) for call in calls or ()):
            return f"choices[{i}].message.tool_calls is no list of objects"
    return ""


def _usage(answer: Mapping[str, Any]) -> Counter[str]:
    told = answer.get("usage")
    counts = {k: told.get(k) for k in TOKENS} if isinstance(told, Mapping) else {}
    return Counter({k: v for k, v in counts.items() if isinstance(v, int) and v >= 0})


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = parse_finite_json(raw)
    except ValueError as problem:
        raise invalid(f"the body is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise invalid("the body must be a JSON object")
    return found
