"""How quick ``muarl view`` is with many episodes: indexing, and every kind of page, in seconds.

    python benches/view.py --episodes 100000

Makes a run of that many episodes (about 4.6 KB each) in a temporary folder, indexes it, then asks a server for each
page: once just started, as whoever opens the address, and at best of five. Of each, the seconds that passed and, in
brackets, those of the processor, which say more on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import urllib.request
from pathlib import Path

from muarl.environments.recorded_episodes import replay_recorded
from muarl_tools.view.runs import Library
from muarl_tools.view.server import ViewServer

INTENTS = ("cancel", "exchange", "modify_items", "return", "two_requests", "question", "forbidden", "outside")
PERSONAS = ("terse", "chatty", "confused", "impatient")
RULES = (
    ("policy", "write-without-consent", "violation"), ("safety", "cross-user-read", "catastrophic"),
    ("recovery", "needless-transfer", "violation"), ("safety", "cross-user-lookup", "note"),
)  # fmt: skip
STOPS = ("user_stop",) * 18 + ("transfer", "max_turns")


def episode(step: int, task: int, attempt: int, draw: random.Random) -> str:
    """One line of an episodes file, in size and shape as the quickstart writes them."""
    name = f"bench-tiny-train-0-{task}"
    good = draw.random() < 0.4 + 0.5 * step / 400
    turns = [{"message": {"role": "assistant", "content": "Hi! How can I help you today?"}, "seconds": 0.0}]
    for n in range(6):
        call = {"id": f"call_{n}", "name": draw.choice(("get_order", "get_user", "cancel_order", "calculate"))}
        call |= {"arguments": {"order_id": f"#W{draw.randrange(10**7)}"}, "requestor": "assistant"}
        turns += [
            {
                "message": {"role": "user", "content": "I want to change what I ordered last week."},
                "seconds": 0.1,
            },
            {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "seconds": 0.4, "version": step},
            {
                "message": {"role": "tool", "content": "pending, paid", "tool_call_id": f"call_{n}"},
                "seconds": 0.0,
            },
        ]
    size = 240
    mask = [n % 5 == 0 for n in range(size)]
    tokens = {
        "ids": [draw.randrange(2000) for _ in range(size)],
        "loss_mask": [int(m) for m in mask],
        "logprobs": [-round(draw.random(), 6) if m else 0.0 for m in mask],
        "versions": [step if m else -1 for m in mask],
    }
    usage = {"prompt_tokens": 900, "completion_tokens": 48, "requests": 6, "retries": 0, "cost": 0.0}
    group = f"{step}.0/{name}"
    row = {
        "schema": 1, "id": f"{group}#{attempt}", "task_id": name, "domain": "bench", "group": group,
        "seed": draw.randrange(1 << 62), "agent": "policy", "user": "agenda", "stop": draw.choice(STOPS),
        "turns": turns, "tokens": tokens, "error": None,
        "verdict": {"reward": float(good), "breakdown": {"DB": float(good)}, "audit": {}, "note": None},
        "tags": {"intent": INTENTS[task % 8], "persona": PERSONAS[task % 4], "difficulty": 1, "advantage": good - 0.5},
        "timings": {"total": 3.0}, "agent_usage": usage, "user_usage": usage,
    }  # fmt: skip
    return json.dumps(row) + "\n"


def finding(step: int, task: int, attempt: int, draw: random.Random) -> str:
    """One line of findings.jsonl about such an episode."""
    layer, rule, severity = draw.choice(RULES)
    name = f"bench-tiny-train-0-{task}"
    row = {
        "file": f"train-{step:04d}", "episode": f"{step}.0/{name}#{attempt}", "task_id": name, "layer": layer,
        "rule": rule, "severity": severity, "message": 3, "text": "get_order showed what is another's.",
        "call": "get_order", "by": "rule",
    }  # fmt: skip
    return json.dumps(row) + "\n"


def make_run(folder: Path, episodes: int) -> None:
    """A run with that many training episodes, 256 a step: 32 tasks of 400, 8 attempts each; half have a finding."""
    draw = random.Random(0)
    (folder / "episodes").mkdir(parents=True)
    figures, found = [], []
    for step in range(-(-episodes // 256)):
        left = min(256, episodes - step * 256)
        tasks = [draw.randrange(400) for _ in range(32)]
        lines = [episode(step, tasks[n // 8], n % 8, draw) for n in range(left)]
        (folder / "episodes" / f"train-{step:04d}.jsonl").write_text("".join(lines), encoding="utf-8")
        found += [finding(step, tasks[n // 8], n % 8, draw) for n in range(0, left, 2)]
        row = {
            "phase": "rl",
            "step": step,
            "seconds": 8.0 * step,
            "episodes": 256.0,
            "time/rollout": 5,
            "time/update": 2,
        }
        row |= {"time/update": 2} | {
            name: draw.random() for name in ("reward", "kl_k3", "entropy", "turns", "agent_tokens", "calls")
        }
        row |= {f"figure/{n}": draw.random() for n in range(90)}
        figures.append(json.dumps(row) + "\n")
    (folder / "metrics.jsonl").write_text("".join(figures), encoding="utf-8")
    (folder / "findings.jsonl").write_text("".join(found), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        make_run(folder, arguments.episodes)
        size = sum(p.stat().st_size for p in (folder / "episodes").iterdir())
        print(f"{arguments.episodes:,} episodes, {size / 2**20:,.0f} MiB")
        library = Library([folder], index=Path(scratch), replay=replay_recorded)
        store = library.runs[0].store
        started, worked = time.perf_counter(), time.process_time()
        steps = store.steps()
        while not next(steps):
            pass
        print(f"index, first chunk shown: {time.perf_counter() - started:.2f} s")
        for _ in steps:
            pass
        seconds, own = time.perf_counter() - started, time.process_time() - worked
        print(f"index, all: {seconds:.1f} s ({own:.1f}), {store.path.stat().st_size / 2**20:.0f} MiB")
        started = time.perf_counter()
        store.refresh()
        print(f"index, nothing new: {time.perf_counter() - started:.3f} s")
        pages = {
            "overview": "",
            "episodes": "runs/run/episodes",
            "episodes, last page": "runs/run/episodes?page=99999",
            "episodes, filtered": "runs/run/episodes?intent=cancel&result=failed&tool=calculate&sort=longest",
            "episodes, catastrophic": "runs/run/episodes?severity=catastrophic&rule=cross-user-read",
            "episodes, worst findings": "runs/run/episodes?sort=worst+findings",
            "search, found": "runs/run/episodes?text=ordered+last",
            "search, nothing": "runs/run/episodes?text=never+said+by+anybody",
            "tasks by kind": "runs/run/tasks",
            "hardest tasks": "runs/run/tasks?show=hardest",
        }
        for name, path in pages.items():
            # A viewer of its own for the first request, so that nothing is in its memory yet.
            first, best = fetch(folder, Path(scratch), path, 1), fetch(folder, Path(scratch), path, 5)
            print(f"{name}: {first[0]:.3f} s ({first[1]:.3f}) at first, {best[0]:.3f} s ({best[1]:.3f}) after")


def fetch(folder: Path, index: Path, path: str, times: int) -> tuple[float, float]:
    """Seconds and processor seconds of a request to a server just started: the first, or the best of several."""
    library = Library([folder], index=index, replay=replay_recorded)
    with ViewServer(library, port=0, token="bench") as server:
        server.start()
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/{path}")
        request.add_header("Cookie", f"{server.cookie}=bench")
        found = []
        for _ in range(times):
            started, worked = time.perf_counter(), time.process_time()
            with urllib.request.urlopen(request, timeout=120) as answer:
                answer.read()
            found.append((time.perf_counter() - started, time.process_time() - worked))
    return min(found)


if __name__ == "__main__":
    main()
