"""What goes wrong with a request, in the shape that OpenAI's clients know."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request that is not answered.

    ``status``: of HTTP. ``kind`` and ``code``: OpenAI's "type" and "code". ``param``: the field that is to blame.
    ``retry_after``: seconds after which to try again.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.kind, self.code, self.param = kind, code, param
        self.retry_after = retry_after

    def to_json(self) -> dict[str, Any]:
        """The body: {"error": {...}}."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with it."""
        out = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        return out if self.retry_after is None else out | {"retry-after": str(self.retry_after)}


def invalid(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """400: this request can never be answered."""
    return ApiError(400, f"{param}: {message}" if param else message, param=param, code=code)


def unsupported(param: str, message: str) -> ApiError:
    """400: OpenAI's API has it, this server has not."""
    return invalid(message, param, "unsupported_parameter")


def too_long(tokens: int, most: int, *, least: bool = False) -> ApiError:
    """400: no room for a reply. Clients know it by its code, or by its words. ``least``: there are more tokens."""
    return ApiError(
        400,
        f"This model's maximum context length is {most} tokens, and the conversation has {'at least ' if least else ''}"
        f"{tokens} with room for a reply. Shorten it.",
        code="context_length_exceeded",
        param="messages",
    )


def busy() -> ApiError:
    """429: the queue is full."""
    return ApiError(
        429,
        "Too many concurrent requests; try again shortly.",
        kind="requests",
        code="rate_limit_exceeded",
        retry_after=1,
    )


def stopping() -> ApiError:
    """503: the server is about to end."""
    return ApiError(
        503, "The server is shutting down.", kind="service_unavailable_error", code="shutting_down", retry_after=5
    )


def late(seconds: float) -> ApiError:
    """504: the completion took too long."""
    return ApiError(
        504, f"No completion within {seconds:g} seconds; ask for fewer tokens.", kind="server_error", code="timeout"
    )


def failed(reason: str) -> ApiError:
    """500: the engine, or this server, is at fault."""
    return ApiError(500, reason, kind="server_error", code="internal_error")
