"""``muarl export --as hf``: what other programs make of the folder."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.cli.main import app
from muarl.environments.configure import places_of
from muarl.learning.checkpoints import load_policy
from muarl.recipes.chatting import chat_config
from muarl.runs.eval_agent import make_eval_agent
from muarl.types.chat import Message
from support.marks import first_of
from support.trained import make_run
from support.viewing import make_run as viewed_run


def export(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["export", *arguments])


def test_another_program_says_what_muarl_says(tmp_path: Path) -> None:
    """The first turn of a conversation with tools, greedily and in float32, by transformers alone."""
    out = tmp_path / "agent"
    result = export("base", "--dtype", "float32", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert str(out) in result.output.replace("\n", "")
    config, _ = chat_config("base", None, None)
    (place,) = places = places_of(config)
    tokenizer = AutoTokenizer.from_pretrained(out)
    model = AutoModelForCausalLM.from_pretrained(out, dtype="auto")
    assert model.dtype == torch.float32
    for task in places.draw("test", 4, 0, 0):
        opening = "I need to swap the kettle in order #W1783723 to a blue one."
        system, tools = place.system_prompt(task), place.tools(task)
        session = make_eval_agent(config, places).at(place).open(system, tools, seed=0, session="s")
        ours = asyncio.run(session.act([Message("user", opening)]))
        assert session.tokens is not None
        ids = tokenizer.apply_chat_template(
            [{"role": "system", "content": system}, {"role": "user", "content": opening}],
            tools=[t.to_openai() for t in tools], add_generation_prompt=True, return_dict=True, return_tensors="pt",
        )  # fmt: skip
        said = model.generate(**ids, max_new_tokens=64, do_sample=False)[0].tolist()
        assert said == session.tokens.ids
        assert ours.message.content and ours.message.content in tokenizer.decode(said)


@pytest.mark.parametrize("form", first_of(["csv", "messages", "atif", "rows"]))
def test_halves_of_characters_in_a_conversation_do_not_stop_an_export(tmp_path: Path, form: str) -> None:
    run = viewed_run(tmp_path / "runs", "theirs").path
    for file in (run / "episodes").glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            row["turns"][0]["message"]["content"] = "half \ud800"
            row["error"] = "half \udfff"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / ("out" if form == "atif" else "out.jsonl")
    result = export(str(run), "--as", form, "--out", str(out))
    assert result.exit_code == 0, result.output
    told = out.read_text() if out.is_file() else next(out.iterdir()).read_text()
    assert "half \\ud" in told


def test_weights_in_another_number_format(tmp_path: Path) -> None:
    out = tmp_path / "half"
    assert export("base", "--as", "hf", "--dtype", "bfloat16", "--out", str(out)).exit_code == 0
    assert {t.dtype for t in load_file(out / "model.safetensors").values()} == {torch.bfloat16}
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"
    ours = dict(load_policy(checkpoint_folder("base")).model.named_parameters())
    theirs = load_policy(out).model
    for name, parameter in theirs.named_parameters():
        assert torch.equal(parameter, ours[name].to(torch.bfloat16).float()), name
    names = {p.name for p in out.iterdir()}
    assert {"chat_template.jinja", "generation_config.json", "README.md", "tokenizer.json", "manifest.json"} <= names
    assert not any(name.startswith("trainer") for name in names)
    assert "license: apache-2.0" in (out / "README.md").read_text()


def test_the_card_of_a_runs_checkpoint(tmp_path: Path, base_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "mine", "model.thinking=true")
    folder = run / "checkpoints" / "rl" / "step-000003"
    for file in checkpoint_folder(str(base_run)).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    row = {"phase": "validation", "step": 2, "success": 0.75, "success_without_violation": 0.5}
    (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    summary = {"rl": {"success": 0.9, "interval": [0.8, 0.95], "tasks": 300}, "do_nothing": 0.125}
    summary["trained_on_benchmark"] = True
    (run / "summary.json").write_text(json.dumps(summary))
    assert export(str(run)).exit_code == 0
    card = (tmp_path / "mine-rl-step-3-hf" / "README.md").read_text()
    for words in (
        "| Run | mine (RL step 3) |", "| Base | base |", "| Steps | 3 |", "reinforcement learning (grpo)",
        "| success in validation | 75.0% |", "| the same in validation without any violation | 50.0% |",
        "| the same without any violation | not checked |",
        "| success on held-out tasks of the run | 90.0% (95% interval 80.0% to",
        "| doing nothing, on the same tasks | 12.5% |", "| trained on the benchmark's own tasks | yes: its score means",
        "conversations in retail-generated, size tiny", "thinks before it answers",
    ):  # fmt: skip
        assert words in card
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "mine-rl-step-3-hf")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False, add_generation_prompt=True
    )
    assert prompt.endswith("<|im_start|>assistant\n"), "it thinks unless it is told not to"


def test_a_run_whose_domain_nobody_here_knows_can_be_exported(tmp_path: Path, base_run: Path) -> None:
    run = make_run(tmp_path / "club", domain={"name": "club"}, model={"thinking": True})
    folder = run / "checkpoints" / "rl" / "step-000003"
    for file in checkpoint_folder(str(base_run)).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert export(str(run), "--out", str(tmp_path / "out")).exit_code == 0
    assert "thinks before it answers" in (tmp_path / "out" / "README.md").read_text()


def test_a_template_of_ones_own_is_kept_where_no_run_here_has_trained(tmp_path: Path, base_run: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for file in checkpoint_folder(str(base_run)).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}!")
    assert export(str(folder), "--out", str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == "{{ messages[0].content }}!"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bsae"], "did you mean base?"),
        (["base", "--as", "gguf"], "--as: 'gguf' is unknown; use one of hf"),
        (["base", "--out", "taken"], "taken exists"),
    ],
)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    result = export(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert {p.name for p in tmp_path.iterdir()} == {"taken"}


def test_a_hostile_runs_figures_do_not_stop_an_export(tmp_path: Path, base_run: Path) -> None:
    run = make_run(tmp_path / "theirs")
    for file in checkpoint_folder(str(base_run)).iterdir():
        (run / "checkpoints" / "rl" / "step-000003" / file.name).write_bytes(file.read_bytes())
    (run / "summary.json").write_text('{"rl": {"success": 0.5, "interval": null}}')
    (run / "metrics.jsonl").write_text('{"phase": "validation", "step": 2, "success": []}\n')
    result = export(str(run), "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| success on held-out tasks of the run | 50.0% |" in card and "success in validation" not in card
