"""``muarl chat``: what a person sees, how it ends, and what goes wrong clearly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.cli.chat import chat
from muarl.types.episode import StopReason, read_episodes
from muarl.users import human
from support.fake_openai import FakeOpenAI, call, completion, text
from support.trained import make_run


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(chat)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that the person types; then Ctrl-D."""
    lines: list[str] = []

    class Typed:
        def __init__(self) -> None:
            self.left: Iterator[str] = iter(lines)

        async def __call__(self) -> str | None:
            return next(self.left, None)

    monkeypatch.setattr(human, "LineReader", Typed)
    return lines


def test_a_simulated_user_can_be_watched_and_the_episode_is_kept(tmp_path: Path) -> None:
    result = run("expert", "--user", "agenda", "--task", "3", "--out", str(tmp_path / "e.jsonl"))
    assert result.exit_code == 0, result.output
    assert "The customer, played by agenda" in result.output
    assert "→ " in result.output
    assert "← " in result.output
    assert "1 (DB right" in result.output
    (episode,) = read_episodes(tmp_path / "e.jsonl")
    assert episode.stop is StopReason.USER_STOP
    assert episode.user.startswith("agenda")
    assert episode.reward == 1.0


def test_a_person_talks_until_ctrl_d(typed: list[str]) -> None:
    typed += ["hello", "never mind"]
    result = run("do-nothing", "--task", "0")
    assert result.exit_code == 0, result.output
    assert "You are this customer" in result.output
    assert result.output.count("You    ") == 3
    assert result.output.count("I am sorry") == 2
    assert "user stop" in result.output
    assert "0 (DB wrong" in result.output


def test_enter_sends_what_the_simulated_customer_would_say(typed: list[str], tmp_path: Path) -> None:
    typed += [""] * 30
    result = run("expert", "--task", "3", "--out", str(tmp_path / "e.jsonl"))
    assert result.exit_code == 0, result.output
    assert "Enter sends: " in result.output
    (episode,) = read_episodes(tmp_path / "e.jsonl")
    assert (episode.stop, episode.reward) == (StopReason.USER_STOP, 1.0)
    watched = run("expert", "--user", "agenda", "--task", "3", "--out", str(tmp_path / "w.jsonl"))
    assert watched.exit_code == 0
    (other,) = read_episodes(tmp_path / "w.jsonl")
    assert [m.content for m in episode.messages] == [m.content for m in other.messages]


def test_without_hints_blank_lines_are_asked_again(typed: list[str]) -> None:
    typed += ["hello", "", "never mind"]
    result = run("do-nothing", "--no-hints")
    assert "Enter sends" not in result.output
    assert result.output.count("You    ") == 4
    assert result.output.count("I am sorry") == 2


def test_an_agent_that_makes_the_same_failing_call_again_and_again_is_stopped(typed: list[str]) -> None:
    typed += ["Where is my order?"]
    again = completion(None, tool_calls=[call("get_order_details", {"order_id": "#W0"})])
    with FakeOpenAI([text("ready"), *[again] * 20]) as server:
        result = run(f"endpoint:m@{server.url}")
    assert result.exit_code == 0, result.output
    assert result.output.count("→ get_order_details") == 3
    assert "ended by  tool errors" in result.output
    assert "the same call failed 3 times" in result.output


def test_a_checkpoint_is_talked_with_in_its_own_domain_and_limits(typed: list[str], tmp_path: Path) -> None:
    typed += ["", ""]
    result = run("base-airline", "--out", str(tmp_path / "e.jsonl"))
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "Settings from preset airline: domain airline-generated, size tiny, context of 2,048 tokens" in shown
    assert "agent: base-airline" in shown
    assert "M parameters: it understands sentences like those of its simulated customers" in shown
    (episode,) = read_episodes(tmp_path / "e.jsonl")
    assert (episode.domain, episode.agent) == ("airline", "base-airline")


def test_the_end_is_explained_with_the_setting_that_decides_it(typed: list[str]) -> None:
    typed += ["Blurb the frobnicator, please."]
    result = run("base", "rollout.tokens_per_turn=1")
    assert result.exit_code == 0, result.output
    assert "ended by  turn length" in result.output
    assert "a reply was cut at 1 token (rollout.tokens_per_turn=N" in result.output
    assert "tokens a turn" not in result.output, "what the person says is not the run's"


@pytest.mark.parametrize(
    ("name", "domain", "size"),
    [
        ("tau1-retail", "retail-generated", "official"),
        ("bfcl-v3", "bfcl-generated", None),
        ("mcp-git", "mcp-git", None),
    ],
)
def test_an_agent_trained_on_a_benchmark_is_talked_with_in_the_generated_domain(
    tmp_path: Path, name: str, domain: str, size: str | None
) -> None:
    from muarl.recipes.chatting import chat_config

    folder = tmp_path / "mine" / "checkpoints" / "rl" / "step-000001"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "qwen3", "max_position_embeddings": 40960}')
    (tmp_path / "mine" / "config.yaml").write_text(f"domain: {{name: {name}}}\nmodel: {{max_context: 30000}}\n")
    config, _ = chat_config(str(tmp_path / "mine"), None, None)
    assert config.domain.name == domain
    assert size is None or config.domain.size == size
    assert config.model.max_context == 30000


def test_an_endpoint_serves_a_person(typed: list[str]) -> None:
    typed += ["Where is my order?"]
    script = [
        text("ready"),
        completion(None, tool_calls=[call("get_order_details", {"order_id": "#W0"})]),
        text("I do not find it.\x1b[2J", prompt_tokens=7),
    ]
    with FakeOpenAI(script) as server:
        result = run(f"endpoint:m@{server.url}")
    assert result.exit_code == 0, result.output
    assert '→ get_order_details(order_id="#W0")' in result.output
    assert "✗ Error" in result.output
    assert "I do not find it." in result.output
    assert "\x1b" not in result.output
    assert "17 + 10 tokens in 2 requests, cost unknown" in result.output
    assert {b["model"] for b in server.bodies} == {"m"}


@pytest.mark.usefixtures("typed")
def test_a_wrong_key_is_found_before_anybody_types() -> None:
    with FakeOpenAI(key="right") as server:
        result = run(f"endpoint:m@{server.url}")
    assert isinstance(result.exception, InfrastructureError)
    assert "API key" in str(result.exception)
    assert "You are this customer" not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--user", "nobody"], "--user"),
        (["--size", "huge"], "--size"),
        (["--split", "exam"], "--split"),
        (["endpoint:"], "endpoint"),
    ],
)
def test_unknown_choices_are_named(arguments: list[str], says: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert says in str(result.exception)


def test_an_agent_of_a_domain_that_nobody_here_knows_can_be_talked_with_elsewhere(tmp_path: Path) -> None:
    from muarl.recipes.chatting import chat_config

    run = str(make_run(tmp_path / "club", "model.max_context=3000", domain={"name": "club", "size": "tiny"}))
    with pytest.raises(ConfigError, match="domain.name is 'club'"):
        chat_config(run, None, None)
    config, _ = chat_config(run, "hotel-generated", "small")
    assert (config.domain.name, config.domain.size, config.model.max_context) == ("hotel-generated", "small", 3000)
