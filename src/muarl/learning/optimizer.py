"""Optimisers and learning-rate schedules: AdamW, or Muon for the matrices inside the network with AdamW for the rest.

Muon: K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). A matrix's momentum is
replaced by (nearly) the closest orthogonal matrix, found with a Newton-Schulz iteration, so that all its directions
learn at the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.learning import shards

QUINTIC = (3.4445, -4.7750, 2.0315)
"""Jordan et al.'s coefficients: they lift small singular values fast, and settle all between about 0.7 and 1.2."""
FUSED_FROM = 1 << 22
"""From parameters of this many numbers on, AdamW takes its step in one pass over them: several times as fast, and
without the temporaries of a step in single operations, which for a large vocabulary are some of the peak, and on a GPU
as large as the model."""

TOGETHER = 1 << 24
"""Muon orthogonalises matrices of so many numbers at once: enough for full speed, and its temporaries, about 16 bytes a
number, stay below the peak of a pass through the model."""


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """How the learning rate moves over the optimiser's updates, as a factor of the base rate."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    """After a linear warm-up ``constant``; or ``linear``: constant until the last ``decay_fraction`` of
    ``total_steps``, then falling linearly to ``final_factor``; or ``cosine`` from 1 to ``final_factor`` between warm-up
    and ``total_steps``."""
    warmup_steps: int = 0
    """Updates of the warm-up."""
    total_steps: int | None = None
    """Must be known for ``linear`` and ``cosine``."""
    decay_fraction: float = 0.4
    final_factor: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("constant", "linear", "cosine"):
            raise ConfigError(f"schedule.kind: {self.kind!r} is not one of constant, linear, cosine")
        if self.kind != "constant" and not self.total_steps:
            raise ConfigError(f"schedule.total_steps: the {self.kind} schedule needs the number of updates")
        if not 0.0 < self.decay_fraction <= 1.0:
            raise ConfigError(f"schedule.decay_fraction: {self.decay_fraction} is not in (0, 1]")


def lr_factor(update: int, config: ScheduleConfig) -> float:
    """The factor of the base learning rate at update number ``update``, counted from 0. Never exactly 0 before
    ``total_steps``; from then on ``final_factor`` (except constant)."""
    if update < config.warmup_steps:
        return (update + 1) / config.warmup_steps
    if config.kind == "constant" or config.total_steps is None:
        return 1.0
    total, final = config.total_steps, config.final_factor
    if config.kind == "linear":
        start = max(total - round(total * config.decay_fraction), config.warmup_steps)
        progress = (update - start + 1) / (total - start + 1)
        return 1.0 - (1.0 - final) * min(max(progress, 0.0), 1.0)
    progress = (update - config.warmup_steps + 1) / (total - config.warmup_steps + 1)
    return final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """The optimiser of a learner, and its learning rate."""

    kind: Literal["adamw", "muon"] = "adamw"
    """The rule: "adamw", or "muon": Muon with ``muon_lr`` for the matrices inside the network, AdamW with ``lr`` for
    embeddings, output matrix, norms and a mixture's experts."""
    lr: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    """Decoupled; it spares embeddings, norms and biases."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this global norm (0: never)."""
    muon_lr: float = 0.02
    muon_momentum: float = 0.95
    muon_steps: int = 5
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)

    def __post_init__(self) -> None:
        if self.kind not in ("adamw", "muon"):
            raise ConfigError(f"optimizer.kind: {self.kind!r} is not one of adamw, muon")
        for name in ("lr", "muon_lr"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"optimizer.{name}: must be above 0, got {getattr(self, name)}")


