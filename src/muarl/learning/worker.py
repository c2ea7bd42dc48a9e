"""One process of a ``MultiProcessLearner``: ``python -m muarl.learning.worker FILE_DESCRIPTOR RANK``.

It reads calls from the socket it inherited and answers each with (kind, result, version); see ``workers``.
"""

from __future__ import annotations

import os
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


def main(connection: Connection, rank: int) -> None:
    """Serve calls until the other side closes the connection."""
    learner: Any = None
    while True:
        try:
            method, argument = connection.recv()
        except (EOFError, OSError):
            break
        try:
            if method == "start":
                learner = _start(argument, rank)
                result: Any = learner.names
            else:
                result = _serve(learner, method, argument)
            answer = ("done", result, learner.version)
        except Exception as problem:
            from muarl.learning.workers import ERRORS

            kind = type(problem).__name__
            known = kind in ERRORS
            answer = (kind, str(problem) if known else traceback.format_exc(limit=-4), 0)
        try:
            connection.send(answer)
        except OSError:
            break
    # Without saying goodbye to the group: another process may be gone already.
    sys.stderr.flush()
    os._exit(0)


def _start(told: dict[str, Any], rank: int) -> Any:
    import torch

    from muarl.basics.errors import InfrastructureError
    from muarl.learning.fsdp import ShardedLearner
    from muarl.learning.process_group import use_loopback, versions

    if told["versions"] != versions():
        raise InfrastructureError(
            f"this process runs {versions()}, but the one that started it {told['versions']}",
            boundary="learner",
            retryable=False,
        )
    if told["threads"] is not None:
        torch.set_num_threads(told["threads"])
    use_loopback()
    return ShardedLearner(
        Path(told["checkpoint"]),
        told["settings"],
        told["sharding"],
        rank=rank,
        world=told["world"],
        address=told["address"],
    )


def _serve(learner: Any, method: str, argument: Any) -> Any:
    import torch

    if method in ("sft_step", "policy_step"):
        metrics = getattr(learner, method)(argument)
        return metrics if learner.rank == 0 else None
    if method == "save":
        path, extra, python, states = argument
        generators = {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in states.items()}
        learner.save(Path(path), extra, caller=(python, generators))
        return None
    if method == "load":
        learner.load(Path(argument))
        return None
    if method == "weight":
        tensor = learner.weight(argument)
        if learner.rank != 0:
            return None
        data = tensor.cpu().contiguous()
        kind = str(data.dtype).removeprefix("torch.")
        return kind, tuple(data.shape), data.view(torch.uint8).numpy().tobytes()
    if method == "adapter":
        found = learner.adapter()
        return (
            {n: (tuple(t.shape), t.float().numpy().tobytes()) for n, t in found.items()} if learner.rank == 0 else None
        )
    raise ValueError(f"no such call: {method}")


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), int(sys.argv[2]))
