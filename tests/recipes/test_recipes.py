"""Each recipe from config to run folder, with a model that can hardly speak."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3ForCausalLM

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.system import usable_cores
from muarl.config.load import load_config
from muarl.environments import registry
from muarl.environments.configure import places_of
from muarl.learning.checkpoints import load_policy
from muarl.observe.rundir import RunDirectory
from muarl.recipes import quickstart, rl, sft
from muarl.runs.context import prepare
from support.command_lines import check

Configure = Callable[..., Any]
SOLVABLE = "domain.intents=[forbidden]"
"""Requests that must be refused: even a babbler gets some right."""


def rows(run: Path, phase: str) -> list[dict[str, Any]]:
    return [r for r in RunDirectory.at(run).read_metrics() if r["phase"] == phase]


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if "seconds" not in k and "time/" not in k and "per_second" not in k}


def status(run: Path) -> str:
    return json.loads((run / "status.json").read_text())["state"]


def test_base_leaves_a_checkpoint_that_transformers_loads(base_run: Path) -> None:
    folder = checkpoint_folder(str(base_run))
    assert folder == base_run / "checkpoints" / "base"
    model = Qwen3ForCausalLM.from_pretrained(folder, local_files_only=True)
    assert model.config.hidden_size == 32
    assert next(model.parameters()).dtype == torch.float16
    learned = [r["nll"] for r in rows(base_run, "base")]
    assert len(learned) == 60
    assert learned[-1] < learned[0] - 1
    assert status(base_run) == "finished"


def test_fewer_conversations_than_a_batch_are_enough_for_a_base(tmp_path: Path) -> None:
    from muarl.recipes import pretraining as base

    small = ["hidden=32", "layers=2", "heads=4", "steps=1", "batch=8", "conversations=3"]
    options = [f"base.{s}" for s in small]
    run = base.run(load_config("quickstart", [f"runs_dir={tmp_path}", "name=base", "threads=1", *options]))
    assert json.loads((run / "summary.json").read_text())["conversations"] == 3


@pytest.mark.parametrize("shape", [["layers=1"], ["heads=2"], ["hidden=66"], ["hidden=32", "heads=16"]])
def test_a_base_of_a_shape_that_cannot_be_laid_out_is_refused(tmp_path: Path, shape: list[str]) -> None:
    from muarl.recipes import pretraining as base

    with pytest.raises(ConfigError, match=r"base\.(layers|heads|hidden)"):
        base.run(load_config("quickstart", [f"runs_dir={tmp_path}", *(f"base.{s}" for s in shape)]))
    assert not list(tmp_path.iterdir())


def test_sft_learns_and_leaves_a_run(configure: Configure, litter: Callable[[Path], list[Path]]) -> None:
    run = sft.run(configure("sft.steps=4", "sft.lr=1e-2"))
    for name in ("config.yaml", "versions.json", "status.json", "metrics.jsonl", "episodes/demonstrations.jsonl"):
        assert (run / name).is_file(), name
    assert list((run / "tensorboard").iterdir())
    nll = [r["agent_nll"] for r in rows(run, "cold_start")]
    assert len(nll) == 4
    assert nll[-1] < nll[0]
    folder = checkpoint_folder(str(run))
    assert folder.name == "step-000004"
    Qwen3ForCausalLM.from_pretrained(folder, local_files_only=True)
    assert status(run) == "finished"
    assert not litter(run)


def test_demonstrations_come_from_a_file_too(configure: Configure) -> None:
    first = sft.run(configure("sft.steps=1"))
    file = first / "episodes" / "demonstrations.jsonl"
    run = sft.run(configure("sft.steps=1", f"sft.demonstrations_file={file}", name="again"))
    assert timeless(rows(run, "cold_start")[0]) == timeless(rows(first, "cold_start")[0])


def test_demonstrations_longer_than_the_model_reads_are_told_before_there_is_a_run(configure: Configure) -> None:
    first = sft.run(configure("sft.steps=1"))
    file = first / "episodes" / "demonstrations.jsonl"
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    said = next(t["message"] for t in episodes[0]["turns"] if t["message"]["role"] == "user")
    said["content"] = "kettle " * 3000
    long = first.parent / "long.jsonl"
    long.write_text("".join(json.dumps(e) + "\n" for e in episodes))
    with pytest.raises(ConfigError, match=r"the model in .* reads at most 2,048"):
        sft.run(configure("learner.pack_tokens=100000", f"sft.demonstrations_file={long}", name="never"))
    with pytest.raises(ConfigError, match="learner.pack_tokens is 100, and a demonstration takes"):
        sft.run(configure("learner.pack_tokens=100", f"sft.demonstrations_file={file}", name="never"))
    assert not (first.parent / "never").exists()


@pytest.mark.usefixtures("coin")
def test_train_leaves_a_run_whose_weights_have_moved(
    configure: Configure, base_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = rl.run(configure("rl.checkpoint_every=2", "rl.eval_every=2", "rl.kl_coef=0.001"))
    steps = rows(run, "rl")
    assert [r["step"] for r in steps] == [0, 1, 2]
    for name in ("success", "turns", "groups/mixed", "stop/user_stop", "update/loss", "time/rollout", "time/update"):
        assert name in steps[0], name
    learned = next(r for r in steps if r["samples"])
    assert {"entropy", "kl", "update/grad_norm", "update/ratio_max"} <= learned.keys()
    assert learned["update/logprob_gap_max"] < 1e-3, "what is trained is what was sampled"
    validated = rows(run, "validation")
    assert [r["step"] for r in validated] == [1]
    assert validated[0]["success_without_violation"] <= validated[0]["success"]
    said = capsys.readouterr().err
    assert "Validation after step 2: success" in said and "without any violation" in said
    assert {p.name for p in (run / "checkpoints" / "rl").iterdir()} == {"step-000002", "step-000003"}
    assert {p.name for p in (run / "episodes").iterdir()} == {
        "train-0000.jsonl",
        "train-0001.jsonl",
        "train-0002.jsonl",
    }
    trained = load_policy(checkpoint_folder(str(run))).model
    start = load_policy(checkpoint_folder(str(base_run))).model
    pairs = zip(trained.parameters(), start.parameters(), strict=True)
    assert any((a != b).any() for a, b in pairs)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_training(configure: Configure) -> None:
    first, second = (rl.run(configure(SOLVABLE, "rl.steps=2", name=name)) for name in ("one", "two"))
    assert [timeless(r) for r in rows(first, "rl")] == [timeless(r) for r in rows(second, "rl")]
    other = rl.run(configure(SOLVABLE, "rl.steps=1", "seed=1", name="other"))
    assert timeless(rows(other, "rl")[0]) != timeless(rows(first, "rl")[0])


@pytest.mark.usefixtures("coin")
@pytest.mark.parametrize(
    "options",
    [
        ["rl.method=dapo", "rl.group_size=2"],
        pytest.param(["rl.method=dr_grpo"], marks=pytest.mark.slow),
        pytest.param(["rl.method=gspo"], marks=pytest.mark.slow),
        pytest.param(
            ["rl.method=rloo", "rl.kl_estimator=k2", "rl.top_p=0.95", "rl.epochs=2", "rl.minibatches=2"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["rl.drop_zero_variance=false", "rl.kl_coef=0"], marks=pytest.mark.slow),
    ],
    ids=["dapo", "dr-grpo", "gspo", "rloo", "all-groups"],
)
def test_the_relatives_of_grpo_run(configure: Configure, options: list[str]) -> None:
    run = rl.run(configure("rl.steps=2", *options))
    steps = rows(run, "rl")
    assert len(steps) == 2
    learned = [r for r in steps if r["samples"]]
    assert learned
    assert all(r["update/nonfinite"] == 0 for r in learned)
    if "rl.drop_zero_variance=false" in options:
        assert all(r["samples"] == 8 for r in steps)
    if "rl.method=dapo" in options:
        assert max(r["groups"] for r in steps) > 2, "further tasks were drawn"
        assert all(r["groups_kept"] <= 2 and r["samples"] == 2 * r["groups_kept"] for r in steps)


@pytest.mark.parametrize(("command", "recipe"), [("quickstart", quickstart), ("train", rl)])
def test_a_finished_training_says_what_to_do_next(
    muarl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, recipe: Any
) -> None:
    found = registry.find
    monkeypatch.setattr(recipe, "run", lambda config: tmp_path / "runs" / "mine")
    monkeypatch.setattr(registry, "find", lambda name: replace(found(name), caller="member"))
    result = muarl(command)
    assert result.exit_code == 0, result.output
    for line in re.findall(r"(muarl .*?) {4}", result.output):
        check(line)
    said = " ".join(result.output.split())
    assert f"Next: muarl view {tmp_path}/runs/mine" in said and f"muarl chat {tmp_path}/runs/mine" in said
    assert "(be the member of this agent)" in said


def test_quickstart_leaves_everything_the_summary_promises(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configure("rl.steps=2", "rl.eval_every=0", "eval.harder_users=[typical,hard]")
    run = quickstart.run(config)
    said = capsys.readouterr().err
    begun = [line for line in said.splitlines() if " · stage " in line]
    assert [line.partition(":")[0] for line in begun] == list(
        quickstart.stages(config.eval, config.sft, config.rl, places_of(config))
    )
    assert all(f"stage {n} of {len(begun)}" in line for n, line in enumerate(begun, 1))
    assert "Before and after reinforcement learning" in said and "after the cold start" in said
    summary = json.loads((run / "summary.json").read_text())
    for block in ("cold_start", "rl"):
        assert {"success", "interval", "tasks", "tokens_per_episode", "turns"} <= summary[block].keys()
        low, high = summary[block]["interval"]
        assert 0 <= low <= summary[block]["success"] <= high <= 1
        assert summary[block]["tasks"] == 4
        assert summary[block]["success_without_violation"] == summary["audit"][block]["success_without_violation"]
        assert summary[block]["success_without_violation"]["value"] <= summary[block]["success"]
    assert list(summary["harder_users"]) == ["typical", "hard"] and "By how hard users are to serve" in said
    assert all(block["tasks"] == 4 and 0 <= block["success"] <= 1 for block in summary["harder_users"].values())
    assert "These users are easy to serve" in (run / "report.html").read_text(encoding="utf-8")
    assert "without any violation" in said.partition("After reinforcement learning")[2]
    assert all("violations" in e.verdict.audit for e in RunDirectory.at(run).read_episodes("eval-after") if e.verdict)
    assert isinstance(summary["do_nothing"], float)
    assert summary["seconds"] > 0
    assert summary["peak_memory_bytes"] > 50e6
    assert summary["seed"] == 0
    assert summary["user_train"] != summary["user_eval"]
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")
    names = {f"eval-{name}.jsonl" for name in ("before", "after", "typical", "hard")}
    assert names <= {p.name for p in (run / "episodes").iterdir()}
    assert {r["phase"] for r in RunDirectory.at(run).read_metrics()} >= {"cold_start", "rl", "evaluation"}
    assert status(run) == "finished"
    # The run stands for what reinforcement learning made of it, not for its cold start.
    assert checkpoint_folder(str(run)) == run / "checkpoints" / "rl" / "step-000002"
    assert checkpoint_folder(str(run / "checkpoints" / "last")) == run / "checkpoints" / "rl" / "step-000002"
    assert (run / "checkpoints" / "step-000003").is_dir()


def test_evaluation_reports_scores_behaviour_and_the_floor(muarl: Callable[..., Any], tmp_path: Path) -> None:
    result = muarl("eval", SOLVABLE, "--tasks", "6", "--trials", "3", "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    summary = json.loads((run / "summary.json").read_text())
    found = summary["evaluation"]
    assert found["tasks"] == 6
    assert found["episodes"] == 18
    assert set(found["pass_hat"]) == {"1", "2", "3"}
    values = [found["pass_hat"][k]["value"] for k in "123"]
    assert values == sorted(values, reverse=True)
    assert found["by_tag"].keys() == {"intent", "persona", "difficulty"}
    assert sum(v["n"] for v in found["by_stop"].values()) == 18
    clean = found["success_without_violation"]
    assert clean["value"] <= found["success"] and clean["n"] == 18
    assert "success without any violation" in result.output
    assert 0 <= summary["do_nothing"] <= 1
    assert {"turns", "agent_tokens"} <= found["behaviour"].keys()
    table = (run / "report.md").read_text()
    for word in ("pass^3", "do nothing", "intent: forbidden", "persona: ", "stopped by", "95% interval"):
        assert word in table, word
        assert word in result.output, word
    assert len(RunDirectory.at(run).read_episodes("eval")) == 18


def test_evaluation_takes_a_run_its_last_or_a_folder(
    muarl: Callable[..., Any], configure: Configure, tmp_path: Path
) -> None:
    run = sft.run(configure("sft.steps=1", name="cold"))
    scores = []
    for number, name in enumerate([run, run / "checkpoints" / "last", run / "checkpoints" / "step-000001"]):
        arguments = ["--checkpoint", str(name), "--name", f"e{number}", "eval.temperature=0", "eval.baseline=false"]
        result = muarl("eval", *arguments)
        assert result.exit_code == 0, result.output
        scores.append(json.loads((tmp_path / "runs" / f"e{number}" / "summary.json").read_text())["evaluation"])
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize(("agent", "success"), [("expert", 1.0), ("idle", None)])
def test_scripted_agents_need_no_model(muarl: Callable[..., Any], tmp_path: Path, agent: str, success: float) -> None:
    arguments = ["--agent", agent, "--name", "e", "rollout.max_turns=30", "model.checkpoint=nowhere", "eval.tasks=10"]
    result = muarl("eval", *arguments)
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())
    assert summary["evaluation"]["success"] == (success if success is not None else summary["do_nothing"])
    assert 0 <= summary["always_transfer"] < 1 and "always transfer" in result.output


def test_a_run_without_a_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        checkpoint_folder(str(tmp_path))
    assert checkpoint_folder(str(tmp_path / "absent")) == tmp_path / "absent"
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / "eval.jsonl").touch()
    with pytest.raises(CheckpointError, match="the run is an evaluation"):
        checkpoint_folder(str(tmp_path))


def test_a_checkpoint_under_home_may_be_written_with_a_tilde(
    base_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(base_run.parent))  # config.yaml of a run writes the home folder so
    assert checkpoint_folder(f"~/{base_run.name}") == base_run / "checkpoints" / "base"


def test_threads_are_those_asked_for_or_all_usable_cores() -> None:
    before = torch.get_num_threads()
    try:
        prepare(load_config("quickstart", ["threads=1"]))
        assert torch.get_num_threads() == 1
        prepare(load_config("quickstart", ["threads=0"]))
        assert torch.get_num_threads() == max(1, int(usable_cores()))
    finally:
        torch.set_num_threads(before)
