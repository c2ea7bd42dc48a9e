"""How the rows of a sharded model's parameters lie over the processes of a group (``fully_shard``'s layout).

Everything here also takes plain tensors: those are whole in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class ShardRows:
    """Some rows of a tensor."""

    start: int
    """The first row."""
    stop: int
    """The row after the last."""
    whole: torch.Size
    """Shape of the whole tensor."""


def is_sharded(tensor: Tensor) -> bool:
    """Whether this is a ``DTensor``. (Their module takes most of a second to import: only those who shard need it.)"""
    return hasattr(tensor, "full_tensor")


def rows_of(parameter: Tensor) -> ShardRows:
    """The rows of a parameter that this process holds: the first dimension is cut in equal chunks, of which the last
    may be smaller or missing."""
    count = parameter.shape[0] if parameter.ndim else 1
    if not is_sharded(parameter):
        return ShardRows(0, count, parameter.shape)
    mesh = cast(Any, parameter).device_mesh
    size = -(-count // mesh.size())
    start = min(count, mesh.get_local_rank() * size)
    stop = min(count, start + size)
    if len(local(parameter)) != stop - start:
        raise RuntimeError(f"a parameter of {count} rows has {len(local(parameter))} here, not {stop - start}")
    return ShardRows(start, stop, parameter.shape)


def local(parameter: Tensor) -> Tensor:
    """This process's rows, in the parameter's own memory."""
    detached: Any = parameter.detach()
    rows: Tensor = detached.to_local() if is_sharded(detached) else detached
    return rows


def own_rows(parameter: nn.Parameter) -> nn.Parameter:
    """This process's rows of a sharded parameter as a parameter of their own, in the same memory; any other itself."""
    return nn.Parameter(local(parameter)) if is_sharded(parameter) else parameter


def whole(parameter: Tensor, part: Tensor | None = None) -> Tensor:
    """The whole of a parameter, or of something of its shape of which each process has its rows (``part``). All
    processes must ask together. On the device that they compute on, wherever the rows are."""
    part = local(parameter) if part is None else part
    if not is_sharded(parameter):
        return part
    from torch.distributed.tensor import DTensor

    like: Any = parameter
    mesh = like.device_mesh
    rows = part.to(mesh.device_type) if part.device.type != mesh.device_type else part
    tensor: Any = DTensor.from_local(
        rows, mesh, like.placements, run_check=False, shape=parameter.shape, stride=parameter.stride()
    )
    gathered: Tensor = tensor.full_tensor()
    return gathered


def total(parameter: Tensor, value: Tensor) -> Tensor:
    """The sum of a number over the processes that share the parameter."""
    if not is_sharded(parameter):
        return value
    summed = value.to("cpu", torch.float64)
    dist.all_reduce(summed)
    return summed
