from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import Qwen3ForCausalLM

from muarl.basics.errors import ConfigError
from muarl.learning.packing import Batch, Rows, Sample, pack
from muarl.learning.steps import selected_logprobs
from muarl.models.generic import GenericPath
from muarl.models.path import ModelPath, path_of
from muarl.models.support import support_of


@st.composite
def samples(draw: st.DrawFn, most: int = 12, longest: int = 30) -> list[Sample]:
    result = []
    for number in range(draw(st.integers(1, most))):
        n = draw(st.integers(1, longest))
        weights = draw(st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=n, max_size=n))
        ids = draw(st.lists(st.integers(0, 39), min_size=n, max_size=n))
        result.append(Sample(ids, weights, [-(1 + number + t / 100) for t in range(n)], float(number)))
    return result


@given(samples(), st.sampled_from(["sorted", "ffd"]), st.integers(30, 90), st.integers(0, 60))
def test_every_target_once_and_everything_aligned(documents, strategy, budget, more) -> None:  # type: ignore[no-untyped-def]
    batch = Batch.of(documents)
    packed = pack(batch, token_budget=budget, strategy=strategy, row_length=30 + more if more else None)
    with_loss = {i for i, s in enumerate(documents) if any(s.weights[1:])}
    seen: dict[int, tuple[list[int], list[int]]] = {}
    for rows in packed:
        assert rows.ids.numel() <= budget
        assert rows.index.numel() == int(rows.targets.sum())
        assert rows.tokens == int((rows.documents >= 0).sum())
        for r in range(rows.ids.shape[0]):
            held = rows.documents[r].unique_consecutive().tolist()
            assert len(held) == len(set(held)), "a document's tokens are adjacent"
            assert -1 not in held[:-1], "padding stands at the end"
            for i in held:
                if i >= 0:
                    assert i not in seen, "a document is in one row only"
                    at = rows.documents[r] == i
                    seen[i] = (rows.ids[r][at].tolist(), rows.positions[r][at].tolist())
    assert seen.keys() == with_loss
    for i, (ids, positions) in seen.items():
        assert ids == list(documents[i].ids)
        assert positions == list(range(len(ids)))

    index = torch.cat([rows.index for rows in packed]) if packed else torch.zeros(0, dtype=torch.int64)
    assert index.sort().values.tolist() == list(range(batch.weights.numel()))
    for rows in packed:
        # Where a target stands in the rectangle, its document's own data agree with the flat vectors.
        document, place = rows.documents[rows.targets].tolist(), rows.positions[rows.targets].tolist()
        for i, t, n in zip(document, place, rows.index.tolist(), strict=True):
            assert t > 0
            assert batch.sequences[n] == i
            assert batch.weights[n] == pytest.approx(documents[i].weights[t])
            assert batch.logprobs[n] == pytest.approx(documents[i].logprobs[t])
            assert batch.advantages[n] == documents[i].advantage


def path(model: Qwen3ForCausalLM, fast: bool) -> ModelPath:
    """The own path, or the generic one for the same model."""
    return path_of(model) if fast else GenericPath(model, support_of({"model_type": "unknown"}))


@pytest.mark.parametrize("fast", [True, False])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=samples(most=6, longest=20), strategy=st.sampled_from(["sorted", "ffd"]))
def test_documents_do_not_see_each_other(
    make_model: Callable[..., Qwen3ForCausalLM], fast: bool, documents: list[Sample], strategy: str
) -> None:
    model, batch = make_model(), Batch.of(documents)
    together = torch.zeros_like(batch.weights)
    spread = torch.zeros_like(batch.weights)
    with torch.no_grad():
        for rows in pack(batch, token_budget=60, strategy=strategy, row_length=60):  # type: ignore[arg-type]
            scores = selected_logprobs(path(model, fast), rows, temperature=0.7, entropy=True)
            assert scores.entropy is not None
            together[rows.index], spread[rows.index] = scores.logprobs, scores.entropy
        for i, sample in enumerate(documents):
            alone = (model(torch.tensor([sample.ids])).logits[0, :-1] / 0.7).log_softmax(-1)
            wanted = [t for t in range(1, len(sample.ids)) if sample.weights[t]]
            here = slice(batch.starts[i], batch.starts[i + 1])
            expected = torch.tensor([float(alone[t - 1, sample.ids[t]]) for t in wanted])
            torch.testing.assert_close(together[here], expected, rtol=1e-4, atol=1e-4)
            entropies = -(alone.exp() * alone).sum(-1)[[t - 1 for t in wanted]]
            torch.testing.assert_close(spread[here], entropies, rtol=1e-4, atol=1e-4)


def test_both_forward_paths_have_the_same_gradient(make_model: Callable[..., Qwen3ForCausalLM]) -> None:
    documents = [Sample([5, 6, 7, 8], [0, 1, 1, 1]), Sample([9, 3, 5], [0, 0.1, 1])]
    batch = Batch.of(documents)
    gradients = []
    for fast in (True, False):
        model = make_model()
        (rows,) = pack(batch, token_budget=40, strategy="ffd", row_length=8)
        assert rows.packed
        (batch.weights[rows.index] * selected_logprobs(path(model, fast), rows).logprobs).sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)


def test_first_fit_decreasing_fills_rows() -> None:
    batch = Batch.of([Sample([1] * n, [1.0] * n) for n in (4, 6, 3, 7)])
    (rows,) = pack(batch, token_budget=100, strategy="ffd", row_length=10)
    assert rows.ids.shape == (2, 10)
    assert rows.tokens == 20
    assert [r.unique_consecutive().tolist() for r in rows.documents] == [[3, 2], [1, 0]]


def test_nothing_is_truncated() -> None:
    batch = Batch.of([Sample([1] * 9, [1.0] * 9)])
    with pytest.raises(ConfigError, match="9 tokens does not fit.*token_budget=8.*at least 9"):
        pack(batch, token_budget=8)
    with pytest.raises(ConfigError, match="longer than row_length=8"):
        pack(batch, token_budget=100, strategy="ffd", row_length=8)


def test_a_subset_and_samples_without_loss() -> None:
    batch = Batch.of([Sample([1, 2], [0, 1]), Sample([3, 4], [1, 0]), Sample([5, 6, 7], [0, 1, 1])])
    assert batch.sequences.tolist() == [0, 2, 2]  # the weight of a first id is ignored
    (rows,) = pack(batch, token_budget=10, subset=[1, 2])
    assert rows.ids.tolist() == [[5, 6, 7]]
    assert rows.index.tolist() == [1, 2]
    assert pack(batch, token_budget=10, subset=[1]) == []


def test_samples_refuse_misaligned_data() -> None:
    with pytest.raises(ValueError, match="2 ids came with 1 weights"):
        Sample([1, 2], [1])
    with pytest.raises(ValueError, match="2 ids came with 1 log-prob"):
        Sample([1, 2], [1, 1], [0.0])
    with pytest.raises(ValueError, match="no ids"):
        Sample([], [])


def test_supervised_samples_weigh_other_tokens() -> None:
    sample = Sample.supervised([1, 2, 3], [False, True, False], other_weight=0.1)
    assert list(sample.weights) == [0.1, 1.0, 0.1]
    assert isinstance(pack(Batch.of([sample]), token_budget=5)[0], Rows)
