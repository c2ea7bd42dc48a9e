"""An episode with the light core alone: played, scored and audited, by the library and by the command line."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import muarl

HEAVY = ("torch", "transformers", "tokenizers", "safetensors", "renderers", "tensorboard", "ray", "vllm", "peft")


async def play() -> None:
    """By the library: the scripted expert solves a task, the trivial agent of no turns does not."""
    shop = muarl.load_environment("retail-generated")
    (task,) = shop.make_tasks("test", 1)
    (episode,) = await muarl.play_tasks(shop, muarl.ExpertAgent(make=shop.needed_expert()), [task])
    findings = muarl.audit_episode(episode, task, domain=shop.make_domain())
    assert episode.reward == 1, episode.messages
    assert not [f for f in findings if f.severity == "critical"], findings
    report = await muarl.evaluate(shop, muarl.ExpertAgent(make=shop.needed_expert()), 20)
    assert report.success.value > 0.9, report
    print(f"played {len(episode.messages)} messages, reward {episode.reward:g}, {len(findings)} findings")


def command(folder: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints, after a look at its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", "from muarl.cli.main import main; main()", *arguments],
        capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, f"muarl {' '.join(arguments)}: exit code {done.returncode}: {said}"
    return said


if __name__ == "__main__":
    present = [name for name in HEAVY if importlib.util.find_spec(name) is not None]
    assert not present or "--beside" in sys.argv, f"the light core brings {present}"
    asyncio.run(play())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command(folder, "eval", "--agent", "expert", "--tasks", "3")
        command(folder, "audit", "runs/eval")
        command(folder, "doctor", "--no-speed")
        if not present:
            assert "muarl[train]" in command(folder, "train", code=2)
    print("the light core plays, scores and audits")
