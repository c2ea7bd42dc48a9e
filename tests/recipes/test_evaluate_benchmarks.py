"""``muarl eval BENCHMARK`` with the benchmarks' data and models that are not there: prompts, tools, seeds, floors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.cli.main import app
from muarl.environments.configure import places_of
from support.eval_servers import READY, alone, brief, cast, polite
from support.fake_openai import Answer, FakeOpenAI, text

pytestmark = pytest.mark.data
GREETING = "Hi! How can I help you today?"


@pytest.fixture(scope="module", autouse=True)
def installed(module_data: Any) -> Path:
    return module_data("tau1", "tau2")


@pytest.fixture(autouse=True)
def place(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key")


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(cast(agent=polite, user=brief, alone=alone)) as fake:
        yield fake


@pytest.fixture
def evaluate(server: FakeOpenAI, tmp_path: Path) -> Callable[..., Any]:
    """``evaluate("tau2-mock", "--tasks", "2")``: the run's summary; the server has what was asked."""

    def run(*arguments: str, agent: str = "agent", user: str | None = "user") -> dict[str, Any]:
        sides = ["--agent", f"endpoint:{agent}@{server.url}" if agent in ("agent", "alone") else agent]
        if user is not None:
            sides += ["--user", f"endpoint:{user}@{server.url}"]
        result = CliRunner().invoke(
            app, ["eval", *arguments, *sides, "--name", "e", f"runs_dir={tmp_path}", "threads=1"]
        )
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads((tmp_path / "e" / "summary.json").read_text())
        return found

    return run


def asked(server: FakeOpenAI, model: str) -> list[dict[str, Any]]:
    return [b for b in server.bodies if b["model"] == model and b["messages"][-1]["content"] != READY]


def test_telecom_as_the_benchmark_plays_it(
    evaluate: Callable[..., Any], server: FakeOpenAI, installed: Path, tmp_path: Path
) -> None:
    found = evaluate("tau2-telecom", "--split", "test", "--trials", "4", "--tasks", "2")
    assert found["benchmark"] == {
        "name": "tau2-telecom", "split": "test", "tasks": 2, "trials": 4, "solo": False, "steps": 200, "turns": None,
        "tool_errors": 10, "seeds": [626729, 373753, 361454, 1567], "agent_calls": None, "mode": "native",
        "figures": {},
    }  # fmt: skip
    assert found["user_eval"] == "llm:user (tau2 guidelines)"
    assert set(found["evaluation"]["pass_hat"]) == {"1", "2", "3", "4"}
    agent, user = asked(server, "agent"), asked(server, "user")
    assert {b["seed"] for b in agent} == {b["seed"] for b in user} == {626729, 373753, 361454, 1567}
    assert {b["temperature"] for b in agent + user} == {0.0}
    assert not any("max_tokens" in b for b in agent + user)
    assert {len(b["tools"]) for b in agent} == {13}
    assert {len(b["tools"]) for b in user} == {30}
    guidelines = (installed / "tau2" / "user_simulator" / "simulation_guidelines_tools.md").read_bytes().decode()
    for body in user:
        system, greeting = body["messages"][:2]
        assert system["content"].startswith(guidelines + "\n\n<scenario>\n")
        assert system["content"].endswith("\n</scenario>")
        assert greeting == {"role": "user", "content": GREETING}
    first = agent[0]["messages"]
    assert first[0]["content"].startswith("<instructions>\nYou are a customer service agent that helps")
    assert "<main_policy>" in first[0]["content"]
    assert first[1] == {"role": "assistant", "content": GREETING}
    assert not any(m["role"] == "tool" for m in first), "what the user does with its phone stays its own"
    report = (tmp_path / "e" / "report.md").read_text()
    for words in ("llm:user (tau2 guidelines)", "200 steps, 10 errors", "626729, 373753, 361454, 1567"):
        assert words in report


@pytest.mark.parametrize(
    ("name", "tools", "style"),
    [("tau2-retail", 16, "tau2"), ("tau2-airline", 14, "tau2"), ("tau2-telecom-workflow", 13, "tau2")],
)
def test_other_domains_of_tau2(
    evaluate: Callable[..., Any], server: FakeOpenAI, installed: Path, name: str, tools: int, style: str
) -> None:
    found = evaluate(name, "--tasks", "2")
    assert found["evaluation"]["episodes"] == 2
    assert {len(b["tools"]) for b in asked(server, "agent")} == {tools}
    assert f"({style} guidelines)" in found["user_eval"]
    if name != "tau2-telecom-workflow":
        plain = (installed / "tau2" / "user_simulator" / "simulation_guidelines.md").read_bytes().decode()
        assert all("tools" not in b for b in asked(server, "user"))
        assert all(b["messages"][0]["content"].startswith(plain + "\n\n<scenario>") for b in asked(server, "user"))


