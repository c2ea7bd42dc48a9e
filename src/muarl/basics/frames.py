"""Frames between processes: a JSON object and some bytes, with limits on both. Nothing is ever unpickled.

A frame: 4 bytes that say what it is, the lengths of both parts (big-endian, 4 bytes each), the object, the bytes. The
first byte of the object's length is the fifth of the other one's: objects are small, and weights are not.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

from muarl.basics.untrusted import parse_json

MAGIC = b"mua1"
HEADER = struct.Struct(">4sII")
OBJECT_LIMIT = 8 << 20
BYTES_LIMIT = 64 << 20
LARGEST = (1 << 40) - 1
"""Bytes of a frame's second part, at most: as many as its header can say."""
_LARGEST_OBJECT = (1 << 24) - 1


class WireError(Exception):
    """The other side does not speak this protocol, or does not know the token."""


async def receive(
    reader: asyncio.StreamReader, objects: int = OBJECT_LIMIT, payloads: int = BYTES_LIMIT
) -> tuple[dict[str, Any], bytes]:
    """The next frame. WireError if it is none or too large; IncompleteReadError or OSError if the connection ends."""
    length, size = _lengths(await reader.readexactly(HEADER.size), objects, payloads)
    value = _object(await reader.readexactly(length))
    return value, await reader.readexactly(size)


def receive_now(connection: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """The next frame from one of our own processes, of any size, for plain code. EOFError or OSError if the connection
    ends."""
    length, size = _lengths(_exactly(connection, HEADER.size), _LARGEST_OBJECT, LARGEST)
    value = _object(_exactly(connection, length))
    return value, _exactly(connection, size)


def send(writer: asyncio.StreamWriter, value: Mapping[str, Any], payload: bytes | memoryview = b"") -> None:
    """Queue one frame; ``writer.drain`` waits until there is room again."""
    writer.write(_head(value, payload, allow_nan=False))
    if payload:
        writer.write(payload)


def send_now(connection: socket.socket, value: Mapping[str, Any], payload: bytes | memoryview = b"") -> None:
    """Send one frame to one of our own processes, for plain code; numbers may be NaN or infinite."""
    connection.sendall(_head(value, payload, allow_nan=True))
    if payload:
        connection.sendall(payload)


def _head(value: Mapping[str, Any], payload: bytes | memoryview, *, allow_nan: bool) -> bytes:
    text = json.dumps(value, allow_nan=allow_nan, separators=(",", ":")).encode()
    size = len(payload)
    if len(text) > _LARGEST_OBJECT or size > LARGEST:
        raise ValueError(f"{len(text)} and {size} bytes are too many for a frame")
    return HEADER.pack(MAGIC, size >> 32 << 24 | len(text), size & 0xFFFFFFFF) + text


def _lengths(header: bytes | bytearray, objects: int, payloads: int) -> tuple[int, int]:
    magic, first, second = HEADER.unpack(header)
    if magic != MAGIC:
        raise WireError("the other side does not speak muarl's protocol")
    length, size = first & _LARGEST_OBJECT, first >> 24 << 32 | second
    if length > objects or size > payloads:
        raise WireError(f"a frame of {length} and {size} bytes is larger than allowed")
    return length, size


def _object(text: bytes | bytearray) -> dict[str, Any]:
    try:
        value = parse_json(bytes(text))
    except ValueError as problem:
        raise WireError(f"a frame holds no JSON: {problem}") from None
    if not isinstance(value, dict):
        raise WireError("a frame holds no object")
    return value


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        got = connection.recv_into(view[done:])
        if not got:
            raise EOFError("the connection has ended")
        done += got
    return data
