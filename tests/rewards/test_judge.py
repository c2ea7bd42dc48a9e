"""Judges: fixed answers, and a model asked with TAU2's prompt."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.rewards.judge import FixedJudge, ModelJudge, judge_prompt, make_judge
from muarl.types.chat import Message

TALK = [Message("user", "hi\nyou"), Message("assistant", None), Message("tool", "{}")]


class Answers:
    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), []

    async def complete(self, messages):
        self.asked.append(messages)
        return self.answers.pop(0)


def result(*met: bool) -> str:
    rows = ", ".join(f'{{"expectedOutcome": "x", "reasoning": "y", "metExpectation": {str(m).lower()}}}' for m in met)
    return f'{{"results": [{rows}]}}'


def test_the_prompt_shows_every_message_and_the_assertions_as_python_writes_them():
    system, user = judge_prompt(TALK, ["is polite", "doesn't lie"])
    pad = " " * 8
    assert system["content"].startswith(f"\n{pad}TASK\n{pad}- You will be given") and system["content"].endswith(
        f"}}\n{pad}"
    )
    assert user["content"] == (
        f"\n{pad}conversation:\n{pad}user: hi\nyou\nassistant: None\ntool: {{}}\n{pad}\n"
        f"{pad}expectedOutcomes:\n{pad}['is polite', \"doesn't lie\"]\n{pad}"
    )


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        (result(True, True), True),
        (result(True, False), False),
        (result(), True),
        ("{}", True),
        (f"```json\n{result(False)}\n```", False),
    ],
)
async def test_a_model_must_find_every_assertion_met(answer, passes):
    model = Answers(answer)
    assert await ModelJudge(model)(TALK, ["a", "b"]) is passes
    assert len(model.asked) == 1


async def test_an_unreadable_answer_is_asked_for_again_and_then_given_up():
    assert await ModelJudge(Answers("Yes!", '{"results": [{"metExpectation": "yes"}]}', result(True)))(TALK, ["a"])
    with pytest.raises(InfrastructureError, match="judge's answer could not be read") as failure:
        await ModelJudge(Answers("a", "[1]", '{"results": [{}]}'))(TALK, ["a"])
    assert failure.value.boundary == "judge"


async def test_judges_by_name():
    assert await make_judge("pass")(TALK, ["a"]) and not await make_judge("fail")(TALK, ["a"])
    assert make_judge("pass") == FixedJudge(True)
    assert isinstance(make_judge("endpoint:some-model@http://127.0.0.1:9/v1"), ModelJudge)
    for wrong in ("yes", "endpoint:", ""):
        with pytest.raises(ConfigError):
            make_judge(wrong)
