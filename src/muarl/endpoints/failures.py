"""What can go wrong at an endpoint, as one sentence each: what happened, where, and what to do about it. The person is
told when an endpoint begins to fail, and not with every request that does (``Outages``).
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from muarl.basics.errors import InfrastructureError
from muarl.basics.keys import host_of
from muarl.basics.untrusted import parse_json

RETRIED_STATUSES = (408, 409, 425, 429)

SHORT = 8
"""Characters; a key that is shorter, such as the ``x`` that servers of one's own are given, may occur in any word."""

KEYLESS = (
    "api_key_env is empty. Where it is not your choice: no key is sent to an address from a configuration file unless "
    "the environment allows it. If OPENAI_API_KEY belongs to this host, set OPENAI_API_KEY_HOST={host}, or give "
    "address and api_key_env on the command line"
)


class Where(Protocol):
    """What a failure needs to know of an endpoint's settings."""

    @property
    def model(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key_env(self) -> str: ...


class EndpointFailure(InfrastructureError):
    """A failed request.

    ``again``: sending the same request again may help, so ``chat`` does. ``retryable`` (of InfrastructureError):
    another episode may fare better; False ends the run. ``retry_after``: seconds the server asked to wait.
    ``reason``: the failure without the endpoint's name. ``nobody``: no server listens at the address.
    """

    def __init__(
        self,
        reason: str,
        where: Where,
        boundary: str,
        *,
        again: bool,
        retryable: bool | None = None,
        retry_after: float | None = None,
        rate_limited: bool = False,
        nobody: bool = False,
    ) -> None:
        super().__init__(
            f"endpoint {where.model} at {where.url}: {reason}",
            boundary=boundary,
            retryable=again if retryable is None else retryable,
        )
        self.reason = reason
        self.where = where
        self.again = again
        self.retry_after = retry_after
        self.rate_limited = rate_limited
        self.nobody = nobody

    def after(self, tries: int) -> EndpointFailure:
        """The same failure, saying that it outlasted so many attempts."""
        return EndpointFailure(
            f"{self.reason} (gave up after {tries} attempt{'' if tries == 1 else 's'})",
            self.where,
            self.boundary,
            again=self.again,
            retry_after=self.retry_after,
            rate_limited=self.rate_limited,
            nobody=self.nobody,
        )


class HTTPStatusError(Exception):
    """An answer that is not a success. ``status``: HTTP's; ``headers``: by their names in any case; ``error``: what its
    body says went wrong, a mapping or a text; ``code``, ``param``: of that mapping, as the OpenAI API has them."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers = status, headers
        try:
            body = parse_json(content)
        except ValueError:
            body = content.decode(errors="replace")
        self.error = (body.get("error") or body) if isinstance(body, Mapping) else body
        fields = self.error if isinstance(self.error, Mapping) else {}
        self.code, self.param = fields.get("code"), fields.get("param")


class PromptRefused(EndpointFailure):
    """The server refused this one conversation (too long for the model, filtered, malformed); others may pass."""

    def __init__(self, reason: str, where: Where, boundary: str, *, too_long: bool) -> None:
        super().__init__(reason, where, boundary, again=False, retryable=True)
        self.too_long = too_long


def _said(problem: Exception) -> str:
    """What an error of the connection says; of one that was never made, in words of the system's."""
    import aiohttp

    if not isinstance(problem, aiohttp.ClientConnectorError) or isinstance(problem, aiohttp.ClientSSLError):
        return str(problem)
    refused = problem.os_error
    number = refused.errno or 0
    why = os.strerror(number) if number > 0 else refused.strerror or str(refused)
    return f"no connection to {problem.host}:{problem.port}: {why}"


def classify(problem: Exception, where: Where, boundary: str, *, secret: str) -> EndpointFailure | None:
    """The failure that an exception of ``Connections.post`` means, or None if it is not one of its errors.

    ``secret`` is struck out of whatever the server said.
    """
    import aiohttp

    def failure(reason: str, *, again: bool = False, **more: Any) -> EndpointFailure:
        return EndpointFailure(reason, where, boundary, again=again, **more)

    if isinstance(problem, aiohttp.ClientPayloadError):
        return failure("the connection broke off in the middle of the answer", again=True)
    if isinstance(problem, aiohttp.ClientError | OSError):
        cause = brief(_said(problem) or "connection lost", secret)
        text = f"unreachable ({cause}); check that the server runs and that the address is right"
        return failure(text, again=True, nobody=isinstance(problem, aiohttp.ClientConnectorError))
    if not isinstance(problem, HTTPStatusError):
        return None

    status = problem.status
    said = server_said(problem, secret)
    code = str(problem.code or "")
    if status in (400, 413, 422) and (code == "context_length_exceeded" or _is_too_long(said)):
        return PromptRefused(f"the conversation is too long for the model: {said}", where, boundary, too_long=True)
    if status == 400 and code in ("content_filter", "content_policy_violation"):
        return PromptRefused(f"the content filter refuses the conversation: {said}", where, boundary, too_long=False)
    if code == "insufficient_quota" or status == 402:
        return failure(f"the account has no credit left (HTTP {status}): {said}")
    if status in (401, 403) and not where.api_key_env:
        return failure(
            f"the server wants an API key, and got none (HTTP {status}): {KEYLESS.format(host=host_of(where.url))}"
        )
    if status == 401:
        return failure(f"the server refuses the API key (HTTP 401); set {where.api_key_env} to a key that it accepts")
    if status == 403:
        return failure(f"the API key in {where.api_key_env} has no permission for this model (HTTP 403): {said}")
    if status == 404:
        if "model" in said.lower() or "model" in code:
            return failure(f"the server does not know the model {where.model!r} (HTTP 404): {said}")
        return failure("nothing answers at this address (HTTP 404); the base URL usually ends in /v1")
    if status in RETRIED_STATUSES or status >= 500:
        wait = retry_after(problem.headers)
        what = "too many requests" if status == 429 else said
        what += f"; it asks to wait {wait:g} s" if wait else ""
        return failure(f"HTTP {status}: {what}", again=True, retry_after=wait, rate_limited=status == 429)
    reason = f"the server refuses the request (HTTP {status}): {said}"
    if status in (400, 413, 422):  # what one conversation holds may be to blame, and then the others continue
        return PromptRefused(reason, where, boundary, too_long=False)
    return failure(reason)


def unsupported_parameter(problem: HTTPStatusError) -> str | None:
    """The parameter that this model does not take, if that is what a HTTP 400 says (newer models refuse ``max_tokens``
    or any temperature but their own)."""
    unsupported = problem.status == 400 and problem.code in ("unsupported_parameter", "unsupported_value")
    if unsupported and isinstance(problem.param, str):
        return problem.param if problem.param in ("max_tokens", "temperature", "top_p", "seed") else None
    return None


def server_said(problem: HTTPStatusError, secret: str) -> str:
    """The server's own explanation, short and without the secret."""
    said = problem.error
    if isinstance(said, Mapping):
        said = said.get("message") or said.get("detail")
    return brief(str(said or "").strip() or "no explanation", secret)


def brief(text: str, secret: str, limit: int = 200) -> str:
    """One line of at most ``limit`` characters, the secret replaced by ***.

    A secret as short as a word is replaced only where it stands alone: inside other words it is not the secret, and
    striking it out would garble the text.
    """
    if secret and len(secret) < SHORT:
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", "***", text)
    elif secret:
        text = text.replace(secret, "***")
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date.

    A date is taken against the server's own clock where it says what that shows: this machine's may be wrong.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - _now(headers))
    except (TypeError, ValueError):
        return None


