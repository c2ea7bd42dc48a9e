"""Runs that are killed at random moments, again and again, and end as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.config.stages import SCENARIOS
from muarl.domains.mcp.servers import server
from muarl.learning.checkpoint_files import MANIFEST
from muarl.learning.checkpoint_folders import list_checkpoints
from support.environments import ON_SERVERS
from support.killing import NOT_COMPARED, Host, dataset, episodes, lasting, litter, live_and_die, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("coin")]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host("support.coin:allow") as made:
        yield made


def sums(run: Path) -> dict[str, str]:
    """The sums of all weights and trainers' states."""
    found = {}
    for root in (run / "checkpoints", run / "checkpoints" / "rl"):
        for _, path in list_checkpoints(root):
            for name, said in json.loads((path / MANIFEST).read_text())["files"].items():
                found[f"{path.relative_to(run)}/{name}"] = said["sha256"]
    return found


def scalars(run: Path) -> list[tuple[str, int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return [
        (tag, e.step, e.value)
        for tag in sorted(events.Tags()["scalars"])
        for e in events.Scalars(tag)
        if not any(word in tag for word in NOT_COMPARED)
    ]


def done(run: Path) -> int:
    """Rows of figures."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


TRAINING = [
    "sft.steps=12",
    "sft.checkpoint_every=3",
    "rl.steps=16",
    "rl.minibatches=2",
    "rl.kl_coef=0.01",
    "rl.checkpoint_every=2",
    "rl.eval_every=4",
    "rl.save_episodes=all",
    "eval.tasks=40",  # a life whose training is over has some way to go
]


def test_twenty_deaths_of_a_training_run(host: Host, small: Callable[..., list[str]], tmp_path: Path) -> None:
    options = small(*TRAINING)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    life = host.begin("quickstart", [*options, f"runs_dir={tmp_path}", "name=whole"], tmp_path / "whole.log")
    assert life.wait() == 0, (tmp_path / "whole.log").read_text()[-3000:]
    deaths = live_and_die(
        host, "quickstart", options, cut, deaths=20, progress=done, whole=done(whole), seed=7, longest=1.0
    )
    assert len(deaths) == 20 and max(deaths) > 0.7 * done(whole), deaths
    assert rows(cut) == rows(whole)
    assert episodes(cut) == episodes(whole)
    assert sums(cut) == sums(whole) and "checkpoints/rl/step-000016/trainer.safetensors" in sums(cut)
    assert scalars(cut) == scalars(whole)
    assert lasting(json.loads((cut / "summary.json").read_text())) == lasting(
        json.loads((whole / "summary.json").read_text())
    )
    assert (cut / "tasks.jsonl").read_bytes() == (whole / "tasks.jsonl").read_bytes()
    assert json.loads((cut / "status.json").read_text())["state"] == "finished"
    seconds = [json.loads(line)["seconds"] for line in (cut / "metrics.jsonl").read_text().splitlines()]
    assert seconds == sorted(seconds), "its clock goes on"
    assert not litter(cut)
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {"whole", "cut"}


def test_deaths_of_an_asynchronous_run(host: Host, small: Callable[..., list[str]], tmp_path: Path) -> None:
    """What finishes first decides what is learned from first; but every task is learned from, and once."""
    options = small(
        "rl.steps=12", "rl.asynchrony=bounded", "rl.staleness=2", "rl.checkpoint_every=2", "rl.save_episodes=all"
    )
    cut = tmp_path / "cut"
    live_and_die(host, "rl", options, cut, deaths=6, progress=done, whole=12, seed=17, longest=0.4)
    assert [r["step"] for r in rows(cut)] == list(range(12))
    groups = [row["group"] for found in episodes(cut).values() for row in found]
    assert sorted({int(g.split("/")[0]) for g in groups}) == list(range(24))
    assert len(groups) == 24 * 4 and len({(r["id"]) for found in episodes(cut).values() for r in found}) == 24 * 4
    assert not litter(cut)


def lines(name: str) -> Callable[[Path], int]:
    """Finished episodes in a file."""

    def count(run: Path) -> int:
        path = run / "episodes" / name
        return path.read_bytes().count(b"\n") if path.is_file() else 0

    return count


def by_id(run: Path, name: str) -> dict[str, Any]:
    found = episodes(run)[name]
    kept = {row["id"]: row for row in found}
    assert len(kept) == len(found), "none is there twice"
    for row in found:
        row["tags"].pop("resumed", None)
    return kept


def test_deaths_of_an_evaluation(host: Host, small: Callable[..., list[str]], tmp_path: Path) -> None:
    options = small(
        "eval.tasks=30", "eval.trials=2", "rollout.concurrency=4", "eval.baseline=false", "eval.temperature=1"
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    life = host.begin("evaluate", [*options, f"runs_dir={tmp_path}", "name=whole"], tmp_path / "whole.log")
    assert life.wait() == 0, (tmp_path / "whole.log").read_text()[-3000:]
    live_and_die(host, "evaluate", options, cut, deaths=7, progress=lines("eval.jsonl"), whole=60, seed=11, longest=0.2)
    assert [r["id"] for r in episodes(cut)["eval.jsonl"]] == [r["id"] for r in episodes(whole)["eval.jsonl"]]
    ours, theirs = by_id(cut, "eval.jsonl"), by_id(whole, "eval.jsonl")
    # What was under way together decides the last bits of log-probabilities; nothing else differs.
    for name, row in ours.items():
        one, other = row["tokens"].pop("logprobs"), theirs[name]["tokens"].pop("logprobs")
        assert one == pytest.approx(other, abs=1e-4)
    assert ours == theirs
    assert rows(cut) == rows(whole)
    summaries = [lasting(json.loads((run / "summary.json").read_text())) for run in (cut, whole)]
    assert summaries[0] == summaries[1]
    assert (cut / "report.md").read_text().splitlines()[2:] == (whole / "report.md").read_text().splitlines()[2:]
    assert not litter(cut)


def test_deaths_of_an_offline_cold_start(host: Host, tmp_path: Path) -> None:
    there = [n for n in SCENARIOS if n not in ON_SERVERS or server(n.removeprefix("mcp-")).missing() is None]
    options = ["coldstart.count=30", "coldstart.concurrency=2", "user.delay=[0.0, 0.01]"]
    options.append(f"coldstart.scenarios={there}")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    first = [*options, f"runs_dir={tmp_path}", "name=whole"]
    assert host.begin("coldstart", first, tmp_path / "whole.log", "offline").wait() == 0, (
        tmp_path / "whole.log"
    ).read_text()[-3000:]
    files = sorted(p.name for p in (whole / "episodes").glob("*.jsonl"))
    played = {name: lines(name)(whole) for name in files}
    live_and_die(
        host,
        "coldstart",
        options,
        cut,
        deaths=4,
        progress=lambda run: sum(lines(name)(run) for name in files),
        whole=sum(played.values()),
        seed=13,
        longest=0.2,
        config="offline",
    )
    assert len(files) == len(there)
    assert episodes(cut) == episodes(whole), "content and order"
    assert rows(cut) == rows(whole)
    assert dataset(cut) == dataset(whole)
    assert not litter(cut)
