"""What an agent does in the expert's turns, compared with the expert."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from muarl.agents.base import AgentTurn
from muarl.config.load import load_config
from muarl.environments.configure import places_of
from muarl.observe.progress import Progress
from muarl.recipes.evaluation.next_turns import NextTurn, compared, figures, next_turns
from muarl.runs.roles import Cast
from muarl.types.chat import Message, ToolCall, ToolSpec


def said(*calls: tuple[str, dict[str, Any]], text: str = "") -> Message:
    return Message("assistant", text, tuple(ToolCall(f"call_{n}", name, args) for n, (name, args) in enumerate(calls)))


LOOK = ("get_order", {"order": 1})


@pytest.mark.parametrize(
    ("expert", "agent", "like"),
    [
        (said(LOOK), said(LOOK), NextTurn(True, True, True, True)),
        (said(LOOK), said(("get_order", {"order": 2}), text="One moment."), NextTurn(True, True, True, False)),
        (said(LOOK), said(("cancel", {"order": 1})), NextTurn(True, True, False, False)),
        (said(LOOK), said(LOOK, LOOK), NextTurn(True, True, False, False)),
        (said(LOOK), said(text="Which order?"), NextTurn(True, False, False, False)),
        (said(text="Which order?"), said(text="Who are you?"), NextTurn(False, True, True, True)),
        (said(text="Which order?"), said(LOOK), NextTurn(False, False, False, False)),
        (said(text="Which order?"), said(), NextTurn(False, False, False, False)),
    ],
)
def test_a_turn_is_compared_by_its_calls(expert: Message, agent: Message, like: NextTurn) -> None:
    assert compared(expert, agent) == like


def test_a_call_that_cannot_be_read_is_none() -> None:
    broken = Message("assistant", "", (ToolCall("call_0", "get_order", invalid="no JSON", raw="get_order("),))
    assert compared(said(LOOK), broken) == NextTurn(True, False, False, False)
    assert not compared(said(text="Hello."), broken).kind


def test_shares_are_of_the_turns_that_they_are_about() -> None:
    turns = [compared(said(LOOK), said(LOOK)), compared(said(LOOK), said()), compared(said(text="a"), said(text="b"))]
    found = {
        "calls": 2.0,
        "words": 1.0,
        "call_right": 0.5,
        "call_tools_right": 0.5,
        "call_made": 0.5,
        "words_kept": 1.0,
    }
    assert figures(turns) == found
    assert figures([]) == {"calls": 0.0, "words": 0.0}


class Knowing:
    """An agent that answers by what it was told: whatever ``answer`` makes of the history."""

    name = "knowing"

    def __init__(self, answer: Callable[[Sequence[Message]], Message]) -> None:
        self.answer, self.histories = answer, []

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> Any:
        assert "customer" in system and tools
        agent = self

        class Session:
            tokens = None

            async def act(self, new: Sequence[Message]) -> AgentTurn:
                agent.histories.append(tuple(new))
                return AgentTurn(agent.answer(new))

            def close(self) -> None:
                pass

        return Session()


def asked(agent: Knowing) -> dict[str, float]:
    config = load_config("quickstart", ["eval.next_turns=3", "eval.tasks=5"])
    places = places_of(config, measuring=True)
    tasks = places.eval_tasks(config.eval.split, config.eval.tasks, seed=config.eval.seed)
    found = next_turns(
        Cast.of(config),
        config.rollout.concurrency,
        places,
        places.everywhere(agent),
        tasks,
        Progress(Console(quiet=True)),
    )
    return found["retail-generated"]


def test_each_turn_has_the_expert_s_history_before_it() -> None:
    chatty = Knowing(lambda history: said(text="I see."))
    found = asked(chatty)
    assert found["call_made"] == found["call_right"] == 0.0 and found["words_kept"] == 1.0
    assert found["calls"] + found["words"] == len(chatty.histories) > 9
    ends = [history[-1].role for history in chatty.histories]
    assert set(ends) == {"user", "tool"}
    longest = max(chatty.histories, key=len)
    assert any(m.role == "assistant" and m.tool_calls for m in longest), "what was called before stands in it"


def test_the_expert_s_own_turns_are_all_right() -> None:
    seen = Knowing(lambda history: said(text="I see."))
    asked(seen)
    following = {}
    for history in seen.histories:
        for at, message in enumerate(history):
            if message.role == "assistant":
                following[tuple(m.content for m in history[:at])] = message
    again = Knowing(lambda history: following.get(tuple(m.content for m in history), said(text="Goodbye.")))
    found = asked(again)
    assert found["call_right"] == 1.0 and found["words_kept"] == 1.0


@pytest.mark.slow
def test_an_evaluation_reports_it(muarl: Callable[..., Any], tmp_path: Path) -> None:
    result = muarl("eval", "eval.tasks=2", "eval.next_turns=2", "rollout.max_turns=2", "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    found = json.loads((run / "summary.json").read_text())["next_turns"]["retail-generated"]
    assert found["calls"] > 2 and 0 <= found["call_right"] <= found["call_tools_right"] <= found["call_made"] <= 1
    assert "in the expert's turns, retail-generated" in (run / "report.md").read_text()
    refused = muarl("eval", "eval.next_turns=2", "eval.agent=idle")
    assert refused.exit_code == 2 and "eval.agent is idle" in refused.output


def test_a_model_in_several_domains_answers_in_each(muarl: Callable[..., Any], tmp_path: Path) -> None:
    domains = ("-d", "retail-generated", "-d", "hotel-generated", "model.chat_format=text", "model.max_context=2048")
    result = muarl("eval", *domains, "eval.tasks=2", "eval.next_turns=1", "rollout.max_turns=1", "--name", "e")
    assert result.exit_code == 0, result.output
    measured = json.loads((tmp_path / "runs" / "e" / "summary.json").read_text())["next_turns"]
    assert set(measured) == {"retail-generated", "hotel-generated"} and all(
        m["calls"] + m["words"] for m in measured.values()
    )
