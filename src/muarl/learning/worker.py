"""One process of a ``MultiProcessLearner``: ``python -m muarl.learning.worker FILE_DESCRIPTOR RANK``.

It reads calls from the socket it inherited and answers each; see ``messages``.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from muarl.basics.child import Lifeline


def main(connection: socket.socket, rank: int) -> None:
    """Serve calls until the other side closes the connection."""
    Lifeline()
    from muarl.learning.messages import ERRORS, hear, say

    learner: Any = None
    while True:
        try:
            call, tensors = hear(connection)
        except (EOFError, OSError):
            break
        outputs: dict[str, Any] = {}
        try:
            if call["method"] == "start":
                learner = _start(call["argument"], rank)
                result: Any = learner.names
            else:
                result, outputs = _serve(learner, call["method"], call["argument"], tensors)
            answer = {"kind": "done", "result": result, "version": learner.version}
        except Exception as problem:
            kind = type(problem).__name__
            text = str(problem) if kind in ERRORS else traceback.format_exc(limit=-4)
            answer = {"kind": kind, "result": text, "version": 0}
        try:
            say(connection, answer, outputs)
        except OSError:
            break
    # Without saying goodbye to the group: another process may be gone already.
    sys.stderr.flush()
    os._exit(0)


def _start(start: dict[str, Any], rank: int) -> Any:
    import torch

    from muarl.basics.errors import InfrastructureError
    from muarl.learning.fsdp import ShardedLearner
    from muarl.learning.messages import SETTINGS, SHARDING
    from muarl.learning.process_group import use_loopback, versions

    if start["versions"] != versions():
        raise InfrastructureError(
            f"this process runs {versions()}, but the one that started it {start['versions']}",
            boundary="learner",
            retryable=False,
        )
    if start["threads"] is not None:
        torch.set_num_threads(start["threads"])
    use_loopback()
    return ShardedLearner(
        Path(start["checkpoint"]),
        SETTINGS.validate_python(start["settings"]),
        SHARDING.validate_python(start["sharding"]),
        rank=rank,
        world=start["world"],
        address=start["address"],
    )


def _serve(learner: Any, method: str, argument: Any, tensors: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A call's result and tensors, of which only the first process gives any."""
    from muarl.learning.messages import unpack_samples
    from muarl.learning.state_files import parse_random

    first = learner.rank == 0
    if method in ("sft_step", "policy_step"):
        metrics = getattr(learner, method)(unpack_samples(argument, tensors))
        return (metrics if first else None), {}
    if method == "save":
        path, extra, python = argument
        learner.save(Path(path), extra, caller=(parse_random(python), tensors))
        return None, {}
    if method == "load":
        learner.load(Path(argument))
        return None, {}
    if method == "weight":
        weight = learner.weight(argument)
        return None, {argument: weight.cpu()} if first else {}
    if method == "adapter":
        adapter = learner.adapter()
        return None, {name: tensor.float() for name, tensor in adapter.items()} if first else {}
    raise ValueError(f"no such call: {method}")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
