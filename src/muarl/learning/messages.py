"""What a ``MultiProcessLearner`` and its processes say to each other: frames of a JSON object and a bucket of tensors.

A call: ``method``, ``argument`` and tensors. An answer: ``kind`` ("done", or the name of an exception), ``result`` (or
the exception's text), ``version`` and tensors.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from muarl.basics.errors import CheckpointError, ConfigError, MuarlError
from muarl.basics.frames import receive_now, send_now
from muarl.learning.packing import Sample
from muarl.learning.process_group import ShardingConfig
from muarl.learning.settings import LearnerConfig
from muarl.models.buckets import Bucket

ERRORS: dict[str, type[Exception]] = {
    "CheckpointError": CheckpointError,
    "ConfigError": ConfigError,
    "MuarlError": MuarlError,
    "ValueError": ValueError,
}
"""What a child may raise that leaves the group as it was, so that it continues."""

SETTINGS = TypeAdapter(LearnerConfig)
SHARDING = TypeAdapter(ShardingConfig)

Tensors = Mapping[str, Tensor]


def say(connection: socket.socket, value: Mapping[str, Any], tensors: Tensors) -> None:
    """Send a call or an answer. OSError if the other side has ended, or stands still."""
    bucket = Bucket.of([*tensors.items()])
    send_now(connection, {**value, "table": bucket.table}, bucket.data.cpu().numpy().data)


def hear(connection: socket.socket) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The next call or answer. EOFError or OSError if the other side has ended, or stands still."""
    value, data = receive_now(connection)
    flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return value, dict(Bucket.at(value.pop("table"), flat).tensors())


def pack_samples(samples: Sequence[Sample]) -> tuple[list[tuple[int, int, int | None, int]], dict[str, Tensor]]:
    """Samples as a call's argument and tensors."""
    advantages = [(s.advantage,) if isinstance(s.advantage, (int, float)) else s.advantage for s in samples]
    whole = [isinstance(s.advantage, (int, float)) for s in samples]
    counts = [(len(s.ids), len(s.logprobs), s.episode, int(w)) for s, w in zip(samples, whole, strict=True)]
    return counts, {
        "ids": torch.tensor([*chain.from_iterable(s.ids for s in samples)], dtype=torch.int64),
        "weights": _floats(chain.from_iterable(s.weights for s in samples)),
        "logprobs": _floats(chain.from_iterable(s.logprobs for s in samples)),
        "advantages": _floats(chain.from_iterable(advantages)),
    }


def unpack_samples(counts: Sequence[Sequence[Any]], tensors: Tensors) -> list[Sample]:
    """What ``pack_samples`` packed."""
    names = ("ids", "weights", "logprobs", "advantages")
    ids, weights, logprobs, advantages = (iter(tensors[name].tolist()) for name in names)
    return [
        Sample(
            _next(ids, length),
            _next(weights, length),
            _next(logprobs, logprob_count),
            next(advantages) if whole else _next(advantages, length),
            episode,
        )
        for length, logprob_count, episode, whole in counts
    ]


def _floats(numbers: Iterable[float]) -> Tensor:
    return torch.tensor([*numbers], dtype=torch.float64)


def _next(numbers: Iterator[Any], count: int) -> list[Any]:
    return [next(numbers) for _ in range(count)]
