"""Training throughput with slow users: synchronous, one step off, and bounded staleness, at the same concurrency.

    python benches/asynchrony.py                      # prints a table; about six minutes on two cores
    python benches/asynchrony.py --steps 4 --json f   # shorter, and the figures as JSON
    python benches/asynchrony.py --smoke              # a small run that only shows that it works

Users wait 0.5 to 3 seconds before each reply. Each mode trains the shipped small model for a few steps on the same
tasks with the same settings, in one process, in turns. Seconds are those of the steps: what the learner waited, and its
updates; loading is left out, filling and draining the pipeline is not. A synchronous step lasts as long as its slowest
conversation, with ever fewer of the others still talking; ahead of the learner a place is taken again as soon as it is
free.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from muarl.config.load import load_config
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl


def modes(staleness: int) -> dict[str, list[str]]:
    """The settings of each mode, by its name in the table."""
    corrected = ["rl.correction=token"]
    return {
        "synchronous": [],
        "one step off": ["rl.asynchrony=one_step_off", *corrected],
        f"bounded, staleness {staleness}": ["rl.asynchrony=bounded", f"rl.staleness={staleness}", *corrected],
    }


def measure(folder: Path, name: str, overrides: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """One mode's figures over the steps of a short training run."""
    settings = [
        f"runs_dir={folder}",
        f"name={name.replace(' ', '-').replace(',', '')}",
        "threads=1",
        f"user.delay=[{options.delay[0]},{options.delay[1]}]",
        f"rl.steps={options.steps}",
        f"rl.tasks_per_step={options.tasks}",
        f"rl.group_size={options.group}",
        f"rollout.concurrency={options.concurrency or options.tasks * options.group}",
        "rl.eval_every=0",
        "rl.checkpoint_every=0",
        "rl.practice.repeat=0",  # tasks as drawn, in every mode
        "rl.temperature=1",
    ]
    run = RunDirectory.at(rl.run(load_config("quickstart-easy", [*settings, *overrides])))
    rows = [r for r in run.read_metrics() if r["phase"] == "rl"]
    waited, worked = (sum(r[f"time/{what}"] for r in rows) for what in ("rollout", "update"))
    episodes = sum(r["episodes"] for r in rows)
    return {
        "mode": name,
        "episodes": episodes,
        "seconds": waited + worked,
        "episodes_per_second": episodes / (waited + worked),
        "learner_waits": waited / (waited + worked),
        "staleness_mean": sum(r.get("staleness_mean", 0.0) for r in rows) / len(rows),
        "staleness_max": max(r.get("staleness_max", 0.0) for r in rows),
        "gap": sum(r["update/logprob_gap_mean"] for r in rows if "update/logprob_gap_mean" in r) / len(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=8, help="tasks in a step")
    parser.add_argument("--group", type=int, default=8, help="episodes of each")
    parser.add_argument("--concurrency", type=int, help="episodes under way at once; by default one step's")
    parser.add_argument("--staleness", type=int, default=4)
    parser.add_argument("--delay", type=float, nargs=2, default=(0.5, 3.0), metavar=("LOW", "HIGH"))
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.steps, options.tasks, options.group, options.delay = 2, 2, 2, (0.01, 0.05)
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(Path(folder), name, given, options) for name, given in modes(options.staleness).items()]
    print(
        f"\n| mode | episodes/s | ratio | s a step | learner waits | staleness mean (max) | gap, nats |\n{'|---' * 7}|"
    )
    for f in found:
        print(
            f"| {f['mode']} | {f['episodes_per_second']:.2f} | "
            f"{f['episodes_per_second'] / found[0]['episodes_per_second']:.2f} | {f['seconds'] / options.steps:.1f} | "
            f"{f['learner_waits']:.0%} | {f['staleness_mean']:.2f} ({f['staleness_max']:.0f}) | {f['gap']:.4f} |"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
