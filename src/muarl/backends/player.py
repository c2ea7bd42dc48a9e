"""A child process that plays a run's episodes: ``python -m muarl.backends.player SOCKET WEIGHTS``, both descriptors
that it inherits. See ``processes/child.py``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from muarl.basics.torch_environment import set_torch_environment
from muarl.workers.processes.child import Players, run


def main(connection: int, weights: int) -> None:
    """Serve the parent until it closes the connection."""
    set_torch_environment()  # before torch is imported

    def make(start: Mapping[str, Any]) -> Players:
        from muarl.backends.processes import PolicyPlayers

        return PolicyPlayers(start, weights)

    run(connection, make)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
