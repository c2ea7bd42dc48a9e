"""``muarl eval`` on the command line: what the short form stands for, and mistakes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.environments.registry import built_in, find

LLM = ["--agent", "endpoint:gpt-a", "--user", "endpoint:gpt-u@http://localhost:8000/v1"]


def evaluate(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["eval", *arguments])


def resolved(*arguments: str) -> RunConfig:
    result = evaluate(*arguments, "--dry-run")
    assert result.exit_code == 0, result.output
    return RunConfig.model_validate(yaml.safe_load(result.stdout))


def test_the_short_form_is_a_whole_configuration() -> None:
    config = resolved("tau2-telecom", "--split", "test", "--trials", "4", *LLM)
    assert config.name == "eval-tau2-telecom"
    assert config.domain.name == "tau2-telecom"
    ev = config.eval
    assert (ev.split, ev.trials, ev.tasks, ev.seed, ev.agent) == ("test", 4, None, 300, "endpoint")
    assert ev.endpoint is not None
    assert (ev.endpoint.model, ev.endpoint.base_url) == ("gpt-a", None)
    assert (ev.endpoint.temperature, ev.endpoint.max_tokens) == (0.0, None)
    assert config.eval_user.kind == "llm"
    assert config.eval_user.endpoint is not None
    assert config.eval_user.endpoint.base_url == "http://localhost:8000/v1"
    assert config.eval_user.endpoint.temperature == 0.0
    assert config.eval_user.guidelines == "auto"


@pytest.mark.parametrize("name", [name for name in built_in() if find(name).is_benchmark])
def test_every_benchmark_has_a_short_form(name: str) -> None:
    config = resolved(name, *LLM)
    assert config.domain.name == name
    assert config.eval.split == ("base" if name.startswith("tau2-") else "test")
    assert config.eval.trials == 1
    assert config.eval_user.endpoint is not None
    own = {"tau2": 0.0, "tau1": None, "acebench": 0.001}
    assert config.eval_user.endpoint.temperature == own.get(name.partition("-")[0], 0.0)


def test_options_and_settings_win_over_what_the_name_stands_for() -> None:
    options = [
        "--seed",
        "7",
        "-j",
        "3",
        "--judge",
        "endpoint:j",
        "--max-cost",
        "2.5",
        "--max-tokens",
        "9",
        "--tasks",
        "5",
    ]
    more = [
        "--price",
        "gpt-a=2/8",
        "--price",
        "a=b=0.1/0.2",
        "--task",
        "1",
        "--task",
        "4",
        "--user-judge",
        "endpoint:k",
    ]
    config = resolved("tau2-retail", *LLM, *options, *more, "eval.max_steps=50", "eval.endpoint.temperature=0.7")
    ev = config.eval
    assert (config.seed, ev.seed, ev.concurrency, ev.judge, ev.max_cost, ev.max_tokens) == (
        7,
        7,
        3,
        "endpoint:j",
        2.5,
        9,
    )
    assert ev.prices == {"gpt-a": (2.0, 8.0), "a=b": (0.1, 0.2)}
    assert (ev.task_ids, ev.user_judge, ev.max_steps, ev.tasks) == (("1", "4"), "endpoint:k", 50, 5)
    assert ev.endpoint is not None
    assert (ev.endpoint.temperature, ev.endpoint.concurrency) == (0.7, 3)


def test_a_checkpoint_gets_as_much_room_as_its_model_reads(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3", "max_position_embeddings": 9000}')
    config = resolved("tau2-retail", "--agent", str(tmp_path), *LLM[2:])
    assert (config.eval.agent, config.model.checkpoint) == ("sampled", str(tmp_path))
    assert (config.model.max_context, config.rollout.tokens_per_turn) == (9000, 2048)
    (tmp_path / "config.json").write_text('{"model_type": "qwen3", "max_position_embeddings": 999999}')
    assert resolved("tau2-retail", "-m", str(tmp_path), *LLM[2:]).model.max_context == 32768


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A run in the airline with limits of its own, and a checkpoint."""
    folder = tmp_path / "mine" / "checkpoints" / "step-000004"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "qwen3", "max_position_embeddings": 40960}')
    own = ["domain.name=airline-generated", "domain.size=official", "model.max_context=20000", "model.thinking=true"]
    made = load_config("quickstart", [*own, "rollout.tokens_per_turn=900", "eval.tasks=7"]).model_dump(mode="json")
    (tmp_path / "mine" / "config.yaml").write_text(yaml.safe_dump(made))
    return str(tmp_path / "mine")


def limits(config: RunConfig) -> tuple[object, ...]:
    model = config.model
    return config.domain.name, config.domain.size, model.max_context, model.thinking, config.rollout.tokens_per_turn


@pytest.mark.parametrize("option", ["--agent", "--checkpoint"])
def test_a_run_is_evaluated_under_its_own_settings(run: str, option: str) -> None:
    result = evaluate(option, run, "--dry-run")
    config = RunConfig.model_validate(yaml.safe_load(result.stdout))
    assert limits(config) == ("airline-generated", "official", 20000, True, 900)
    assert config.eval == load_config("cpu").eval, "how much is evaluated is not the run's to say"
    assert "Settings from the run mine: domain airline-generated, size official" in result.stderr
    assert limits(resolved(f"model.checkpoint={run}")) == limits(config)


