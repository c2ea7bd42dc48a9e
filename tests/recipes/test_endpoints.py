"""Recipes with models behind endpoints: users, agents and judges on a local server, their costs and their failures."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.observe.rundir import RunDirectory
from muarl.users.llm import LLMUser
from support.fake_openai import FakeOpenAI, call, completion, json_answer, status, text

Muarl = Callable[..., Any]
KEY = "sk-the-right-key"
PRICE = 20e-6
"""Dollars for one answer of the fake server: ten prompt tokens at 1 and five completion tokens at 2 for a million."""


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries, and a key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def llm(role: str, server: FakeOpenAI | str, *more: str) -> list[str]:
    url = server if isinstance(server, str) else server.url
    fields = ["model=fake", f"base_url={url}", "attempts=1", "prompt_price=1", "completion_price=2", *more]
    kind = [] if role == "eval" else [f"{role}.kind=llm", f"{role}.guidelines=muarl"]
    return [*kind, *(f"{role}.endpoint.{f}" for f in fields)]


def impatient(body: dict[str, Any]) -> Any:
    """A customer who says two things and hangs up."""
    said = sum(m["role"] == "assistant" for m in body["messages"])
    return text("I want to cancel my order." if said < 2 else "###STOP###")


def served(server: FakeOpenAI) -> int:
    """Answers to conversations, not to the question whether anyone is there."""
    return sum(b["messages"][-1]["content"] != "Answer with the word ready." for b in server.bodies)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(impatient, key=KEY) as fake:
        yield fake


def fails_clearly(result: Any, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert KEY not in result.output
    for word in words:
        assert word in result.stderr.replace("\n", " "), word


def test_all_steps_and_validations_of_a_run_have_one_event_loop_and_leave_nothing_open(
    muarl: Muarl, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: set[asyncio.AbstractEventLoop] = set()
    sessions: list[aiohttp.ClientSession] = []
    made, reply = aiohttp.ClientSession, LLMUser.reply

    async def noting(self: LLMUser, conversation: Any) -> Any:
        loops.add(asyncio.get_running_loop())
        return await reply(self, conversation)

    def opened(**options: Any) -> aiohttp.ClientSession:
        sessions.append(made(**options))
        return sessions[-1]

    monkeypatch.setattr(LLMUser, "reply", noting)
    monkeypatch.setattr(aiohttp, "ClientSession", opened)
    result = muarl("train", *llm("user", server), *llm("eval_user", server), "rl.steps=2", "rl.eval_every=1")
    assert result.exit_code == 0, result.output
    assert len(loops) == 1 and all(loop.is_closed() for loop in loops)
    # One only asked whether anyone is there, one was for training's users, one for the validation's.
    assert len(sessions) == 3
    assert all(session.closed for session in sessions)


def test_training_with_a_model_as_the_user_counts_what_it_costs(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path
) -> None:
    result = muarl("train", *llm("user", server), "rl.steps=3", "--name", "r")
    assert result.exit_code == 0, result.output
    assert "exception" not in result.stderr.lower(), "no connection is left to a closed event loop"
    rows = RunDirectory.at(tmp_path / "runs" / "r").read_metrics()
    assert len(server.requests) - served(server) == 1, "asked once whether it is there"
    assert sum(r["user/cost"] for r in rows) == pytest.approx(served(server) * PRICE)
    assert all(r["user/prompt_tokens"] >= 10 and r["user/retries"] == 0 for r in rows)
    episode = RunDirectory.at(tmp_path / "runs" / "r").read_episodes("train-0000")[0]
    assert episode.user_usage.requests >= 1
    assert episode.user == "llm:fake (muarl guidelines)"
    assert KEY not in (tmp_path / "runs" / "r" / "config.yaml").read_text()


def test_episodes_whose_user_fails_are_excluded_and_paid_for(muarl: Muarl, tmp_path: Path) -> None:
    def moody(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]["content"]
        if body.get("seed", 1) % 4 == 0 and last != "Answer with the word ready." and len(body["messages"]) > 3:
            return status(500)
        return impatient(body)

    with FakeOpenAI(moody) as server:
        options = [
            *llm("user", server),
            "rl.steps=2",
            "rl.group_size=6",
            "rl.min_group=2",
            "rollout.tokens_per_turn=64",
        ]
        result = muarl("train", *options, "--name", "r")
        assert result.exit_code == 0, result.output
        answers = served(server)
    rows = RunDirectory.at(tmp_path / "runs" / "r").read_metrics()
    assert sum(r["excluded"] for r in rows) > 0, "choose other seeds"
    assert all(r["episodes"] + r["excluded"] == 12 for r in rows)
    assert sum(r["user/retries"] for r in rows) == 0
    # What failed is not answered, so not paid; what those episodes said before is.
    assert 0 < sum(r["user/cost"] for r in rows) < answers * PRICE


def test_a_step_in_which_all_fail_ends_the_run(muarl: Muarl, tmp_path: Path) -> None:
    def down(body: dict[str, Any]) -> Any:
        return text("ready") if len(body["messages"]) == 1 else status(503, message="overloaded")

    with FakeOpenAI(down) as server:
        fails_clearly(
            muarl("train", *llm("user", server), "rl.group_size=2", "--name", "r"),
            "no group of 4 episodes",
            "overloaded",
        )
        fails_clearly(muarl("eval", *llm("eval_user", server), "--name", "e"), "not one episode", "overloaded")
    for name in ("r", "e"):
        told = json.loads((tmp_path / "runs" / name / "status.json").read_text())
        assert told["state"] == "failed"
        assert "overloaded" in told["message"]


def test_a_key_that_is_withdrawn_ends_the_run_at_once(muarl: Muarl, tmp_path: Path) -> None:
    answers = [text("ready"), *[text("Cancel my order.")] * 5, status(401, message="revoked")]
    with FakeOpenAI(answers) as server:
        fails_clearly(muarl("train", *llm("user", server), "rl.steps=50", "--name", "r"), "trying again", "API key")
        assert len(server.requests) < 60
    assert json.loads((tmp_path / "runs" / "r" / "status.json").read_text())["state"] == "failed"


def roles(url: str) -> dict[str, tuple[str, list[str], str]]:
    """What to run, with which endpoint, and the section of the configuration that the message must name."""
    agent = ["eval.agent=endpoint", *llm("eval", url)]
    return {
        "user": ("train", llm("user", url), "user.endpoint"),
        "demonstrations": ("sft", llm("user", url), "user.endpoint"),
        "base": ("base", llm("user", url), "user.endpoint"),
        "validation": ("train", ["rl.eval_every=1", *llm("eval_user", url)], "eval_user.endpoint"),
        "eval": ("eval", llm("eval_user", url), "eval_user.endpoint"),
        "agent": ("eval", agent, "eval.endpoint"),
    }


@pytest.mark.parametrize("role", roles(""))
def test_a_wrong_key_is_found_before_any_work(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    command, options, section = roles(server.url)[role]
    result = muarl(command, *options)
    fails_clearly(result, section, "refuses the API key", "OPENAI_API_KEY")
    assert "sk-wrong-key" not in result.output
    assert len(server.requests) == 1
    assert not (tmp_path / "runs").exists()


def test_a_server_that_is_not_there_is_found_before_any_work(muarl: Muarl, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    fails_clearly(muarl("eval", *llm("eval_user", url)), "eval_user.endpoint", url, "unreachable")
    assert not (tmp_path / "runs").exists()


def test_a_missing_key_and_an_unknown_model_are_told(muarl: Muarl, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(models=["other"]) as server:
        fails_clearly(muarl("train", *llm("user", server)), "does not know the model 'fake'")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    fails_clearly(muarl("train", "user.kind=llm", "user.endpoint.model=m"), "no API key: set OPENAI_API_KEY")


def test_one_endpoint_in_two_roles_is_asked_once(muarl: Muarl, server: FakeOpenAI) -> None:
    options = [*llm("user", server), *llm("eval_user", server), "rl.eval_every=1", "rl.steps=1"]
    assert muarl("train", *options).exit_code == 0
    assert len(server.requests) - served(server) == 1


def test_an_agent_behind_an_endpoint_is_evaluated_with_its_costs(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path
) -> None:
    result = muarl("eval", "eval.agent=endpoint", *llm("eval", server), "eval.baseline=false", "--name", "e")
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())
    assert summary["agent"] == "endpoint:fake"
    assert summary["usage"]["agent/cost"] == pytest.approx(served(server) * PRICE)


@pytest.fixture
def tau2(install_data: Any) -> None:

    install_data("tau2")


@pytest.mark.data
def test_a_budget_is_kept_at_any_concurrency(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    """Every conversation costs three answers."""
    options = [*llm("eval_user", server), "--agent", "expert", "eval.tasks=24", "eval.baseline=false"]
    result = muarl("eval", *options, "--max-cost", str(7.5 * PRICE), "--name", "e")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())
    assert found["ended"] == "cost_budget"
    assert served(server) == 9, "three conversations, the third of which begins within the bound"
    more = muarl("eval", "--resume", str(tmp_path / "runs" / "e"), f"eval.max_cost={1000 * PRICE}")
    assert more.exit_code == 0, more.output
    assert served(server) == 3 * 24


def silent(body: dict[str, Any], answer: Any, *, from_the_start: bool) -> Any:
    """The same answer without its usage, to the question whether anyone is there only if ``from_the_start``."""
    if body["messages"][-1]["content"] == "Answer with the word ready." and not from_the_start:
        return answer
    told = json.loads(answer.body)
    del told["usage"]
    return json_answer(told)


EXPERT = ("--agent", "expert", "eval.tasks=24", "eval.baseline=false", "--name", "e")


@pytest.mark.parametrize("bound", ["eval.max_cost=10", "eval.max_tokens=100000"])
def test_a_bound_that_cannot_be_kept_is_said_before(muarl: Muarl, tmp_path: Path, bound: str) -> None:
    with FakeOpenAI(lambda body: silent(body, impatient(body), from_the_start=True), key=KEY) as server:
        refused = muarl("eval", *llm("eval_user", server), *EXPERT, bound)
        name = bound.partition("=")[0]
        fails_clearly(refused, f"{name}: eval_user.endpoint: the answers of fake do not say how many tokens they take")
        assert served(server) == 0 and not (tmp_path / "runs" / "e").exists()
        assert muarl("eval", *llm("eval_user", server), *EXPERT, "eval.tasks=2").exit_code == 0, "without a bound"
        summary = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())
        assert summary["cost"]["user"] is None and summary["cost"]["total"] is None, "what it cost is not known"


def test_a_bound_that_cannot_be_kept_any_more_stops_the_run(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(lambda body: silent(body, impatient(body), from_the_start=False), key=KEY) as server:
        result = muarl("eval", *llm("eval_user", server), *EXPERT, "--max-cost", "10")
        assert result.exit_code == 0, result.output
        assert served(server) == 3, "one conversation"
        folder = tmp_path / "runs" / "e"
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["ended"], summary["planned"]) == ("uncounted_usage", 24)
        said = " ".join(result.output.split())
        assert "1 of 24 episodes were played: a model's answer does not say how many tokens it took" in said
        assert "**Not complete**: a model's answer does not say" in (folder / "report.md").read_text()
        muarl("eval", "--resume", str(folder))
        assert served(server) == 3, "a resumed run has not forgotten it"
        more = muarl("eval", "--resume", str(folder), "eval.max_cost=null")
        assert more.exit_code == 0 and served(server) == 3 * 24, more.output


def test_the_bound_of_another_command_is_refused(muarl: Muarl, server: FakeOpenAI) -> None:
    options = [*llm("eval_user", server), *EXPERT, "eval.tasks=1"]
    fails_clearly(
        muarl("eval", *options, "budget.max_cost=10"),
        "budget.max_cost bounds training runs (muarl sft, train, quickstart), and nothing here",
        "set eval.max_cost=10 to bound this run",
    )
    fails_clearly(muarl("eval", *options, "coldstart.max_tokens=10"), "set eval.max_tokens=10")
    assert served(server) == 0
    assert muarl("eval", *options, "budget.max_cost=10", "eval.max_cost=1").exit_code == 0


def test_an_evaluations_bound_does_not_bound_training(configure: Callable[..., Any], server: FakeOpenAI) -> None:
    from muarl.basics.errors import ConfigError
    from muarl.runs.prices import Bounds, check_prices
    from muarl.runs.roles import Cast

    asking = configure("eval.max_cost=1", *llm("user", server))
    with pytest.raises(ConfigError, match=r"eval.max_cost bounds evaluations .* set budget.max_cost=1"):
        check_prices(Cast.of(asking), Bounds.of(asking), "user")
    alone = configure("eval.max_cost=1")
    check_prices(Cast.of(alone), Bounds.of(alone), "user")  # nobody is paid


def test_training_stops_once_its_budget_cannot_be_kept(configure: Callable[..., Any]) -> None:
    from muarl.runs.context import open_run
    from muarl.runs.spending import Spending
    from muarl.types.episode import Episode, StopReason, Usage

    config = configure("budget.max_cost=1.0")
    with open_run(config) as run:
        spending = Spending(config.budget, run)
        used = Usage(requests=2, cost=0.1, uncounted=1)
        spending.add(Episode("a", "t", "d", [], StopReason.USER_STOP, user_usage=used))
        for account in (spending, Spending(config.budget, run)):
            assert account.budget().gone(Usage()) == "uncounted_usage"
            assert "The budget of this run cannot be kept" in str(account.spent())


def test_the_judges_share_of_a_budget_is_counted_by_conversation(configure: Callable[..., Any]) -> None:
    from muarl.accounts.budgets import add_besides
    from muarl.runs.context import open_run
    from muarl.runs.spending import Spending
    from muarl.types.episode import Episode, StopReason, Usage

    config = configure("budget.max_cost=1.0")
    with open_run(config) as run:
        spending = Spending(config.budget, run)
        budget = spending.budget()
        played = Episode("a", "t", "d", [], StopReason.USER_STOP, user_usage=Usage(requests=1, cost=0.25))
        add_besides(played, Usage(requests=2, cost=0.5))  # as a worker on another machine tells it
        spending.add(played)
        assert spending.total.cost == 0.75
        assert budget.gone(Usage()) is None and budget.whole(played).cost == 0.75
        spending.add(Episode("b", "t", "d", [], StopReason.USER_STOP, user_usage=Usage(requests=1, cost=0.25)))
        assert budget.gone(Usage()) is not None, "whoever else spends it meanwhile"
        assert Spending(config.budget, run).total.cost == 1.0, "and on the disk"


@pytest.mark.data
@pytest.mark.usefixtures("tau2")
def test_official_tasks_with_models_in_every_part(muarl: Muarl, tmp_path: Path) -> None:
    def play(body: dict[str, Any]) -> Any:
        if "tools" not in body:
            return impatient(body)
        looked = any(m["role"] == "tool" for m in body["messages"])
        return text("Which order?") if looked else completion(tool_calls=[call("list_all_product_types", {})])

    with FakeOpenAI(play, key=KEY) as server:
        options = ["domain.name=tau2-retail", "eval.agent=endpoint", "eval.tasks=3", "--name", "e"]
        judge = f"eval.judge=endpoint:fake@{server.url}"
        result = muarl("eval", *options, *llm("eval", server), *llm("eval_user", server), judge)
        assert result.exit_code == 0, result.output
        assert len(server.requests) - served(server) == 1
    summary = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())
    assert summary["evaluation"]["tasks"] == 3
    assert summary["evaluation"]["behaviour"]["calls"] == 1
    assert summary["user_eval"] == "llm:fake (muarl guidelines)"
    assert summary["usage"]["user/cost"] > 0
    assert summary["judge_usage"].keys() >= {"requests", "prompt_tokens", "completion_tokens"}
    episode = RunDirectory.at(tmp_path / "runs" / "e").read_episodes("eval")[0]
    assert episode.tags["benchmark"] == "tau2"
    assert [m.role for m in episode.messages[:4]] == ["assistant", "user", "assistant", "tool"]


@pytest.mark.data
@pytest.mark.usefixtures("tau2")
def test_more_tasks_than_the_split_has_are_all_of_it(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    options = ["domain.name=tau2-retail", "eval.agent=idle", "eval.tasks=200", "eval.baseline=false", "--name", "e"]
    result = muarl("eval", *options, *llm("eval_user", server))
    assert result.exit_code == 0, result.output
    assert "has 40 tasks" in result.stderr.replace("\n", " ")
    assert json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())["evaluation"]["tasks"] == 40


@pytest.mark.data
@pytest.mark.usefixtures("tau2")
def test_training_on_the_benchmark_works_where_it_is_wanted(
    muarl: Muarl, server: FakeOpenAI, base_run: Path, tmp_path: Path
) -> None:
    from muarl.learning.checkpoints import load_policy, save_policy

    options = ["domain.name=tau2-retail", *llm("user", server), *llm("eval_user", server), "rl.steps=1"]
    options += ["rl.group_size=2", "train_on_benchmark=true", "--name", "r"]
    fails_clearly(muarl("train", *options), "model.max_context is 768", "policy text and tools")
    policy = load_policy(checkpoint_folder(str(base_run)))
    policy.model.config.max_position_embeddings = 16384
    long = save_policy(tmp_path / "long", policy.model, policy.tokenizer)
    small = ["rollout.concurrency=4", "learner.pack_tokens=16384"]
    result = muarl("train", *options, f"model.checkpoint={long}", "model.max_context=16384", *small)
    assert result.exit_code == 0, result.output
    assert RunDirectory.at(tmp_path / "runs" / "r").read_metrics()[0]["episodes"] == 4


def test_a_guarded_agent_is_held_back_and_the_run_says_how_often(muarl: Muarl, tmp_path: Path) -> None:
    cancels = completion(None, tool_calls=[call("cancel_pending_order", {"order_id": "#W1", "reason": "x"})])
    with FakeOpenAI(lambda body: cancels, key=KEY) as server:
        played = ["--agent", "endpoint", "eval.tasks=2", "eval.trials=1", *llm("eval", server)]
        result = muarl("eval", "--guard", *played, "--name", "e")
        other = muarl("eval", "--guard", "--agent", "expert")
    assert result.exit_code == 0, result.output
    run = RunDirectory.at(tmp_path / "runs" / "e")
    tags = [episode.tags["agent_guard"] for episode in run.read_episodes("eval")]
    assert all(tag["held_back"] == 3 * tag["given_up"] > 0 for tag in tags)
    for episode in run.read_episodes("eval"):
        assert not any(turn.message.tool_calls for turn in episode.turns)
        assert episode.agent == "endpoint:fake, guarded"
    summary, held = json.loads((run.path / "summary.json").read_text()), sum(tag["held_back"] for tag in tags)
    assert summary["agent_guard"]["held_back"] == held == summary["agent_guard"]["findings"]["unseen-record"]
    assert summary["agent_guard"]["episodes"] == 2 and not summary["audit"]["rules"].get("write-without-consent")
    assert f"held back {held} replies in 2 episodes" in (run.path / "report.md").read_text()
    fails_clearly(other, "eval.guard needs agent endpoint", "muarl serve CHECKPOINT --guard")
