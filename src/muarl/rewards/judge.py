"""Who answers natural-language assertions: a fixed answer, or a language model with TAU2's prompt.

The prompt is the benchmark's own, word for word (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research).
TAU2 asks gpt-4.1-2025-04-14 at temperature 0; scores from other judges are not comparable with official ones.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from muarl.chat import Message
from muarl.errors import ConfigError, InfrastructureError
from muarl.untrusted import parse_json

_SYSTEM = """\
TASK
- You will be given a list of expected outcomes and a conversation that was collected during a test case run.
- The conversation is between an agent and a customer.
- Your job is to evaluate whether the agent satisfies each of the expected outcomes.
- Grade each expected outcome individually.

FORMAT
- Your response should be a JSON object with the following fields:
- `reasoning`: a short explanation for your classification
- `metExpectation`: `true` if the agent satisfies the expected outcomes, `false` otherwise
- `expectedOutcome`: repeat the expectation from the input that you are grading
{blank}
Example response structure:
{
    "results": [
        {
            "expectedOutcome": "<one of the expected outcomes from the input>",
            "reasoning": "<reasoning trace>",
            "metExpectation": <false or true>,
        }
    ]
}
"""


_TRUTH = TypeAdapter(bool)


class Judge(Protocol):
    """Answers whether a conversation meets all of a task's natural-language assertions."""

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool: ...


class Completer(Protocol):
    """What a judge needs of a language model: messages in the OpenAI form in, text out."""

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The answer to these messages."""
        ...


@dataclass(frozen=True)
class FixedJudge:
    """Always gives the same answer."""

    answer: bool

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        return self.answer


@dataclass(frozen=True)
class ModelJudge:
    """Asks a language model, all assertions at once, and passes if every one is met.

    An answer that is no such JSON is asked for again; InfrastructureError (boundary "judge") after ``attempts`` tries.
    As with TAU2, an answer with an empty list of results passes.
    """

    model: Completer
    attempts: int = 3

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        prompt = judge_prompt(messages, assertions)
        problem: Exception | None = None
        for _ in range(self.attempts):
            answer = await self.model.complete(prompt)
            try:
                return all(read_results(answer))
            except ValueError as failure:
                problem = failure
        raise InfrastructureError(f"the judge's answer could not be read: {problem}", boundary="judge")

    async def aclose(self) -> None:
        """Close the model's connections, if it has any; it can be asked again afterwards."""
        if isinstance(self.model, _EndpointModel):
            await self.model.endpoint.aclose()


def judge_prompt(messages: Sequence[Message], assertions: Sequence[str]) -> list[dict[str, str]]:
    """The system and user message that TAU2's judge gets: every message of the conversation, tool results included."""
    told = "\n".join(f"{m.role}: {m.content}" for m in messages)
    pad = " " * 8
    system = "\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in _SYSTEM.splitlines()) + pad
    user = f"\n{pad}conversation:\n{pad}{told}\n{pad}\n{pad}expectedOutcomes:\n{pad}{list(assertions)}\n{pad}"
    return [{"role": "system", "content": system.replace("{blank}", "")}, {"role": "user", "content": user}]


def read_results(answer: str) -> list[bool]:
    """The verdicts of a judge's answer; a fenced code block around the JSON is allowed. ValueError if malformed.

    As with TAU2, a verdict may also be the text "true" or "false", or 1 or 0.
    """
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", answer, re.DOTALL)
    try:
        found = parse_json(fenced.group(1) if fenced else answer)
        given = [r["metExpectation"] for r in found.get("results", [])]
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ValueError(f"{problem!r} in {textwrap.shorten(answer, 200)!r}") from None
    try:
        return [_TRUTH.validate_python(verdict) for verdict in given]
    except ValidationError:
        raise ValueError(f"metExpectation must be true or false in {textwrap.shorten(answer, 200)!r}") from None


@dataclass(frozen=True)
class _EndpointModel:
    """An endpoint (muarl.endpoints) as a Completer, at temperature 0."""

    endpoint: Any

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        reply = await self.endpoint.chat(messages, temperature=0.0, boundary="judge")
        return reply.content or ""


@cache
def make_judge(spec: str) -> Judge:
    """A judge from its name: ``pass``, ``fail``, or ``endpoint:MODEL`` (also ``endpoint:MODEL@URL``).

    The same name gives the same judge, so that an endpoint's connections and limits are shared. ConfigError for others.
    """
    if spec in ("pass", "fail"):
        return FixedJudge(spec == "pass")
    if spec.startswith("endpoint:"):
        from muarl.endpoints import Endpoint, parse_endpoint

        return ModelJudge(_EndpointModel(Endpoint(parse_endpoint(spec))))
    raise ConfigError(f"judge: must be pass, fail or endpoint:MODEL, not {spec!r}")