def orthogonalised(matrix: Tensor, steps: int = 5) -> Tensor:
    """About U V^T for matrix = U S V^T; works on the last two dimensions of [..., m, n]."""
    a, b, c = QUINTIC
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x.bfloat16() if x.is_cuda else x.float()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrix.dtype)


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay, for parameters of two dimensions.

    The update of an [m, n] matrix is scaled by sqrt(max(1, m / n)). Matrices of one shape are orthogonalised together,
    as many as have ``TOGETHER`` numbers.
    ``wholes``: where parameters are rows of sharded matrices, the sharded parameter of each; every process then
    orthogonalises the whole matrices and takes its own rows.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        steps: int = 5,
        wholes: Mapping[nn.Parameter, nn.Parameter] | None = None,
    ) -> None:
        self._wholes = wholes or {}
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "steps": steps})
        for group in self.param_groups:
            if any(p.ndim != 2 for p in group["params"]):
                raise ValueError("Muon is for matrices; give vectors and higher tensors to AdamW")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient. Closures are not supported."""
        if closure is not None:
            raise ValueError("Muon takes no closure")
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_shape.setdefault(self._wholes.get(p, p).shape, []).append(p)
            for shape, params in by_shape.items():
                scale = group["lr"] * math.sqrt(max(1.0, shape[0] / shape[1]))
                for some in _batches(params, max(1, TOGETHER // shape.numel())):
                    directions = [
                        shards.whole(self._wholes.get(p, p), self._direction(p, group["momentum"])) for p in some
                    ]
                    updates = orthogonalised(torch.stack(directions), group["steps"])
                    for p, update in zip(some, updates, strict=True):
                        rows = shards.rows_of(self._wholes.get(p, p))
                        own = update[rows.start : rows.stop].to(p.device)
                        p.mul_(1.0 - group["lr"] * group["weight_decay"]).add_(own, alpha=-scale)

    def _direction(self, p: nn.Parameter, momentum: float) -> Tensor:
        assert p.grad is not None
        state = self.state[p]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        average: Tensor = state["momentum"]
        average.lerp_(p.grad, 1.0 - momentum)
        return p.grad.lerp(average, momentum)


class ScheduledOptimizer:
    """The optimisers of one model with one schedule: clip, step, count.

    ``updates``: optimiser steps taken so far; the schedule is a function of it alone. Of a sharded model each process
    moves its own rows; ``own`` gives these for each trained parameter (the parameter itself where it is whole), and the
    gradient's norm is that of all processes together.
    """

    def __init__(self, model: nn.Module, config: OptimizerConfig) -> None:
        self.config = config
        self.updates = 0
        trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.own: dict[nn.Parameter, nn.Parameter] = {p: shards.own_rows(p) for p in trained.values()}
        self.names: dict[nn.Parameter, str] = {self.own[p]: n for n, p in trained.items()}
        inner, outer, stacks, plain = ([self.own[p] for p in part] for part in partition(model))
        decay = config.weight_decay
        adamw = [
            {"params": plain, "weight_decay": 0.0},
            {"params": outer, "weight_decay": 0.0},
            {"params": stacks, "weight_decay": decay},
        ]
        self.optimizers: list[torch.optim.Optimizer] = []
        if config.kind == "muon" and inner:
            wholes = {own: p for p, own in self.own.items()}
            muon = Muon(inner, config.muon_lr, config.muon_momentum, decay, config.muon_steps, wholes)
            self.optimizers.append(muon)
        else:
            adamw.append({"params": inner, "weight_decay": decay})
        groups = [g for g in adamw if g["params"]]
        if groups:
            fused = _in_one_pass(self.names)
            self.optimizers.append(
                torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=fused)
            )
        self._base = [[g["lr"] for g in o.param_groups] for o in self.optimizers]
        owner = {p: o for o in self.optimizers for g in o.param_groups for p in g["params"]}
        self._places = {n: (p, self.own[p], owner[self.own[p]]) for n, p in trained.items()}

    @property
    def lr(self) -> float:
        """AdamW's learning rate at the next update."""
        return self.config.lr * lr_factor(self.updates, self.config.schedule)

    def step(self) -> dict[str, float]:
        """Clip, update, and clear the gradients. Returns ``grad_norm`` (before clipping) and ``lr``.

        Where the gradient's norm is not finite nothing is updated or counted, and ``nonfinite`` is 1.
        """
        for p, own in self.own.items():
            if own is not p:
                own.data = shards.local(p)  # its memory may have moved
                own.grad = None if p.grad is None else shards.local(p.grad)
        parameters = [p for p in self.names if p.grad is not None]
        limit = self.config.max_grad_norm if self.config.max_grad_norm > 0 else math.inf
        size = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        first = next(iter(self.own))
        if self.own[first] is not first:
            size = shards.total(first, size.double().square()).sqrt().to(size)
        nn.utils.clip_grads_with_norm_(parameters, limit, size)
        norm = float(size)
        metrics = {"grad_norm": norm, "lr": self.lr, "nonfinite": 0.0}
        if not math.isfinite(norm):
            self.zero_grad()
            return metrics | {"nonfinite": 1.0}
        factor = lr_factor(self.updates, self.config.schedule)
        for optimizer, base in zip(self.optimizers, self._base, strict=True):
            for group, lr in zip(optimizer.param_groups, base, strict=True):
                group["lr"] = lr * factor
            optimizer.step()
        self.updates += 1
        self.zero_grad()
        return metrics

    def zero_grad(self) -> None:
        for p, own in self.own.items():
            p.grad = own.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """The state by name: "<parameter>/<entry>", for example "model.norm.weight/exp_avg"; of a sharded model this
        process's rows."""
        return {
            f"{self.names[cast(nn.Parameter, p)]}/{entry}": value
            for optimizer in self.optimizers
            for p, state in optimizer.state.items()
            for entry, value in state.items()
        }

    def load(self, entries: Iterable[tuple[str, Tensor]], updates: int) -> None:
        """Restore the entries of ``tensors()``, one after another, and the count. Whoever calls it has called ``check``
        before."""
        for optimizer in self.optimizers:
            optimizer.state.clear()
        for key, value in entries:
            name, _, entry = key.rpartition("/")
            _, p, optimizer = self._places[name]
            optimizer.state[p][entry] = value.clone() if entry == "step" else value.to(p.device, copy=True)
        self.updates = updates

    def check(self, shapes: Iterable[tuple[str, torch.Size]]) -> None:
        """CheckpointError if a state with such entries, of these shapes (those of the wholes), does not fit this model
        or kind."""
        for key, shape in shapes:
            if not self._fits(key, shape):
                raise CheckpointError(
                    f"optimiser state {key!r} does not belong to this model trained by {self.config.kind} (optimizer): "
                    "resume with the settings that the checkpoint was made with"
                )

    def _fits(self, key: str, shape: torch.Size) -> bool:
        name, _, entry = key.rpartition("/")
        if name not in self._places:
            return False
        full, _, optimizer = self._places[name]
        if entry == "step":
            return not shape and not isinstance(optimizer, Muon)
        entries = {"momentum"} if isinstance(optimizer, Muon) else {"exp_avg", "exp_avg_sq"}
        return entry in entries and shape == full.shape


