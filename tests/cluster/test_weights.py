"""Weights in buckets come out as they went in."""

from __future__ import annotations

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.workers.cluster.weights import ALIGN, pack, unpack

KINDS = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8]


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 5), max_size=3)), max_size=12),
    st.integers(1, 2000),
)
def test_all_tensors_come_back(shapes: list[tuple[torch.dtype, list[int]]], size: int) -> None:
    made = torch.Generator().manual_seed(size)
    weights = [
        (f"layer.{n}", (torch.rand(shape, generator=made, dtype=torch.float64) * 100).to(dtype))
        for n, (dtype, shape) in enumerate(shapes)
    ]
    buckets = list(pack(iter(weights), size))
    assert all(b.data.nbytes <= size or len(b.entries) == 1 for b in buckets)
    assert all(e.start % ALIGN == 0 for b in buckets for e in b.entries)
    back = list(unpack(pickle.loads(pickle.dumps(buckets))))
    assert [n for n, _ in back] == [n for n, _ in weights]
    for (_, was), (_, now) in zip(weights, back, strict=True):
        assert now.dtype == was.dtype and now.shape == was.shape and torch.equal(now, was)


def test_what_was_packed_does_not_change_with_the_model() -> None:
    weight = torch.ones(3, requires_grad=True)
    (bucket,) = pack([("w", weight)], 1000)
    with torch.no_grad():
        weight.add_(1.0)
    assert dict(unpack([bucket]))["w"].tolist() == [1.0] * 3


def test_views_and_transposed_tensors_are_packed_as_they_look() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    weights = {"t": whole.t(), "row": whole[1], "column": whole[:, 2]}
    back = dict(unpack(pack(weights.items(), 64)))
    assert all(torch.equal(back[n], w) for n, w in weights.items())


def test_read_only_buckets_are_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    (bucket,) = pack([("w", torch.ones(3))], 1000)
    bucket.data.flags.writeable = False
    assert dict(unpack([bucket]))["w"].sum() == 3 and not recwarn.list
