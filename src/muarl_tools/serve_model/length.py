"""Conversations that are much too long, refused before all of their text becomes tokens: that can take a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from muarl_tools.serve_model.problems import too_long

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