@pytest.mark.parametrize(("name", "tools"), [("tau1-retail", 16), ("tau1-airline", 14)])
def test_tau1_as_the_benchmark_plays_it(
    evaluate: Callable[..., Any], server: FakeOpenAI, installed: Path, name: str, tools: int
) -> None:
    found = evaluate(name, "--tasks", "2", "--trials", "2")
    assert found["user_eval"] == "llm:user (tau1 guidelines)"
    assert (found["benchmark"]["turns"], found["benchmark"]["steps"], found["benchmark"]["seeds"]) == (30, None, None)
    agent, user = asked(server, "agent"), asked(server, "user")
    assert not any("seed" in b for b in agent + user)
    assert {b["temperature"] for b in agent} == {0.0}
    assert not any("temperature" in b for b in user), "left to the server"
    assert {len(b["tools"]) for b in agent} == {tools}
    wiki = (installed / "tau1" / name.partition("-")[2] / "wiki.md").read_text(encoding="utf-8")
    assert agent[0]["messages"][0] == {"role": "system", "content": wiki}
    assert agent[0]["messages"][1]["role"] == "user"
    assert user[0]["messages"][0]["content"].startswith("You are a user interacting with an agent.\n\nInstruction: ")
    assert user[0]["messages"][1] == {"role": "user", "content": GREETING}


@pytest.mark.parametrize(("name", "tasks", "tools"), [("tau2-mock", 7, 7), ("tau2-telecom", 40, 44)])
def test_an_agent_alone(evaluate: Callable[..., Any], server: FakeOpenAI, name: str, tasks: int, tools: int) -> None:
    split = [] if name == "tau2-mock" else ["--split", "test"]
    found = evaluate(name, "--solo", *split, agent="alone", user=None)
    assert found["benchmark"]["tasks"] == tasks
    assert found["user_eval"] == "none (solo mode)"
    assert found["user_errors"]["episodes"] == 0
    bodies = asked(server, "alone")
    assert {b["tool_choice"] for b in bodies} == {"required"}
    assert {len(b["tools"]) for b in bodies} == {tools}
    assert bodies[0]["tools"][-1]["function"]["name"] == "done"
    assert len(bodies[0]["messages"]) == 1
    system = bodies[0]["messages"][0]["content"]
    assert "You will be provided with a ticket" in system
    assert "<ticket>\n{ticket}" not in system
    assert set(found["evaluation"]["by_stop"]) == {"agent_stop"}


@pytest.mark.parametrize(
    ("name", "split", "floor"),
    [("tau2-retail", "base", 6 / 114), ("tau2-airline", "base", 23 / 50), ("tau2-airline", "test", 7 / 20),
     ("tau2-telecom", "base", 0.0), ("tau1-retail", "test", 7 / 115), ("tau1-airline", "test", 19 / 50)],
)  # fmt: skip
def test_what_doing_nothing_earns(evaluate: Callable[..., Any], name: str, split: str, floor: float) -> None:
    from muarl.config.load import load_config
    from muarl.config.parts import Compute
    from muarl.observe.progress import Progress
    from muarl.recipes.evaluate import baseline_scores
    from muarl.runs.roles import Cast

    options = [f"domain.name={name}", f"eval.split={split}", "eval.tasks=null", "eval_user.kind=llm"]
    config = load_config("cpu", [*options, "eval_user.endpoint.model=m"])
    places, ev = places_of(config, measuring=True), config.eval
    tasks = places.eval_tasks(ev.split, ev.tasks, seed=ev.seed)
    with Progress() as progress:
        overall, by_domain = baseline_scores(Cast.of(config), Compute.of(config), places, tasks, progress)
    assert overall["do_nothing"] == pytest.approx(floor) and set(overall) == {"do_nothing", "do_nothing_completion"}
    assert by_domain == {name: overall}


