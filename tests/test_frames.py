"""Frames arrive as they were sent, by sockets of either kind, and what is no frame is refused before it is read."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from typing import Any

import pytest

from muarl.basics.frames import HEADER, LARGEST, MAGIC, WireError, _head, _lengths, receive, receive_now, send, send_now

FRAMES: list[tuple[dict[str, Any], bytes]] = [
    ({}, b""),
    ({"a": [1, 0.1, None], "ü": "\ud800"}, bytes(range(256)) * 2000),
    ({"op": "done"}, b""),
]


def test_by_plain_code() -> None:
    mine, theirs = socket.socketpair()
    sending = threading.Thread(target=lambda: [send_now(mine, *frame) for frame in FRAMES])
    sending.start()
    assert [receive_now(theirs) for _ in FRAMES] == FRAMES
    sending.join()
    send_now(mine, {"loss": math.inf})
    assert receive_now(theirs)[0] == {"loss": math.inf}
    mine.close()
    with pytest.raises(EOFError):
        receive_now(theirs)
    theirs.close()


async def test_by_an_event_loop() -> None:
    mine, theirs = socket.socketpair()
    reader, other = await asyncio.open_connection(sock=theirs)
    _, writer = await asyncio.open_connection(sock=mine)
    for frame in FRAMES:
        send(writer, *frame)
    assert [await receive(reader) for _ in FRAMES] == FRAMES
    send(writer, {"text": "long"}, b"123")
    with pytest.raises(WireError, match="15 and 3 bytes is larger than allowed"):
        await receive(reader, 14, 3)
    with pytest.raises(ValueError, match="JSON compliant"):
        send(writer, {"loss": math.nan})
    writer.close()
    other.close()


class Long(bytes):
    """Bytes of which there are said to be more."""

    def __len__(self) -> int:
        return (5 << 32) + 7


def test_weights_of_more_than_four_gibibytes() -> None:
    header = _head({}, Long(), allow_nan=True)[: HEADER.size]
    assert _lengths(header, 2, LARGEST) == (2, (5 << 32) + 7)
    with pytest.raises(WireError, match="larger than allowed"):
        _lengths(header, 2, 5 << 32)
    # What was always sent is sent as it always was.
    assert _head({}, b"123", allow_nan=False) == MAGIC + b"\0\0\0\2\0\0\0\3{}"
    with pytest.raises(ValueError, match="too many for a frame"):
        _head({"a": "x" * (1 << 24)}, b"", allow_nan=False)
