"""A thinking model whose template drops earlier thoughts, through a cold start, training, a break, and evaluation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.chat_formats.choice import chat_format
from muarl.learning.checkpoints import load_policy, load_tokenizer, save_policy
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl, sft
from muarl.types.episode import Episode, read_episodes
from support.chat_families import Case, source

TRAINING = (
    "rl.steps=2", "rl.checkpoint_every=1", "rl.drop_zero_variance=false", "rl.loss_aggregation=sequence_mean",
    "rl.minibatches=2", "rl.save_episodes=all", "eval.tasks=2", "eval.baseline=false", "rollout.max_turns=8",
    "rollout.tokens_per_turn=64", "model.max_context=512", "model.thinking=true",
)  # fmt: skip


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """The shipped checkpoint with Qwen3's own template, which drops earlier thoughts."""
    policy = load_policy(checkpoint_folder("base"))
    folder = save_policy(tmp_path / "start", policy.model, policy.tokenizer)
    (folder / "chat_template.jinja").write_text(source(Case("qwen3", "qwen3")) or "")
    return folder


def step_rows(run: Path) -> list[dict[str, Any]]:
    return [r for r in RunDirectory.at(run).read_metrics() if r["phase"] == "rl"]


def check(episode: Episode) -> None:
    """Each turn's sampled ids are in one segment, once, and nothing else is trained."""
    trace = episode.tokens
    assert trace is not None
    spans = [t.span for t in episode.turns if t.span is not None]
    assert [n for a, b in spans for n in range(a, b)] == [n for n, mine in enumerate(trace.loss_mask) if mine]
    assert all(not any(a < at < b for at in trace.restarts) for a, b in spans)
    assert trace.sampled_count == episode.agent_usage.completion_tokens
    contexts = zip([0, *trace.restarts], [*trace.restarts, len(trace)], strict=True)
    assert episode.agent_usage.prompt_tokens == sum(a - s for s, e in contexts for a, b in spans if s <= a < e)


@pytest.mark.slow
def test_it_learns_from_every_segment(
    start: Path, configure: Callable[..., Any], muarl: Callable[..., Any], tmp_path: Path
) -> None:
    cold = sft.run(configure("sft.steps=40", "sft.batch=8", "sft.demonstrations=24", *TRAINING[-2:],
                             f"model.checkpoint={start}", name="cold"))  # fmt: skip
    saved = checkpoint_folder(str(cold))
    assert chat_format(load_tokenizer(saved), thinking=True).drops_thoughts, "the template stays the family's"
    assert "thoughts of earlier turns kept" not in (saved / "README.md").read_text()
    run = rl.run(configure(*TRAINING, f"model.checkpoint={cold}", "rl.steps=1", name="rl"))
    resumed = muarl("train", "--resume", str(run), "rl.steps=2")
    assert resumed.exit_code == 0, resumed.output
    found = [e for n in (0, 1) for e in read_episodes(run / "episodes" / f"train-{n:04d}.jsonl")]
    for episode in found:
        check(episode)
    assert sum(bool(e.tokens.restarts) for e in found) > 2, "the policy has learned to think first"
    rows = step_rows(run)
    assert [r["step"] for r in rows] == [0, 1]
    for row in rows:
        assert row["update/logprob_gap_max"] < 1e-3, "what is trained is what was sampled"
        assert row["samples"] == row["episodes"], "episodes are counted, not segments"
        assert row["update/loss_tokens"] == pytest.approx(row["agent_tokens"] * row["episodes"])

    ahead = rl.run(configure(*TRAINING, "rl.asynchrony=bounded", "rl.staleness=1", "rl.steps=3",
                             f"model.checkpoint={cold}", name="ahead"))  # fmt: skip
    found = [e for n in range(3) for e in read_episodes(ahead / "episodes" / f"train-{n:04d}.jsonl")]
    for episode in found:
        check(episode)
    assert sum(bool(e.tokens.restarts) for e in found) > 2
    for row in step_rows(ahead):
        assert row["samples"] == row["episodes"]
        assert row["update/loss_tokens"] == pytest.approx(row["agent_tokens"] * row["episodes"])

    kept = rl.run(configure(*TRAINING, "model.earlier_thoughts=keep", f"model.checkpoint={cold}", "rl.steps=1",
                            name="kept"))  # fmt: skip
    assert not any(e.tokens.restarts for e in read_episodes(kept / "episodes" / "train-0000.jsonl"))
    result = muarl("eval", "--checkpoint", str(run), "--name", "scored", "eval.tasks=2")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "runs" / "scored" / "summary.json").read_text())["evaluation"]["tasks"] == 2
