"""The words between a sampler and its servers, in frames (``basics/frames.py``).

Token ids travel as little-endian int32, log-probabilities as float64. Before anything else both sides prove that they
know the token, by an HMAC over the other side's random number: the token itself never travels.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError, MuarlError
from muarl.basics.frames import WireError, receive, send
from muarl.inference.base import Completion, SamplingParams

GREETING_LIMIT = 4096
GREETING_SECONDS = 20.0
ERRORS: Mapping[str, type[MuarlError]] = {"config": ConfigError, "checkpoint": CheckpointError}


async def greet_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The server's side of the greeting. WireError if the client does not know the token."""
    nonce = secrets.token_hex(16)
    send(writer, {"hello": nonce})
    async with asyncio.timeout(GREETING_SECONDS):
        answer, _ = await receive(reader, GREETING_LIMIT, 0)
    if not hmac.compare_digest(_proof(token, "client", nonce), str(answer.get("proof", ""))):
        send(writer, {"refused": "the token is not this server's"})
        await writer.drain()
        raise WireError("a client did not know the token")
    send(writer, {"proof": _proof(token, "server", str(answer.get("hello", "")))})
    await writer.drain()


async def greet_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, patience: float) -> None:
    """The client's side. The server may take ``patience`` seconds to begin (its engine starts first)."""
    async with asyncio.timeout(patience):
        hello, _ = await receive(reader, GREETING_LIMIT, 0)
    nonce = secrets.token_hex(16)
    send(writer, {"proof": _proof(token, "client", str(hello.get("hello", ""))), "hello": nonce})
    async with asyncio.timeout(GREETING_SECONDS):
        answer, _ = await receive(reader, GREETING_LIMIT, 0)
    if "refused" in answer or not hmac.compare_digest(_proof(token, "server", nonce), str(answer.get("proof", ""))):
        raise WireError("the server does not know this token: both need the same one in MUARL_ENGINE_TOKEN")


def _proof(token: str, side: str, nonce: str) -> str:
    return hmac.new(token.encode(), f"{side}:{nonce}".encode(), hashlib.sha256).hexdigest()


def pack_request(prompt_ids: Sequence[int], params: SamplingParams) -> tuple[dict[str, Any], bytes]:
    """A request for a completion."""
    fields = {
        "max_tokens": params.max_tokens,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "stop_ids": list(params.stop_ids),
        "seed": params.seed,
    }
    return fields, _ids(prompt_ids)


def unpack_request(value: Mapping[str, Any], payload: bytes) -> tuple[list[int], SamplingParams]:
    """What ``pack_request`` packed. ConfigError if it is anything else."""
    try:
        seed = value["seed"]
        params = SamplingParams(
            max_tokens=int(value["max_tokens"]),
            temperature=float(value["temperature"]),
            top_p=float(value["top_p"]),
            top_k=int(value["top_k"]),
            stop_ids=tuple(int(i) for i in value["stop_ids"]),
            seed=None if seed is None else int(seed),
        )
        return np.frombuffer(payload, dtype="<i4").tolist(), params
    except (KeyError, TypeError, ValueError) as problem:
        raise ConfigError(f"a request that cannot be read: {problem!r}") from None


def pack_sampled(sampled: Completion) -> tuple[dict[str, Any], bytes]:
    """A completion."""
    logprobs = np.asarray(sampled.logprobs, dtype="<f8").tobytes()
    return {"finish": sampled.finish_reason, "version": sampled.version}, _ids(sampled.ids) + logprobs


def unpack_sampled(value: Mapping[str, Any], payload: bytes) -> Completion:
    """What ``pack_sampled`` packed. WireError if it is anything else."""
    count, rest = divmod(len(payload), 12)
    finish, version = value.get("finish"), value.get("version")
    if rest or not count or finish not in ("stop", "length") or not isinstance(version, int):
        raise WireError("a completion that cannot be read")
    ids = np.frombuffer(payload, dtype="<i4", count=count)
    logprobs = np.frombuffer(payload, dtype="<f8", offset=4 * count)
    return Completion(tuple(ids.tolist()), tuple(logprobs.tolist()), finish, version)


def pack_error(problem: BaseException) -> dict[str, Any]:
    """An error as the other side raises it again."""
    kind = next((k for k, e in ERRORS.items() if isinstance(problem, e)), "infrastructure")
    text = str(problem) if isinstance(problem, MuarlError) else f"{type(problem).__name__}: {problem}"
    return {"error": text, "kind": kind, "retryable": bool(getattr(problem, "retryable", True))}


def unpack_error(value: Mapping[str, Any]) -> MuarlError:
    """The error that an answer stands for."""
    error_class = ERRORS.get(str(value.get("kind")))
    text = str(value.get("error"))
    if error_class is not None:
        return error_class(text)
    return InfrastructureError(text, boundary="agent", retryable=bool(value.get("retryable", True)))


def _ids(ids: Sequence[int]) -> bytes:
    try:
        return np.asarray(ids, dtype="<i4").tobytes()
    except (OverflowError, ValueError) as problem:
        raise ConfigError(f"token ids must be whole numbers of 32 bits: {problem}") from None
