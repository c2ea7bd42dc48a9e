"""Of benches/referee.py: what the originals' own code answered, and whether muarl answers the same."""

from __future__ import annotations

import asyncio
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from muarl.records.messages import read_message
from muarl.rewards.judge import FixedJudge
from muarl.rewards.outcome import do_nothing, score
from muarl.rewards.replay import replay
from muarl_worlds.acebench import official as acebench
from muarl_worlds.bfcl import official as bfcl
from muarl_worlds.tau import tau1_benchmark, tau2_benchmark


def rows(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file, which may be packed."""
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    return [json.loads(line) for line in text.splitlines()]


def as_the_originals(folder: Path) -> Iterator[tuple[str, int, int]]:
    """(what, rows, rows that muarl scores as the original does) of the files that are there."""
    if (folder / "tau2_gold_replay.jsonl").is_file():
        yield from _tau2(folder)
    if (folder / "tau1_gold_replay.jsonl").is_file():
        found = rows(folder / "tau1_gold_replay.jsonl")
        yield "TAU1: reward of doing nothing", len(found), sum(_tau1_idle(r) == r["control"] for r in found)
    revisions: tuple[Literal["v3", "v4"], ...] = ("v3", "v4")
    for revision in revisions:
        if (path := folder / f"bfcl_{revision}_mutants.jsonl.xz").is_file():
            found = rows(path)
            same = 0
            for n, row in enumerate(found):
                told = bfcl.score_row({"id": row["id"], "calls": row["calls"]}, f"{path}, line {n + 1}", revision)
                same += (told["valid"], told["error_type"]) == (row["valid"], row["error_type"])
            yield f"BFCL {revision}: verdict and error of altered traces", len(found), same
    if (path := folder / "acebench_gold.jsonl").is_file():
        count = same = 0
        for row in rows(path):
            for one in row["alts"]:
                given = {"id": row["id"], "language": row["lang"], **one["result"]}
                line = {
                    "id": given["id"], "language": given["language"], "final_state": given["result"],
                    "process": given["process"],
                }  # fmt: skip
                told = acebench.score_row(line, str(path))
                count += 1
                same += (told["end_to_end"], told["process"]) == (one["e2e"], one["process"])
        yield "ACEBench: end-to-end and process score of gold and altered traces", count, same


def _tau2(folder: Path) -> Iterator[tuple[str, int, int]]:
    found = rows(folder / "tau2_gold_replay.jsonl")
    domains = {name: tau2_benchmark.domain(name) for name in {row["domain"] for row in found}}
    idle = 0
    for row in found:
        task = tau2_benchmark.task(row["domain"], row["id"])
        told = asyncio.run(do_nothing(domains[row["domain"]], task, judge=FixedJudge(True)))
        idle += told.reward == row["control_reward"]
    yield "TAU2: reward of doing nothing", len(found), idle
    wanted = {(row["domain"], row["id"]): row["reward"] for row in found}
    same = count = 0
    for talk in rows(folder / "tau2_gold_trajectories.jsonl"):
        task = tau2_benchmark.task(talk["domain"], talk["id"])
        world = domains[talk["domain"]].world(task)
        messages = [read_message(m, talk["id"]) for m in talk["messages"]]
        replay(world, messages)
        reward = asyncio.run(score(task, world, messages, "user_stop", judge=FixedJudge(True))).reward
        count += 1
        same += reward == wanted[talk["domain"], talk["id"]]
    yield "TAU2: reward of the gold conversations", count, same


def _tau1_idle(row: dict[str, Any]) -> float:
    task = tau1_benchmark.task(row["domain"], row["i"], split=row["split"])
    return float(tau1_benchmark.score(task, tau1_benchmark.domain(row["domain"]).world(task), ()).reward)
