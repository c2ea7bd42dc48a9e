"""BFCL's multi-turn checker over all 800 gold entries of a revision, against the original in the same run.

    pip download --no-deps bfcl-eval==2026.3.23 && unzip -q bfcl_eval-2026.3.23-*.whl -d original
    python3.11 -m venv .original && .original/bin/pip install mpmath==1.3.0 filelock
    PYTHONPATH=original python benches/bfcl_scoring.py --revision v4 --original .original/bin/python

Needs BFCL's data (muarl data add bfcl). Both sides run the ground truth twice, as what a model called and as what it is
compared with, and compare states and texts; files are read before. "first" is a process's first round, in which nothing
is known yet; then the least of three more. Here no objects are kept between two rounds either (--kept: the initial
states of tasks are, as within a training run). One process each, one after the other, twice over.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from muarl_worlds import data
from muarl_worlds.bfcl import official as bfcl


def jobs_of(revision: str) -> list[dict[str, Any]]:
    """The entries with their ground truth, and it as a model's calls."""
    found = []
    for category in bfcl.CATEGORIES:
        file = f"BFCL_{revision}_multi_turn_{category}.json"
        entries = data.read_json_lines("bfcl", f"{revision}/{file}")
        answers = data.read_json_lines("bfcl", f"{revision}/possible_answer/{file}")
        for entry, answer in zip(entries, answers, strict=True):
            truth = answer["ground_truth"]
            calls = [[[call] for call in turn] for turn in truth]
            found.append({"entry": entry, "ground_truth": truth, "calls": calls})
    return found


def ours(revision: str, *, kept: bool) -> dict[str, Any]:
    """Our side, in the shape of bfcl_original's answer."""
    tasks = bfcl.tasks(revision)
    jobs = [(task, [[[call] for call in turn] for turn in bfcl.ground_truth(task)]) for task in tasks]
    domain = bfcl.domain(revision)
    seconds: list[float] = []
    valid: list[bool] = []
    for number in range(4):
        domain = domain if kept else bfcl.domain(revision)
        started = time.perf_counter()
        found = [bfcl.judge(domain, task, calls).valid for task, calls in jobs]
        seconds.append(time.perf_counter() - started)
        valid = found if number == 0 else valid
    return {"seconds": seconds, "valid": valid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", choices=bfcl.DOMAINS, default="v4")
    parser.add_argument("--original", type=Path, help="python of an environment that can import bfcl_eval")
    parser.add_argument("--kept", action="store_true", help="keep the initial states of tasks between rounds")
    parser.add_argument("--one-side", action="store_true", help="only our side, as JSON")
    options = parser.parse_args()
    if options.one_side:
        print(json.dumps(ours(options.revision, kept=options.kept)))
        return
    own = [sys.executable, __file__, "--revision", options.revision, "--one-side", *["--kept"] * options.kept]
    commands = {"muarl": own}
    given = json.dumps(jobs_of(options.revision))
    if options.original is not None:
        commands["original"] = [str(options.original), str(Path(__file__).with_name("bfcl_original.py"))]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(2):
        for name, command in commands.items():
            run = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
            rounds[name].append(json.loads(run.stdout[run.stdout.index("{") :]))
    for name, found in rounds.items():
        assert all(all(one["valid"]) for one in found), f"{name}: a gold entry is not valid"
    first = {name: min(one["seconds"][0] for one in found) for name, found in rounds.items()}
    least = {name: min(min(one["seconds"][1:]) for one in found) for name, found in rounds.items()}
    print(f"{len(json.loads(given))} entries of {options.revision}, all valid")
    print("| round | " + " | ".join(rounds) + " | ratio |\n|---|" + "---|" * (len(rounds) + 1))
    for label, times in (("first", first), ("later", least)):
        ratio = f"{times['original'] / times['muarl']:.1f}" if "original" in times else ""
        print(f"| {label} | " + " | ".join(f"{t:.2f} s" for t in times.values()) + f" | {ratio} |")


if __name__ == "__main__":
    main()
