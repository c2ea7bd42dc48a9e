from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.learning import optimizer as optimizer_file
from muarl.learning.optimizer import (
    Muon,
    OptimizerConfig,
    ScheduleConfig,
    ScheduledOptimizer,
    lr_factor,
    orthogonalised,
    partition,
)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(6, 4)
        self.inner = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.lm_head = nn.Linear(4, 6, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.norm(self.inner(self.embed(ids))))


def learn(model: Small, optimizer: ScheduledOptimizer, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(torch.arange(6)), torch.arange(6).roll(1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def factors(config: ScheduleConfig, n: int) -> list[float]:
    return [lr_factor(i, config) for i in range(n)]


def test_schedules_by_hand() -> None:
    assert factors(ScheduleConfig(warmup_steps=4), 6) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    # The last 40% of ten updates are four: from 1 they fall in five equal steps, of which the fifth would be 0.
    linear = ScheduleConfig("linear", total_steps=10, decay_fraction=0.4)
    assert factors(linear, 11) == pytest.approx([1, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0])
    cosine = ScheduleConfig("cosine", warmup_steps=1, total_steps=4, final_factor=0.1)
    halves = [0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * k / 4)) for k in (1, 2, 3, 4, 4)]
    assert factors(cosine, 6) == pytest.approx([1, *halves])


def test_bad_settings_name_the_field() -> None:
    with pytest.raises(ConfigError, match=r"schedule\.total_steps"):
        ScheduleConfig("linear")
    with pytest.raises(ConfigError, match=r"schedule\.kind"):
        ScheduleConfig("sine")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"optimizer\.kind"):
        OptimizerConfig(kind="sgd")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"optimizer\.lr"):
        OptimizerConfig(lr=0.0)


def test_partition_tells_matrices_embeddings_and_vectors_apart() -> None:
    model = Small()
    model.experts = nn.Parameter(torch.randn(3, 4, 4))
    inner, outer, stacks, plain = partition(model)
    assert [id(p) for p in inner] == [id(model.inner.weight)]
    assert {id(p) for p in outer} == {id(model.embed.weight), id(model.lm_head.weight)}
    assert [id(p) for p in stacks] == [id(model.experts)]
    assert {id(p) for p in plain} == {id(model.inner.bias), id(model.norm.weight), id(model.norm.bias)}
    for kind in ("adamw", "muon"):
        optimizer = ScheduledOptimizer(model, OptimizerConfig(kind=kind, weight_decay=0.3))  # type: ignore[arg-type]
        decays = {id(p): g["weight_decay"] for o in optimizer.optimizers for g in o.param_groups for p in g["params"]}
        decayed = {id(p) for p in inner + stacks}
        assert decays == {id(p): 0.3 * (id(p) in decayed) for p in model.parameters()}
    model.lm_head.weight = model.embed.weight  # tied: counted once
    assert len(partition(model)[1]) == 1


