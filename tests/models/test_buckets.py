"""Weights in buckets come out as they went in."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.models.buckets import ALIGN, Bucket, buckets, parts

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
    packed = list(buckets(iter(weights), size))
    assert all(b.data.nbytes <= size or len(b.entries) == 1 for b in packed)
    assert all(e.start % ALIGN == 0 for b in packed for e in b.entries)
    by_ray = pickle.loads(pickle.dumps(packed))
    as_bytes = [Bucket.at(json.loads(json.dumps(b.table)), b.data) for b in packed]
    for sent in (by_ray, as_bytes):
        back = [one for bucket in sent for one in bucket.tensors()]
        assert [n for n, _ in back] == [n for n, _ in weights]
        for (_, was), (_, now) in zip(weights, back, strict=True):
            assert now.dtype == was.dtype and now.shape == was.shape and torch.equal(now, was)


def test_parts_hold_all_weights_in_order() -> None:
    tensors = [(f"w{n}", torch.zeros(n + 1)) for n in range(6)]
    found = list(parts(tensors, 32))
    assert [n for part in found for n, _ in part] == [n for n, _ in tensors]
    assert [len(part) for part in found] == [3, 1, 1, 1]
    assert [len(part) for part in parts(tensors, 128, ALIGN)] == [2, 2, 2]


def test_what_was_packed_does_not_change_with_the_model() -> None:
    weight = torch.ones(3, requires_grad=True)
    (bucket,) = buckets([("w", weight)], 1000)
    with torch.no_grad():
        weight.add_(1.0)
    assert dict(bucket.tensors())["w"].tolist() == [1.0] * 3


def test_views_and_transposed_tensors_are_packed_as_they_look() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    weights = {"t": whole.t(), "row": whole[1], "column": whole[:, 2]}
    back = dict(one for bucket in buckets(weights.items(), 64) for one in bucket.tensors())
    assert all(torch.equal(back[n], w) for n, w in weights.items())


def test_bytes_that_ray_shares_are_read_where_they_lie_and_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    aside: list[pickle.PickleBuffer] = []
    text = pickle.dumps(Bucket.of([("w", torch.ones(3))]), protocol=5, buffer_callback=aside.append)
    shared = [bytes(buffer) for buffer in aside]
    bucket = pickle.loads(text, buffers=shared)
    assert len(shared) == 1 and len(shared[0]) == 12
    assert dict(bucket.tensors())["w"].sum() == 3 and not recwarn.list
