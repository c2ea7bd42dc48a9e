"""The original's side of benches/bfcl_scoring.py: runs in an interpreter that can import bfcl_eval, prints JSON.

Nothing of muarl is imported here. bfcl-eval's multi_turn_checker needs no more than mpmath beside the unpacked wheel
(v4's filelock too), so PYTHONPATH may simply name a folder into which the wheel was unpacked.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker


def main() -> None:
    jobs: list[dict[str, Any]] = json.loads(sys.stdin.read())
    seconds, valid = [], []
    for number in range(4):
        started = time.perf_counter()
        for job in jobs:  # a new name for the model, so that no object of an earlier round is used
            found = multi_turn_checker(job["calls"], job["ground_truth"], job["entry"], "", f"round{number}")
            if number == 0:
                valid.append(found["valid"])
        seconds.append(time.perf_counter() - started)
    json.dump({"seconds": seconds, "valid": valid}, sys.stdout)


if __name__ == "__main__":
    main()
