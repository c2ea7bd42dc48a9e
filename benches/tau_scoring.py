"""TAU2's worlds, tool calls, state hashes and scoring, against the original in the same run.

    git clone https://github.com/sierra-research/tau2-bench && cd tau2-bench && git checkout a2c0247
    python3.12 -m venv .venv && .venv/bin/pip install .
    python benches/tau_scoring.py --trajectories gold.jsonl --original tau2-bench/.venv/bin/python

Needs TAU2's data (muarl data add tau2) and recorded conversations as JSON lines with domain, id and messages. Both
sides score every conversation with all of its components (a judge that says "met" stands in for the model), and the
rewards must be equal. Gold states are computed within the timing on both sides. One process each, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muarl.rewards import outcome
from muarl.rewards.judge import make_judge
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl_worlds.tau import tau2_benchmark as tau2

CALLS: dict[str, dict[str, Any]] = {
    "retail": {"name": "get_order_details", "arguments": {"order_id": "#W2611340"}},
    "airline": {"name": "get_reservation_details", "arguments": {"reservation_id": "4WQ150"}},
    "telecom": {"name": "get_details_by_id", "arguments": {"id": "L1002"}},
}


def best(run: Callable[[], Any], count: int, repeats: int = 5) -> float:
    """The least mean time of one run, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - started) / count)
    return min(times)


def ours(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Our side, in the shape of tau_original's answer."""
    found = {}
    for name, given in CALLS.items():
        domain = tau2.domain(name)
        world = domain.world()
        call = ToolCall("1", given["name"], given["arguments"])
        assert not world.call("assistant", call).error, given
        world.digest()
        found[name] = {
            "world": best(domain.world, 1000),
            "call": best(lambda w=world, c=call: w.call("assistant", c), 200),
            "hash": best(lambda w=world: (w.full_hash("assistant"), w.full_hash("user")), 3),
        }
    talks = [(r["domain"], tau2.task(r["domain"], r["id"]), [_message(m) for m in r["messages"]]) for r in rows]
    judge, rewards, seconds = make_judge("pass"), [], dict.fromkeys(CALLS, 0.0)
    for name, task, messages in talks:
        domain = tau2.domain(name)
        started = time.perf_counter()
        world = domain.world(task)
        replay(world, messages)
        rewards.append(asyncio.run(outcome.score(task, world, messages, "user_stop", judge=judge)).reward)
        seconds[name] += time.perf_counter() - started
    return {"domains": found, "rewards": rewards, "scoring": seconds}


def _message(row: dict[str, Any]) -> Message:
    calls = tuple(
        ToolCall(c["id"], c["name"], c["arguments"], c.get("requestor", "assistant"))
        for c in row.get("tool_calls") or ()
    )
    if row["role"] == "tool":
        return Message("tool", row["content"], tool_call_id=row["id"], error=bool(row.get("error")))
    return Message(row["role"], row.get("content"), calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=Path, required=True, help="recorded conversations, JSON lines")
    parser.add_argument("--original", type=Path, help="python of an environment that has tau2-bench")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.trajectories.read_text(encoding="utf-8").splitlines() if line]
    rows = [{k: r[k] for k in ("domain", "id", "messages")} for r in rows if r["domain"] in CALLS]
    sides = {"muarl": ours(rows)}
    if options.original is not None:
        script = Path(__file__).with_name("tau_original.py")
        given = json.dumps({"calls": CALLS, "trajectories": rows})
        command = [str(options.original), str(script)]
        run = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
        sides["original"] = json.loads(run.stdout[run.stdout.index("{") :])
        assert sides["original"]["rewards"] == sides["muarl"]["rewards"], "the two sides score differently"
    print(f"{len(rows)} conversations, mean reward {sum(sides['muarl']['rewards']) / len(rows):.3f}")
    print("| domain | step | " + " | ".join(sides) + " | ratio |\n|---|---|" + "---|" * (len(sides) + 1))
    for name in CALLS:
        for step in ("world", "call", "hash", "scoring"):
            times = [s["scoring"][name] if step == "scoring" else s["domains"][name][step] for s in sides.values()]
            ratio = f"{times[-1] / times[0]:,.0f}" if len(times) > 1 else ""
            print(f"| {name} | {step} | " + " | ".join(_time(t) for t in times) + f" | {ratio} |")
    totals = [sum(s["scoring"].values()) for s in sides.values()]
    print("| all | scoring | " + " | ".join(_time(t) for t in totals) + f" | {totals[-1] / totals[0]:,.0f} |")
    if options.json is not None:
        options.json.write_text(json.dumps(sides, indent=2))


def _time(seconds: float) -> str:
    return next(
        f"{seconds * k:.3g} {u}" for k, u in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if seconds * k >= 1 or u == "µs"
    )


if __name__ == "__main__":
    main()
