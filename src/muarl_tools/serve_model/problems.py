"""What goes wrong with a completion; what any server may meet is in ``muarl.basics.web.json_api``. Conversations that
are much too long are refused before all of their text becomes tokens: that can take a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from muarl.basics.web.json_api import ApiError, invalid

TOO_LONG = "context_length_exceeded"


def unsupported(param: str, message: str) -> ApiError:
    """400: OpenAI's API has it, this server has not."""
    return invalid(message, param, "unsupported_parameter")


def too_long(tokens: int, most: int, *, least: bool = False) -> ApiError:
    """400: no room for a reply. Clients know it by its code, or by its words. ``least``: there are more tokens."""
    return ApiError(
        400,
        f"This model's maximum context length is {most} tokens, and the conversation has {'at least ' if least else ''}"
        f"{tokens} with room for a reply. Shorten it.",
        code=TOO_LONG,
        param="messages",
    )


def late(seconds: float) -> ApiError:
    """504: the completion took too long."""
    return ApiError(
        504, f"No completion within {seconds:g} seconds; ask for fewer tokens.", kind="server_error", code="timeout"
    )


LIKELY = 4
"""Characters for each token that there is room for: a text of fewer is not looked at beforehand."""
SLICE = 4096
"""Characters that become tokens at a time. A cut adds one token at most."""


def refuse_endless(texts: Iterable[str], room: int, encode: Callable[[str], Sequence[int]], *, around: int = 2) -> None:
    """ApiError if texts that all stand in a prompt surely have more than ``room`` tokens; it counts no further.

    ``around``: control tokens around each text, at least.
    """
    kept = list(texts)
    if sum(len(text) + LIKELY * around for text in kept) <= LIKELY * room:
        return
    count = 0
    for text in kept:
        count += around
        for start in range(0, len(text), SLICE):
            count += max(0, len(encode(text[start : start + SLICE])) - 1)
            if count > room:
                break
        if count > room:
            raise too_long(count, room, least=True)
