"""The judge's layer: it must quote, it may clear, and where it fails the rules stand alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from muarl.audit.episodes import findings_in
from muarl.audit.judge import AuditJudge, Judgement, audit_prompt, judge_all, questions
from muarl.audit.transcript import Transcript, transcript_of
from muarl.basics.errors import InfrastructureError
from muarl.domains.auditing import AuditRules, Obligation
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn

RULES = AuditRules(
    obligations=(
        Obligation("fee", frozenset({"cancel_order"}), "That it costs $5.", (r"\$5",)),
        Obligation("sorry", frozenset({"cancel_order"}), "That we are sorry."),
    ),
    kinds={"cancel_order": "write"},
)


def transcript(*more: Message) -> Transcript:
    call = ToolCall("c", "cancel_order", {"order_id": "#1"})
    away = ToolCall("t", "transfer_to_human_agents", {"summary": "The customer wants a refund of order #1"})
    messages = [
        Message("user", "Cancel order #1."),
        Message("assistant", "I will cancel order #1, which costs five dollars. Shall I? We regret it very much."),
        Message("user", "Yes."),
        Message("assistant", None, (call,)),
        Message("tool", "cancelled", tool_call_id="c"),
        Message("assistant", "Done. It will rain tomorrow."),
        Message("assistant", None, (away,)),
        Message("tool", "ok", tool_call_id="t"),
        *more,
    ]
    return transcript_of(Episode("e", "t", "x", [Turn(m) for m in messages], StopReason.USER_STOP), rules=RULES)


@dataclass
class Scripted:
    """A model that gives these answers in turn, the last one from then on."""

    answers: list[str]
    asked: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        self.asked.append(messages)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def answer(*met: Mapping[str, Any], faults: Sequence[Mapping[str, Any]] = ()) -> str:
    return json.dumps({"answers": [{"id": f"Q{n}", **m} for n, m in enumerate(met, 1)], "faults": list(faults)})


YES = {"met": True, "turn": 1, "quote": "which costs five dollars"}
SORRY = {"met": True, "turn": 1, "quote": "We regret it very much"}
USEFUL = {"met": True, "turn": 6, "quote": "wants a refund of order #1"}
NO = {"met": False}


async def judged(*answers: str) -> Judgement:
    return await AuditJudge(Scripted(list(answers)))(transcript(), "The policy.")


def test_what_is_asked() -> None:
    asked = questions(transcript())
    assert [(q.rule, q.message, q.missed) for q in asked] == [
        ("unsaid-fee", 3, True), ("unsaid-sorry", 3, False), ("useless-handover-summary", 6, False),
    ]  # fmt: skip
    prompt = audit_prompt(transcript(), asked, "Be kind.")
    assert "Be kind." in prompt[1]["content"]
    assert "[6] agent:  (calls transfer_to_human_agents" in prompt[1]["content"]
    assert "[7] result: ok" in prompt[1]["content"]
    assert "Q1. " in prompt[1]["content"]


async def test_it_clears_what_a_pattern_missed() -> None:
    rules = findings_in(transcript())
    assert [f.rule for f in rules] == ["unsaid-fee"]
    found = await judged(answer(YES, SORRY, USEFUL))
    assert found.upon(rules) == ()


async def test_it_must_quote_to_clear() -> None:
    found = await judged(answer({**YES, "quote": "it costs nothing at all"}, SORRY, USEFUL))
    assert [f.rule for f in found.upon(findings_in(transcript()))] == ["unsaid-fee"]
    assert found.dropped == 1


async def test_what_was_not_done() -> None:
    found = await judged(answer(YES, NO, NO))
    assert [(f.rule, f.layer, f.message, f.by) for f in found.findings] == [
        ("unsaid-sorry", "communication", 3, "judge"), ("useless-handover-summary", "recovery", 6, "judge"),
    ]  # fmt: skip


async def test_faults_with_and_without_a_quote() -> None:
    rain = {"kind": "unfounded-claim", "turn": 5, "quote": "it will  RAIN tomorrow", "text": "Nobody said so."}
    wrong = [
        {**rain, "turn": 2, "quote": "Yes. and more"},  # the user's message
        {**rain, "turn": 99},
        {**rain, "quote": "rain"},  # too short to point at anything
        {**rain, "kind": "rudeness"},
        "no object",
    ]
    found = await judged(answer(YES, SORRY, USEFUL, faults=[rain, *wrong]))  # type: ignore[list-item]
    assert [(f.rule, f.message, f.layer) for f in found.findings] == [("unfounded-claim", 5, "communication")]
    assert found.dropped == 5


@pytest.mark.parametrize("bad", ["no JSON", "[]", "{}", answer(YES), answer(YES, SORRY, {"met": "maybe"})])
async def test_it_is_asked_again(bad: str) -> None:
    assert (await judged(bad, f"```json\n{answer(YES, SORRY, USEFUL)}\n```")).cleared == {("unsaid-fee", 3)}
    with pytest.raises(InfrastructureError, match="no answer that can be read"):
        await judged(bad)


async def test_failures_leave_the_rest() -> None:
    class Moody:
        count = 0

        async def __call__(self, asked: Transcript, policy: str) -> Judgement:
            Moody.count += 1
            if Moody.count == 2:
                raise InfrastructureError("busy", boundary="judge")
            return Judgement()

    answers, failures = await judge_all(Moody(), [(transcript(), "")] * 3, concurrency=1)
    assert [a is None for a in answers] == [False, True, False]
    assert failures == ["busy"]


async def test_a_hopeless_judge_is_not_asked_on() -> None:
    class Locked:
        count = 0

        async def __call__(self, asked: Transcript, policy: str) -> Judgement:
            Locked.count += 1
            raise InfrastructureError("wrong key", boundary="judge", retryable=False)

    answers, failures = await judge_all(Locked(), [(transcript(), "")] * 5, concurrency=1)
    assert (Locked.count, answers, failures) == (1, [None] * 5, ["wrong key"] * 5)


async def test_the_budget() -> None:
    answers, failures = await judge_all(
        AuditJudge(Scripted(["x"])), [(transcript(), "")], turn=lambda: nullcontext(False)
    )
    assert (answers, failures) == ([None], ["the budget is spent, or cannot be kept"])
