"""What goes wrong with a completion; what any server may meet is in ``muarl.basics.web.json_api``."""

from __future__ import annotations

from muarl.basics.web.json_api import ApiError, invalid


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


def late(seconds: float) -> ApiError:
    """504: the completion took too long."""
    return ApiError(
        504, f"No completion within {seconds:g} seconds; ask for fewer tokens.", kind="server_error", code="timeout"
    )
