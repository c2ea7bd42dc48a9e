"""The words of the tiny size: what the tiny model's tokenizer makes one token each."""

from __future__ import annotations

import pytest

from support.environments import ON_SERVERS
from support.kit import SERVICES, env, expert, made, rehearsed


@pytest.mark.parametrize("name", [*SERVICES, *ON_SERVERS])
def test_a_tiny_conversation_falls_into_few_known_pieces(name):
    world = rehearsed(name, "tiny") if name in ON_SERVERS else env(name)
    pieces = sorted({*world.entities(), *world.phrases()}, key=len, reverse=True)
    assert len(pieces) < 2500
    left = total = 0
    for episode in expert(world, made(world, "tiny", count=6), "tiny"):
        for message in episode.messages[1:]:
            text = message.content or ""
            total += len(text)
            for piece in pieces:
                text = text.replace(piece, "\0")
            left += len(text.replace("\0", ""))
    assert left < 0.15 * total, "what is no piece falls apart into words"