@pytest.mark.parametrize("shape", [(8, 8), (12, 5), (5, 12), (3, 6, 4)])
def test_orthogonalised_has_singular_values_near_one(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(1)
    matrix = torch.randn(shape, generator=generator)
    values = torch.linalg.svdvals(orthogonalised(matrix, steps=8))
    assert values.min() > 0.6
    assert values.max() < 1.3
    # The singular vectors stay: U V^T of the matrix is nearly what comes out.
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    cosine = nn.functional.cosine_similarity((u @ v).flatten(), orthogonalised(matrix).flatten(), dim=0)
    assert cosine > 0.95


def test_muon_steps_by_hand() -> None:
    # A diagonal gradient is orthogonalised to about the identity, whatever its scale; rows / columns = 2 adds sqrt(2).
    p = nn.Parameter(torch.zeros(4, 2))
    p.grad = torch.tensor([[1e-3, 0.0], [0.0, 1e-3], [0.0, 0.0], [0.0, 0.0]])
    Muon([p], lr=0.1).step()
    step = -p.detach() / (0.1 * math.sqrt(2))
    assert step[0, 0] == pytest.approx(1, abs=0.35)
    assert step[1, 1] == pytest.approx(float(step[0, 0]))
    assert step.abs().sum() == pytest.approx(float(step[0, 0] + step[1, 1]))
    with pytest.raises(ValueError, match="matrices"):
        Muon([nn.Parameter(torch.zeros(3))])


def test_muon_bounds_what_it_orthogonalises_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(most: int) -> tuple[list[torch.Tensor], list[int]]:
        torch.manual_seed(0)
        matrices, seen = [nn.Parameter(torch.randn(6, 4)) for _ in range(5)], []
        for p in matrices:
            p.grad = torch.randn(6, 4)

        def watched(matrix: torch.Tensor, steps: int) -> torch.Tensor:
            seen.append(matrix.shape[0])
            return orthogonalised(matrix, steps)

        monkeypatch.setattr(optimizer_file, "orthogonalised", watched)
        monkeypatch.setattr(optimizer_file, "TOGETHER", most)
        Muon(matrices, lr=0.1).step()
        return [p.detach() for p in matrices], seen

    together, one_batch = moved(1000)
    for most, batches in ((48, [2, 2, 1]), (1, [1] * 5)):
        apart, seen = moved(most)
        assert one_batch == [5] and seen == batches
        for a, b in zip(together, apart, strict=True):
            torch.testing.assert_close(a, b)


def test_weight_decay_spares_embeddings_and_norms() -> None:
    for kind in ("adamw", "muon"):
        model = Small()
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        config = OptimizerConfig(kind=kind, lr=0.1, muon_lr=0.1, weight_decay=0.5)  # type: ignore[arg-type]
        optimizer = ScheduledOptimizer(model, config)
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        optimizer.step()
        for name, p in model.named_parameters():
            factor = 0.95 if name == "inner.weight" else 1.0
            torch.testing.assert_close(p.detach(), before[name] * factor)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_it_learns(kind: str) -> None:
    model = Small()
    config = OptimizerConfig(kind=kind, lr=0.05, muon_lr=0.05, max_grad_norm=0)  # type: ignore[arg-type]
    losses = learn(model, ScheduledOptimizer(model, config), 60)
    assert losses[-1] < 0.2 * losses[0]


def test_clipping_reports_the_norm_before_it() -> None:
    model = Small()
    optimizer = ScheduledOptimizer(model, OptimizerConfig(max_grad_norm=1.0))
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    count = sum(p.numel() for p in model.parameters())
    assert optimizer.step()["grad_norm"] == pytest.approx(math.sqrt(count), rel=1e-5)
    assert all(p.grad is None for p in model.parameters())


def test_a_gradient_that_is_not_finite_changes_nothing() -> None:
    model = Small()
    optimizer = ScheduledOptimizer(model, OptimizerConfig(lr=0.1))
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.full_like(p, float("nan"))
    assert optimizer.step()["nonfinite"] == 1
    assert optimizer.updates == 0
    torch.testing.assert_close([p.detach() for p in model.parameters()], before)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_state_round_trip_is_exact(kind: str) -> None:
    config = OptimizerConfig(
        kind=kind,  # type: ignore[arg-type]
        lr=0.05,
        schedule=ScheduleConfig("linear", warmup_steps=2, total_steps=8),
    )
    straight = Small()
    learn(straight, ScheduledOptimizer(straight, config), 6)
    model = Small()
    first = ScheduledOptimizer(model, config)
    learn(model, first, 3)
    second = ScheduledOptimizer(model, config)
    second.load([(k, v.clone()) for k, v in first.tensors().items()], first.updates)
    learn(model, second, 3)
    for a, b in zip(straight.parameters(), model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_state_of_another_kind_is_refused() -> None:
    model = Small()
    adamw = ScheduledOptimizer(model, OptimizerConfig())
    learn(model, adamw, 1)
    shapes = [(key, value.shape) for key, value in adamw.tensors().items()]
    adamw.check(shapes)
    with pytest.raises(CheckpointError, match=r"inner\.weight.*trained by muon"):
        ScheduledOptimizer(model, OptimizerConfig(kind="muon")).check(shapes)


class Made(TorchDispatchMode):
    """The most numbers of any tensor that was made within."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {id(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        new = [t.numel() for t in tree_leaves(out) if isinstance(t, torch.Tensor) and id(t) not in given]
        self.largest = max(self.largest, *new, 0)
        return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_parameters_step_without_temporaries_and_as_small_ones_do(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = OptimizerConfig(lr=0.05, weight_decay=0.1)
    expected = Small().to(dtype)
    learn(expected, ScheduledOptimizer(expected, config), 4)
    monkeypatch.setattr(optimizer_file, "FUSED_FROM", 24)  # the embedding is large
    model = Small().to(dtype)
    fused = ScheduledOptimizer(model, config)
    learn(model, fused, 3)
    nn.functional.cross_entropy(model(torch.arange(6)), torch.arange(6).roll(1)).backward()
    with Made() as made:
        fused.optimizers[0].step()
    assert made.largest <= 1, "no more than the counts of steps"
    for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        # In bfloat16 each operation of an unfused step rounds its result.
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4 if dtype == torch.float32 else 0.1)