def _batches(params: Sequence[nn.Parameter], size: int) -> Iterator[Sequence[nn.Parameter]]:
    for start in range(0, len(params), size):
        yield params[start : start + size]


def _in_one_pass(parameters: Collection[nn.Parameter]) -> bool | None:
    """Whether AdamW takes its step fused; None: as PyTorch chooses."""
    large = any(p.numel() >= FUSED_FROM for p in parameters)
    return True if large and all(p.device.type in ("cpu", "cuda") for p in parameters) else None


def partition(model: nn.Module) -> tuple[list[nn.Parameter], ...]:
    """Trainable parameters: matrices inside the network; embeddings and output matrix; tensors of several matrices,
    such as a mixture's experts; norms and biases."""
    outside = {
        id(p)
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) or name.rpartition(".")[2] == "lm_head"
        for p in module.parameters(recurse=False)
    }
    trainable = [p for p in model.parameters() if p.requires_grad]
    inner = [p for p in trainable if p.ndim == 2 and id(p) not in outside]
    outer = [p for p in trainable if id(p) in outside and p.ndim == 2]
    stacks = [p for p in trainable if p.ndim > 2]
    taken = {id(p) for p in inner + outer + stacks}
    return inner, outer, stacks, [p for p in trainable if id(p) not in taken]
