"""``eval.next_turns`` where something is missing or fails: the evaluation before it is kept, and so are its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.environments.registry import approve
from support.eval_servers import Body, brief, cast, polite
from support.evaluating import models, rows, summary
from support.fake_openai import Answer, FakeOpenAI, status

Muarl = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries, and a key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key")


class Moody:
    """An agent that answers with ``failure`` where ``fails`` says so of a request's number."""

    def __init__(self) -> None:
        self.asked, self.fails, self.failure = 0, lambda number: False, status(503, message="overloaded")

    def __call__(self, body: Body) -> Answer:
        self.asked += 1
        return self.failure if self.fails(self.asked) else polite(body)


@pytest.fixture
def agent() -> Moody:
    return Moody()


@pytest.fixture
def server(agent: Moody) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(cast(agent=agent, user=brief)) as fake:
        yield fake


@pytest.fixture
def whole(muarl: Muarl, server: FakeOpenAI, agent: Moody, tmp_path: Path) -> tuple[int, dict[str, Any]]:
    """What the agent is asked in the evaluation itself, and the summary with the expert's turns."""
    assert muarl("eval", *options(server), "--name", "whole").exit_code == 0
    found = summary(tmp_path / "runs" / "whole")
    asked, agent.asked = agent.asked, 0
    return asked - turns(found), found


def options(server: FakeOpenAI, *more: str) -> list[str]:
    prices = ["--price", "agent=1/1", "--price", "user=1/1"]
    return [*models(server), *prices, "--tasks", "2", "--trials", "1", "eval.next_turns=2", *more]


def turns(found: dict[str, Any], *names: str) -> int:
    measured = found["next_turns"]["retail-generated"]
    return int(sum(measured[name] for name in names or ("calls", "words")))


def test_an_environment_without_a_rule_based_user_is_refused_before_anything_is_played(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path
) -> None:
    file = tmp_path / "quiet.py"
    file.write_text(
        "from dataclasses import replace\nfrom support.coin import COIN\n"
        "QUIET = replace(COIN, name='quiet', rule_based_user=None)\n"
    )
    approve(f"{file}:QUIET")
    result = muarl("eval", *options(server), f"domain.name={file}:QUIET")
    said = result.stderr.replace("\n", " ")
    assert result.exit_code == 2 and "eval.next_turns" in said and "has no rule-based user" in said
    assert "leave eval.next_turns out" in said
    assert not server.requests and not (tmp_path / "runs").exists()


def test_a_turn_that_fails_is_left_out(
    muarl: Muarl, server: FakeOpenAI, agent: Moody, whole: tuple[int, dict[str, Any]], tmp_path: Path
) -> None:
    before, complete = whole
    agent.fails = lambda number: number == before + 3
    result = muarl("eval", *options(server), "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    found = summary(run)
    assert turns(found, "excluded") == 1 and turns(found) == turns(complete) - 1
    assert "excluded" not in complete["next_turns"]["retail-generated"]
    assert "overloaded" in result.stderr and "; 1 of the expert's turns left out: " in (run / "report.md").read_text()
    assert found["next_turns_usage"]["requests"] == turns(complete), "what failed was asked for, too"


@pytest.mark.parametrize("failure", [status(503, message="overloaded"), status(401, message="revoked")])
def test_an_evaluation_is_kept_though_all_of_its_turns_fail(
    muarl: Muarl,
    server: FakeOpenAI,
    agent: Moody,
    whole: tuple[int, dict[str, Any]],
    tmp_path: Path,
    failure: Answer,
) -> None:
    before, complete = whole
    agent.fails, agent.failure = lambda number: number > before, failure
    result = muarl("eval", *options(server), "--name", "e")
    assert result.exit_code == 2 and "Traceback" not in result.output
    said = " ".join(result.stderr.split())
    assert "eval.next_turns: the agent answered in none of the expert's turns. The first failure" in said
    run = tmp_path / "runs" / "e"
    found = summary(run)
    assert found["evaluation"] == complete["evaluation"] and "next_turns" not in found
    assert "success" in (run / "report.md").read_text()
    assert failure.code == 503 or agent.asked - before <= 2, "a key that is refused is not tried again and again"
    agent.fails = lambda number: False
    agent.asked = 0
    assert muarl("eval", "--resume", str(run)).exit_code == 0
    assert summary(run)["next_turns"] == complete["next_turns"] and agent.asked == turns(complete)


def test_nobody_asks_for_turns_of_an_evaluation_that_a_budget_ended(
    muarl: Muarl, server: FakeOpenAI, agent: Moody, tmp_path: Path
) -> None:
    result = muarl("eval", *options(server), "--tasks", "20", "--max-tokens", "200", "--name", "e")
    assert result.exit_code == 0, result.output
    found = summary(tmp_path / "runs" / "e")
    assert found["ended"] == "token_budget" and "next_turns" not in found
    assert "eval.next_turns is left out, since not all episodes were played" in " ".join(result.stderr.split())
    assert agent.asked == sum(row["agent_usage"]["requests"] for row in rows(tmp_path / "runs" / "e"))


def test_the_turns_are_asked_for_within_what_the_evaluation_may_spend(
    muarl: Muarl, server: FakeOpenAI, agent: Moody, whole: tuple[int, dict[str, Any]], tmp_path: Path
) -> None:
    before, complete = whole
    assert turns(complete) > 4
    bound = complete["cost"]["total"] + 3.5 * complete["next_turns_usage"]["cost"] / turns(complete)
    result = muarl("eval", *options(server, f"eval.max_cost={bound}"), "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    found = summary(run)
    assert found["ended"] == "complete" and agent.asked == before + 4 == before + turns(found)
    assert turns(found, "excluded") == turns(complete) - 4
    said = " ".join(result.stderr.split())
    assert "the agent was not asked: the cost budget is spent (eval.max_cost, eval.max_tokens)" in said
    assert muarl("eval", "--resume", str(run)).exit_code == 0
    assert agent.asked == before + 4, "what was spent before counts"
    assert summary(run)["next_turns_usage"] == found["next_turns_usage"]