def test_what_a_person_says_counts_more_than_the_run(run: str) -> None:
    assert limits(resolved("-m", run, "domain.size=tiny", "model.thinking=false", "rollout.tokens_per_turn=50")) == (
        "airline-generated", "tiny", 20000, False, 50,
    )  # fmt: skip
    assert limits(resolved("-m", run, "--config", "cpu")) == ("retail-generated", "tiny", 2048, False, 64)
    assert limits(resolved("airline-generated", "-m", run))[:2] == ("airline-generated", "official")
    # In another domain the size means nothing; a benchmark says everything but whether the model thinks.
    assert limits(resolved("retail-generated", "-m", run)) == ("retail-generated", "tiny", 20000, True, 900)
    assert limits(resolved("tau2-retail", "-m", run, *LLM[2:])) == ("tau2-retail", "tiny", 32768, True, 2048)


def test_shipped_checkpoints_are_evaluated_where_they_were_made() -> None:
    assert resolved("-m", "base-telecom").domain.name == "telecom-generated"
    assert limits(resolved("-m", "base")) == limits(load_config("cpu"))


@pytest.mark.parametrize(("agent", "kind"), [("expert", "expert"), ("idle", "idle"), ("do-nothing", "idle")])
def test_agents_that_need_no_model(agent: str, kind: str) -> None:
    assert resolved("retail-generated", "--agent", agent).eval.agent == kind


def test_an_agent_alone_needs_no_user() -> None:
    config = resolved("tau2-telecom", "--solo", "--agent", "endpoint:m")
    assert config.eval.solo
    assert config.eval_user.kind == "agenda"


@pytest.mark.parametrize(
    ("arguments", "levels", "said"),
    [
        (["retail-generated", "--agent", "expert"], ("typical", "hard"), False),
        (["retail-generated", *LLM], (), True),
        (["retail-generated", *LLM, "eval.harder_users=[hard]"], ("hard",), False),
        (["tau2-retail", *LLM], (), False),
        (["domain.name=tau2-retail", *LLM], (), False),
        (["retail-generated", "--agent", "expert", "--red-team", "impostor"], (), False),
        (["retail-generated", "--agent", "expert", "--noise", "2x2"], (), False),
    ],
)
def test_harder_users_are_left_out_where_every_conversation_is_paid_for(
    arguments: list[str], levels: tuple[str, ...], said: bool
) -> None:
    assert resolved(*arguments).eval.harder_users == levels
    assert ("Easy users alone" in evaluate(*arguments, "--dry-run").stderr) == said


def test_the_long_form_stays_as_it_was() -> None:
    config = resolved("--agent", "expert", "--tasks", "5", "rl.steps=3")
    assert config == load_config("cpu", ["name=eval", "eval.agent=expert", "eval.tasks=5", "rl.steps=3"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tau2-retial", *LLM], ["there is no environment 'tau2-retial'", "did you mean tau2-retail?"]),
        (["tau2-retail", "tau2-airline", *LLM], ["one benchmark at a time"]),
        (["tau2-retail", "--agent", "endpoint:"], ["no model name"]),
        (["tau2-retail", "--user", "gpt-u"], ["--user", "endpoint:MODEL"]),
        (["tau2-retail", *LLM[:2]], ["eval_user.kind"]),
        (["tau2-retail", *LLM, "--price", "gpt-a=2"], ["--price", "MODEL=2/8"]),
        (["tau2-retail", *LLM, "--price", "gpt-a=-2/8"], ["--price", "MODEL=2/8"]),
        (["tau2-retail", *LLM, "--user-judge", "pass"], ["user_judge", "endpoint:MODEL"]),
        (["tau2-retail", *LLM, "--split", "tset"], ["eval.split"]),
        (["tau2-retail", *LLM, "--max-cost", "0"], ["eval.max_cost"]),
        (["retail-generated", "eval.tasks=null"], ["eval.tasks"]),
        (["tau2-retail", "--resume", "runs/x"], ["its own benchmark"]),
    ],
)
def test_a_mistake_gets_one_clear_message(arguments: list[str], words: list[str]) -> None:
    result = evaluate(*arguments, "--dry-run")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for word in words:
        assert word in " ".join(result.stderr.replace("│", " ").split())


def test_help_shows_both_forms() -> None:
    shown = " ".join(evaluate("--help").output.replace("│", " ").split())
    for words in ("muarl eval tau2-telecom", "--resume", "--max-cost", "eval.endpoint.model=NAME", "KEY=VALUE"):
        assert words in shown


@pytest.mark.parametrize(
    ("name", "hint"), [("qwen/x", "`muarl domains` lists them"), ("tau2-retial", "did you mean tau2-retail?")]
)
def test_a_first_word_that_names_no_benchmark(name: str, hint: str) -> None:
    result = evaluate(name)
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert f"there is no environment {name!r}" in said and hint in said
    assert "override" not in said, "nobody gave one"