def _now(headers: Mapping[str, str]) -> float:
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return time.time()


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e6 else None


def _is_too_long(said: str) -> bool:
    """Servers other than OpenAI's say it in words only."""
    words = ("context length", "context window", "context size", "maximum model length", "prompt is too long")
    return any(w in said.lower() for w in words)


log = logging.getLogger(__name__)

NAMES = {"user": "user", "agent": "agent", "judge": "judge", "world": "tools'"}


class Outages:
    """One line for an endpoint's first failure, and one each time that nobody listens any more at its address."""

    def __init__(self) -> None:
        self._logged = self._down = False

    def note(self, failure: EndpointFailure, until: float, left: int) -> None:
        """A request has failed and is tried again: so many times at most, and until then (seconds since 1970)."""
        if self._down or (self._logged and not failure.nobody):
            return
        self._logged, self._down = True, failure.nobody
        who = NAMES.get(failure.boundary, failure.boundary)
        clock = time.strftime("%H:%M:%S", time.localtime(until))
        times = "once" if left == 1 else f"up to {left} times"
        what = f"{who} endpoint {failure.where.model}: {failure.reason}"
        log.warning("%s; trying again %s, until %s at most", what, times, clock)

    def over(self) -> None:
        """A request has been answered."""
        self._down = False
