"""What a CUDA graph does, done on a CPU: operations are recorded once, and repeated on the very same tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Tape(TorchDispatchMode):
    """Records every operation that is dispatched within. ``replay`` runs them again without the code that asked for
    them: what was a number then stays that number, and results go where they lay then."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out

    @property
    def asked(self) -> list[str]:
        """Operations that would make a host wait for its device."""
        waits = ("_local_scalar_dense", "nonzero", "item", "_to_copy", "equal")
        return [str(func) for func, *_ in self.calls if str(func).split(".")[1] in waits]

    def replay(self) -> None:
        """Run the operations again."""
        for func, args, kwargs, out in self.calls:
            new = func(*args, **kwargs)
            for here, there in zip(tree_leaves(new), tree_leaves(out), strict=True):
                if here is not there and here.data_ptr() != there.data_ptr():
                    there.copy_(here)


def recorded(step: Callable[[], torch.Tensor], tapes: list[Tape] | None = None) -> Callable[[], torch.Tensor]:
    """``step``, recorded by running it once; calling the result runs the record."""
    with Tape() as tape:
        out = step()
    if tapes is not None:
        tapes.append(tape)

    def again() -> torch.Tensor:
        tape.replay()
        return out

    return again