def test_an_idle_agent_with_a_customer_earns_what_doing_nothing_earns(evaluate: Callable[..., Any]) -> None:
    found = evaluate("tau2-airline", "--task", "0", "--task", "3", "--task", "7", agent="idle")
    assert found["benchmark"]["tasks"] == 3
    assert found["evaluation"]["success"] == pytest.approx(found["do_nothing"])


def test_telecoms_expert_and_user_need_no_model_at_all(evaluate: Callable[..., Any]) -> None:
    found = evaluate("tau2-telecom", "--tasks", "12", "--user", "agenda", agent="expert", user=None)
    assert found["evaluation"]["success"] == 1.0
    assert found["do_nothing"] == 0.0
    assert found["user_errors"]["episodes"] == 0
    assert found["cost"]["total"] == 0.0


def test_a_checkpoint_serves_official_tasks(evaluate: Callable[..., Any], base_run: Path, tmp_path: Path) -> None:
    from muarl.learning.checkpoints import load_policy, save_policy

    policy = load_policy(checkpoint_folder(str(base_run)))
    policy.model.config.max_position_embeddings = 16384
    long = save_policy(tmp_path / "long", policy.model, policy.tokenizer)
    found = evaluate("tau2-retail", "--tasks", "2", "-j", "2", "rollout.tokens_per_turn=16", agent=str(long))
    assert found["agent"] == "long"
    assert found["evaluation"]["tokens_per_episode"] > 0
    assert found["evaluation"]["episodes"] + found["evaluation"]["excluded"] == 2


def test_a_model_that_says_nothing_is_excluded_as_the_benchmark_does(tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=lambda body: text(""), user=brief)) as server:
        sides = ["--agent", f"endpoint:agent@{server.url}", "--user", f"endpoint:user@{server.url}"]
        result = CliRunner().invoke(app, ["eval", "tau2-airline", *sides, "--name", "e", f"runs_dir={tmp_path}"])
    assert result.exit_code == 2, result.output
    assert "not one episode could be scored" in result.stderr.replace("\n", " ")
    rows = [json.loads(line) for line in (tmp_path / "e" / "episodes" / "eval.jsonl").read_text().splitlines()]
    assert len(rows) == 50, "void attempts are no sign that an endpoint is gone"
    assert all(r["tags"]["void"] and r["tags"]["attempts"] == 4 for r in rows)


def test_a_judge_that_answers_nonsense_costs_only_the_episodes_that_need_it(tmp_path: Path) -> None:
    def judge(body: dict[str, Any]) -> Answer:
        return text("It went rather well, I should say.")

    with FakeOpenAI(cast(agent=polite, user=brief, judge=judge)) as server:
        url = f"@{server.url}"
        sides = ["--agent", f"endpoint:agent{url}", "--user", f"endpoint:user{url}", "--judge", f"endpoint:judge{url}"]
        result = CliRunner().invoke(
            app,
            ["eval", "tau2-retail", "--split", "base", "--tasks", "12", *sides, "--name", "e", f"runs_dir={tmp_path}"],
        )
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "e" / "summary.json").read_text())
    needy = found["excluded_by"]["judge"]
    assert 0 < needy < 12
    assert found["evaluation"]["episodes"] == 12 - needy
    assert found["judge_usage"]["requests"] > 3 * needy


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tau2-retail", "--user", "endpoint:u", "--agent", "expert"], ["has no scripted expert"]),
        (["tau2-retail", "--user", "endpoint:u", "--agent", "idle", "--solo"], ["no solo mode"]),
        (["tau2-retail", "--user", "endpoint:u", "--agent", "idle", "--split", "dev"], ["no split 'dev'"]),
        (["tau2-retail", "--user", "endpoint:u", "--agent", "idle", "--task", "999"], ["no task '999'"]),
        (["tau2-retail", "--user", "endpoint:u", "--agent", "idle", "--split", "validation"], ["no validation tasks"]),
        (["tau2-airline", "--agent", "idle"], ["--user endpoint:MODEL", "eval_user.kind=llm"]),
        (["tau2-airline", "--agent", "base", "--user", "endpoint:u"], ["policy text and tools alone take"]),
    ],
)
def test_what_cannot_be_done_is_told_first(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    with FakeOpenAI(text("ready")) as server:
        spoken = [a.replace("endpoint:u", f"endpoint:u@{server.url}") for a in arguments]
        result = CliRunner().invoke(app, ["eval", *spoken, f"runs_dir={tmp_path / 'runs'}"])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr.replace("\n", " ")
    assert not (tmp_path / "runs").exists()
